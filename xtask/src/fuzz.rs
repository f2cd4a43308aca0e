//! Inputs changed at random.
//!
//! Owns: how the targets are started, and with which seed. Must not: know what they try; `hourglass-fuzz` does.

pub(crate) mod coverage;

use std::time::{SystemTime, UNIX_EPOCH};

use crate::failure::StepFailure;
use crate::workspace::Workspace;

pub(crate) const SECONDS: u64 = 600;

/// Targets share the time, and the CPUs; none has less than this, seconds.
const LEAST_SECONDS: u64 = 1;

/// Targets, about; the time of each follows.
const TARGETS: u64 = 29;

/// Runs the targets with a seed that is another one each time, and printed. Built as tests are, so that an overflow
/// panics.
///
/// # Errors
/// Something was found, or nothing can be built.
pub(crate) fn run(
    workspace: &Workspace,
    seconds: u64,
    targets: &[&str],
) -> Result<(), StepFailure> {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    let count = if targets.is_empty() { TARGETS } else { targets.len() as u64 };
    let each = (seconds.saturating_mul(cpus.min(count)) / count).max(LEAST_SECONDS).to_string();
    let seed = seed().to_string();
    let mut arguments =
        vec!["run", "--quiet", "-p", "hourglass-fuzz", "--", "--seconds", &each, "--seed", &seed];
    arguments.extend(targets);
    let shown = format!("cargo {}", arguments.join(" "));
    println!("{shown}");
    match workspace.cargo(&arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(StepFailure::Broken(format!("`{shown}` found something ({status})"))),
        Err(error) => Err(StepFailure::Broken(format!("{shown}: {error}"))),
    }
}

/// Another one each time.
fn seed() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| since.as_secs() as u32)
}
