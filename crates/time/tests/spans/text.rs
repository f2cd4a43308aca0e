//! What is printed parses back, and a precision rounds to the nearest.

use crate::common::{nearest, spans};
use hourglass_time::{Instant, ParseSpanErrorKind, Span, Tai};
use proptest::prelude::*;

proptest! {
    #[test]
    fn what_is_printed_parses_back(span in spans()) {
        prop_assert_eq!(span.to_string().parse::<Span>(), Ok(span));
        prop_assert_eq!(format!("{span:?}"), span.to_string());
        let nanos = span.nanos();
        prop_assert_eq!(format!("{nanos}ns").parse::<Span>(), Ok(span));
    }

    /// The text with a precision is the nearest number with that many decimals in the text's own
    /// unit, and that unit is the largest with a whole one in it.
    #[test]
    fn a_precision_rounds_to_the_nearest(span in spans(), decimals in 0_usize..12) {
        let text = format!("{span:.decimals$}");
        let number = text.trim_start_matches('-').trim_end_matches(char::is_alphabetic);
        let shown = number.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        prop_assert_eq!(shown, decimals.min(9));
        let unit_ns: i128 = match text.trim_start_matches(|c: char| !c.is_alphabetic()) {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            _ => 1_000_000_000,
        };
        let whole: i128 = number.split('.').next().unwrap_or("").parse().expect("a number");
        prop_assert!(unit_ns == 1_000_000_000 || (1..1_000).contains(&whole), "{}", text);
        let power = 10_i128.pow(u32::try_from(decimals.min(9)).expect("small"));
        let digits: i128 = number.replace('.', "").parse().expect("digits");
        let exact = i128::from(span.abs().nanos());
        prop_assert_eq!(digits, nearest(exact * power, unit_ns), "{}", text);
        match text.parse::<Span>() {
            Ok(parsed) => {
                let off = i128::from(parsed.saturating_sub(span).abs().nanos());
                prop_assert!(2 * off * power <= unit_ns);
            }
            // Rounded up beyond the end of the range.
            Err(error) => prop_assert_eq!(error.kind(), ParseSpanErrorKind::TooLong),
        }
    }

    #[test]
    fn all_decimals_are_exact(span in spans()) {
        prop_assert_eq!(format!("{span:.9}").parse::<Span>(), Ok(span));
    }

    #[test]
    fn columns(span in spans(), width in 0_usize..40) {
        let text = format!("{span:>width$}");
        prop_assert_eq!(text.trim_start(), span.to_string());
        prop_assert_eq!(text.len(), width.max(span.to_string().len()));
    }

    #[test]
    fn an_instant_names_its_clock(span in spans()) {
        let text = Instant::<Tai>::from_zero(span).to_string();
        let since_zero = text.strip_prefix("tai").map(|rest| rest.trim_start_matches('+'));
        prop_assert_eq!(since_zero.map(str::parse::<Span>), Some(Ok(span)));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[-+.0-9a-z\u{b5} ]{0,24}") {
        let _ = text.parse::<Span>();
    }
}
