//! Spans in seconds: whole seconds with nanoseconds, and floating point.

use crate::Span;
use crate::conversion_error::{ConversionError, ConversionErrorKind};
use crate::exact::{self, Rounding};

const NANOS_PER_SEC: u32 = 1_000_000_000;

/// Bits of the fraction of an `f64`, behind its leading one.
const FRACTION_BITS: u32 = 52;

/// The exponent field of 1.0.
const EXPONENT_BIAS: u32 = 1023;

/// The exponent field of what is not finite.
const EXPONENT_SPECIAL: u32 = 0x7ff;

impl Span {
    /// `secs` seconds and `nanos` nanoseconds, added; either may be negative, and nanoseconds
    /// beyond a second are carried. (Thesis listing 4.1 computes this in 64 bits and tests for
    /// the overflow afterwards; here it is exact, then tested.)
    ///
    /// # Errors
    /// [`ConversionErrorKind::OutOfRange`].
    pub const fn from_secs_nanos(secs: i64, nanos: i64) -> Result<Span, ConversionError> {
        Span::try_from_nanos(secs as i128 * NANOS_PER_SEC as i128 + nanos as i128)
    }

    /// Whole seconds rounded towards minus infinity, and the nanoseconds that are left, 0 to
    /// 999,999,999: -1.5 s is (-2, 500,000,000), as in a `timespec`. For sign and magnitude see
    /// [`Span::magnitude`].
    #[must_use]
    pub const fn secs_nanos_floor(self) -> (i64, u32) {
        let secs = self.nanos().div_euclid(NANOS_PER_SEC as i64);
        let rest = self.nanos().rem_euclid(NANOS_PER_SEC as i64);
        (secs, rest as u32)
    }

    /// The span nearest to `secs` seconds, a tie away from zero. The number is taken at its exact
    /// binary value and rounded once; no product is rounded in between.
    ///
    /// # Errors
    /// [`ConversionErrorKind::NotANumber`], [`ConversionErrorKind::Infinite`] or
    /// [`ConversionErrorKind::OutOfRange`].
    ///
    /// ```
    /// use hourglass_time::{ConversionErrorKind, Span};
    ///
    /// assert_eq!(Span::from_secs_f64_nearest(0.1), Ok(Span::from_millis(100)));
    /// let error = Span::from_secs_f64_nearest(1e10).unwrap_err();
    /// assert_eq!(error.kind(), ConversionErrorKind::OutOfRange);
    /// ```
    pub const fn from_secs_f64_nearest(secs: f64) -> Result<Span, ConversionError> {
        match nanos_nearest(secs) {
            Ok(nanos) => Span::try_from_nanos(nanos),
            Err(kind) => Err(ConversionError::new(kind)),
        }
    }

    /// The `f64` nearest to the length in seconds, a tie to the even one. Below 2^23 s (97 days)
    /// [`Span::from_secs_f64_nearest`] leads back to the same span; beyond, an `f64` is coarser
    /// than a nanosecond.
    #[must_use]
    pub const fn as_secs_f64_nearest(self) -> f64 {
        let nanos = self.nanos().unsigned_abs() as u128;
        if nanos == 0 {
            return 0.0;
        }
        // Shifted to the top, the quotient has more than 96 bits. A rest is marked in its last
        // one, far behind what an f64 keeps, so that the only rounding is the last conversion.
        let shift = nanos.leading_zeros();
        let (scaled, unit) = (nanos << shift, NANOS_PER_SEC as u128);
        let sticky = if scaled.is_multiple_of(unit) { 0 } else { 1 };
        let magnitude = ((scaled / unit) | sticky) as f64 * power_of_two_inverse(shift);
        if self.is_negative() { -magnitude } else { magnitude }
    }
}

/// 2^-exponent for exponents up to 128, exactly.
const fn power_of_two_inverse(exponent: u32) -> f64 {
    f64::from_bits((EXPONENT_BIAS.saturating_sub(exponent) as u64) << FRACTION_BITS)
}

