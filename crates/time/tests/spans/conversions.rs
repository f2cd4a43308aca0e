//! Every conversion is exact, or rounds where its name says, or is refused with a reason: nothing
//! panics, nothing wraps. (Thesis chapter 4, item 3 and listings 4.1 and 4.4; research 1.1 e.)

use core::time::Duration;

use crate::common::{floor, nearest, spans, within};
use hourglass_time::{
    ConversionError, ConversionErrorKind as Kind, Instant, Realtime, Span, TickRate, TimeSpec,
    TimeVal,
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

/// Any bit pattern, plausible lengths, and what is no number.
fn floats() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        -2e10..2e10,
        -1e-6..1e-6,
        prop::sample::select(vec![f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0]),
    ]
}

fn rates() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 1_u64..=5, 1_000_000_u64..=5_000_000_000, Just(u64::MAX)]
        .prop_filter("a rate", |n| *n > 0)
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
    fn timespec(secs in seconds(), nanos in any::<i64>(), span in spans()) {
        prop_assert_eq!(Span::try_from(TimeSpec::from(span)), Ok(span));
        let exact = i128::from(secs) * 1_000_000_000 + i128::from(nanos);
        if let Ok(ts) = TimeSpec::carried(secs, nanos) {
            prop_assert_eq!(outcome(Span::try_from(ts)), expected(exact));
            prop_assert_eq!(TimeSpec::new(ts.secs(), i64::from(ts.nanos())), Ok(ts));
            let instant = Instant::<Realtime>::try_from(ts);
            prop_assert_eq!(instant.map(TimeSpec::from).ok(), within(exact).then_some(ts));
        } else {
            prop_assert!(i64::try_from(floor(exact, 1_000_000_000)).is_err());
        }
        prop_assert_eq!(TimeSpec::new(secs, nanos).is_ok(), (0..1_000_000_000).contains(&nanos));
    }

    /// Thesis listing 4.4, the constructor from a `timeval`.
    #[test]
    fn timeval(secs in seconds(), micros in any::<i64>(), span in spans()) {
        let ns = i128::from(span.nanos());
        let counted = |tv: TimeVal| i128::from(tv.secs()) * 1_000_000 + i128::from(tv.micros());
        prop_assert_eq!(counted(TimeVal::from_span_floor(span)), floor(ns, 1_000));
        prop_assert_eq!(counted(TimeVal::from_span_ceil(span)), -floor(-ns, 1_000));
        let exact = i128::from(secs) * 1_000_000 + i128::from(micros);
        if let Ok(tv) = TimeVal::carried(secs, micros) {
            prop_assert_eq!(counted(tv), exact);
            prop_assert_eq!(outcome(Span::try_from(tv)), expected(exact * 1_000));
            prop_assert_eq!(Span::try_from(TimeSpec::from(tv)), Span::try_from(tv));
        } else {
            prop_assert!(i64::try_from(floor(exact, 1_000_000)).is_err());
        }
        prop_assert_eq!(TimeVal::new(secs, micros).is_ok(), (0..1_000_000).contains(&micros));
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

    /// A span, or a typed refusal.
    #[test]
    fn any_float(secs in floats()) {
        match Span::from_secs_f64_nearest(secs) {
            Ok(span) => {
                // Twice the resolution of an f64 there, and the nanosecond's half.
                let off = (span.as_secs_f64_nearest() - secs).abs();
                prop_assert!(off <= 0.5e-9 + secs.abs() * f64::EPSILON, "{secs} {span}");
            }
            Err(error) if secs.is_nan() => prop_assert_eq!(error.kind(), Kind::NotANumber),
            Err(error) if secs.is_infinite() => prop_assert_eq!(error.kind(), Kind::Infinite),
            Err(error) => {
                prop_assert_eq!(error.kind(), Kind::OutOfRange);
                prop_assert!(secs.abs() > 9.2e9, "{secs}");
            }
        }
    }

    /// Floats from below a nanosecond to beyond the ends, each a known ratio of integers, against
    /// that ratio in 128 bits.
    #[test]
    fn float_seconds(whole in 1_i64..=(1 << 53), exponent in 18_u32..=84) {
        let secs = whole as f64 / 2_f64.powi(i32::try_from(exponent).expect("small"));
        let exact = nearest(i128::from(whole) * 1_000_000_000, 1_i128 << exponent);
        prop_assert_eq!(outcome(Span::from_secs_f64_nearest(secs)), expected(exact));
        prop_assert_eq!(outcome(Span::from_secs_f64_nearest(-secs)), expected(-exact));
    }

    #[test]
    fn seconds_as_float(span in spans()) {
        let secs = span.as_secs_f64_nearest();
        // The compiler's own reading of the decimal number is the twin.
        let (whole, rest) = span.abs().secs_nanos_floor();
        let sign = if span.is_negative() { "-" } else { "" };
        let text = format!("{sign}{whole}.{rest:09}");
        prop_assert_eq!(text.parse::<f64>(), Ok(secs));
        if span.abs() < Span::from_secs(1 << 23) {
            prop_assert_eq!(Span::from_secs_f64_nearest(secs), Ok(span));
        }
    }

    /// Thesis section 2.3.2, `NsecPerTic`, without its floating point; research 5, pitfall 4.
    #[test]
    fn ticks(ticks in any::<i64>(), span in spans(), count in rates(), nanos in rates()) {
        let rate = TickRate::new(count, nanos).expect("not zero");
        let (n, d) = (i128::from(ticks) * i128::from(nanos), i128::from(count));
        prop_assert_eq!(outcome(rate.to_span_floor(ticks)), expected(floor(n, d)));
        prop_assert_eq!(outcome(rate.to_span_ceil(ticks)), expected(-floor(-n, d)));
        prop_assert_eq!(outcome(rate.to_span_nearest(ticks)), expected(nearest(n, d)));
        let (n, d) = (i128::from(span.nanos()) * i128::from(count), i128::from(nanos));
        let expected = |n| if within(n) { Ok(n) } else { Err(Kind::TooManyTicks) };
        let outcome =
            |r: Result<i64, ConversionError>| r.map(i128::from).map_err(|error| error.kind());
        prop_assert_eq!(outcome(rate.to_ticks_floor(span)), expected(floor(n, d)));
        prop_assert_eq!(outcome(rate.to_ticks_ceil(span)), expected(-floor(-n, d)));
        prop_assert_eq!(outcome(rate.to_ticks_nearest(span)), expected(nearest(n, d)));
    }
}

/// Issue 3, "Bad input": every refusal says what to do.
#[test]
fn refusals_say_what_to_do() {
    let refusals = [
        Span::try_from(Duration::MAX).map(drop),
        Duration::try_from(Span::MIN).map(drop),
        Span::from_secs_f64_nearest(f64::NAN).map(drop),
        Span::from_secs_f64_nearest(f64::INFINITY).map(drop),
        TimeSpec::new(0, -1).map(drop),
        TickRate::from_hz(0).map(drop),
        TickRate::new(u64::MAX, 1).and_then(|r| r.to_ticks_floor(Span::MAX)).map(drop),
    ];
    let texts = refusals.map(|r| r.expect_err("out of range").to_string());
    for text in &texts {
        assert!(text.contains("; "), "{text}");
        assert_eq!(texts.iter().filter(|other| *other == text).count(), 1, "{text}");
    }
}
