//! A signed length of time.

mod arithmetic;
mod division;
mod parse;
mod print;

pub use parse::{ParseSpanError, ParseSpanErrorKind};
pub(crate) use print::print;

use core::time::Duration;

use crate::conversion_error::{ConversionError, ConversionErrorKind};
use crate::exact;

/// A signed length of time in whole nanoseconds.
///
/// Range: -(2^63 - 1) to 2^63 - 1 ns, about 292 years either way, symmetric, so that negation and
/// magnitude are total. Smallest of two, largest of two and a value held between two are
/// [`Ord::min`], [`Ord::max`] and [`Ord::clamp`].
///
/// # Operators
/// `-span` exists, because it cannot fail. `a + b`, `a - b`, `a * n` and `a / n` do not: they could
/// only panic, wrap or hold at the end of the range, and none of the three should happen unseen.
/// Each caller writes which one is right there: `checked_` (out of range is `None`) or `saturating_`
/// (held at the end). Quotients name their rounding: `_floor` goes towards minus infinity, `_ceil`
/// towards plus infinity.
///
/// Seconds in floating point are [`Duration`]'s: `Span::try_from(Duration::try_from_secs_f64(0.1)?)`
/// and `span.magnitude().as_secs_f64()`, both rounded to the nearest.
///
/// ```
/// use hourglass_time::Span;
///
/// let period = Span::from_millis(20);
/// let late = Span::from_micros(300);
/// assert_eq!(period.checked_add(late), Some(Span::from_nanos(20_300_000)));
/// assert_eq!(Span::MAX.checked_add(late), None);
/// assert_eq!(Span::MAX.saturating_add(late), Span::MAX);
/// assert_eq!((-late).magnitude().subsec_micros(), 300);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i64);

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest span.
    pub const MAX: Span = Span(exact::MAX);
    /// The longest negative span (symmetric to [`Span::MAX`], so that negation never overflows).
    pub const MIN: Span = Span(exact::MIN);
    /// 1 ns.
    pub const NANOSECOND: Span = Span(1);
    /// 1 us.
    pub const MICROSECOND: Span = Span(1_000);
    /// 1 ms.
    pub const MILLISECOND: Span = Span(1_000_000);
    /// 1 s.
    pub const SECOND: Span = Span(1_000_000_000);
    /// 60 s.
    pub const MINUTE: Span = Span(60 * 1_000_000_000);
    /// 60 minutes.
    pub const HOUR: Span = Span(60 * 60 * 1_000_000_000);
    /// 24 hours.
    pub const DAY: Span = Span(24 * 60 * 60 * 1_000_000_000);

    /// A span of `ns` nanoseconds; `i64::MIN` is taken as [`Span::MIN`].
    #[must_use]
    pub const fn from_nanos(ns: i64) -> Span {
        if ns == i64::MIN { Span::MIN } else { Span(ns) }
    }

    /// A span of `ns` nanoseconds; [`Span::MAX`] above it.
    #[must_use]
    pub const fn saturating_from_nanos(ns: u64) -> Span {
        Span::from_nanos(if ns > i64::MAX as u64 { i64::MAX } else { ns as i64 })
    }

    /// A span of `us` microseconds, saturating. (`Span::MICROSECOND.checked_mul(us)` is checked;
    /// so with the other units.)
    #[must_use]
    pub const fn from_micros(us: i64) -> Span {
        Span::from_nanos(us.saturating_mul(1_000))
    }

    /// A span of `ms` milliseconds, saturating.
    #[must_use]
    pub const fn from_millis(ms: i64) -> Span {
        Span::from_nanos(ms.saturating_mul(1_000_000))
    }

    /// A span of `s` seconds, saturating.
    #[must_use]
    pub const fn from_secs(s: i64) -> Span {
        Span::from_nanos(s.saturating_mul(1_000_000_000))
    }

    /// A span of this many nanoseconds, counted in 128 bits.
    ///
    /// # Errors
    /// [`ConversionErrorKind::OutOfRange`].
    pub const fn try_from_nanos(ns: i128) -> Result<Span, ConversionError> {
        match exact::narrow(ns) {
            Some(ns) => Ok(Span(ns)),
            None => Err(ConversionError::new(ConversionErrorKind::OutOfRange)),
        }
    }

    /// The length in nanoseconds, never `i64::MIN`.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// The length in nanoseconds if it is not negative, else 0.
    #[must_use]
    pub const fn nanos_or_zero(self) -> u64 {
        if self.0 < 0 { 0 } else { self.0.unsigned_abs() }
    }

    /// Whether this is exactly no time.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether time runs backwards in this span.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Whether this is more than no time.
    #[must_use]
    pub const fn is_positive(self) -> bool {
        self.0 > 0
    }

    /// The sign: -1, 0 or 1.
    #[must_use]
    pub const fn signum(self) -> i64 {
        self.0.signum()
    }

    /// The same length, without the sign.
    #[must_use]
    pub const fn abs(self) -> Span {
        if self.0 < 0 { Span(-self.0) } else { self }
    }

    /// `secs` seconds and `nanos` nanoseconds, added; either may be negative, and nanoseconds
    /// beyond a second are carried. (Thesis listing 4.1 computes this in 64 bits and tests for
    /// the overflow afterwards; here it is exact, then tested.)
    ///
    /// # Errors
    /// [`ConversionErrorKind::OutOfRange`].
    pub const fn from_secs_nanos(secs: i64, nanos: i64) -> Result<Span, ConversionError> {
        Span::try_from_nanos(secs as i128 * Span::SECOND.0 as i128 + nanos as i128)
    }

    /// Whole seconds rounded towards minus infinity, and the nanoseconds that are left, 0 to
    /// 999,999,999: -1.5 s is (-2, 500,000,000), as in a `timespec`. For sign and magnitude see
    /// [`Span::magnitude`].
    #[must_use]
    pub const fn secs_nanos_floor(self) -> (i64, u32) {
        let secs = self.0.div_euclid(Span::SECOND.0);
        let rest = self.0.rem_euclid(Span::SECOND.0);
        (secs, rest as u32)
    }

    /// The length without its sign, in the standard library's type: whole seconds by
    /// [`Duration::as_secs`], the rest by [`Duration::subsec_nanos`] or
    /// [`Duration::subsec_micros`]. With [`Span::is_negative`] these are the thesis' sign,
    /// seconds, microseconds and nanoseconds.
    #[must_use]
    pub const fn magnitude(self) -> Duration {
        Duration::from_nanos(self.0.unsigned_abs())
    }
}

