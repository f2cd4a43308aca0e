//! `hifitime`, without depending on it: its licence is MPL-2.0, and this product takes MIT,
//! Apache-2.0 and BSD only.
//!
//! hifitime hands out and takes its times as 128-bit nanoseconds. These functions speak the same
//! numbers, counted from hifitime's reference epochs, so that a program which depends on both has
//! one call on each side:
//!
//! | here | there (hifitime 4) |
//! |---|---|
//! | [`span_to_total_nanoseconds`] | `Duration::from_total_nanoseconds(n)` |
//! | [`span_from_total_nanoseconds`] | `duration.total_nanoseconds()` |
//! | [`realtime_to_unix_nanoseconds`] | `Epoch::from_unix_duration(Duration::from_total_nanoseconds(n))` |
//! | [`realtime_from_unix_nanoseconds`] | `epoch.to_unix_duration().total_nanoseconds()` |
//! | [`tai_to_j1900_nanoseconds`] | `Epoch::from_tai_duration(Duration::from_total_nanoseconds(n))` |
//! | [`tai_from_j1900_nanoseconds`] | `epoch.to_tai_duration().total_nanoseconds()` |
//!
//! Everything is exact. Only the two TAI functions are safe across a leap second; and they need a
//! machine that knows the difference between TAI and UTC (see [`Tai`]).

use crate::conversion_error::ConversionError;
use crate::{Instant, Realtime, Span, Tai};

/// From 1900-01-01T00:00:00 to 1970-01-01T00:00:00, both TAI: 25,567 days.
const J1900_TO_1970: i128 = 25_567 * 86_400 * 1_000_000_000;

/// A span as hifitime's `Duration` counts it.
#[must_use]
pub const fn span_to_total_nanoseconds(span: Span) -> i128 {
    span.nanos() as i128
}

/// A span from what hifitime's `Duration` counts.
///
/// # Errors
/// [`OutOfRange`](crate::ConversionErrorKind::OutOfRange) beyond 292 years either way; hifitime's
/// range is 32,768 centuries.
pub const fn span_from_total_nanoseconds(nanos: i128) -> Result<Span, ConversionError> {
    Span::try_from_nanos(nanos)
}

/// Nanoseconds since 1970-01-01T00:00:00 UTC without leap seconds, as hifitime's Unix duration.
#[must_use]
pub const fn realtime_to_unix_nanoseconds(instant: Instant<Realtime>) -> i128 {
    instant.nanos() as i128
}

/// The instant this many nanoseconds after 1970-01-01T00:00:00 UTC, as hifitime's Unix duration.
///
/// # Errors
/// [`OutOfRange`](crate::ConversionErrorKind::OutOfRange) more than 292 years from 1970.
pub const fn realtime_from_unix_nanoseconds(
    nanos: i128,
) -> Result<Instant<Realtime>, ConversionError> {
    match Span::try_from_nanos(nanos) {
        Ok(span) => Ok(Instant::from_zero(span)),
        Err(error) => Err(error),
    }
}

/// Nanoseconds since 1900-01-01T00:00:00 TAI, hifitime's reference epoch.
#[must_use]
pub const fn tai_to_j1900_nanoseconds(instant: Instant<Tai>) -> i128 {
    instant.nanos() as i128 + J1900_TO_1970
}

/// The instant this many nanoseconds after 1900-01-01T00:00:00 TAI, hifitime's reference epoch.
///
/// # Errors
/// [`OutOfRange`](crate::ConversionErrorKind::OutOfRange) more than 292 years from 1970.
pub const fn tai_from_j1900_nanoseconds(nanos: i128) -> Result<Instant<Tai>, ConversionError> {
    // What saturates here is out of range by far.
    match Span::try_from_nanos(nanos.saturating_sub(J1900_TO_1970)) {
        Ok(span) => Ok(Instant::from_zero(span)),
        Err(error) => Err(error),
    }
}
