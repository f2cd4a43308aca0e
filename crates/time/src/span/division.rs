//! Quotients of spans, and rounding to a multiple. The name says where the rest goes.

use super::Span;
use crate::exact::{self, Rounding};

impl Span {
    /// The `by`-th part, rounded towards minus infinity; `None` if `by` is zero.
    #[must_use]
    pub const fn div_floor(self, by: i64) -> Option<Span> {
        self.part(by, Rounding::Floor)
    }

    /// The `by`-th part, rounded towards plus infinity; `None` if `by` is zero.
    #[must_use]
    pub const fn div_ceil(self, by: i64) -> Option<Span> {
        self.part(by, Rounding::Ceil)
    }

    /// The `by`-th part, rounded to the nearest nanosecond, a tie away from zero; `None` if `by`
    /// is zero.
    #[must_use]
    pub const fn div_nearest(self, by: i64) -> Option<Span> {
        self.part(by, Rounding::Nearest)
    }

    /// How many times `unit` goes into this, rounded towards minus infinity; `None` if `unit` is
    /// zero. `span.ratio_floor(Span::MICROSECOND)` is the length in whole microseconds.
    #[must_use]
    pub const fn ratio_floor(self, unit: Span) -> Option<i64> {
        self.ratio(unit, Rounding::Floor)
    }

    /// How many times `unit` goes into this, rounded towards plus infinity; `None` if `unit` is
    /// zero.
    #[must_use]
    pub const fn ratio_ceil(self, unit: Span) -> Option<i64> {
        self.ratio(unit, Rounding::Ceil)
    }

    /// How many times `unit` goes into this, rounded to the nearest, a tie away from zero; `None`
    /// if `unit` is zero.
    #[must_use]
    pub const fn ratio_nearest(self, unit: Span) -> Option<i64> {
        self.ratio(unit, Rounding::Nearest)
    }

    /// What [`Span::ratio_floor`] leaves: zero, or of the sign of `unit` and shorter than it;
    /// `None` if `unit` is zero. For a positive `unit` it is the phase within it, also of a
    /// negative span.
    #[must_use]
    pub const fn rem_floor(self, unit: Span) -> Option<Span> {
        // The rest is shorter than the unit, so it always fits.
        match exact::divide(self.nanos() as i128, unit.nanos() as i128, Rounding::Floor) {
            Some(times) => {
                let rest = self.nanos() as i128 - times * unit.nanos() as i128;
                Some(Span(exact::saturate(rest)))
            }
            None => None,
        }
    }

    /// The multiple of `step` that is not above this; `None` if `step` is not positive or the
    /// multiple out of range.
    #[must_use]
    pub const fn round_down(self, step: Span) -> Option<Span> {
        self.multiple(step, Rounding::Floor)
    }

    /// The multiple of `step` that is not below this; `None` if `step` is not positive or the
    /// multiple out of range.
    #[must_use]
    pub const fn round_up(self, step: Span) -> Option<Span> {
        self.multiple(step, Rounding::Ceil)
    }

    /// The multiple of `step` that is nearest, of two the one farther from zero; `None` if `step`
    /// is not positive or the multiple out of range.
    #[must_use]
    pub const fn round_nearest(self, step: Span) -> Option<Span> {
        self.multiple(step, Rounding::Nearest)
    }

    const fn part(self, by: i64, rounding: Rounding) -> Option<Span> {
        match exact::divide(self.nanos() as i128, by as i128, rounding) {
            // Not longer than before, so it always fits.
            Some(part) => Some(Span(exact::saturate(part))),
            None => None,
        }
    }

    const fn ratio(self, unit: Span, rounding: Rounding) -> Option<i64> {
        match exact::divide(self.nanos() as i128, unit.nanos() as i128, rounding) {
            // At most as many as there are nanoseconds, so it always fits.
            Some(times) => Some(exact::saturate(times)),
            None => None,
        }
    }

    const fn multiple(self, step: Span, rounding: Rounding) -> Option<Span> {
        if !step.is_positive() {
            return None;
        }
        let Some(times) = exact::divide(self.nanos() as i128, step.nanos() as i128, rounding)
        else {
            return None;
        };
        match exact::narrow(times * step.nanos() as i128) {
            Some(ns) => Some(Span(ns)),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ns(ns: i64) -> Span {
        Span::from_nanos(ns)
    }

    #[test]
    fn a_part_goes_where_the_name_says() {
        assert_eq!(ns(-7).div_floor(2), Some(ns(-4)));
        assert_eq!(ns(-7).div_ceil(2), Some(ns(-3)));
        assert_eq!(ns(-7).div_nearest(2), Some(ns(-4)));
        assert_eq!(ns(7).div_floor(0), None);
        assert_eq!(Span::MIN.div_floor(-1), Some(Span::MAX));
        assert_eq!(Span::MIN.div_ceil(i64::MIN), Some(ns(1)));
    }

    #[test]
    fn a_ratio_and_its_rest_make_the_whole() {
        let (span, unit) = (ns(-2_500), Span::MICROSECOND);
        assert_eq!(span.ratio_floor(unit), Some(-3));
        assert_eq!(span.ratio_ceil(unit), Some(-2));
        assert_eq!(span.ratio_nearest(unit), Some(-3));
        assert_eq!(span.rem_floor(unit), Some(ns(500)));
        assert_eq!(span.rem_floor(-unit), Some(ns(-500)));
        assert_eq!(span.rem_floor(Span::ZERO), None);
        assert_eq!(Span::MAX.ratio_floor(ns(-1)), Some(-i64::MAX));
    }

    #[test]
    fn a_multiple_is_in_range_or_refused() {
        let span = Span::from_micros(-1_500);
        assert_eq!(span.round_down(Span::MILLISECOND), Some(Span::from_millis(-2)));
        assert_eq!(span.round_up(Span::MILLISECOND), Some(Span::from_millis(-1)));
        assert_eq!(span.round_nearest(Span::MILLISECOND), Some(Span::from_millis(-2)));
        assert_eq!(Span::MAX.round_up(Span::SECOND), None);
        assert_eq!(Span::MIN.round_down(Span::SECOND), None);
        assert_eq!(span.round_down(Span::ZERO), None);
        assert_eq!(span.round_down(-Span::SECOND), None);
    }
}
