//! How far other clocks are from `CLOCK_MONOTONIC`; and the rate at which differences are measured.

use super::sample::{ClockSample, narrowest};
use super::slope::Slope;
use super::timebase::{ReferenceClock, SourceId, Timebase};

/// A clock's distance from `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    /// That clock minus `CLOCK_MONOTONIC`, ns.
    pub(super) ns: i64,
    /// Bound on the error, ns.
    pub(super) bound_ns: u64,
}

/// The counter's slope against `CLOCK_MONOTONIC_RAW`: for differences, never stepped or slewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawRate {
    pub(super) slope: Slope,
    /// Bound on its relative error, 2^-32.
    pub(super) error: u64,
}

/// Words of a page that it takes.
const WORDS: usize = 3;

impl Offset {
    /// An offset of which nothing is known.
    pub(super) const UNKNOWN: Offset = Offset { ns: 0, bound_ns: u64::MAX };

    /// Brackets a reading of `scale` between two of `CLOCK_MONOTONIC`; about 0.2 us.
    pub(super) fn measure<B: Timebase>(base: &B, scale: ReferenceClock) -> Offset {
        const TRIES: u32 = 8;
        // The kernel's clocks move together.
        const GRAIN: u64 = 1;
        match narrowest(base, SourceId::OS, scale, GRAIN, TRIES, 0) {
            Ok(ClockSample { ticks, half_ticks, ns }) => Offset {
                ns: difference(ns, ticks),
                // Both readings are rounded down; the half-width allows for that.
                bound_ns: half_ticks,
            },
            Err(_) => Offset::UNKNOWN,
        }
    }

    pub(super) fn is_known(&self) -> bool {
        self.bound_ns != u64::MAX
    }
}

/// `a` - `b`, held at the ends of the range.
pub(super) fn difference(a: u64, b: u64) -> i64 {
    let apart = i64::try_from(a.abs_diff(b)).unwrap_or(i64::MAX);
    if a >= b { apart } else { -apart }
}

impl RawRate {
    pub(super) const UNKNOWN: RawRate = RawRate { slope: Slope::IDENTITY, error: u64::MAX };

    pub(super) const fn to_words(self) -> [u64; WORDS] {
        [self.slope.mult, self.slope.shift as u64, self.error]
    }

    pub(super) fn from_words([mult, shift, error]: [u64; WORDS]) -> RawRate {
        RawRate { slope: Slope { mult, shift: (shift & 63) as u32 }, error }
    }
}
