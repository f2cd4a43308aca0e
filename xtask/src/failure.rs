//! Why a task did not end well.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;

use hourglass_skip::Requirement;

/// Why a task did not end well. The exit codes are those of `hourglass` itself.
#[derive(Debug)]
pub(crate) enum StepFailure {
    Broken(String),
    Usage(String),
    Unable(Requirement, String),
}

impl StepFailure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            StepFailure::Broken(_) => 1,
            StepFailure::Usage(_) => 2,
            StepFailure::Unable(..) => 3,
        }
    }

    pub(crate) fn file(path: &Path, error: &io::Error) -> StepFailure {
        StepFailure::Broken(format!("{}: {error}", path.display()))
    }

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

/// Runs a command, which messages show as `shown`, to its end.
pub(crate) fn succeed(command: &mut Command, shown: &str) -> Result<(), StepFailure> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(StepFailure::Broken(format!("`{shown}` failed ({status})"))),
        Err(error) => Err(StepFailure::Broken(format!("{shown}: {error}"))),
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