impl core::ops::Neg for Span {
    type Output = Span;

    fn neg(self) -> Span {
        Span(-self.0)
    }
}

/// Exact.
///
/// # Errors
/// [`ConversionErrorKind::OutOfRange`] above 2^63 - 1 ns.
impl TryFrom<Duration> for Span {
    type Error = ConversionError;

    fn try_from(duration: Duration) -> Result<Span, ConversionError> {
        // At most 2^64 s, so 94 bits.
        let whole = i128::from(duration.as_secs()) * 1_000_000_000;
        Span::try_from_nanos(whole + i128::from(duration.subsec_nanos()))
    }
}

/// Exact.
///
/// # Errors
/// [`ConversionErrorKind::Negative`].
impl TryFrom<Span> for Duration {
    type Error = ConversionError;

    fn try_from(span: Span) -> Result<Duration, ConversionError> {
        if span.is_negative() {
            Err(ConversionError::new(ConversionErrorKind::Negative))
        } else {
            Ok(span.magnitude())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_range_do_not_wrap() {
        assert_eq!(Span::from_nanos(i64::MIN), Span::MIN);
        assert_eq!(Span::MAX.checked_add(Span::from_nanos(1)), None);
        assert_eq!(Span::MIN.checked_sub(Span::from_nanos(1)), None);
        assert_eq!(Span::MAX.saturating_add(Span::MAX), Span::MAX);
        assert_eq!(Span::MIN.saturating_sub(Span::MAX), Span::MIN);
        assert_eq!(Span::from_secs(i64::MAX), Span::MAX);
        assert_eq!(Span::MAX.checked_mul(2), None);
    }

    /// Thesis chapter 4, `mSign`: a time has a sign, and both ends have a negative.
    #[test]
    fn every_span_has_a_sign_and_a_negative() {
        for (span, sign) in [(Span::MIN, -1), (Span::ZERO, 0), (Span::MAX, 1)] {
            assert_eq!(span.signum(), sign);
            assert_eq!(span.is_negative(), sign < 0);
            assert_eq!(span.is_positive(), sign > 0);
            assert_eq!((-(-span)), span);
            assert!(!span.abs().is_negative());
        }
        assert_eq!(-Span::MIN, Span::MAX);
        assert_eq!(Span::MIN.magnitude(), Span::MAX.magnitude());
        assert_eq!(Span::from_millis(-1500).magnitude().as_secs(), 1);
        assert_eq!(Span::from_millis(-1500).magnitude().subsec_nanos(), 500_000_000);
    }

    /// Thesis section 3.2, `HPTimer_MAX` and `HPTimer_MIN`, and the comparisons.
    #[test]
    fn smallest_and_largest() {
        let (short, long) = (Span::from_micros(-3), Span::from_micros(2));
        assert_eq!(short.min(long), short);
        assert_eq!(short.max(long), long);
        assert_eq!(Span::MAX.clamp(short, long), long);
        assert!(Span::MIN < short && short < long && long < Span::MAX);
    }

    /// Thesis listing 4.1: a sum of seconds and nanoseconds beyond the range is refused, not
    /// wrapped before the test for it.
    #[test]
    fn seconds_and_nanoseconds_beyond_the_range() {
        assert!(Span::from_secs_nanos(i64::MAX, i64::MAX).is_err());
        assert!(Span::from_secs_nanos(i64::MIN, i64::MIN).is_err());
        assert_eq!(Span::from_secs_nanos(9_223_372_036, 854_775_807), Ok(Span::MAX));
        assert!(Span::from_secs_nanos(9_223_372_036, 854_775_808).is_err());
        assert_eq!(Span::from_secs_nanos(9_223_372_037, -145_224_193), Ok(Span::MAX));
        assert_eq!(Span::from_secs_nanos(-9_223_372_036, -854_775_807), Ok(Span::MIN));
    }

    #[test]
    fn the_nanoseconds_of_a_negative_span_are_positive() {
        assert_eq!(Span::from_millis(-1_500).secs_nanos_floor(), (-2, 500_000_000));
        assert_eq!(Span::from_nanos(-1).secs_nanos_floor(), (-1, 999_999_999));
        assert_eq!(Span::MIN.secs_nanos_floor(), (-9_223_372_037, 145_224_193));
    }

    #[test]
    fn the_units_are_what_they_say() {
        assert_eq!(Span::DAY, Span::from_secs(86_400));
        assert_eq!(Span::HOUR, Span::from_secs(3_600));
        assert_eq!(Span::MINUTE, Span::from_secs(60));
        assert_eq!(Span::SECOND, Span::from_millis(1_000));
        assert_eq!(Span::MILLISECOND, Span::from_micros(1_000));
        assert_eq!(Span::MICROSECOND, Span::from_nanos(1_000));
    }
}
