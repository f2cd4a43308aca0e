//! Scheduling policies of the calling thread.

use std::io;

use crate::{checked, checked_long};

/// Policy and parameters as `sched_setattr` takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attributes {
    /// `SCHED_OTHER` with a nice value.
    Other(i8),
    /// `SCHED_BATCH` with a nice value.
    Batch(i8),
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_FIFO` with a priority from 1 to 99.
    Fifo(u8),
    /// `SCHED_RR` with a priority from 1 to 99.
    RoundRobin(u8),
    /// `SCHED_DEADLINE`.
    Deadline {
        /// Budget, ns.
        runtime_ns: u64,
        /// Relative deadline, ns.
        deadline_ns: u64,
        /// Period, ns.
        period_ns: u64,
        /// Use bandwidth that others leave (`SCHED_FLAG_RECLAIM`).
        reclaim: bool,
        /// Signal SIGXCPU when the budget is overrun (`SCHED_FLAG_DL_OVERRUN`).
        overrun_signal: bool,
    },
}

/// `struct sched_attr`, its first published size.
#[repr(C)]
#[derive(Default)]
struct RawAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SCHED_DEADLINE: u32 = 6;
const FLAG_RECLAIM: u64 = 2;
const FLAG_DL_OVERRUN: u64 = 4;

/// Gives the calling thread a policy (`sched_setattr`).
///
/// # Errors
/// EPERM without the privilege, EBUSY where deadline bandwidth is used up, EINVAL for times
/// that the kernel does not take.
pub fn set(attributes: Attributes) -> io::Result<()> {
    let mut raw = RawAttributes { size: size_of::<RawAttributes>() as u32, ..Default::default() };
    match attributes {
        Attributes::Other(nice) => {
            raw.policy = libc::SCHED_OTHER as u32;
            raw.nice = i32::from(nice);
        }
        Attributes::Batch(nice) => {
            raw.policy = libc::SCHED_BATCH as u32;
            raw.nice = i32::from(nice);
        }
        Attributes::Idle => raw.policy = libc::SCHED_IDLE as u32,
        Attributes::Fifo(priority) => {
            raw.policy = libc::SCHED_FIFO as u32;
            raw.priority = u32::from(priority);
        }
        Attributes::RoundRobin(priority) => {
            raw.policy = libc::SCHED_RR as u32;
            raw.priority = u32::from(priority);
        }
        Attributes::Deadline { runtime_ns, deadline_ns, period_ns, reclaim, overrun_signal } => {
            raw.policy = SCHED_DEADLINE;
            raw.runtime = runtime_ns;
            raw.deadline = deadline_ns;
            raw.period = period_ns;
            raw.flags = if reclaim { FLAG_RECLAIM } else { 0 }
                | if overrun_signal { FLAG_DL_OVERRUN } else { 0 };
        }
    }
    // SAFETY: the structure is a live local that states its own size.
    checked_long(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const raw, 0) })
        .map(|_| ())
}

/// The nice value of the calling thread.
#[must_use]
pub fn nice() -> i32 {
    // SAFETY: takes no memory. On Linux a `who` of 0 means the calling thread.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// The policy that the kernel says the calling thread has, as its number (`SCHED_FIFO` = 1...).
///
/// # Errors
/// What the kernel answers; does not happen for the calling thread.
pub fn policy_number() -> io::Result<i32> {
    // SAFETY: takes no memory.
    checked(unsafe { libc::sched_getscheduler(0) })
}
