//! Waiting until a time of UTC has passed for certain (commit-wait).

use std::ops::Deref;

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::{Timebase, Utc};
use hourglass_time::{Instant, Realtime, Span};

use super::mechanism::Mechanism;
use super::sleeper::Sleeper;

/// The longest sleep after which the bound is looked at again: it may shrink, grow, or be withdrawn.
const SLICE_NS: u64 = 100_000_000;
/// A two-thousandth is what the kernel's bound grows by while time passes (500 ppm).
const GROWTH: u64 = 1_999;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UtcWaitEnd {
    /// The time had passed for certain when the wait began; an interrupt that was set stays so.
    AlreadyPast,
    /// It has passed for certain now.
    Past,
    /// [`super::Interrupt`] ended the wait.
    Interrupted,
    /// No source vouches for the wall clock, or does so any more.
    Unvouched,
    /// By the bound as it is now, the wait would be longer than allowed.
    OutOfReach,
}

/// The result of a wait, and what it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcWait {
    /// Why it ended.
    pub end: UtcWaitEnd,
    /// How long it was, ns.
    pub waited_ns: u64,
    /// How far the time was still to come at the beginning by the middle of the interval, ns; 0 if it had passed.
    pub ahead_ns: u64,
    /// The bound on the error at the beginning, ns; 0 if no source vouched for any.
    pub error_ns: u64,
    /// UTC at the end.
    pub last: Utc,
}

impl UtcWait {
    /// Whether the time has passed for certain.
    #[must_use]
    pub fn is_past(&self) -> bool {
        matches!(self.end, UtcWaitEnd::AlreadyPast | UtcWaitEnd::Past)
    }
}

impl<B: Timebase, C: Deref<Target = Clock<B>>, M: Mechanism> Sleeper<C, M> {
    /// Waits until `time` has passed for certain: until the earliest that UTC can be is after it. Not at all where that
    /// would take longer than `at_most` by the bound as it is; [`Span::MAX`] is no limit.
    ///
    /// The bound is read again after each sleep, of 0.1 s at most: the wait becomes longer where the wall clock is set
    /// back or its bound grows, and shorter where it is set forward or the bound shrinks.
    pub fn wait_until_past(
        &mut self,
        time: impl Into<Instant<Realtime>>,
        at_most: Span,
    ) -> UtcWait {
        let time_ns = time.into().since_zero().nanos();
        let most_ns = if at_most == Span::MAX { u64::MAX } else { at_most.nanos_or_zero() };
        let begin_ns = self.now_ns();
        let mut last = self.clock.utc_bounded();
        let first = last.interval();
        let ahead_ns = |found: hourglass_clock::timekeeping::UtcInterval| {
            let error_ns = i64::try_from(found.error_ns()).unwrap_or(i64::MAX);
            let ahead = time_ns.saturating_sub(found.earliest_ns.saturating_add(error_ns));
            u64::try_from(ahead).unwrap_or(0)
        };
        let mut wait = UtcWait {
            end: UtcWaitEnd::AlreadyPast,
            waited_ns: 0,
            ahead_ns: first.map_or(0, ahead_ns),
            error_ns: first.map_or(0, |found| found.error_ns()),
            last,
        };
        let mut interrupted = false;
        wait.end = loop {
            let now_ns = self.now_ns();
            wait.waited_ns = now_ns.saturating_sub(begin_ns);
            wait.last = last;
            if interrupted {
                break UtcWaitEnd::Interrupted;
            }
            let Utc::Bounded(found) = last else { break UtcWaitEnd::Unvouched };
            if found.earliest_ns > time_ns {
                break if wait.end == UtcWaitEnd::Past {
                    wait.end
                } else {
                    UtcWaitEnd::AlreadyPast
                };
            }
            let left_ns = time_ns.abs_diff(found.earliest_ns).saturating_add(1);
            let left_ns = left_ns.saturating_add(left_ns / GROWTH);
            // No time is after the last one.
            if time_ns == i64::MAX || wait.waited_ns.saturating_add(left_ns) > most_ns {
                break UtcWaitEnd::OutOfReach;
            }
            wait.end = UtcWaitEnd::Past;
            let until_ns = now_ns.saturating_add(left_ns.min(SLICE_NS));
            interrupted = self.sleep_until_ns(until_ns).interrupted;
            last = self.clock.utc_bounded();
        };
        wait
    }
}

#[cfg(test)]
#[path = "tests/utc_wait.rs"]
mod tests;
