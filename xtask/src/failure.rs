//! Why a task did not end well.

use std::fmt;
use std::io;
use std::path::Path;

use hourglass_skip::Requirement;

/// Why a task did not end well. The exit codes are those of `hourglass` itself.
#[derive(Debug)]
pub(crate) enum StepFailure {
    /// What was checked is not in order.
    Broken(String),
    /// The command line says nothing that can be done.
    Usage(String),
    /// This machine cannot do it: a tool, a right or the network is missing.
    Unable(Requirement, String),
}

impl StepFailure {
    /// What the process ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            StepFailure::Broken(_) => 1,
            StepFailure::Usage(_) => 2,
            StepFailure::Unable(..) => 3,
        }
    }

    /// A file that could not be read or written.
    pub(crate) fn file(path: &Path, error: &io::Error) -> StepFailure {
        StepFailure::Broken(format!("{}: {error}", path.display()))
    }

    /// A program that could not be started: missing, or broken.
    pub(crate) fn start(program: &str, error: &io::Error) -> StepFailure {
        match error.kind() {
            io::ErrorKind::NotFound => StepFailure::Unable(
                Requirement::program(program),
                format!("{program} is not installed"),
            ),
            _ => StepFailure::Broken(format!("{program}: {error}")),
        }
    }
}

impl fmt::Display for StepFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepFailure::Broken(text) | StepFailure::Usage(text) | StepFailure::Unable(_, text) => {
                f.write_str(text)
            }
        }
    }
}
