//! Every conversion is exact, or rounds where its name says, or is refused with a reason: nothing
//! panics, nothing wraps. (Thesis chapter 4, item 3 and listings 4.1 and 4.4; research 1.1 e.)

use core::time::Duration;

use crate::common::{spans, within};
use hourglass_time::{
    ConversionError, ConversionErrorKind as Kind, Instant, Realtime, Span, TimeSpec,
};
use proptest::prelude::*;

/// The kind of the error, or the nanoseconds.
fn outcome(result: Result<Span, ConversionError>) -> Result<i128, Kind> {
    result.map(|span| i128::from(span.nanos())).map_err(|e| e.kind())
}

/// The expected result of a conversion from `nanos` nanoseconds.
fn expected(nanos: i128) -> Result<i128, Kind> {
    if within(nanos) { Ok(nanos) } else { Err(Kind::OutOfRange) }
}

fn seconds() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -10_i64..=10,
        9_223_372_030_i64..=9_223_372_040,
        -9_223_372_040_i64..=-9_223_372_030,
        Just(i64::MIN),
        Just(i64::MAX),
    ]
}

proptest! {
    #[test]
    fn nanoseconds(nanos in any::<i128>(), span in spans()) {
        prop_assert_eq!(outcome(Span::try_from_nanos(nanos)), expected(nanos));
        prop_assert_eq!(Span::try_from_nanos(i128::from(span.nanos())), Ok(span));
    }

    /// Thesis listing 4.1.
    #[test]
    fn seconds_and_nanoseconds(secs in seconds(), nanos in any::<i64>(), span in spans()) {
        let exact = i128::from(secs) * 1_000_000_000 + i128::from(nanos);
        prop_assert_eq!(outcome(Span::from_secs_nanos(secs, nanos)), expected(exact));
        let (secs, nanos) = span.secs_nanos_floor();
        prop_assert!(nanos < 1_000_000_000);
        prop_assert_eq!(Span::from_secs_nanos(secs, i64::from(nanos)), Ok(span));
    }

    /// Thesis listing 4.4, the constructor from a `timespec`.
    #[test]
    fn timespec(secs in seconds(), nanos in -3_i64..1_000_000_003, span in spans()) {
        prop_assert_eq!(Span::try_from(TimeSpec::from(span)), Ok(span));
        if let Ok(ts) = TimeSpec::new(secs, nanos) {
            let exact = i128::from(secs) * 1_000_000_000 + i128::from(nanos);
            prop_assert_eq!(outcome(Span::try_from(ts)), expected(exact));
            let instant = Instant::<Realtime>::try_from(ts);
            prop_assert_eq!(instant.map(TimeSpec::from).ok(), within(exact).then_some(ts));
        }
        prop_assert_eq!(TimeSpec::new(secs, nanos).is_ok(), (0..1_000_000_000).contains(&nanos));
    }

    #[test]
    fn duration(secs in any::<u64>(), nanos in 0_u32..1_000_000_000, span in spans()) {
        let duration = Duration::new(secs, nanos);
        let exact = i128::from(secs) * 1_000_000_000 + i128::from(nanos);
        prop_assert_eq!(outcome(Span::try_from(duration)), expected(exact));
        match Duration::try_from(span) {
            Ok(duration) => prop_assert_eq!(Span::try_from(duration), Ok(span)),
            Err(error) => {
                prop_assert_eq!(error.kind(), Kind::Negative);
                prop_assert!(span.is_negative());
            }
        }
    }
}

/// Issue 3, "Bad input": every refusal says what to do.
#[test]
fn refusals_say_what_to_do() {
    let refusals = [
        Span::try_from(Duration::MAX).map(drop),
        Duration::try_from(Span::MIN).map(drop),
        TimeSpec::new(0, -1).map(drop),
    ];
    let texts = refusals.map(|r| r.expect_err("out of range").to_string());
    for text in &texts {
        assert!(text.contains("; "), "{text}");
        assert_eq!(texts.iter().filter(|other| *other == text).count(), 1, "{text}");
    }
}
