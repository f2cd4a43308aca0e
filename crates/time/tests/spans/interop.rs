//! Everybody else's times, and back. (Issue 3, item 5.)

use std::time::{Duration, SystemTime};

use crate::common::spans;
use hourglass_time::{ConversionErrorKind as Kind, Instant, Realtime, Span};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

proptest! {
    #[test]
    fn system_time(span in spans()) {
        let instant = Instant::<Realtime>::from_zero(span);
        let time = SystemTime::try_from(instant).expect("64-bit time");
        prop_assert_eq!(Instant::try_from(time), Ok(instant));
        prop_assert_eq!(time < SystemTime::UNIX_EPOCH, span.is_negative());
    }

    #[test]
    fn jiff_types(span in spans()) {
        let duration = SignedDuration::from(span);
        prop_assert_eq!(duration.as_nanos(), i128::from(span.nanos()));
        prop_assert_eq!(Span::try_from(duration), Ok(span));
        let instant = Instant::<Realtime>::from_zero(span);
        let stamp = Timestamp::from(instant);
        prop_assert_eq!(stamp.as_nanosecond(), i128::from(span.nanos()));
        prop_assert_eq!(Instant::try_from(stamp), Ok(instant));
    }
}

#[test]
fn out_of_range_is_a_typed_error() {
    let refused = Span::try_from(SignedDuration::MAX).map_err(|e| e.kind());
    assert_eq!(refused, Err(Kind::OutOfRange));
    assert!(Span::try_from(SignedDuration::MIN).is_err());
    assert!(Instant::try_from(Timestamp::MAX).is_err());
    assert!(Instant::try_from(Timestamp::MIN).is_err());
    let far = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(1 << 40));
    let refused = far.map(|t| Instant::try_from(t).map_err(|e| e.kind()));
    assert_eq!(refused, Some(Err(Kind::OutOfRange)));
}

/// The day on which 2000-01-01 began, as the calendars of the others tell it.
#[test]
fn a_known_day() {
    let y2000: Timestamp = "2000-01-01T00:00:00Z".parse().expect("a date");
    let instant = Instant::try_from(y2000).expect("in range");
    assert_eq!(instant, Instant::from_zero(Span::from_secs(946_684_800)));
}
