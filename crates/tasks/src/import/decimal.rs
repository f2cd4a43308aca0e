//! Decimal numbers of other tools as exact times.
//!
//! Owns: reading them and rounding them. Must not: use floating point.

use hourglass_time::Span;

/// How to round a time that is not a whole number of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    Up,
    Down,
}

/// A decimal number: `digits` times ten to the power of `exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: i128,
    exponent: i32,
}

/// Digits that are read; what follows is below any unit.
const MOST_DIGITS: usize = 30;

impl Decimal {
    /// Reads `12`, `-1.5`, `2.0E8`; `None` for anything else.
    pub(super) fn read(text: &str) -> Option<Decimal> {
        let text = text.trim();
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (sign, number) = match number.strip_prefix('-') {
            Some(number) => (-1, number),
            None => (1, number.strip_prefix('+').unwrap_or(number)),
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let part = part.trim_end_matches('0');
        let digits = format!("{whole}{part}");
        let is_number = !whole.is_empty() || !part.is_empty();
        if !is_number || digits.len() > MOST_DIGITS || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let digits: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let exponent = exponent.checked_sub(i32::try_from(part.len()).ok()?)?;
        Some(Decimal { digits: sign * digits, exponent })
    }

    pub(super) fn is_zero(self) -> bool {
        self.digits == 0
    }

    pub(super) fn is_one(self) -> bool {
        self.scaled(1, 1, Round::Down) == Some((1, true))
    }

    /// The number times `unit_ns` over `per`, in whole numbers, and whether that is exact.
    pub(super) fn scaled(self, unit_ns: u128, per: u128, round: Round) -> Option<(i128, bool)> {
        if self.digits == 0 {
            return Some((0, true));
        }
        let unit = i128::try_from(unit_ns).ok()?;
        let mut part = self.digits.checked_mul(unit)?;
        let mut whole = i128::try_from(per).ok().filter(|per| *per > 0)?;
        // Beyond these powers a number is out of range, or nothing.
        match self.exponent {
            up @ 0..=30 => part = part.checked_mul(10i128.checked_pow(up.unsigned_abs())?)?,
            down @ -30..0 => whole = whole.checked_mul(10i128.checked_pow(down.unsigned_abs())?)?,
            _ => return None,
        }
        let (below, rest) = (part.div_euclid(whole), part.rem_euclid(whole));
        let up = i128::from(rest > 0 && round == Round::Up);
        Some((below + up, rest == 0))
    }

    /// As a time, and whether it is exact; `None` where it is longer than 292 years.
    pub(super) fn span(self, unit_ns: u128, per: u128, round: Round) -> Option<(Span, bool)> {
        let (ns, exact) = self.scaled(unit_ns, per, round)?;
        let ns = i64::try_from(ns).ok()?;
        Some((Span::try_from_nanos(i128::from(ns)).ok()?, exact))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_or_rounded_as_wanted() {
        let ms = |text: &str, round| {
            Decimal::read(text)
                .and_then(|n| n.span(1_000_000, 1, round))
                .map(|(s, e)| (s.nanos(), e))
        };
        assert_eq!(ms("12", Round::Up), Some((12_000_000, true)));
        assert_eq!(ms("1.50", Round::Down), Some((1_500_000, true)));
        assert_eq!(ms("2.5E1", Round::Down), Some((25_000_000, true)));
        assert_eq!(ms("0.0000001", Round::Up), Some((1, false)));
        assert_eq!(ms("0.0000001", Round::Down), Some((0, false)));
        assert_eq!(ms("-0.0000001", Round::Down), Some((-1, false)));
        assert_eq!(ms("0", Round::Up), Some((0, true)));
        assert!(Decimal::read("1.0").is_some_and(Decimal::is_one));
        for text in ["", ".", "-", "1e", "x", "1.2.3", "1e400", "9e30", "nan"] {
            assert_eq!(ms(text, Round::Up), None, "{text}");
        }
    }
}
