//! Seconds and nanoseconds, as POSIX pairs them.

use crate::conversion_error::{ConversionError, ConversionErrorKind};
use crate::{ClockTag, Instant, Span};

/// As many make a second.
const NANOS: i64 = 1_000_000_000;

/// Seconds and nanoseconds like POSIX' `timespec`, always normalised: 0 to 999,999,999
/// nanoseconds are added to the seconds, so that -1.5 s is (-2, 500,000,000). The whole range of
/// 64-bit seconds; ordered by time.
///
/// ```
/// use hourglass_time::{Span, TimeSpec};
///
/// let ts = TimeSpec::from(Span::from_millis(-1_500));
/// assert_eq!((ts.secs(), ts.nanos()), (-2, 500_000_000));
/// assert_eq!(Span::try_from(ts), Ok(Span::from_millis(-1_500)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TimeSpec {
    secs: i64,
    nanos: u32,
}

impl TimeSpec {
    /// The pair as given, the nanoseconds in the width of `tv_nsec`.
    ///
    /// # Errors
    /// [`ConversionErrorKind::Fraction`] if the nanoseconds are not 0 to 999,999,999.
    pub const fn new(secs: i64, nanos: i64) -> Result<TimeSpec, ConversionError> {
        if nanos < 0 || nanos >= NANOS {
            return Err(ConversionError::new(ConversionErrorKind::Fraction));
        }
        Ok(TimeSpec { secs, nanos: nanos as u32 })
    }

    /// Whole seconds, rounded towards minus infinity.
    #[must_use]
    pub const fn secs(self) -> i64 {
        self.secs
    }

    /// Nanoseconds to be added to the seconds, 0 to 999,999,999.
    #[must_use]
    pub const fn nanos(self) -> u32 {
        self.nanos
    }
}

/// Exact.
impl From<Span> for TimeSpec {
    fn from(span: Span) -> TimeSpec {
        let (secs, nanos) = span.secs_nanos_floor();
        TimeSpec { secs, nanos }
    }
}

/// Exact.
///
/// # Errors
/// [`ConversionErrorKind::OutOfRange`] beyond 292 years either way.
impl TryFrom<TimeSpec> for Span {
    type Error = ConversionError;

    fn try_from(ts: TimeSpec) -> Result<Span, ConversionError> {
        Span::from_secs_nanos(ts.secs, i64::from(ts.nanos))
    }
}

/// Exact; the time since the clock's zero.
impl<C: ClockTag> From<Instant<C>> for TimeSpec {
    fn from(instant: Instant<C>) -> TimeSpec {
        instant.since_zero().into()
    }
}

/// Exact; the time since the clock's zero. Which clock the pair was read from only the caller
/// knows.
///
/// # Errors
/// [`ConversionErrorKind::OutOfRange`] beyond 292 years either way.
impl<C: ClockTag> TryFrom<TimeSpec> for Instant<C> {
    type Error = ConversionError;

    fn try_from(ts: TimeSpec) -> Result<Instant<C>, ConversionError> {
        Span::try_from(ts).map(Instant::from_zero)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_stay_below_a_second() {
        for nanos in [-1, NANOS, i64::MIN, i64::MAX] {
            let refused = TimeSpec::new(0, nanos).map_err(|e| e.kind());
            assert_eq!(refused, Err(ConversionErrorKind::Fraction));
        }
    }

    #[test]
    fn pairs_are_ordered_by_time() {
        let pair = |secs, nanos| TimeSpec::new(secs, nanos).expect("normalised");
        assert!(pair(-1, 0) < pair(-1, 1));
        assert!(pair(-1, 999_999_999) < pair(0, 0));
    }

    #[test]
    fn seconds_that_no_span_holds_are_refused() {
        for secs in [i64::MAX, i64::MIN, 9_223_372_037, -9_223_372_038] {
            let ts = TimeSpec::new(secs, 0).expect("normalised");
            let refused = Span::try_from(ts).map_err(|e| e.kind());
            assert_eq!(refused, Err(ConversionErrorKind::OutOfRange));
        }
    }
}
