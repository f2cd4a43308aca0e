//! What the reference states about its own rate: how a bound stays true while a daemon slews the clock.
//!
//! A daemon may change the rate of `CLOCK_MONOTONIC` at any moment, by parts per million or by ten per cent
//! (`adjtimex(2)`), without a notice to processes. No bound over a counter that was calibrated before
//! holds then, unless it grows by ten per cent of its age. So every bounded read looks whether the
//! reference's generation is still the one under which its line was found to hold.

use super::line::ClockLine;
use super::sample::ClockSample;
use super::slope::{RELATIVE_BITS, Slope};

/// A reference's statement of its rate against a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceRate {
    /// Nothing: its rate may change at any time, unnoticed.
    Untold,
    /// The generation of its rate: every change of the rate makes a new generation. The rate itself
    /// and the reason of the change are not known.
    Generation(u32),
    /// The very line by which it makes `CLOCK_MONOTONIC` of this counter.
    Line(ReferenceLine),
}

/// The line by which a reference makes `CLOCK_MONOTONIC` of a counter: at `base_ticks` + d it is
/// `base_ns` + (`fraction` + d x `mult`) >> `shift` ns, until the generation is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceLine {
    /// Under which generation it holds.
    pub generation: u32,
    /// A count of the counter, in 64 bits.
    pub base_ticks: u64,
    /// `CLOCK_MONOTONIC` there, ns rounded down.
    pub base_ns: u64,
    /// The fraction of a nanosecond, in 2^-shift ns.
    pub fraction: u64,
    /// ns a tick, in 2^-shift.
    pub mult: u32,
    /// The exponent of the fraction; at most 32.
    pub shift: u32,
}

/// While the reference changes its line, one processor may still read by the old one when another
/// reads by the new one. At 10 % that is 40 ns after 0.4 us, which a change of line takes.
const HANDOVER_NS: u64 = 40;

impl ReferenceLine {
    /// `CLOCK_MONOTONIC` at a count, ns rounded down, also before the base.
    pub(super) fn at(&self, ticks: u64) -> u64 {
        let ahead = i128::from(ticks.wrapping_sub(self.base_ticks).cast_signed());
        let scaled = i128::from(self.fraction) + ahead * i128::from(self.mult);
        let ns = i128::from(self.base_ns) + (scaled >> self.shift.min(32));
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }

    /// The slope of the line; `None` for a line that stands.
    pub(super) fn slope(&self) -> Option<Slope> {
        let mult = u64::from(self.mult);
        (mult > 0).then(|| Slope { mult: mult << 28, shift: self.shift.min(32) + 28 })
    }

    /// How much its slope changes without slewing: by a unit of the multiplier, since the kernel
    /// alternates between two neighbouring multipliers; 2^-32, rounded up.
    pub(super) fn unit(&self) -> u64 {
        (1u64 << RELATIVE_BITS).div_ceil(u64::from(self.mult.max(1))).saturating_add(1)
    }

    /// Counter and reference as they are on this line, shortly after a sample.
    pub(super) fn anchor(&self, sample: &ClockSample, slope: Slope) -> ClockSample {
        let half_ticks = slope.ticks_floor(HANDOVER_NS).saturating_add(1);
        ClockSample { ticks: sample.ticks, half_ticks, ns: self.at(sample.ticks) }
    }

    /// How far a reading of the reference, taken under this line, is from it (line minus reading)
    /// and how far it may be, ns.
    pub(super) fn distance(&self, sample: &ClockSample) -> (i64, u64) {
        let here = super::clock_offsets::difference(self.at(sample.ticks), sample.ns);
        let before = self.at(sample.ticks.saturating_sub(sample.half_ticks));
        let after = self.at(sample.ticks.saturating_add(sample.half_ticks));
        // Both are rounded down.
        (here, after.saturating_sub(before).div_ceil(2).saturating_add(2))
    }

