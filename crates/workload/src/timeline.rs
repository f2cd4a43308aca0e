//! The run's own time: zero at its start, on the raw counter.

use hourglass_clock::{Calibration, Pair};
use hourglass_time::Span;

/// The run's zero on three clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    pub ticks: u64,
    pub monotonic_ns: u64,
    pub realtime_ns: u64,
}

/// Zero and rate: converts between the run's nanoseconds and the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    pub epoch: Epoch,
    pub calibration: Calibration,
}

impl Timeline {
    pub fn starting(now: Pair, realtime_ns: u64, lead: Span, calibration: Calibration) -> Timeline {
        let lead_ns = lead.nanos_or_zero();
        let epoch = Epoch {
            ticks: now.ticks.saturating_add(calibration.rate.ticks_ceil(lead_ns)),
            monotonic_ns: now.monotonic_ns.saturating_add(lead_ns),
            realtime_ns: realtime_ns.saturating_add(lead_ns),
        };
        Timeline { epoch, calibration }
    }

    /// The counter `ns` after the run's start.
    pub fn ticks_at(&self, ns: u64) -> u64 {
        self.epoch.ticks.saturating_add(self.calibration.rate.ticks_ceil(ns))
    }

    /// Nanoseconds from the run's start to `ticks`, rounded down; negative before it.
    pub fn ns_at(&self, ticks: u64) -> i64 {
        match ticks.checked_sub(self.epoch.ticks) {
            Some(after) => self.calibration.rate.ns_floor(after),
            None => -self.calibration.rate.ns_floor(self.epoch.ticks - ticks),
        }
    }

    /// Nanoseconds in `ticks`, rounded down.
    pub fn ns_in(&self, ticks: u64) -> u64 {
        self.calibration.rate.ns_floor(ticks).unsigned_abs()
    }

    /// The least number of ticks in which `amount` passes, whatever the error of calibration.
    pub fn ticks_at_least(&self, amount: Span) -> u64 {
        self.calibration.ticks_at_least(amount.nanos_or_zero())
    }

    pub fn monotonic_at(&self, ticks: u64) -> u64 {
        self.epoch.monotonic_ns.saturating_add_signed(self.ns_at(ticks))
    }
}
