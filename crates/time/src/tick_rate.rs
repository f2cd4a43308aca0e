//! How fast a counter counts.

use crate::Span;
use crate::conversion_error::{ConversionError, ConversionErrorKind};
use crate::exact::{self, Rounding};

/// The rate of a counter: a number of ticks in a number of nanoseconds, exactly.
///
/// A ratio of two integers, so that both a frequency (ticks in a second) and a period (HPET gives
/// femtoseconds per tick) are exact, where the thesis keeps a floating-point `NsecPerTic` and its
/// rounding error grows with the time. Products are computed in 128 bits and cannot overflow.
///
/// ```
/// use hourglass_time::{Span, TickRate};
///
/// let tsc = TickRate::from_hz(3_392_292_000)?;
/// assert_eq!(tsc.to_span_floor(3_392_292_000 * 60), Ok(Span::MINUTE));
/// assert_eq!(tsc.to_ticks_ceil(Span::NANOSECOND), Ok(4));
/// # Ok::<(), hourglass_time::ConversionError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TickRate {
    ticks: u64,
    nanos: u64,
}

impl TickRate {
    /// `ticks` ticks in `nanos` nanoseconds.
    ///
    /// # Errors
    /// [`ConversionErrorKind::ZeroRate`] if either is zero.
    pub const fn new(ticks: u64, nanos: u64) -> Result<TickRate, ConversionError> {
        if ticks == 0 || nanos == 0 {
            return Err(ConversionError::new(ConversionErrorKind::ZeroRate));
        }
        Ok(TickRate { ticks, nanos })
    }

    /// `hz` ticks in a second.
    ///
    /// # Errors
    /// [`ConversionErrorKind::ZeroRate`] if it is zero.
    pub const fn from_hz(hz: u64) -> Result<TickRate, ConversionError> {
        TickRate::new(hz, 1_000_000_000)
    }

    /// One tick in `femtos` femtoseconds (10^-15 s), as HPET tells its period.
    ///
    /// # Errors
    /// [`ConversionErrorKind::ZeroRate`] if it is zero.
    pub const fn from_period_femtos(femtos: u64) -> Result<TickRate, ConversionError> {
        // A million ticks take as many nanoseconds as one takes femtoseconds.
        TickRate::new(1_000_000, femtos)
    }

    /// How long this many ticks take, rounded towards minus infinity.
    ///
    /// # Errors
    /// [`ConversionErrorKind::OutOfRange`].
    pub const fn to_span_floor(self, ticks: i64) -> Result<Span, ConversionError> {
        self.span(ticks, Rounding::Floor)
    }

    /// How long this many ticks take, rounded towards plus infinity.
    ///
    /// # Errors
    /// [`ConversionErrorKind::OutOfRange`].
    pub const fn to_span_ceil(self, ticks: i64) -> Result<Span, ConversionError> {
        self.span(ticks, Rounding::Ceil)
    }

    /// How long this many ticks take, to the nearest nanosecond, a tie away from zero.
    ///
    /// # Errors
    /// [`ConversionErrorKind::OutOfRange`].
    pub const fn to_span_nearest(self, ticks: i64) -> Result<Span, ConversionError> {
        self.span(ticks, Rounding::Nearest)
    }

    /// How many ticks a span has, rounded towards minus infinity.
    ///
    /// # Errors
    /// [`ConversionErrorKind::TooManyTicks`].
    pub const fn to_ticks_floor(self, span: Span) -> Result<i64, ConversionError> {
        self.count(span, Rounding::Floor)
    }

    /// How many ticks a span has, rounded towards plus infinity: after these it is over.
    ///
    /// # Errors
    /// [`ConversionErrorKind::TooManyTicks`].
    pub const fn to_ticks_ceil(self, span: Span) -> Result<i64, ConversionError> {
        self.count(span, Rounding::Ceil)
    }

