//! `jiff`: signed durations, and time stamps on the wall clock. (Its `Span` has calendar units
//! and is no fixed length.)

use ::jiff::{SignedDuration, Timestamp};

use crate::conversion_error::ConversionError;
use crate::{Instant, Realtime, Span};

/// Exact.
impl From<Span> for SignedDuration {
    fn from(span: Span) -> SignedDuration {
        SignedDuration::from_nanos(span.nanos())
    }
}

/// Exact.
///
/// # Errors
/// [`OutOfRange`](crate::ConversionErrorKind::OutOfRange) beyond 292 years either way.
impl TryFrom<SignedDuration> for Span {
    type Error = ConversionError;

    fn try_from(duration: SignedDuration) -> Result<Span, ConversionError> {
        Span::try_from_nanos(duration.as_nanos())
    }
}

/// Exact; all instants are within 292 years of 1970, and a time stamp reaches 9999 years.
impl From<Instant<Realtime>> for Timestamp {
    fn from(instant: Instant<Realtime>) -> Timestamp {
        // Never refused, as a test tries at both ends; the ends of jiff's own range stand in.
        let end = if instant.nanos() < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Timestamp::from_nanosecond(i128::from(instant.nanos())).unwrap_or(end)
    }
}

/// Exact.
///
/// # Errors
/// [`OutOfRange`](crate::ConversionErrorKind::OutOfRange) more than 292 years from 1970.
impl TryFrom<Timestamp> for Instant<Realtime> {
    type Error = ConversionError;

    fn try_from(stamp: Timestamp) -> Result<Instant<Realtime>, ConversionError> {
        Span::try_from_nanos(stamp.as_nanosecond()).map(Instant::from_zero)
    }
}