/// The whole nanoseconds nearest to `secs`, below 2^64 of them.
const fn nanos_nearest(secs: f64) -> Result<i128, ConversionErrorKind> {
    let bits = secs.to_bits();
    let exponent = (bits >> FRACTION_BITS) as u32 & EXPONENT_SPECIAL;
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    if exponent == EXPONENT_SPECIAL {
        let infinite = fraction == 0;
        return Err(if infinite {
            ConversionErrorKind::Infinite
        } else {
            ConversionErrorKind::NotANumber
        });
    }
    // |secs| is 2^above to twice that: from 2^34 s (545 years) it is out of range, below 2^-32 s
    // (0.23 ns) it rounds to nothing, as subnormal numbers and zero do.
    let above = exponent as i32 - EXPONENT_BIAS as i32;
    if above >= 34 {
        return Err(ConversionErrorKind::OutOfRange);
    }
    if above < -32 {
        return Ok(0);
    }
    // secs = whole / 2^(52 - above), and 52 - above lies in 19..=84.
    let whole = (1_i128 << FRACTION_BITS) | fraction as i128;
    let divisor = 1_i128 << (FRACTION_BITS as i32 - above);
    let signed = if secs.is_sign_negative() { -whole } else { whole };
    match exact::divide(signed * NANOS_PER_SEC as i128, divisor, Rounding::Nearest) {
        Some(nanos) => Ok(nanos),
        None => Err(ConversionErrorKind::OutOfRange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(secs: f64) -> Option<ConversionErrorKind> {
        Span::from_secs_f64_nearest(secs).err().map(|e| e.kind())
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
    fn what_is_no_length_is_named() {
        assert_eq!(kind(f64::NAN), Some(ConversionErrorKind::NotANumber));
        assert_eq!(kind(f64::INFINITY), Some(ConversionErrorKind::Infinite));
        assert_eq!(kind(f64::NEG_INFINITY), Some(ConversionErrorKind::Infinite));
        for far in [f64::MAX, f64::MIN, 1e300, 9_223_372_036.9, -9_223_372_036.9, 1.8e10] {
            assert_eq!(kind(far), Some(ConversionErrorKind::OutOfRange), "{far}");
        }
        assert_eq!(kind(9_223_372_036.8), None);
    }

    #[test]
    fn seconds_are_rounded_once_to_the_nearest() {
        for (secs, ns) in [
            (0.0, 0),
            (-0.0, 0),
            (1.5, 1_500_000_000),
            (-0.1, -100_000_000),
            (f64::MIN_POSITIVE, 0),
            (5e-324, 0),
            // 2^-32 s is 0.23 ns, 2^-31 s 0.47 ns, 2^-30 s 0.93 ns.
            (1.0 / 4_294_967_296.0, 0),
            (1.0 / 2_147_483_648.0, 0),
            (1.0 / 1_073_741_824.0, 1),
            (0.499e-9, 0),
            (0.501e-9, 1),
            (-0.501e-9, -1),
            // 2^-10 s is 976,562.5 ns exactly: a tie.
            (1.0 / 1024.0, 976_563),
            (-1.0 / 1024.0, -976_563),
        ] {
            assert_eq!(Span::from_secs_f64_nearest(secs), Ok(Span::from_nanos(ns)), "{secs}");
        }
    }

    #[test]
    fn seconds_as_the_compiler_reads_them() {
        for (ns, secs) in [
            (0, 0.0),
            (1, 1e-9),
            (-1, -1e-9),
            (100_000_000, 0.1),
            (i64::MAX, 9_223_372_036.854_776),
            (9_007_199_254_740_993, 9_007_199.254_740_993),
        ] {
            assert_eq!(Span::from_nanos(ns).as_secs_f64_nearest(), secs);
        }
    }
}
