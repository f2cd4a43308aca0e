//! What the service refuses, and what can be done about it.

use std::io;

use hourglass_sys::sched::Attributes;
use hourglass_time::Span;

use super::remote::ArmRefused;
use crate::engine::{ClockBase, EngineError};
use crate::periodic::Scheduling;

/// Why a call of the timer service did not do as asked, or why a sleep ended before its time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The sleep's expiry was cancelled, or replaced by another arming (RT-Mach, section 3.1).
    #[error("the timer was cancelled or armed again while a thread slept on it")]
    Cancelled,
    /// The timer was terminated, or its owner was.
    #[error("the timer was terminated: make another one")]
    Terminated,
    /// The clock was set, and the sleep was to end then.
    #[error("the clock was set during the sleep")]
    ClockSet,
    /// Three other threads are in the middle of arming this timer.
    #[error("four threads arm this timer at the same moment: arm again")]
    Contended,
    /// One thread at a time sleeps on a timer.
    #[error("another thread sleeps on this timer: make one for each thread")]
    AnotherSleeps,
    /// The expiry is out of range.
    #[error("an expiry of {expiry_ns} ns on {}: it must be 0 to {}", .base.name(), i64::MAX)]
    ExpiryOutOfRange {
        /// Clock of the timer.
        base: ClockBase,
        /// Requested expiry, ns.
        expiry_ns: i128,
    },
    /// Periods are positive.
    #[error("a period of {period}: it must be longer than 0")]
    PeriodNotPositive {
        /// Requested period.
        period: Span,
    },
    /// A time from now is not before it: arming for a time that is past is [`super::TimerSpec::at`].
    #[error("an expiry {delay} from now: it must be 0 or more; for a time that is past give that")]
    NegativeDelay {
        /// Requested delay.
        delay: Span,
    },
    /// Slack is not negative.
    #[error("a slack of {slack}: it must be 0 or more")]
    NegativeSlack {
        /// Requested slack.
        slack: Span,
    },
    /// This process was forked from that of the service, whose threads are not here.
    #[error("the service's threads are in the parent process: start a service after the fork")]
    Forked,
    /// A call that waits, on a service whose time is simulated.
    #[error("the service is simulated: sleep by `SimService::sleep`")]
    Simulated,
    /// There is no place for such a timer. A place stays with the clock of the first timer in it, and
    /// with what that does when the clock is set: others do not get it, though none may live there.
    #[error(
        "an engine of the service has no place for a timer on {}: all {places} are given to clocks, \
         for good, and {timers} timers live there; start more engines", .base.name()
    )]
    TooManyTimers {
        /// The clock of the timer that there is no place for.
        base: ClockBase,
        /// Timers of that engine that live, including terminated ones that still have a handle.
        timers: usize,
        /// How many places the engine has.
        places: usize,
    },
    /// There is room for no more classes.
    #[error("the service has {classes} classes, and room for no more")]
    TooManyClasses {
        /// Classes of the service.
        classes: usize,
    },
    /// A service has no more than [`super::MOST_ENGINES`].
    #[error("{engines} engines: give at most {}, one a CPU is enough", super::MOST_ENGINES)]
    TooManyEngines {
        /// Requested number of engines.
        engines: usize,
    },
    /// There is no memory for a queue of this many expiries.
    #[error("room for {room} expiries is more memory than there is: give less")]
    NoRoom {
        /// Requested room.
        room: usize,
    },
    /// The class belongs to another service.
    #[error("class {class:?} belongs to another service: create one on this service")]
    ForeignClass {
        /// Name of the class.
        class: String,
    },
    /// The service has no engine of that number.
    #[error("no engine {engine}: the service has {engines}")]
    NoEngine {
        /// What was asked for, from 0.
        engine: usize,
        /// Engines of the service.
        engines: usize,
    },
    /// The operating system refuses a thread, its CPUs or its policy.
    #[error("thread {thread}: {what}")]
    Thread {
        /// Name of the thread.
        thread: String,
        /// What was refused, and what mends it: the exact line, where there is one.
        what: String,
        /// Error number, as in `errno(3)`.
        errno: i32,
    },
    /// The thread of an engine panicked, outside of actions: a bug of this library.
    #[error(
        "the thread of engine {engine} panicked: its timers expire no more; start a new service"
    )]
    Panicked {
        /// Which engine of the service, from 0.
        engine: u32,
    },
    /// The engine refuses; with a POSIX timer perhaps because no signals are left
    /// ([`crate::event::DeviceError::SignalsExhausted`]).
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<ArmRefused> for ServiceError {
    fn from(refused: ArmRefused) -> ServiceError {
        match refused {
            ArmRefused::Terminated => ServiceError::Terminated,
            ArmRefused::Contended => ServiceError::Contended,
            ArmRefused::Slept => ServiceError::AnotherSleeps,
        }
    }
}

impl ServiceError {
    pub(super) fn start(thread: &str, error: &io::Error) -> ServiceError {
        let remedy = "end some threads, or raise their limit (ulimit -u)";
        ServiceError::thread(thread, format!("it cannot be started ({error}): {remedy}"), error)
    }

    pub(super) fn cpus(thread: &str, cpus: &[u32], error: &io::Error) -> ServiceError {
        let remedy = "give some that are online and allowed (nproc, taskset -p $$)";
        let what = format!("CPUs {cpus:?} cannot be used ({error}): {remedy}");
        ServiceError::thread(thread, what, error)
    }

    pub(super) fn policy(thread: &str, asked: Attributes, error: &io::Error) -> ServiceError {
        let what = match Scheduling::of(asked) {
            Some(scheduling) => scheduling.refused(error).to_string(),
            None => format!("the kernel refused {asked:?} ({error}): take SCHED_OTHER"),
        };
        ServiceError::thread(thread, what, error)
    }

    fn thread(thread: &str, what: String, error: &io::Error) -> ServiceError {
        let errno = error.raw_os_error().unwrap_or(0);
        ServiceError::Thread { thread: thread.to_owned(), what, errno }
    }
}
