//! What an action receives.

use crate::engine::{Cause, ClockBase};

/// An expiry, as its action sees it.
///
/// It may stand for several: those of a periodic timer that came while the engine could not poll
/// it, or while the action before still waited or ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiration {
    /// Clock of the timer.
    pub base: ClockBase,
    /// The last expiry that the engine had found when it ran or queued the action, ns on the timer's
    /// clock: as scheduled, not as late as it was.
    pub expiry_ns: i64,
    /// What the clock said when the engine looked at it, ns. Not before the expiry, unless the
    /// clock was set.
    pub now_ns: i64,
    /// Expiries that had no action of their own: before it, and after it those that came while the
    /// action waited for its worker.
    pub overruns: u64,
    /// Whether its time came or its clock was set.
    pub cause: Cause,
}

impl Expiration {
    /// How late the engine was, ns; 0 if the clock was set.
    #[must_use]
    pub fn late_ns(&self) -> u64 {
        match self.cause {
            Cause::ClockSet => 0,
            _ if self.now_ns > self.expiry_ns => self.now_ns.abs_diff(self.expiry_ns),
            _ => 0,
        }
    }

    pub(super) fn words(&self) -> [u64; 4] {
        let cause = if self.cause == Cause::ClockSet { 1 } else { 0 };
        let base = ClockBase::ALL.iter().position(|base| *base == self.base).unwrap_or(0) as u64;
        [self.expiry_ns as u64, self.now_ns as u64, self.overruns, base << 1 | cause]
    }

    pub(super) fn from_words(words: [u64; 4]) -> Expiration {
        let [expiry, now, overruns, kind] = words;
        Expiration {
            base: ClockBase::ALL[(kind >> 1) as usize % ClockBase::ALL.len()],
            expiry_ns: expiry as i64,
            now_ns: now as i64,
            overruns,
            cause: if kind & 1 == 1 { Cause::ClockSet } else { Cause::Expiry },
        }
    }
}
