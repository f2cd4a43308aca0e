//! The operating system's clocks, in nanoseconds.

/// A clock of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockId {
    /// Never set, slewed by NTP, stops in suspend.
    Monotonic,
    /// Never set, never slewed, stops in suspend.
    MonotonicRaw,
    /// Wall-clock time, ns since 1970.
    Realtime,
}

/// Reads `clock` through the vDSO: about 20 ns, no system call where the kernel's clock source
/// can be read in user space. Never fails for the clocks listed.
#[inline]
#[must_use]
pub fn now_ns(clock: ClockId) -> u64 {
    let id = match clock {
        ClockId::Monotonic => libc::CLOCK_MONOTONIC,
        ClockId::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
        ClockId::Realtime => libc::CLOCK_REALTIME,
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a live local; the clock ids exist on every Linux.
    unsafe { libc::clock_gettime(id, &raw mut time) };
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
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}
