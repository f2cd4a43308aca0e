//! A straight piece of time: what a page says until it says something else.

use super::bound::Status;
use super::slope::{RELATIVE_BITS, Slope, share_of};
use super::timebase::SourceId;

/// How far an unordered read may be from the instructions around it, ns: the bound must hold for
/// it too. Two reads of the clock and what stands between them fit into a processor's window.
/// Two of these ns are for the roundings of a read.
pub(super) const UNORDERED_NS: u64 = 40;

/// Time as a straight line over a counter, with a bound on its error and an end.
///
/// At `base_ticks` + d, d not beyond `valid_for`, it is `base_ns` + d x slope, and the reference is
/// within `bound_ns` + growth x (time since the base) of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockLine {
    pub(super) source: SourceId,
    pub(super) status: Status,
    /// Counts changes of source: ticks of two epochs do not mix.
    pub(super) epoch: u32,
    pub(super) slope: Slope,
    pub(super) base_ticks: u64,
    /// Ticks after the base for which the line may be used.
    pub(super) valid_for: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub(super) base_ns: u64,
    /// Bound on the error at the base, ns.
    pub(super) bound_ns: u64,
    /// Growth of the bound, in 2^-32 ns a nanosecond.
    pub(super) growth: u64,
    /// How long the bound holds.
    pub(super) validity: LineValidity,
}

/// How long the bound of a line holds, within its validity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineValidity {
    /// A change of the reference's rate would not be noticed: bounded reads take the OS clock.
    Never,
    /// As long as the line: the reference itself serves, or the bound allows for what it may do.
    Always,
    /// As long as the reference's generation is this one, or one that was found to agree.
    Under(u32),
}

/// [`LineValidity::Always`] as a word of a page.
pub(super) const ALWAYS: u64 = 0;

impl LineValidity {
    /// As a word of a page: the kind, and the generation in the upper half.
    pub(super) const fn to_word(self) -> u64 {
        match self {
            LineValidity::Never => 1,
            LineValidity::Always => ALWAYS,
            LineValidity::Under(generation) => 2 | (generation as u64) << 32,
        }
    }

    pub(super) const fn from_word(word: u64) -> LineValidity {
        match word & 0xff {
            0 => LineValidity::Always,
            2 => LineValidity::Under((word >> 32) as u32),
            _ => LineValidity::Never,
        }
    }

    /// The generation that a reader compares with its own. Lines without one get a number that no
    /// reference has: its generations are even, and [`u32::MAX`] is not a generation.
    pub(super) const fn generation(self) -> u32 {
        match self {
            LineValidity::Under(generation) => generation,
            LineValidity::Never | LineValidity::Always => u32::MAX - 2,
        }
    }
}

/// The position of a reading of the counter with respect to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinePosition {
    /// Ticks before the base.
    Before(u64),
    /// Ticks after the base, within the validity.
    Within(u64),
    /// Ticks after the base, beyond the validity.
    After(u64),
}

impl ClockLine {
    /// The line before any measurement: the OS clock as it is, already expired.
    pub(super) const UNDRAWN: ClockLine = ClockLine {
        source: SourceId::OS,
        status: Status::OsClock,
        epoch: 0,
        slope: Slope::IDENTITY,
        base_ticks: 0,
        valid_for: 0,
        base_ns: 0,
        bound_ns: 0,
        growth: 0,
        validity: LineValidity::Always,
    };

    pub(super) fn place(&self, ticks: u64) -> LinePosition {
        let ahead = ticks.wrapping_sub(self.base_ticks);
        if ahead <= self.valid_for {
            LinePosition::Within(ahead)
        } else if ahead > u64::MAX / 2 {
            LinePosition::Before(ahead.wrapping_neg())
        } else {
            LinePosition::After(ahead)
        }
    }

    /// Time at `ahead` ticks after the base, ns.
    pub(super) fn at(&self, ahead: u64) -> u64 {
        self.base_ns.saturating_add(self.slope.ns_floor(ahead))
    }

    /// Time at the end of the validity, ns: no reader of this line received a later time.
    pub(super) fn end_ns(&self) -> u64 {
        self.at(self.valid_for)
    }

    /// The bound on the error `elapsed_ns` after the base, ns, as a read computes it.
    #[inline(always)]
    pub(super) fn bound_within(bound_ns: u64, growth: u64, elapsed_ns: u64) -> u64 {
        // The constructors of lines keep growth x validity below 2^63 (`Line::held`).
        bound_ns.wrapping_add(elapsed_ns.wrapping_mul(growth) >> RELATIVE_BITS).wrapping_add(1)
    }

    /// The bound on the error at a reading, ns, if the allowance for drift still applies.
    pub(super) fn bound_at(&self, ahead: u64) -> u64 {
        self.bound_ns.saturating_add(share_of(self.slope.ns_floor(ahead), self.growth))
    }

    /// How far the line may be from the reference at a reading, ns: the bound less what an
    /// unordered read needs.
    pub(super) fn room_at(&self, ahead: u64) -> u64 {
        self.bound_at(ahead).saturating_sub(UNORDERED_NS)
    }

    /// This line with a validity limited so that no product of a read overflows.
    pub(super) fn held(mut self) -> ClockLine {
        const LONGEST_NS: u64 = 1 << 62;
        let longest = LONGEST_NS.checked_div(self.growth).unwrap_or(LONGEST_NS);
        let room_ns = (i64::MAX as u64).saturating_sub(self.base_ns).min(longest);
        self.valid_for = self.valid_for.min(self.slope.ticks_floor(room_ns)).min(u64::MAX / 2);
        // These are the assumptions of proofs/timekeeping.py about a read.
        let end_ns = self.slope.ns_floor(self.valid_for);
        debug_assert!(end_ns <= room_ns && end_ns.checked_mul(self.growth).is_some(), "{self:?}");
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_its_word() {
        for hold in [
            LineValidity::Never,
            LineValidity::Always,
            LineValidity::Under(0),
            LineValidity::Under(u32::MAX - 1),
        ] {
            assert_eq!(LineValidity::from_word(hold.to_word()), hold);
        }
    }

    #[test]
    fn places() {
        let line = ClockLine { base_ticks: 100, valid_for: 10, ..ClockLine::UNDRAWN };
        assert_eq!(line.place(100), LinePosition::Within(0));
        assert_eq!(line.place(110), LinePosition::Within(10));
        assert_eq!(line.place(111), LinePosition::After(11));
        assert_eq!(line.place(90), LinePosition::Before(10));
        let wrapped = ClockLine { base_ticks: u64::MAX, valid_for: 10, ..ClockLine::UNDRAWN };
        assert_eq!(wrapped.place(4), LinePosition::Within(5));
    }

    #[test]
    fn a_held_line_does_not_overflow() {
        let line = ClockLine {
            valid_for: u64::MAX,
            base_ns: 1 << 60,
            growth: 1 << 28,
            bound_ns: 100,
            ..ClockLine::UNDRAWN
        }
        .held();
        let elapsed = line.slope.ns_within(line.valid_for);
        assert!(elapsed.checked_mul(line.growth).is_some());
        assert!(line.end_ns() <= i64::MAX as u64);
        assert!(
            ClockLine::bound_within(100, line.growth, elapsed) <= line.bound_at(line.valid_for)
        );
    }
}
