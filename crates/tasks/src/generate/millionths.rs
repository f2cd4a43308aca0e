//! Utilisations and shares with six decimals, exactly.
//!
//! Owns: [`Millionths`] and its text form. Must not: round; further decimals are refused.

use std::fmt;
use std::str::FromStr;

use super::error::WordError;

/// Decimals that a number may have.
const DECIMALS: usize = 6;

/// A number that is not negative, in millionths.
///
/// Written with up to six decimals: `0.85`, `1`, `3.5`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millionths(u64);

impl Millionths {
    pub const PER_ONE: u64 = 1_000_000;
    pub const ZERO: Millionths = Millionths(0);
    pub const ONE: Millionths = Millionths(Millionths::PER_ONE);

    #[must_use]
    pub const fn new(count: u64) -> Millionths {
        Millionths(count)
    }

    /// `ones` whole units; the largest number if that overflows.
    #[must_use]
    pub const fn whole(ones: u64) -> Millionths {
        Millionths(ones.saturating_mul(Millionths::PER_ONE))
    }

    #[must_use]
    pub const fn count(self) -> u64 {
        self.0
    }

    /// The value for drawing and display, not for a verdict.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        // Both are exact below 2^53, so that the quotient is the float nearest to the decimals.
        self.0 as f64 / Millionths::PER_ONE as f64
    }
}

impl FromStr for Millionths {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Millionths, WordError> {
        let refused = || WordError::Number(text.to_owned());
        let plain = text.trim();
        let (whole, decimals) = plain.split_once('.').unwrap_or((plain, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let empty = whole.is_empty() && decimals.is_empty();
        if empty || decimals.len() > DECIMALS || !digits(whole) || !digits(decimals) {
            return Err(refused());
        }
        let ones: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| refused())? };
        let parts: u64 = format!("{decimals:0<DECIMALS$}").parse().map_err(|_| refused())?;
        let count = ones.checked_mul(Millionths::PER_ONE).and_then(|ones| ones.checked_add(parts));
        count.map(Millionths).ok_or_else(refused)
    }
}

/// Prints only the decimals that it has.
impl fmt::Display for Millionths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ones, parts) = (self.0 / Millionths::PER_ONE, self.0 % Millionths::PER_ONE);
        if parts == 0 {
            return write!(f, "{ones}");
        }
        let decimals = format!("{parts:0DECIMALS$}");
        write!(f, "{ones}.{}", decimals.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_both_ways() {
        for (text, count) in [
            ("0.85", 850_000),
            ("1", 1_000_000),
            (".5", 500_000),
            ("0.000001", 1),
            ("12.5", 12_500_000),
        ] {
            let number: Millionths = text.parse().unwrap();
            assert_eq!(number.count(), count, "{text}");
            assert_eq!(number.to_string().parse(), Ok(number), "{text}");
        }
        assert_eq!(Millionths::new(850_000).to_string(), "0.85");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", ".", "-1", "+1", "1e3", "0.1234567", "nan", "1/2", "99999999999999999999"]
        {
            assert!(text.parse::<Millionths>().is_err(), "{text}");
        }
    }
}
