//! What an arming says.

use std::cell::Cell;

use hourglass_sys::sched::{self, Attributes};
use hourglass_time::Span;

use super::error::ServiceError;
use super::remote::{ArmRequest, SLACK_MAX_NS};
use crate::engine::ClockBase;

/// When a timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// At a time of the timer's clock, ns: from 0 to 2^63 - 1. One that is past expires at once.
    At(i64),
    /// Expires this long from now. A negative delay is an error; it does not expire at once. It is
    /// made an absolute time at once, which stands: "program-wide accuracy may be skewed by
    /// preemption" between the reading of a clock and the sleep (RT-Mach, section 3.1), so that
    /// callers that computed a time pass that. On a clock that may be set it follows the clock like
    /// any other expiry.
    After(Span),
}

/// An arming: expiry, period, slack, priority. Copies may be armed again and again.
///
/// ```
/// use hourglass_time::Span;
/// use hourglass_timer::service::{TimerSpec, Expiry};
///
/// let every_second = TimerSpec::after(Span::SECOND).every(Span::SECOND).slack(Span::MILLISECOND);
/// assert_eq!(every_second.expiry, Expiry::After(Span::SECOND));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerSpec {
    /// The first expiry.
    pub expiry: Expiry,
    /// The period, counted from each *scheduled* expiry, however late that was served. Longer than 0. Periods
    /// below [`super::LEAST_DISTANCE_NS`] are served one by one only as long as the engine keeps up.
    pub period: Option<Span>,
    /// How much later the timer may expire, to share a wake-up with others. Not negative; what is
    /// beyond 2^56 - 1 ns, 2 years and 3 months, is as that.
    pub slack: Span,
    /// Which of several deferred actions comes first. `None`: the real-time priority of the thread
    /// that arms, as last read ([`super::refresh_priority`]).
    pub priority: Option<u8>,
}

impl TimerSpec {
    /// Once, at a time of the timer's clock, ns.
    #[must_use]
    pub const fn at(ns: i64) -> TimerSpec {
        TimerSpec::once(Expiry::At(ns))
    }

    /// Once, `length` from now.
    #[must_use]
    pub const fn after(length: Span) -> TimerSpec {
        TimerSpec::once(Expiry::After(length))
    }

    /// Expires once.
    #[must_use]
    pub const fn once(expiry: Expiry) -> TimerSpec {
        TimerSpec { expiry, period: None, slack: Span::ZERO, priority: None }
    }

    /// Repeats the expiry every `period`.
    #[must_use]
    pub const fn every(self, period: Span) -> TimerSpec {
        TimerSpec { period: Some(period), ..self }
    }

    /// Allows the timer to expire up to `slack` late.
    #[must_use]
    pub const fn slack(self, slack: Span) -> TimerSpec {
        TimerSpec { slack, ..self }
    }

    /// With a priority of its own.
    #[must_use]
    pub const fn priority(self, priority: u8) -> TimerSpec {
        TimerSpec { priority: Some(priority), ..self }
    }

    pub(super) fn arming(
        &self,
        base: ClockBase,
        now_ns: impl FnOnce() -> i64,
    ) -> Result<ArmRequest, ServiceError> {
        let mut past = false;
        let expiry = match self.expiry {
            Expiry::At(ns) => {
                past = ns < now_ns();
                i128::from(ns)
            }
            Expiry::After(delay) if delay.is_negative() => {
                return Err(ServiceError::NegativeDelay { delay });
            }
            Expiry::After(length) => i128::from(now_ns()) + i128::from(length.nanos()),
        };
        let expiry_ns = i64::try_from(expiry).ok().filter(|ns| *ns >= 0);
        let expiry_ns =
            expiry_ns.ok_or(ServiceError::ExpiryOutOfRange { base, expiry_ns: expiry })?;
        let period_ns = match self.period {
            None => 0,
            Some(period) if period <= Span::ZERO => {
                return Err(ServiceError::PeriodNotPositive { period });
            }
            Some(period) => period.nanos_or_zero(),
        };
        if self.slack.is_negative() {
            return Err(ServiceError::NegativeSlack { slack: self.slack });
        }
        let priority = self.priority.unwrap_or_else(own_priority);
        Ok(ArmRequest {
            expiry_ns,
            period_ns,
            slack_ns: self.slack.nanos_or_zero().min(SLACK_MAX_NS),
            // The priority is all that there is so far.
            flags: priority,
            past,
        })
    }
}

/// Not read yet; no priority is above 100.
const UNKNOWN: u8 = u8::MAX;
/// Of deadline threads, which precede all others.
const DEADLINE: u8 = 100;

thread_local! {
    static OWN: Cell<u8> = const { Cell::new(UNKNOWN) };
}

/// Reads the calling thread's real-time priority anew, for timers that it arms from now on: 1 to 99,
/// 100 for a deadline thread, 0 without. To be called when a thread's policy has changed after it
/// armed a timer for the first time.
pub fn refresh_priority() -> u8 {
    let priority = match sched::read(0) {
        Ok(Some(Attributes::Fifo(priority) | Attributes::RoundRobin(priority))) => priority,
        Ok(Some(Attributes::Deadline { .. })) => DEADLINE,
        _ => 0,
    };
    OWN.set(priority);
    priority
}

/// Read once a thread: a system call for each arming would cost more than the arming.
fn own_priority() -> u8 {
    match OWN.get() {
        UNKNOWN => refresh_priority(),
        known => known,
    }
}
