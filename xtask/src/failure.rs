//! Why a task did not end well.

use std::fmt;
use std::io;
use std::path::Path;

/// Why a task did not end well. The exit codes are those of `hourglass` itself.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was checked is not in order.
    Broken(String),
    /// The command line says nothing that can be done.
    Usage(String),
    /// This machine cannot do it: a tool, a right or the network is missing.
    Unable(String),
}

impl Failure {
    /// What the process ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Broken(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Unable(_) => 3,
        }
    }

    /// A file that could not be read or written.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Failure {
        Failure::Unable(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Broken(text) | Failure::Usage(text) | Failure::Unable(text) => {
                f.write_str(text)
            }
        }
    }
}
