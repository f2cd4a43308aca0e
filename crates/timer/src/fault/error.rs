//! What the fault module refuses, and what can be done about it.

use hourglass_sys::stop::SeatError;
use hourglass_time::Span;

/// A thread that cannot be watched, or not like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// The kernel has no signal left to set aside for the thread's timer.
    #[error(
        "no signals are left for a timer (RLIMIT_SIGPENDING): raise the limit (ulimit -i 65536) or end other timers"
    )]
    SignalsExhausted,
    /// The signal asked for is no real-time signal.
    #[error("signal {asked} is not a real-time signal: take one from {first} to {last}")]
    NotRealTime {
        /// The requested signal.
        asked: i32,
        /// First signal that may be used.
        first: i32,
        /// Last signal that may be used.
        last: i32,
    },
    /// The program has a handler of its own for the signal, which is left alone.
    #[error("signal {0} has a handler of this program's: watch with another signal")]
    SignalTaken(i32),
    /// The calling thread has a [`super::DeadlineWatch`] already.
    #[error("this thread is watched already: use the watch that it has")]
    Watched,
    /// The thread's watch was dropped, or the thread has ended.
    #[error("the thread is watched no more: install the handler while its watch lives")]
    Gone,
    /// The thread has a deadline handler already.
    #[error("the thread has a deadline handler: drop that one first")]
    Handled,
    /// This is a child made by `fork`: it has neither its parent's timers nor its handler threads.
    #[error("a child of fork does not inherit its parent's timers: call watch again in the child")]
    Forked,
    /// The deadline is further away than 292 years.
    #[error("the deadline is out of range: at most 2^63 - 1 ns")]
    OutOfRange,
    /// The period is zero or negative.
    #[error("the period is {0} ns: it must be positive")]
    Period(i64),
    /// The budget is zero or negative.
    #[error("a budget of {0} lets nothing run: give one of at least 1 ns")]
    Budget(Span),
    /// The thread could be demoted, but not brought back.
    #[error(
        "after a demotion the thread could not be given its scheduling back (error {errno}): as root, with CAP_SYS_NICE, or ulimit -r and ulimit -e"
    )]
    CannotRestore {
        /// What the kernel answered, as `errno(3)`.
        errno: i32,
    },
    /// The handler's own scheduling or CPU was refused.
    #[error(
        "the handler's scheduling was refused (error {errno}): as root, with CAP_SYS_NICE, or ulimit -r; and name a CPU that is online"
    )]
    Scheduling {
        /// What the kernel answered, as `errno(3)`.
        errno: i32,
    },
    /// The operating system refused.
    #[error("error {errno} of the operating system (man 3 errno)")]
    Os {
        /// Error number, as in `errno(3)`.
        errno: i32,
    },
    /// A handler's verdict was to end.
    #[error(transparent)]
    Ended(#[from] ThreadTerminated),
}

/// A handler's verdict was to end this thread. It comes at safepoints and at the bounds of jobs, again
/// and again; propagate it up to the thread's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deadline handler ended this thread")]
pub struct ThreadTerminated;

/// EAGAIN on Linux.
const TRY_AGAIN: i32 = 11;

impl FaultError {
    pub(super) fn os(error: &std::io::Error) -> FaultError {
        FaultError::Os { errno: error.raw_os_error().unwrap_or(0) }
    }
}

impl From<SeatError> for FaultError {
    fn from(error: SeatError) -> FaultError {
        match error {
            SeatError::Taken => FaultError::Watched,
            SeatError::Handled(signal) => FaultError::SignalTaken(signal),
            SeatError::Os(error) if error.raw_os_error() == Some(TRY_AGAIN) => {
                FaultError::SignalsExhausted
            }
            SeatError::Os(error) => FaultError::os(&error),
            _ => FaultError::Os { errno: 0 },
        }
    }
}
