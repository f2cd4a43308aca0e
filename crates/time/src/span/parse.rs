//! Self-describing times: a decimal number and a unit, as Appendix A of the Hourglass paper
//! writes them (`3m, 1.5s, 1020ms, 87.0us`); several of them from the largest unit on (`1m30s`).

use core::fmt;
use core::str::FromStr;

use crate::Span;

/// Units and their length in nanoseconds. `m` is a minute, as in the paper.
const UNITS: [(&str, u64); 9] = [
    ("ns", 1),
    ("us", 1_000),
    // The micro sign and the Greek letter.
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Why a text is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseSpanErrorKind {
    /// Nothing was given.
    Empty,
    /// There is no number where one must stand.
    Number,
    /// The number has no unit.
    MissingUnit,
    /// The text after the number is not a known unit.
    UnknownUnit,
    /// The number says more than a nanosecond can hold.
    TooFine,
    /// Longer than 292 years.
    TooLong,
}

/// A text that is not a time; says why and what would be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseSpanError {
    kind: ParseSpanErrorKind,
}

impl ParseSpanError {
    /// Why it is refused.
    #[must_use]
    pub fn kind(&self) -> ParseSpanErrorKind {
        self.kind
    }
}

impl fmt::Display for ParseSpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ParseSpanErrorKind::Empty => {
                "no time given; write for example 3m, 1.5s, 1020ms or 87.0us"
            }
            ParseSpanErrorKind::Number => {
                "not a number with a unit; write for example 3m, 1.5s, 1020ms or 87.0us"
            }
            ParseSpanErrorKind::MissingUnit => {
                "the unit is missing; add one of ns, us, ms, s, m, h, d"
            }
            ParseSpanErrorKind::UnknownUnit => "unknown unit; use one of ns, us, ms, s, m, h, d",
            ParseSpanErrorKind::TooFine => "finer than a nanosecond; give whole nanoseconds",
            ParseSpanErrorKind::TooLong => "longer than 292 years",
        })
    }
}

impl core::error::Error for ParseSpanError {}

impl FromStr for Span {
    type Err = ParseSpanError;

    fn from_str(text: &str) -> Result<Span, ParseSpanError> {
        parse(text).map_err(|kind| ParseSpanError { kind })
    }
}

fn parse(text: &str) -> Result<Span, ParseSpanErrorKind> {
    use ParseSpanErrorKind as Kind;
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if text.is_empty() {
        return Err(Kind::Empty);
    }
    let (mut rest, mut sum_ns, mut shortest_ns) = (text, 0_u64, u64::MAX);
    while !rest.is_empty() {
        let (part_ns, unit_ns, behind) = part(rest)?;
        // `1m30s`: each part in a smaller unit than the one before.
        if unit_ns >= shortest_ns {
            return Err(Kind::UnknownUnit);
        }
        sum_ns = sum_ns.checked_add(part_ns).ok_or(Kind::TooLong)?;
        (rest, shortest_ns) = (behind, unit_ns);
    }
    let nanos = i64::try_from(sum_ns).map_err(|_| Kind::TooLong)?;
    Ok(Span::from_nanos(if negative { -nanos } else { nanos }))
}

