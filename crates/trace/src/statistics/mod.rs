//! Numbers with their uncertainty: means, medians, percentiles, shares, ratios, and whether two
//! sets of measurements differ.
//!
//! Owns: the formulae. Must not: know what was measured.
//!
//! Floats are fine here: these are estimates, and none of them is a verdict about time. Every
//! interval is two-sided and says with which confidence it holds the quantity, for independent
//! measurements of one distribution. Measurements that follow each other closely in time are not
//! independent: repeat the whole experiment, interleaved, and take one number of each trial.

mod bootstrap;
mod mean;
mod order;
mod quantiles;
mod rank;
mod ratio;
mod share;
mod tail;
mod windows;

pub use bootstrap::{Resampling, bootstrap};
pub use mean::mean;
pub use order::{median, mode, percentile, quantile_of};
pub use rank::{RankTest, mann_whitney, mann_whitney_of_counts};
pub use ratio::paired_ratio;
pub use share::share;
pub use tail::{TailTest, greatest_share, tail_test, trials_without};
pub use windows::Windows;

/// The confidence that is usual: 19 of 20 such intervals hold the quantity.
pub const USUAL: f64 = 0.95;

/// An estimate and the interval that holds the quantity with some confidence.
///
/// The unit is that of the measurements. `lo` and `hi` are infinite where the measurements bound
/// the quantity on one side only, or not at all: a mean of one measurement, a percentile of too few.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub lo: f64,
    pub hi: f64,
    pub count: u64,
}

impl Estimate {
    /// Half the width of the interval, for `value ± it`.
    pub fn half_width(&self) -> f64 {
        (self.hi - self.lo) / 2.0
    }

    pub fn holds(&self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }

    /// This estimate in another unit, `factor` of which make one of this.
    pub fn scaled(&self, factor: f64) -> Estimate {
        let (a, b) = (self.lo * factor, self.hi * factor);
        Estimate { value: self.value * factor, lo: a.min(b), hi: a.max(b), count: self.count }
    }
}
