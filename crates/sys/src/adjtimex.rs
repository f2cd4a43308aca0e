//! What the kernel says of its own clock's discipline (`adjtimex(2)`), without changing it.

use std::io;

use crate::checked;

/// The kernel's account of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// Whether somebody keeps the clock synchronised (`STA_UNSYNC` is not set).
    pub synchronised: bool,
    /// Greatest error of `CLOCK_REALTIME` against UTC that the synchroniser vouches for, us.
    pub max_error_us: u64,
    /// Frequency correction, 2^-16 parts per million.
    pub frequency: i64,
    /// Length of a tick, us; 10 000 where nobody corrects by it.
    pub tick_us: i64,
    /// Whether an offset is being slewed away at this moment.
    pub slewing: bool,
    /// TAI minus UTC, s; 0 where nobody told the kernel.
    pub tai_offset_s: i32,
}

/// Asks the kernel; about 0.3 us.
///
/// # Errors
/// EPERM or ENOSYS where a sandbox forbids the call.
pub fn discipline() -> io::Result<Discipline> {
    // SAFETY: an all-zero timex is valid, and with no mode set asks without changing anything.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the live local.
    checked(unsafe { libc::adjtimex(&raw mut state) })?;
    Ok(Discipline {
        synchronised: state.status & libc::STA_UNSYNC == 0,
        max_error_us: u64::try_from(state.maxerror).unwrap_or(u64::MAX),
        frequency: state.freq,
        tick_us: state.tick,
        slewing: state.offset != 0,
        tai_offset_s: state.tai,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers() {
        let Ok(found) = discipline() else { return };
        // The kernel keeps a tick within 10 % of 10 ms, the frequency within 500 ppm.
        assert!((9_000..=11_000).contains(&found.tick_us), "{found:?}");
        assert!(found.frequency.abs() <= 500 << 16, "{found:?}");
    }
}
