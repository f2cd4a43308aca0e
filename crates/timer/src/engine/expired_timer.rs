//! A timer that expired, and why.

use std::fmt;

use super::ClockBase;
use crate::queue::Handle;

/// Names a timer of the [`EngineTimers`](super::EngineTimers) that created it. Stale once that is
/// removed, and refused from then on: generations never repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId {
    pub(super) base: ClockBase,
    pub(super) handle: Handle,
}

impl TimerId {
    /// The clock of its expiries.
    #[must_use]
    pub const fn base(self) -> ClockBase {
        self.base
    }
}

/// `realtime 7.1`.
impl fmt::Display for TimerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.base.name(), self.handle)
    }
}

/// What a timer on a clock that may be set does when it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClockSetPolicy {
    /// It follows the clock: it expires when the clock reaches its expiry, whenever that is.
    #[default]
    Follow,
    /// It expires at once, with [`Cause::ClockSet`] (as timerfds with `TFD_TIMER_CANCEL_ON_SET`
    /// do). On a clock that cannot be set, as [`ClockSetPolicy::Follow`].
    Expire,
}

/// Why a timer expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Its time came.
    Expiry,
    /// Its clock was set, and it was made to expire then ([`ClockSetPolicy::Expire`]).
    ClockSet,
}

/// A timer that has expired. It is not armed any more, but lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiredTimer {
    /// The timer that expired.
    pub id: TimerId,
    /// Clock of the timer.
    pub base: ClockBase,
    /// The expiry that it was armed with, ns on its clock.
    pub expiry_ns: i64,
    /// By when it was to expire, ns on its clock: expiry plus slack.
    pub latest_ns: i64,
    /// What its clock said when the poll began, ns. Not before the expiry, unless the clock
    /// was set.
    pub now_ns: i64,
    /// Why it expired.
    pub cause: Cause,
}

impl ExpiredTimer {
    /// By how much the poll missed the latest time, ns.
    #[must_use]
    pub const fn late_ns(&self) -> u64 {
        match self.cause {
            Cause::Expiry if self.now_ns > self.latest_ns => self.now_ns.abs_diff(self.latest_ns),
            Cause::Expiry | Cause::ClockSet => 0,
        }
    }
}
