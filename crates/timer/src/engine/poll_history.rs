//! Which looks at the timers are over, and what the clocks did between them.
//!
//! Owns: from when on a timer could have been known to be due.
//! Must not: read clocks, know about timers.

use super::{ClockBase, ClockReadings};

/// Looks that are over, which are those that left nothing due behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollHistory {
    /// The tick boundary of the last one; `None` in high resolution.
    pub(super) boundary_ns: Option<u64>,
    /// Device time of the last one: what was due before was armed after it.
    pub(super) last_ns: u64,
    /// The clocks in the look before this one, over or not.
    previous: ClockReadings,
    /// Device time since which each base has not jumped, in the order of [`ClockBase::ALL`]: what it
    /// jumped over was not due before.
    pub(super) steady_ns: [u64; 4],
}

impl PollHistory {
    /// None yet; the clocks are read for the first time.
    pub(super) fn from(now: ClockReadings) -> PollHistory {
        PollHistory {
            boundary_ns: None,
            last_ns: now.device_ns(),
            previous: now,
            steady_ns: [0; 4],
        }
    }

    pub(super) fn see(&mut self, now: &ClockReadings) {
        let apart_ns = now.gap_ns().saturating_add(self.previous.gap_ns());
        for (base, steady_ns) in ClockBase::ALL.into_iter().zip(&mut self.steady_ns) {
            let ahead =
                |now: &ClockReadings| now.ns(base).saturating_sub(now.ns(ClockBase::Monotonic));
            if ahead(now).abs_diff(ahead(&self.previous)) > apart_ns {
                *steady_ns = now.device_ns();
            }
        }
        self.previous = *now;
    }
}
