//! Random tests on far more cases than CI has time for.
//!
//! Owns: how they are started. Must not: know what they try; the test `soak` of `sched` does.

use crate::failure::StepFailure;
use crate::workspace::Workspace;

/// Sets, if nothing is said.
pub(crate) const MANY: u64 = 1_000_000;

/// Where the test reads how many sets there are to be.
const SETS: &str = "HOURGLASS_SOAK_SETS";

/// Runs the test on `sets` sets and shows its output.
///
/// # Errors
/// A response exceeds its bound, or nothing can be built.
pub(crate) fn run(workspace: &Workspace, sets: u64) -> Result<(), StepFailure> {
    let arguments =
        ["test", "--release", "-p", "hourglass-sched", "--test", "soak", "--", "--nocapture"];
    let shown = format!("{SETS}={sets} cargo {}", arguments.join(" "));
    println!("{shown}");
    let status = workspace.cargo(&arguments).env(SETS, sets.to_string()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(StepFailure::Broken(format!("`{shown}` failed ({status})"))),
        Err(error) => Err(StepFailure::Broken(format!("{shown}: {error}"))),
    }
}