/// The number and the unit with which a text begins, blanks between them or none: its length, that of the unit, and
/// what is behind.
fn part(text: &str) -> Result<(u64, u64, &str), ParseSpanErrorKind> {
    use ParseSpanErrorKind as Kind;
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (number, behind) = text.split_at(text.find(|c| !is_number(c)).unwrap_or(text.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(Kind::Number);
    }
    let behind = behind.trim_start_matches(' ');
    let (unit, behind) = behind.split_at(behind.find(is_number).unwrap_or(behind.len()));
    if unit.is_empty() {
        return Err(Kind::MissingUnit);
    }
    let (_, unit_ns) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(Kind::UnknownUnit)?;
    let ns = whole_part(whole, *unit_ns)?.checked_add(fraction_part(fraction, *unit_ns)?);
    Ok((ns.ok_or(Kind::TooLong)?, *unit_ns, behind))
}

fn whole_part(digits: &str, unit_ns: u64) -> Result<u64, ParseSpanErrorKind> {
    let mut value = 0u64;
    for digit in digits.bytes() {
        value = value
            .checked_mul(10)
            .and_then(|v| v.checked_add(u64::from(digit - b'0')))
            .ok_or(ParseSpanErrorKind::TooLong)?;
    }
    value.checked_mul(unit_ns).ok_or(ParseSpanErrorKind::TooLong)
}

/// The nanoseconds behind the point. Each digit must come out whole, or it says too much:
/// numerator and denominator stay exact, for units such as the minute whose tenths are not
/// powers of ten.
fn fraction_part(digits: &str, unit_ns: u64) -> Result<u64, ParseSpanErrorKind> {
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return Ok(0);
    }
    let mut numerator = 0u128;
    let mut denominator = 1u128;
    for digit in digits.bytes() {
        numerator = numerator * 10 + u128::from(digit - b'0');
        denominator *= 10;
        if denominator > 10u128.pow(20) {
            return Err(ParseSpanErrorKind::TooFine);
        }
    }
    let scaled = numerator * u128::from(unit_ns);
    if !scaled.is_multiple_of(denominator) {
        return Err(ParseSpanErrorKind::TooFine);
    }
    u64::try_from(scaled / denominator).map_err(|_| ParseSpanErrorKind::TooLong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    fn ns(text: &str) -> Result<i64, ParseSpanErrorKind> {
        text.parse::<Span>().map(Span::nanos).map_err(|e| e.kind())
    }

    /// The four examples of the Hourglass paper, Appendix A.
    #[test]
    fn the_papers_examples() {
        assert_eq!(ns("3m"), Ok(180_000_000_000));
        assert_eq!(ns("1.5s"), Ok(1_500_000_000));
        assert_eq!(ns("1020ms"), Ok(1_020_000_000));
        assert_eq!(ns("87.0us"), Ok(87_000));
        assert_eq!((ns("1\u{b5}s"), ns("1\u{3bc}s")), (Ok(1_000), Ok(1_000)));
    }

    /// Issue 33, 6: a blank before the unit as in files, and several units as oslat takes them.
    #[test]
    fn a_blank_and_several_units() {
        assert_eq!((ns("10 us"), ns("10  us")), (Ok(10_000), Ok(10_000)));
        assert_eq!(ns("-1.5 ms"), Ok(-1_500_000));
        assert_eq!(ns("1m0s"), Ok(60_000_000_000));
        assert_eq!(ns("1h30m1.5s"), Ok(5_401_500_000_000));
        assert_eq!(ns("106751d23h47m16s854ms775us807ns"), Ok(i64::MAX));
        assert_eq!(ns("106751d23h47m16s854ms775us808ns"), Err(ParseSpanErrorKind::TooLong));
    }

    #[test]
    fn exact_or_refused() {
        assert_eq!(ns("0.1m"), Ok(6_000_000_000));
        assert_eq!(ns(".5ms"), Ok(500_000));
        assert_eq!(ns("5.ms"), Ok(5_000_000));
        assert_eq!(ns("1.0000000000s"), Ok(1_000_000_000));
        assert_eq!(ns("1.5ns"), Err(ParseSpanErrorKind::TooFine));
        assert_eq!(ns("0.0000000001s"), Err(ParseSpanErrorKind::TooFine));
        assert_eq!(ns("-2us"), Ok(-2_000));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(ns(""), Err(ParseSpanErrorKind::Empty));
        assert_eq!(ns("ms"), Err(ParseSpanErrorKind::Number));
        assert_eq!(ns("."), Err(ParseSpanErrorKind::Number));
        assert_eq!(ns("1.2.3s"), Err(ParseSpanErrorKind::Number));
        assert_eq!(ns("10"), Err(ParseSpanErrorKind::MissingUnit));
        for odd in ["10 ms ", " 10ms", "10\tms", "1s1m", "1s1s", "1m 30s", "1m-30s"] {
            assert!(ns(odd).is_err(), "{odd}");
        }
        assert_eq!(ns("1m30"), Err(ParseSpanErrorKind::MissingUnit));
        assert_eq!(ns("10sec"), Err(ParseSpanErrorKind::UnknownUnit));
        assert_eq!(ns("1e3ms"), Err(ParseSpanErrorKind::UnknownUnit));
        assert_eq!(ns("99999999999999999999s"), Err(ParseSpanErrorKind::TooLong));
        assert_eq!(ns("300000d"), Err(ParseSpanErrorKind::TooLong));
    }

    #[test]
    fn what_is_printed_parses_back() {
        for value in [0, 1, 999, 1_000, 3_100_000, -17_000_001, i64::MAX, -i64::MAX] {
            let span = Span::from_nanos(value);
            assert_eq!(span.to_string().parse::<Span>(), Ok(span));
        }
    }
}
