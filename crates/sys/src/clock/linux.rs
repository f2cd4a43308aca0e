//! `clock_gettime(2)` and its kin.

use std::io;

use super::ClockId;
use crate::checked;

impl ClockId {
    #[inline(always)]
    fn raw(self) -> libc::clockid_t {
        match self {
            ClockId::Monotonic => libc::CLOCK_MONOTONIC,
            ClockId::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
            ClockId::Boottime => libc::CLOCK_BOOTTIME,
            ClockId::Realtime => libc::CLOCK_REALTIME,
            ClockId::Tai => libc::CLOCK_TAI,
            ClockId::MonotonicCoarse => libc::CLOCK_MONOTONIC_COARSE,
            ClockId::RealtimeCoarse => libc::CLOCK_REALTIME_COARSE,
            ClockId::ThreadCpu => libc::CLOCK_THREAD_CPUTIME_ID,
            ClockId::ProcessCpu => libc::CLOCK_PROCESS_CPUTIME_ID,
        }
    }
}

/// Reads `clock`: about 20 ns through the vDSO where the kernel's clock source can be read in user
/// space, 5 ns for the coarse ones; the two processor times are always a system call. Never fails
/// for the clocks listed.
#[inline]
#[must_use]
pub fn now_ns(clock: ClockId) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a live local; the clock ids exist on every Linux.
    unsafe { libc::clock_gettime(clock.raw(), &raw mut time) };
    nanoseconds(time)
}

/// Reads `clock` by entering the kernel, also where that is not needed: what a program pays that has
/// no vDSO, some 100 ns.
#[must_use]
pub fn now_ns_by_system_call(clock: ClockId) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a live local; the clock ids exist on every Linux.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock.raw(), &raw mut time) };
    nanoseconds(time)
}

/// Reads a clock by its raw number, which may name a device ([`crate::ptp`]).
///
/// # Errors
/// EINVAL for a number that names nothing, ENODEV for a device that is gone.
#[inline]
pub(crate) fn try_now_ns(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a live local, and refuses unknown numbers.
    checked(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
    Ok(nanoseconds(time))
}

/// The step of `clock` in nanoseconds, as the kernel states it (`clock_getres(2)`).
///
/// # Errors
/// EINVAL on a kernel without that clock.
pub fn resolution_ns(clock: ClockId) -> io::Result<u64> {
    try_resolution_ns(clock.raw())
}

/// As [`resolution_ns`], by raw number.
pub(crate) fn try_resolution_ns(clock: libc::clockid_t) -> io::Result<u64> {
    let mut step = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a live local, and refuses unknown numbers.
    checked(unsafe { libc::clock_getres(clock, &raw mut step) })?;
    Ok(nanoseconds(step))
}

#[inline(always)]
fn nanoseconds(time: libc::timespec) -> u64 {
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// The CPU that the caller runs on, at some moment during the call.
#[inline]
#[must_use]
pub fn current_cpu() -> u32 {
    // SAFETY: no arguments, no memory.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).unwrap_or(0)
}

/// An absolute time of `CLOCK_MONOTONIC` as the kernel takes it.
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        // The type's name goes away for musl, where its width is to change.
        tv_sec: (ns / 1_000_000_000) as _,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_answers_and_states_its_step() {
        for clock in ClockId::ALL {
            let first = now_ns(clock);
            assert!(first > 0 && now_ns(clock) >= first, "{clock:?}");
            let step = resolution_ns(clock).unwrap();
            assert!((1..=100_000_000).contains(&step), "{clock:?}: {step} ns");
        }
    }

    #[test]
    fn a_number_that_names_no_clock_is_an_error() {
        assert_eq!(try_now_ns(15).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
