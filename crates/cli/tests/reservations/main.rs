//! What promises CPU time or takes it away: reservations, privileges, quotas. A program apart from `command`, whose
//! measurements these tests would disturb.

mod privilege;
#[path = "../processes/mod.rs"]
mod processes;
mod quota;
mod reserve;

use std::process::Output;
use std::sync::{Mutex, MutexGuard, PoisonError};

const HOURGLASS: &str = env!("CARGO_BIN_EXE_hourglass");

/// Exit code of `reserve` for a failure of its own.
const OWN: i32 = 125;

/// Held by each test that reserves or has a quota: together they are more than real-time threads may have, and each is
/// kept to its budget on two CPUs that others have at a real-time priority.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
