//! Exact fractions, for rates of progress, bandwidths and utilisations.
//!
//! Owns: [`Fraction`] and its text form. Must not: round; a value that does not fit is refused.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::exact_fraction::greatest_common_divisor;

/// A fraction that is not negative, in lowest terms: 3/5, 0, 2.
///
/// Written `3/5`, `0.6` or `2`. Comparison is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fraction {
    numerator: u64,
    denominator: u64,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ParseFractionError {
    #[error("not a fraction; write for example 3/5 or 0.6")]
    Form,
    #[error("the denominator is 0; write for example 3/5")]
    ZeroDenominator,
    /// Numerator or denominator have more than 64 bits.
    #[error("numerator or denominator need more than 64 bits; give fewer digits")]
    TooLarge,
}

impl Fraction {
    pub const ZERO: Fraction = Fraction { numerator: 0, denominator: 1 };
    pub const ONE: Fraction = Fraction { numerator: 1, denominator: 1 };

    /// The fraction `numerator / denominator`, reduced; `None` for a denominator of 0.
    #[must_use]
    pub fn new(numerator: u64, denominator: u64) -> Option<Fraction> {
        if denominator == 0 {
            return None;
        }
        let divisor = greatest_common_divisor(numerator, denominator);
        Some(Fraction { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    #[must_use]
    pub fn numerator(self) -> u64 {
        self.numerator
    }

    /// The number below the line, above zero.
    #[must_use]
    pub fn denominator(self) -> u64 {
        self.denominator
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Fraction) -> Ordering {
        let left = u128::from(self.numerator) * u128::from(other.denominator);
        let right = u128::from(other.numerator) * u128::from(self.denominator);
        left.cmp(&right)
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for Fraction {
    type Err = ParseFractionError;

    fn from_str(text: &str) -> Result<Fraction, ParseFractionError> {
        let text = text.trim();
        if let Some((above, below)) = text.split_once('/') {
            let (above, below) = (digits(above.trim())?, digits(below.trim())?);
            return Fraction::new(above, below).ok_or(ParseFractionError::ZeroDenominator);
        }
        let Some((whole, decimals)) = text.split_once('.') else {
            return digits(text).map(|whole| Fraction { numerator: whole, denominator: 1 });
        };
        let decimals = decimals.trim_end_matches('0');
        let (whole, parts) = (or_zero(whole)?, or_zero(decimals)?);
        let scale = u32::try_from(decimals.len())
            .ok()
            .and_then(|length| 10u64.checked_pow(length))
            .ok_or(ParseFractionError::TooLarge)?;
        whole
            .checked_mul(scale)
            .and_then(|scaled| scaled.checked_add(parts))
            .and_then(|numerator| Fraction::new(numerator, scale))
            .ok_or(ParseFractionError::TooLarge)
    }
}

fn or_zero(text: &str) -> Result<u64, ParseFractionError> {
    if text.is_empty() { Ok(0) } else { digits(text) }
}

fn digits(text: &str) -> Result<u64, ParseFractionError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseFractionError::Form);
    }
    text.parse().map_err(|_| ParseFractionError::TooLarge)
}

/// `3/5`, or a whole number alone.
impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            below => write!(f, "{}/{below}", self.numerator),
        }
    }
}

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fraction, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| serde::de::Error::custom(format!("'{text}': {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_the_same_number_are_equal() {
        let three_fifths = Fraction::new(3, 5).unwrap();
        for text in ["3/5", "6/10", " 3 / 5 ", "0.6", ".600"] {
            assert_eq!(text.parse(), Ok(three_fifths), "{text}");
        }
        assert_eq!("2".parse(), Ok(Fraction::new(2, 1).unwrap()));
        assert_eq!("0/7".parse(), Ok(Fraction::ZERO));
        assert_eq!(three_fifths.to_string(), "3/5");
    }

    /// Neighbours that floating point does not distinguish.
    #[test]
    fn order_is_exact() {
        let below = Fraction::new(u64::MAX - 1, u64::MAX).unwrap();
        assert!(below < Fraction::ONE);
        assert!(Fraction::new(1, u64::MAX).unwrap() > Fraction::ZERO);
    }

    #[test]
    fn nonsense_is_refused() {
        use ParseFractionError as Error;
        let parse = |text: &str| text.parse::<Fraction>().unwrap_err();
        for text in ["", "-1/2", "1/", "/2", "a", "1/2/3", "1e3", "0.-5", "+1"] {
            assert_eq!(parse(text), Error::Form, "{text}");
        }
        assert_eq!(parse("1/0"), Error::ZeroDenominator);
        assert_eq!(parse("0.1234567890123456789012"), Error::TooLarge);
        assert_eq!(parse("18446744073709551616"), Error::TooLarge);
    }
}