    /// How many ticks a span has, to the nearest, a tie away from zero.
    ///
    /// # Errors
    /// [`ConversionErrorKind::TooManyTicks`].
    pub const fn to_ticks_nearest(self, span: Span) -> Result<i64, ConversionError> {
        self.count(span, Rounding::Nearest)
    }

    const fn span(self, ticks: i64, rounding: Rounding) -> Result<Span, ConversionError> {
        // 2^63 times 2^64 at most, which 128 bits with a sign hold, but for `i64::MIN` at the
        // greatest `nanos`: the product is -(2^127 - 2^63), still inside.
        match exact::divide(ticks as i128 * self.nanos as i128, self.ticks as i128, rounding) {
            Some(nanos) => Span::try_from_nanos(nanos),
            None => Err(ConversionError::new(ConversionErrorKind::ZeroRate)),
        }
    }

    const fn count(self, span: Span, rounding: Rounding) -> Result<i64, ConversionError> {
        let product = span.nanos() as i128 * self.ticks as i128;
        let Some(ticks) = exact::divide(product, self.nanos as i128, rounding) else {
            return Err(ConversionError::new(ConversionErrorKind::ZeroRate));
        };
        match exact::narrow(ticks) {
            Some(ticks) => Ok(ticks),
            None => Err(ConversionError::new(ConversionErrorKind::TooManyTicks)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thesis section 3.2: HPET's period is at most 100 ns (10 MHz), given in femtoseconds.
    #[test]
    fn a_period_in_femtoseconds_is_exact() {
        // 14.31818 MHz: 69,841,279 fs per tick.
        let hpet = TickRate::from_period_femtos(69_841_279).expect("not zero");
        assert_eq!(hpet.to_span_floor(1_000_000), Ok(Span::from_nanos(69_841_279)));
        assert_eq!(hpet.to_span_floor(1), Ok(Span::from_nanos(69)));
        assert_eq!(hpet.to_span_ceil(1), Ok(Span::from_nanos(70)));
        assert_eq!(hpet.to_span_nearest(-1), Ok(Span::from_nanos(-70)));
    }

    /// Research 5, pitfalls 4 and 9: 64-bit products overflow after seconds, `f64` loses ticks
    /// past 2^53, a 32-bit HPET at 10 MHz wraps after 429.5 s.
    #[test]
    fn no_tick_is_lost_after_years() {
        // A tick is a little longer than a nanosecond, so that a span tells every tick.
        let counter = TickRate::from_hz(999_999_937).expect("not zero");
        for ticks in [(1_i64 << 53) + 1, (1 << 60) + 7] {
            let span = counter.to_span_ceil(ticks).expect("in range");
            assert_eq!(counter.to_ticks_floor(span), Ok(ticks));
        }
        let hpet = TickRate::from_hz(10_000_000).expect("not zero");
        assert_eq!(hpet.to_span_floor(1 << 32), Ok(Span::from_nanos(429_496_729_600)));
    }

    /// Thesis section 3.2, `InitMaxMinHPTimer`: the ends, there computed in floating point.
    #[test]
    fn the_ends_are_refused_not_wrapped() {
        let slow = TickRate::new(1, u64::MAX).expect("not zero");
        for ticks in [i64::MIN, i64::MAX, 1, -1] {
            let refused = slow.to_span_nearest(ticks).map_err(|e| e.kind());
            assert_eq!(refused, Err(ConversionErrorKind::OutOfRange));
        }
        let fast = TickRate::new(u64::MAX, 1).expect("not zero");
        for span in [Span::MAX, Span::MIN, Span::NANOSECOND] {
            let refused = fast.to_ticks_floor(span).map_err(|e| e.kind());
            assert_eq!(refused, Err(ConversionErrorKind::TooManyTicks));
        }
        assert!(TickRate::from_hz(0).is_err());
        assert!(TickRate::from_period_femtos(0).is_err());
    }
}
