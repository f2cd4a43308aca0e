//! The other clocks, as `now` plus an offset; and the rate at which differences are measured.

use super::sample::{Sample, narrowest};
use super::slope::Slope;
use super::timebase::{Scale, SourceId, Timebase};

/// A clock's distance from `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    /// That clock minus `CLOCK_MONOTONIC`, ns.
    pub(super) ns: i64,
    /// Bound on the error, ns.
    pub(super) bound_ns: u64,
}

/// What a page says of the other clocks. Each has its own offset and bound, since each may be set
/// on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scales {
    /// The counter's slope against `CLOCK_MONOTONIC_RAW`: for differences, never stepped or slewed.
    pub(super) raw: Slope,
    /// Bound on its relative error, 2^-32.
    pub(super) raw_error: u64,
    pub(super) realtime: Offset,
    pub(super) tai: Offset,
    pub(super) boottime: Offset,
}

/// Words of a page that they take.
const WORDS: usize = 9;

impl Offset {
    /// An offset of which nothing is known.
    const UNKNOWN: Offset = Offset { ns: 0, bound_ns: u64::MAX };

    /// Brackets a reading of `scale` between two of `CLOCK_MONOTONIC`; about 0.2 us.
    pub(super) fn measure<B: Timebase>(base: &B, scale: Scale) -> Offset {
        const TRIES: u32 = 8;
        // The kernel's clocks move together.
        const GRAIN: u64 = 1;
        match narrowest(base, SourceId::OS, scale, GRAIN, TRIES, 0) {
            Ok(Sample { ticks, half_ticks, ns }) => Offset {
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

impl Scales {
    pub(super) const UNKNOWN: Scales = Scales {
        raw: Slope::IDENTITY,
        raw_error: u64::MAX,
        realtime: Offset::UNKNOWN,
        tai: Offset::UNKNOWN,
        boottime: Offset::UNKNOWN,
    };

    /// The offset of a clock; of `CLOCK_MONOTONIC_RAW` none is kept, it drifts away.
    pub(super) fn offset(&self, scale: Scale) -> Offset {
        match scale {
            Scale::Monotonic => Offset { ns: 0, bound_ns: 0 },
            Scale::Raw => Offset::UNKNOWN,
            Scale::Realtime => self.realtime,
            Scale::Tai => self.tai,
            Scale::Boottime => self.boottime,
        }
    }

    pub(super) const fn to_words(self) -> [u64; WORDS] {
        [
            self.raw.mult,
            self.raw.shift as u64,
            self.raw_error,
            self.realtime.ns.cast_unsigned(),
            self.realtime.bound_ns,
            self.tai.ns.cast_unsigned(),
            self.tai.bound_ns,
            self.boottime.ns.cast_unsigned(),
            self.boottime.bound_ns,
        ]
    }

    pub(super) fn from_words(words: [u64; WORDS]) -> Scales {
        let [mult, shift, raw_error, realtime, realtime_bound, tai, tai_bound, boot, boot_bound] =
            words;
        let offset = |ns: u64, bound_ns| Offset { ns: ns.cast_signed(), bound_ns };
        Scales {
            raw: Slope { mult, shift: (shift & 63) as u32 },
            raw_error,
            realtime: offset(realtime, realtime_bound),
            tai: offset(tai, tai_bound),
            boottime: offset(boot, boot_bound),
        }
    }
}
