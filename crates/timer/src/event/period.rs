//! Lengths of time that need not be whole nanoseconds, and points in time that far apart.

use std::cmp::Ordering;
use std::fmt;

use hourglass_time::Span;

const SECOND: u64 = 1_000_000_000;

/// A positive length of time, exact: a fraction of nanoseconds.
///
/// A tick of the i8254 is 1,000,000,000 / 1,193,182 ns, one of an MC146818 at 1024 Hz 976,562.5 ns:
/// neither is a whole number, and the error of a rounded one adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Period {
    /// At most `i64::MAX`.
    ns: u64,
    per: u32,
}

/// A length of time that no period has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadPeriod {
    /// Zero or negative.
    #[error("invalid period {0}: must be greater than zero")]
    NotPositive(Span),
    /// More than 292 years, or a fraction finer than 2^-32.
    #[error("a period cannot be longer than 292 years")]
    TooLong,
}

impl Period {
    pub(super) const SECOND_NS: u64 = SECOND;

    /// 1 ns, the step of the kernel's timers.
    pub const NANOSECOND: Period = Period { ns: 1, per: 1 };
    /// A count of the i8254, 838.095 ns (*Time Services in RT-Mach*, section 2.2).
    pub const I8254: Period = Period { ns: 500_000_000, per: 596_591 };

    /// `ns` / `per` nanoseconds.
    ///
    /// # Errors
    /// [`BadPeriod`] if either is zero or `ns` is above `i64::MAX`.
    pub const fn new(ns: u64, per: u32) -> Result<Period, BadPeriod> {
        if ns == 0 || per == 0 {
            return Err(BadPeriod::NotPositive(Span::ZERO));
        }
        if ns > i64::MAX as u64 {
            return Err(BadPeriod::TooLong);
        }
        let common = greatest_common_divisor(ns, per as u64);
        Ok(Period { ns: ns / common, per: (per as u64 / common) as u32 })
    }

    /// A whole number of nanoseconds.
    ///
    /// # Errors
    /// [`BadPeriod::NotPositive`].
    pub const fn from_span(span: Span) -> Result<Period, BadPeriod> {
        if !span.is_positive() {
            return Err(BadPeriod::NotPositive(span));
        }
        Period::new(span.nanos_or_zero(), 1)
    }

    /// The period of this many events in a second.
    ///
    /// # Errors
    /// [`BadPeriod::NotPositive`] for 0 Hz.
    pub const fn from_hertz(hertz: u32) -> Result<Period, BadPeriod> {
        Period::new(SECOND, hertz)
    }

    /// This period `count` times; `None` if `count` is 0, and beyond 292 years.
    #[must_use]
    pub fn times(self, count: u64) -> Option<Period> {
        Period::new(self.ns.checked_mul(count)?, self.per).ok()
    }

