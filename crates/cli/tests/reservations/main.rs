//! What promises CPU time or takes it away: reservations, privileges, quotas. A program apart from `command`, whose
//! measurements these tests would disturb.

#[path = "../calls/mod.rs"]
mod calls;
mod privilege;
#[path = "../processes/mod.rs"]
mod processes;
mod quota;
mod reserve;
mod soak;

use std::process::Output;
use std::sync::{Mutex, MutexGuard, PoisonError};

use calls::{HOURGLASS, document, ends, is_refused, stderr, text, warning};
use processes::{Killed, send, within};

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

/// What a process is called, with a line break; empty where it has ended.
fn name_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}
