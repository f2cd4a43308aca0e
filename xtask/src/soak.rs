//! Random tests on far more cases than CI has time for.
//!
//! Owns: how they are started. Must not: know what they try; the tests do (`soak` of `sched`, `faults` of the command).

use crate::failure::{StepFailure, succeed};
use crate::workspace::Workspace;

pub(crate) const MANY: u64 = 1_000_000;

const SETS: &str = "HOURGLASS_SOAK_SETS";

const FAULTS: &str = "HOURGLASS_FAULTS";

pub(crate) fn run(workspace: &Workspace, sets: u64) -> Result<(), StepFailure> {
    let arguments = [
        "test",
        "--release",
        "-p",
        "hourglass-sched",
        "--test",
        "analyses",
        "--",
        "soak::",
        "--nocapture",
    ];
    let shown = format!("{SETS}={sets} cargo {}", arguments.join(" "));
    println!("{shown}");
    succeed(workspace.cargo(&arguments).env(SETS, sets.to_string()), &shown)
}

/// Every fault of a system call, and every kill at one, of which the tests try a sample.
pub(crate) fn run_faults(workspace: &Workspace) -> Result<(), StepFailure> {
    let programs = ["--test", "command", "--test", "reservations"];
    let arguments = [&["test", "-p", "hourglass-rt"], &programs[..], &["--", "faults::"]].concat();
    let shown = format!("{FAULTS}=all cargo {}", arguments.join(" "));
    println!("{shown}");
    succeed(workspace.cargo(&arguments).env(FAULTS, "all"), &shown)
}
