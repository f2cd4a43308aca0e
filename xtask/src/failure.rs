//! Why a task did not end well.

use std::fmt;
use std::io;
use std::path::Path;

use hourglass_skip::Need;

/// Why a task did not end well. The exit codes are those of `hourglass` itself.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was checked is not in order.
    Broken(String),
    /// The command line says nothing that can be done.
    Usage(String),
    /// This machine cannot do it: a tool, a right or the network is missing.
    Unable(Need, String),
}

impl Failure {
    /// What the process ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Broken(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Unable(..) => 3,
        }
    }

    /// A file that could not be read or written.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Failure {
        Failure::Broken(format!("{}: {error}", path.display()))
    }

    /// A program that could not be started: missing, or broken.
    pub(crate) fn start(program: &str, error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::Unable(Need::program(program), format!("{program} is not installed"))
            }
            _ => Failure::Broken(format!("{program}: {error}")),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Broken(text) | Failure::Usage(text) | Failure::Unable(_, text) => {
                f.write_str(text)
            }
        }
    }
}
