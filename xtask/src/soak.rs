//! Random tests on far more cases than CI has time for.
//!
//! Owns: how they are started. Must not: know what they try; the test `soak` of `sched` does.

use crate::failure::{StepFailure, succeed};
use crate::workspace::Workspace;

pub(crate) const MANY: u64 = 1_000_000;

const SETS: &str = "HOURGLASS_SOAK_SETS";

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
