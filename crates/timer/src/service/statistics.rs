//! What an engine and its workers did so far.

use std::sync::atomic::{AtomicU64, Ordering};

use super::class::ClassStatistics;

/// Counts of one engine of the service, since it started. Each is read by itself while the engine
/// goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceStatistics {
    /// Timers that were made.
    pub created: u64,
    /// Expiries that did something: woke, ran or queued an action.
    pub fired: u64,
    /// Expiries of periodic timers without an action of their own: several were due at one look, or
    /// the period is shorter than what the engine serves ([`LEAST_DISTANCE_NS`]).
    pub overruns: u64,
    /// Expiries found cancelled, replaced or terminated when their time came.
    pub lost_races: u64,
    /// Actions that panicked.
    pub panics: u64,
    /// Immediate actions that took longer than [`LONG_NS`].
    pub long_actions: u64,
    /// The longest immediate action, ns: it held up every other timer of this engine.
    pub longest_action_ns: u64,
    /// The most that the engine looked after a timer's latest time (expiry plus slack), ns. Setting
    /// a clock forward makes timers late; an expiry that was past when it was armed is not late.
    pub latest_ns: u64,
    /// Times that the engine was kicked awake or looked by itself.
    pub turns: u64,
    /// Ticks at which nothing was due, so that the engine slept on (dynamic tick); 0 in high
    /// resolution and on a device that ticks by itself.
    pub ticks_skipped: u64,
    /// Expiries for which a class had no room.
    pub without_room: u64,
    /// Timers that the queue could not take for want of memory; they were disarmed.
    pub refused: u64,
}

/// Above this an immediate action is counted as long: 100 us, what a wake-up of a thread may cost.
pub const LONG_NS: u64 = 100_000;

/// A periodic timer with a shorter period that has fallen behind (several of its expiries were due
/// at one poll) is polled again this much later, ns, and what is due meanwhile are overruns: served
/// as they come, expiries a nanosecond apart would keep the engine and its CPU busy for ever. 100
/// us is some ten times what a poll and a wake-up cost.
pub const LEAST_DISTANCE_NS: u64 = 100_000;

macro_rules! counters {
    ($counters:ident of $statistics:ident: $($name:ident),*) => {
        #[derive(Debug, Default)]
        pub(super) struct $counters { $(pub(super) $name: AtomicU64),* }

        impl $counters {
            pub(super) fn read(&self) -> $statistics {
                $statistics { $($name: self.$name.load(Ordering::Relaxed)),* }
            }
        }
    };
}

counters!(
    Counters of ServiceStatistics:
    created,
    fired,
    overruns,
    lost_races,
    panics,
    long_actions,
    longest_action_ns,
    latest_ns,
    turns,
    ticks_skipped,
    without_room,
    refused
);

counters!(ClassCounters of ClassStatistics: ran, longest_ns, without_room, raised, raise_refused);

/// Counts one; only one thread counts here, or it does not matter which one.
pub(super) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}
