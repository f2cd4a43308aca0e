//! The operating system's clocks, in nanoseconds.

#[cfg(target_os = "linux")]
pub mod cpu_time;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;

#[cfg(target_os = "linux")]
pub use cpu_time::own_thread_ns;
#[cfg(target_os = "linux")]
pub use linux::{current_cpu, now_ns, now_ns_by_system_call, resolution_ns};
#[cfg(target_os = "linux")]
pub(crate) use linux::{timespec, try_now_ns, try_resolution_ns};
#[cfg(not(target_os = "linux"))]
pub use portable::{now_ns, resolution_ns};

/// A clock of the kernel (`clock_gettime(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockId {
    /// Never set, slewed by NTP, stops in suspend.
    Monotonic,
    /// Never set, never slewed, stops in suspend.
    MonotonicRaw,
    /// As [`ClockId::Monotonic`], but goes on in suspend.
    Boottime,
    /// Wall-clock time, ns since 1970; may be set, and is stepped at leap seconds.
    Realtime,
    /// International atomic time, ns since 1970; equals [`ClockId::Realtime`] where the kernel does not know the
    /// offset.
    Tai,
    /// [`ClockId::Monotonic`] at the last tick.
    MonotonicCoarse,
    /// [`ClockId::Realtime`] at the last tick.
    RealtimeCoarse,
    /// Processor time of the calling thread.
    ThreadCpu,
    /// Processor time of the process.
    ProcessCpu,
}

impl ClockId {
    pub const ALL: [ClockId; 9] = [
        ClockId::Monotonic,
        ClockId::MonotonicRaw,
        ClockId::Boottime,
        ClockId::Realtime,
        ClockId::Tai,
        ClockId::MonotonicCoarse,
        ClockId::RealtimeCoarse,
        ClockId::ThreadCpu,
        ClockId::ProcessCpu,
    ];
}
