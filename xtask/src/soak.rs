//! Tests on far more cases, or for far longer, than CI has time for.
//!
//! Owns: how they are started. Must not: know what they try; the tests do (`soak` of `sched` and of the command, its `faults`).

use std::path::Path;

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

/// The shortest soak that says something of growth, s.
pub(crate) const LEAST_S: f64 = 20.0;
pub(crate) const MOST_S: f64 = 7.0 * 86_400.0;

const LENGTH: &str = "HOURGLASS_SOAK_S";

const RECORD: &str = "HOURGLASS_SOAK_RECORD";

/// All that has to hold for long, together. It prints its result, and writes it to `record`.
pub(crate) fn run_together(
    workspace: &Workspace,
    seconds: f64,
    record: Option<&Path>,
) -> Result<(), StepFailure> {
    let test = ["--", "--exact", "soak::all_together_for_long", "--nocapture"];
    let program = ["--release", "-p", "hourglass-rt", "--test", "reservations"];
    let arguments = [&["test"], &program[..], &test].concat();
    let shown = format!("{LENGTH}={seconds} cargo {}", arguments.join(" "));
    println!("{shown}");
    let mut cargo = workspace.cargo(&arguments);
    cargo.env(LENGTH, seconds.to_string());
    if let Some(record) = record {
        // Tests run in the folder of their package.
        let path = std::path::absolute(record).map_err(|e| StepFailure::file(record, &e))?;
        cargo.env(RECORD, path);
    }
    succeed(&mut cargo, &shown)
}

/// Every fault of a system call, and every kill at one, of which the tests try a sample.
pub(crate) fn run_faults(workspace: &Workspace) -> Result<(), StepFailure> {
    let programs = ["--test", "command", "--test", "reservations"];
    let arguments = [&["test", "-p", "hourglass-rt"], &programs[..], &["--", "faults::"]].concat();
    let shown = format!("{FAULTS}=all cargo {}", arguments.join(" "));
    println!("{shown}");
    succeed(workspace.cargo(&arguments).env(FAULTS, "all"), &shown)
}
