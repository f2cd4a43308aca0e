//! The clocks of other systems, by what the standard library knows of them.

use std::io;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime};

use super::ClockId;

/// When this process asked first: the zero of [`ClockId::Monotonic`] here.
static FIRST: OnceLock<Instant> = OnceLock::new();

/// Reads `clock`. [`ClockId::Realtime`] and [`ClockId::Tai`] are the system's wall clock, 0 before
/// 1970; every other one is its monotonic clock, ns since this process asked first.
/// [`resolution_ns`] tells which of them the system really has.
#[inline]
#[must_use]
pub fn now_ns(clock: ClockId) -> u64 {
    let passed = match clock {
        ClockId::Realtime | ClockId::Tai | ClockId::RealtimeCoarse => {
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
        }
        _ => FIRST.get_or_init(Instant::now).elapsed(),
    };
    u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
}

/// The step of `clock`, ns: 1 where it is not known.
///
/// # Errors
/// Unsupported for a clock that the standard library does not know.
pub fn resolution_ns(clock: ClockId) -> io::Result<u64> {
    match clock {
        ClockId::Monotonic | ClockId::Realtime => Ok(1),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}
