//! The kernel's state of its clock discipline (`adjtimex(2)`); and, for measurements under a changed rate, changing it
//! for a while.

use std::io;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::AsRawFd;

use crate::checked;
use crate::clock::{ClockId, now_ns};

/// The kernel's account of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// Whether the clock is being synchronised (`STA_UNSYNC` is not set, the state is not `TIME_ERROR`).
    pub synchronised: bool,
    /// Greatest error of `CLOCK_REALTIME` against UTC that the synchroniser vouches for, us.
    pub max_error_us: u64,
    /// What it estimates that error to be, us; no bound.
    pub est_error_us: u64,
    /// Frequency correction, 2^-16 parts per million.
    pub frequency: i64,
    /// Length of a tick, us; 10 000 without a correction.
    pub tick_us: i64,
    /// Whether an offset is being slewed away at this moment.
    pub slewing: bool,
    /// Whether a leap second is near.
    pub leap: Leap,
}

/// A pending leap second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leap {
    /// None is announced.
    None,
    /// At the next midnight of UTC, or, until the announcement is withdrawn, at the last one
    /// (`STA_INS`, `STA_DEL`, `TIME_INS`, `TIME_DEL`, `TIME_WAIT`).
    Announced,
    /// It is being inserted (`TIME_OOP`).
    Running,
}

/// Asks the kernel; about 0.3 us.
///
/// # Errors
/// EPERM or ENOSYS where a sandbox forbids the call.
pub fn discipline() -> io::Result<Discipline> {
    // SAFETY: an all-zero timex is valid, and with no mode set asks without changing anything.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the live local.
    let answer = checked(unsafe { libc::adjtimex(&raw mut state) })?;
    Ok(Discipline {
        synchronised: answer != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0,
        max_error_us: u64::try_from(state.maxerror).unwrap_or(u64::MAX),
        est_error_us: u64::try_from(state.esterror).unwrap_or(u64::MAX),
        frequency: state.freq,
        tick_us: state.tick,
        slewing: state.offset != 0,
        leap: match answer {
            libc::TIME_OOP => Leap::Running,
            libc::TIME_INS | libc::TIME_DEL | libc::TIME_WAIT => Leap::Announced,
            _ if state.status & (libc::STA_INS | libc::STA_DEL) != 0 => Leap::Announced,
            _ => Leap::None,
        },
    })
}

/// `CLOCK_MONOTONIC` and `CLOCK_REALTIME` at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockPair {
    /// `CLOCK_MONOTONIC`, the middle of the bracket, ns.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME`, ns since 1970.
    pub realtime_ns: u64,
    /// Between the readings of `CLOCK_MONOTONIC` before and after that of `CLOCK_REALTIME`, ns.
    pub bracket_ns: u64,
}

/// Reads both clocks, nine times, and keeps the narrowest bracket; about 1 us.
#[must_use]
pub fn both_clocks() -> ClockPair {
    let read = |_| {
        let before = now_ns(ClockId::Monotonic);
        let realtime_ns = now_ns(ClockId::Realtime);
        let bracket_ns = now_ns(ClockId::Monotonic).saturating_sub(before);
        ClockPair { monotonic_ns: before.saturating_add(bracket_ns / 2), realtime_ns, bracket_ns }
    };
    (0..9).map(read).min_by_key(|both| both.bracket_ns).unwrap_or_default()
}

/// A change of the rate of the kernel's clock that does not outlast its maker: what it was is put back
/// when this is dropped, and by a process of its own when the maker is killed.
#[derive(Debug)]
pub struct FrequencyGuard {
    guard: libc::pid_t,
    /// Closed by dropping, or by the kernel.
    line: Option<PipeWriter>,
}

