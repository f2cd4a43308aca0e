//! Quotients of spans. The name says where the rest goes.

use super::Span;
use crate::exact;

impl Span {
    /// The `by`-th part, rounded towards minus infinity; `None` if `by` is zero.
    #[must_use]
    pub const fn div_floor(self, by: i64) -> Option<Span> {
        // Not longer than before, so it always fits.
        match exact::div_floor(self.nanos() as i128, by as i128) {
            Some(part) => Some(Span(exact::saturate(part))),
            None => None,
        }
    }

    /// The `by`-th part, rounded towards plus infinity; `None` if `by` is zero.
    #[must_use]
    pub const fn div_ceil(self, by: i64) -> Option<Span> {
        match exact::div_floor(-(self.nanos() as i128), by as i128) {
            Some(part) => Some(Span(exact::saturate(-part))),
            None => None,
        }
    }

    /// How many times `unit` goes into this, rounded towards minus infinity; `None` if `unit` is
    /// zero. `span.ratio_floor(Span::MICROSECOND)` is the length in whole microseconds.
    #[must_use]
    pub const fn ratio_floor(self, unit: Span) -> Option<i64> {
        // At most as many as there are nanoseconds, so it always fits.
        match exact::div_floor(self.nanos() as i128, unit.nanos() as i128) {
            Some(times) => Some(exact::saturate(times)),
            None => None,
        }
    }

    /// What [`Span::ratio_floor`] leaves: zero, or of the sign of `unit` and shorter than it;
    /// `None` if `unit` is zero. For a positive `unit` it is the phase within it, also of a
    /// negative span.
    #[must_use]
    pub const fn rem_floor(self, unit: Span) -> Option<Span> {
        let (span, unit) = (self.nanos() as i128, unit.nanos() as i128);
        match exact::div_floor(span, unit) {
            // Shorter than the unit, so it always fits.
            Some(times) => Some(Span(exact::saturate(span - times * unit))),
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
        assert_eq!(ns(7).div_floor(0), None);
        assert_eq!(Span::MIN.div_floor(-1), Some(Span::MAX));
        assert_eq!(Span::MIN.div_ceil(i64::MIN), Some(ns(1)));
    }

    #[test]
    fn a_ratio_and_its_rest_make_the_whole() {
        let (span, unit) = (ns(-2_500), Span::MICROSECOND);
        assert_eq!(span.ratio_floor(unit), Some(-3));
        assert_eq!(span.rem_floor(unit), Some(ns(500)));
        assert_eq!(span.rem_floor(-unit), Some(ns(-500)));
        assert_eq!(span.rem_floor(Span::ZERO), None);
        assert_eq!(Span::MAX.ratio_floor(ns(-1)), Some(-i64::MAX));
    }
}
