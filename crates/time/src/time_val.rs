//! Seconds and microseconds, as `gettimeofday` and `getrusage` pair them.

use crate::Span;
use crate::conversion_error::{ConversionError, ConversionErrorKind};

/// As many make a second.
const MICROS: i64 = 1_000_000;

/// Nanoseconds in a microsecond.
const NANOS: i64 = 1_000;

/// Seconds and microseconds like `timeval`, always normalised: 0 to 999,999 microseconds are
/// added to the seconds. The whole range of 64-bit seconds; ordered by time.
///
/// ```
/// use hourglass_time::{Span, TimeVal};
///
/// let span = Span::from_nanos(1_500);
/// assert_eq!(TimeVal::from_span_floor(span).micros(), 1);
/// assert_eq!(TimeVal::from_span_ceil(span).micros(), 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TimeVal {
    secs: i64,
    micros: u32,
}

impl TimeVal {
    /// The pair as given, the microseconds in the width of `tv_usec`.
    ///
    /// # Errors
    /// [`ConversionErrorKind::Fraction`] if the microseconds are not 0 to 999,999.
    pub const fn new(secs: i64, micros: i64) -> Result<TimeVal, ConversionError> {
        if micros < 0 || micros >= MICROS {
            return Err(ConversionError::new(ConversionErrorKind::Fraction));
        }
        Ok(TimeVal { secs, micros: micros as u32 })
    }

    /// The pair with whole seconds carried out of the microseconds, which may be any number: what
    /// adding or subtracting two pairs field by field leaves.
    ///
    /// # Errors
    /// [`ConversionErrorKind::OutOfRange`] if the seconds leave 64 bits.
    pub const fn carried(secs: i64, micros: i64) -> Result<TimeVal, ConversionError> {
        match secs.checked_add(micros.div_euclid(MICROS)) {
            Some(secs) => Ok(TimeVal { secs, micros: micros.rem_euclid(MICROS) as u32 }),
            None => Err(ConversionError::new(ConversionErrorKind::OutOfRange)),
        }
    }

    /// The last microsecond that is not after the span's end.
    #[must_use]
    pub const fn from_span_floor(span: Span) -> TimeVal {
        TimeVal::counted(span.nanos().div_euclid(NANOS))
    }

    /// The first microsecond that is not before the span's end: what a sleep needs, so as not to
    /// end early.
    #[must_use]
    pub const fn from_span_ceil(span: Span) -> TimeVal {
        let below = span.nanos().div_euclid(NANOS);
        let exact = span.nanos().rem_euclid(NANOS) == 0;
        TimeVal::counted(if exact { below } else { below + 1 })
    }

    const fn counted(micros: i64) -> TimeVal {
        TimeVal { secs: micros.div_euclid(MICROS), micros: micros.rem_euclid(MICROS) as u32 }
    }

    /// Whole seconds, rounded towards minus infinity.
    #[must_use]
    pub const fn secs(self) -> i64 {
        self.secs
    }

    /// Microseconds to be added to the seconds, 0 to 999,999.
    #[must_use]
    pub const fn micros(self) -> u32 {
        self.micros
    }
}

/// Exact.
///
/// # Errors
/// [`ConversionErrorKind::OutOfRange`] beyond 292 years either way.
impl TryFrom<TimeVal> for Span {
    type Error = ConversionError;

    fn try_from(tv: TimeVal) -> Result<Span, ConversionError> {
        Span::from_secs_nanos(tv.secs, i64::from(tv.micros) * NANOS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TimeSpec;

    /// Research 1.1 e: the thesis' code subtracts `tv_usec` and ignores that the second rolled
    /// over in between.
    #[test]
    fn a_difference_across_a_second() {
        let (before, after) = (TimeVal::new(41, 999_990), TimeVal::new(42, 10));
        let (before, after) = (before.expect("normalised"), after.expect("normalised"));
        let span = |tv| Span::try_from(tv).expect("in range");
        assert_eq!(span(after).checked_sub(span(before)), Some(Span::from_micros(20)));
        let by_field = TimeVal::carried(42 - 41, 10 - 999_990).expect("in range");
        assert_eq!(Span::try_from(by_field), Ok(Span::from_micros(20)));
    }

    /// Research 1.1 e, thesis listing 5.2: `tv_usec / ONE_MILLION` in integers is always zero.
    #[test]
    fn microseconds_are_not_divided_away() {
        let (user, system) = (TimeVal::new(0, 14_500), TimeVal::new(0, 999_999));
        let sum = [user, system].map(|tv| Span::try_from(tv.expect("normalised")));
        assert_eq!(sum[0], Ok(Span::from_micros(14_500)));
        assert_eq!(sum[1].map(Span::as_secs_f64_nearest), Ok(0.999_999));
    }

    /// Thesis listing 4.4: `timespec { tv_sec, tv_usec * 1000 }`.
    #[test]
    fn a_timeval_is_a_timespec() {
        let tv = TimeVal::new(-7, 999_999).expect("normalised");
        let ts = TimeSpec::from(tv);
        assert_eq!((ts.secs(), ts.nanos()), (-7, 999_999_000));
        assert_eq!(Span::try_from(ts), Span::try_from(tv));
    }

    #[test]
    fn the_ends_are_in_range_or_refused() {
        assert_eq!(TimeVal::from_span_floor(Span::MIN).secs(), -9_223_372_037);
        assert_eq!(TimeVal::from_span_ceil(Span::MAX).micros(), 854_776);
        assert!(Span::try_from(TimeVal::from_span_ceil(Span::MAX)).is_err());
        assert!(Span::try_from(TimeVal::from_span_floor(Span::MIN)).is_err());
        assert!(TimeVal::new(0, MICROS).is_err());
        assert!(TimeVal::new(0, -1).is_err());
        assert!(TimeVal::carried(i64::MIN, -1).is_err());
    }
}