impl FrequencyGuard {
    /// Remembers rate and tick, and starts the process that puts them back.
    ///
    /// # Errors
    /// EPERM without `CAP_SYS_TIME`; EBUSY while another program synchronises the clock, whose work this would undo; no
    /// descriptors or processes left.
    pub fn begin() -> io::Result<FrequencyGuard> {
        // SAFETY: an all-zero timex is valid, and with no mode set asks without changing anything.
        let mut before: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills the live local.
        checked(unsafe { libc::adjtimex(&raw mut before) })?;
        if before.status & libc::STA_UNSYNC == 0 {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        before.modes = libc::ADJ_FREQUENCY | libc::ADJ_TICK;
        // Asks whether it is allowed, by changing it to what it is.
        // SAFETY: as above.
        checked(unsafe { libc::adjtimex(&raw mut before) })?;
        before.modes = libc::ADJ_FREQUENCY | libc::ADJ_TICK;
        let (end, line) = io::pipe()?;
        // SAFETY: the child calls nothing but what a signal handler may call, and ends.
        let guard = unsafe { libc::fork() };
        if guard == 0 {
            put_back(&end, &line, before);
        }
        checked(guard)?;
        Ok(FrequencyGuard { guard, line: Some(line) })
    }

    /// Makes the clock faster by `ppm` parts per million; 500 either way at most.
    ///
    /// # Errors
    /// EINVAL beyond that.
    pub fn set_frequency(&self, ppm: i64) -> io::Result<()> {
        let freq = ppm.saturating_mul(1 << 16);
        change(|state| {
            state.modes = libc::ADJ_FREQUENCY;
            state.freq = freq;
        })
    }

    /// Sets the length of a tick of 10 ms, us; 9,000 to 11,000.
    ///
    /// # Errors
    /// EINVAL beyond that.
    pub fn set_tick(&self, us: i64) -> io::Result<()> {
        change(|state| {
            state.modes = libc::ADJ_TICK;
            state.tick = us;
        })
    }
}

/// Changes what `fill` says.
fn change(fill: impl FnOnce(&mut libc::timex)) -> io::Result<()> {
    // SAFETY: an all-zero timex is valid.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    fill(&mut state);
    // SAFETY: the kernel reads and fills the live local.
    checked(unsafe { libc::adjtimex(&raw mut state) }).map(drop)
}

/// The child: waits until the line has no other holder, and puts the rate back.
fn put_back(end: &PipeReader, line: &PipeWriter, mut before: libc::timex) -> ! {
    let mut byte = 0u8;
    // SAFETY: calls that a signal handler may make, on live locals and descriptors of this process;
    // `_exit` ends the child without running anything of the parent's.
    unsafe {
        libc::setsid();
        for signal in 1..libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::close(line.as_raw_fd());
        while libc::read(end.as_raw_fd(), (&raw mut byte).cast(), 1) == -1 {}
        let done = libc::adjtimex(&raw mut before);
        libc::_exit(i32::from(done == -1));
    }
}

impl Drop for FrequencyGuard {
    fn drop(&mut self) {
        self.line = None;
        // SAFETY: the child is ours, and its status is not wanted.
        unsafe { libc::waitpid(self.guard, std::ptr::null_mut(), 0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_are_of_one_moment() {
        let before = now_ns(ClockId::Monotonic);
        let both = both_clocks();
        let after = now_ns(ClockId::Monotonic);
        assert!(before <= both.monotonic_ns && both.monotonic_ns <= after, "{both:?}");
        assert!(both.bracket_ns <= after - before, "{both:?}");
        // 2020: a machine whose clock was never set fails its other tests, too.
        assert!(both.realtime_ns > 1_577_836_800_000_000_000, "{both:?}");
    }

    #[test]
    fn the_kernel_answers() {
        let Ok(found) = discipline() else { return };
        // The kernel keeps a tick within 10 % of 10 ms, the frequency within 500 ppm.
        assert!((9_000..=11_000).contains(&found.tick_us), "{found:?}");
        assert!(found.frequency.abs() <= 500 << 16, "{found:?}");
    }
}