    /// The least whole number of nanoseconds in which `count` of it have passed, held at
    /// `u64::MAX`.
    #[must_use]
    pub fn nth_ns(self, count: u64) -> u64 {
        let ns = (u128::from(count) * u128::from(self.ns)).div_ceil(u128::from(self.per));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// How many of it have passed after `ns`: the greatest `count` whose [`Period::nth_ns`] is
    /// not above it. Held at `u64::MAX`.
    #[must_use]
    pub fn passed(self, ns: u64) -> u64 {
        let count = u128::from(ns) * u128::from(self.per) / u128::from(self.ns);
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// How many of it cover `ns`. Held at `u64::MAX`.
    #[must_use]
    pub fn covering(self, ns: u64) -> u64 {
        let count = (u128::from(ns) * u128::from(self.per)).div_ceil(u128::from(self.ns));
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// How many whole `unit`s fit into it. Held at `u64::MAX`.
    #[must_use]
    pub fn whole(self, unit: Period) -> u64 {
        // Both products are below 2^95.
        let this = u128::from(self.ns) * u128::from(unit.per);
        let units = this / (u128::from(unit.ns) * u128::from(self.per));
        u64::try_from(units).unwrap_or(u64::MAX)
    }

    /// To the next whole nanosecond above.
    #[must_use]
    pub fn span_ceil(self) -> Span {
        Span::saturating_from_nanos(self.nth_ns(1))
    }

    /// Whether it is at most `skew` away from `desired`, either way, exactly.
    #[must_use]
    pub fn is_within(self, skew: Span, desired: Span) -> bool {
        let per = u128::from(self.per);
        let wanted = u128::from(desired.nanos_or_zero()) * per;
        !skew.is_negative()
            && u128::from(self.ns).abs_diff(wanted) <= u128::from(skew.nanos_or_zero()) * per
    }

    /// The least skew in whole nanoseconds that [`Period::is_within`] accepts.
    #[must_use]
    pub fn skew_from(self, desired: Span) -> Span {
        let per = u128::from(self.per);
        let wanted = u128::from(desired.nanos_or_zero()) * per;
        let off = u128::from(self.ns).abs_diff(wanted).div_ceil(per);
        Span::from_nanos(i64::try_from(off).unwrap_or(i64::MAX))
    }

    /// Of two, the nearer to `desired`; of two as near, the shorter. `shorter` is not the longer.
    pub(super) fn nearer(shorter: Period, longer: Period, desired: Span) -> Period {
        // Where shorter <= desired <= longer, the middle of both decides. All fits: 2^63 x 2^64.
        let (s, l) = (u128::from(shorter.per), u128::from(longer.per));
        let both = u128::from(shorter.ns) * l + u128::from(longer.ns) * s;
        let twice = 2 * u128::from(desired.nanos_or_zero()) * s * l;
        if twice > both { longer } else { shorter }
    }
}

impl Ord for Period {
    fn cmp(&self, other: &Period) -> Ordering {
        let this = u128::from(self.ns) * u128::from(other.per);
        this.cmp(&(u128::from(other.ns) * u128::from(self.per)))
    }
}

impl PartialOrd for Period {
    fn partial_cmp(&self, other: &Period) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// In nanoseconds with up to three decimals, cut off.
impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per = u64::from(self.per);
        let (whole, rest) = (self.ns / per, self.ns % per);
        if rest == 0 {
            write!(f, "{whole} ns")
        } else {
            write!(f, "{whole}.{:03} ns", rest * 1_000 / per)
        }
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Points in time a period apart, and how many of them have been seen.
///
/// Every point is counted from the first one, so that no error adds up, and no point is before its
/// exact time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodGrid {
    base_ns: u64,
    period: Period,
    seen: u64,
}

impl PeriodGrid {
    /// Points at `base_ns` + 1, 2, 3 periods and so on.
    #[must_use]
    pub const fn starting_at(base_ns: u64, period: Period) -> PeriodGrid {
        PeriodGrid { base_ns, period, seen: 0 }
    }

    /// The distance between points.
    #[must_use]
    pub const fn period(&self) -> Period {
        self.period
    }

    /// The first point not seen, held at `u64::MAX`.
    #[must_use]
    pub fn next_ns(&self) -> u64 {
        self.point_ns(self.seen.saturating_add(1))
    }

    /// How many points were seen.
    #[must_use]
    pub const fn seen(&self) -> u64 {
        self.seen
    }

    /// Sees the points up to and including `now_ns`; returns how many those are.
    pub fn advance(&mut self, now_ns: u64) -> u64 {
        let passed = self.period.passed(now_ns.saturating_sub(self.base_ns));
        let fresh = passed.saturating_sub(self.seen);
        self.seen += fresh;
        fresh
    }

    /// The first point at or after `at_ns`, the base included; held at `u64::MAX`.
    #[must_use]
    pub fn first_from(&self, at_ns: u64) -> u64 {
        self.point_ns(self.period.covering(at_ns.saturating_sub(self.base_ns)))
    }

    /// The last point at or before `at_ns`, or the base if that is later.
    #[must_use]
    pub fn last_until(&self, at_ns: u64) -> u64 {
        self.point_ns(self.period.passed(at_ns.saturating_sub(self.base_ns)))
    }

    /// The `count`th point.
    #[must_use]
    pub fn point_ns(&self, count: u64) -> u64 {
        self.base_ns.saturating_add(self.period.nth_ns(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hertz(hz: u32) -> Period {
        Period::from_hertz(hz).unwrap()
    }

    /// RT-Mach section 2.2: the i8254 counts in 838 ns, up to 0.055 s.
    #[test]
    fn the_i8254_is_exact() {
        assert_eq!(Period::I8254, hertz(1_193_182));
        assert_eq!(Period::I8254.to_string(), "838.095 ns");
        assert_eq!(Period::I8254.nth_ns(1_193_182), SECOND);
        assert_eq!(Period::I8254.times(65_536).unwrap().to_string(), "54925401.154 ns");
    }

    #[test]
    fn lengths_that_are_none_are_refused() {
        for ns in [0, -1, i64::MIN] {
            let span = Span::from_nanos(ns);
            assert_eq!(Period::from_span(span), Err(BadPeriod::NotPositive(span)));
        }
        assert!(Period::from_hertz(0).is_err() && Period::new(5, 0).is_err());
        assert_eq!(Period::new(u64::MAX, 1), Err(BadPeriod::TooLong));
        assert_eq!(Period::NANOSECOND.times(u64::MAX), None);
        assert_eq!(Period::NANOSECOND.times(0), None);
        let text = BadPeriod::NotPositive(Span::from_nanos(-5)).to_string();
        assert_eq!(text.lines().count(), 1, "{text}");
    }

    #[test]
    fn a_year_of_ticks_loses_nothing() {
        let mut grid = PeriodGrid::starting_at(7, hertz(1_024));
        let year = 365 * 86_400;
        assert_eq!(grid.advance(7 + year * SECOND - 1), year * 1_024 - 1);
        assert_eq!(grid.next_ns(), 7 + year * SECOND);
        assert_eq!(grid.advance(7 + year * SECOND), 1);
        assert_eq!(grid.advance(0), 0);
    }

    #[test]
    fn the_ends_are_held() {
        let long = Period::new(i64::MAX as u64, 1).unwrap();
        assert_eq!(long.nth_ns(u64::MAX), u64::MAX);
        assert_eq!(PeriodGrid::starting_at(u64::MAX, long).next_ns(), u64::MAX);
        let short = Period::new(1, u32::MAX).unwrap();
        assert_eq!(short.passed(u64::MAX), u64::MAX);
        assert_eq!((short.covering(u64::MAX), long.covering(1)), (u64::MAX, 1));
    }

    fn any_period() -> impl Strategy<Value = Period> {
        (1..=1u64 << 40, 1..=u32::MAX).prop_map(|(ns, per)| Period::new(ns, per).unwrap())
    }

    proptest! {
        /// The grid's two directions agree, and no point is early.
        #[test]
        fn points_and_counts_agree(period in any_period(), count in 0..1u64 << 30) {
            let at = period.nth_ns(count);
            prop_assert!(period.passed(at) >= count);
            prop_assert!(at == 0 || period.passed(at - 1) < count);
        }

        #[test]
        fn skews_are_exact(period in any_period(), ns in 1..1i64 << 40) {
            let desired = Span::from_nanos(ns);
            let skew = period.skew_from(desired);
            prop_assert!(period.is_within(skew, desired));
            let less = skew.saturating_sub(Span::NANOSECOND);
            prop_assert!(!period.is_within(less, desired));
        }
    }
}