    /// Whether `line` stays within its bound from `ticks` to its end, as long as this holds: both
    /// are straight, so it is enough to look at the two ends.
    pub(super) fn confirms(&self, line: &ClockLine, ticks: u64) -> bool {
        let within = |ahead: u64| {
            let apart_ns = line.at(ahead).abs_diff(self.at(line.base_ticks.wrapping_add(ahead)));
            // Two roundings.
            apart_ns.saturating_add(2) <= line.room_at(ahead)
        };
        let ahead = ticks.wrapping_sub(line.base_ticks);
        let ahead = if ahead > u64::MAX / 2 { 0 } else { ahead };
        ahead <= line.valid_for && within(ahead) && within(line.valid_for)
    }
}

#[cfg(test)]
mod tests {
    use super::super::bound::Status;
    use super::super::line::LineValidity;
    use super::super::slope::relative_from_ppb;
    use super::super::timebase::SourceId;
    use super::*;

    /// A TSC of 2.3 GHz as Linux scales it.
    const KERNEL: ReferenceLine = ReferenceLine {
        generation: 8,
        base_ticks: 1 << 40,
        base_ns: 5_000_000_000,
        fraction: 77,
        mult: 7_294_477,
        shift: 24,
    };

    fn line(slope: Slope, bound_ns: u64) -> ClockLine {
        ClockLine {
            source: SourceId::TSC,
            status: Status::Steady,
            slope,
            base_ticks: KERNEL.base_ticks,
            valid_for: 2_300_000_000,
            base_ns: KERNEL.base_ns,
            bound_ns,
            growth: relative_from_ppb(150),
            validity: LineValidity::Under(8),
            ..ClockLine::UNDRAWN
        }
    }

    #[test]
    fn the_line_is_the_kernels_to_the_nanosecond() {
        let slope = KERNEL.slope().unwrap();
        for ahead in [0u64, 1, 999, 2_300_000, 2_300_000_000, 1 << 42] {
            let kernel_ns = KERNEL.base_ns + ((u128::from(ahead) * 7_294_477 + 77) >> 24) as u64;
            assert_eq!(KERNEL.at(KERNEL.base_ticks + ahead), kernel_ns);
            assert!((KERNEL.base_ns + slope.ns_floor(ahead)).abs_diff(kernel_ns) <= 1);
        }
        assert!(KERNEL.at(KERNEL.base_ticks - 2_300) < KERNEL.base_ns - 990);
        assert_eq!(KERNEL.at(KERNEL.base_ticks.wrapping_add(1 << 63)), 0, "long before the boot");
    }

    /// 100 ppm for a second are 100 us: no bound of 100 ns has room for them, and one unit of the
    /// multiplier (137 ppb) is what the growth is for.
    #[test]
    fn a_line_is_confirmed_as_far_as_its_bound_goes() {
        let slope = KERNEL.slope().unwrap();
        let now = KERNEL.base_ticks + 1_000;
        assert!(KERNEL.confirms(&line(slope, 100), now));
        let next = ReferenceLine { mult: KERNEL.mult + 1, ..KERNEL };
        assert!(next.confirms(&line(slope, 100), now));
        for ppm in [100i64, -100, 500, 100_000, -100_000] {
            let slewed = slope.slower(-ppm, 1_000_000);
            assert!(!KERNEL.confirms(&line(slewed, 100), now), "{ppm} ppm");
        }
        assert!(!KERNEL.confirms(&line(slope, 40), now), "what unordered reads need is not room");
        let late = KERNEL.base_ticks + 2_300_000_001;
        assert!(!KERNEL.confirms(&line(slope, 100), late), "it is at its end");
        let moved = ReferenceLine { base_ns: KERNEL.base_ns + 200, ..KERNEL };
        assert!(!moved.confirms(&line(slope, 100), now), "a change that was taken back");
    }

    #[test]
    fn nothing_overflows() {
        let extreme = ReferenceLine {
            generation: u32::MAX,
            base_ticks: u64::MAX,
            base_ns: u64::MAX,
            fraction: u64::MAX,
            mult: u32::MAX,
            shift: u32::MAX,
        };
        for ticks in [0, 1, u64::MAX / 2, u64::MAX] {
            let sample = ClockSample { ticks, half_ticks: u64::MAX, ns: ticks };
            let _ = (extreme.at(ticks), extreme.distance(&sample), extreme.unit());
            let _ = extreme.confirms(&line(extreme.slope().unwrap(), u64::MAX), ticks);
        }
        assert_eq!(ReferenceLine { mult: 0, ..KERNEL }.slope(), None);
    }
}
