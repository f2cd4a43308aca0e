//! The standard library's wall clock. (Its `Duration` is `core`'s and needs no feature; its
//! `Instant` cannot be taken apart.)

use std::time::{Duration, SystemTime};

use crate::conversion_error::{ConversionError, ConversionErrorKind};
use crate::{Instant, Realtime, Span};

/// Exact.
///
/// # Errors
/// [`ConversionErrorKind::OutOfRange`] more than 292 years from 1970.
impl TryFrom<SystemTime> for Instant<Realtime> {
    type Error = ConversionError;

    fn try_from(time: SystemTime) -> Result<Instant<Realtime>, ConversionError> {
        let since_zero = match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Span::try_from(after)?,
            Err(before) => -Span::try_from(before.duration())?,
        };
        Ok(Instant::from_zero(since_zero))
    }
}

/// Exact where the system counts nanoseconds (all Unixes); elsewhere what the standard library
/// makes of them (Windows: hundreds of nanoseconds).
///
/// # Errors
/// [`ConversionErrorKind::Foreign`] where the system's time does not reach so far. It does on
/// 64-bit Unixes.
impl TryFrom<Instant<Realtime>> for SystemTime {
    type Error = ConversionError;

    fn try_from(instant: Instant<Realtime>) -> Result<SystemTime, ConversionError> {
        let distance: Duration = instant.since_zero().magnitude();
        let time = if instant.since_zero().is_negative() {
            SystemTime::UNIX_EPOCH.checked_sub(distance)
        } else {
            SystemTime::UNIX_EPOCH.checked_add(distance)
        };
        time.ok_or(ConversionError::new(ConversionErrorKind::Foreign))
    }
}
