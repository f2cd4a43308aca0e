//! A signed length of time.

use core::fmt;

/// A signed length of time in whole nanoseconds.
///
/// Range: -(2^63 - 1) to 2^63 - 1 ns, about 292 years either way. Plain operators are deliberately
/// absent: each caller chooses between checked and saturating arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i64);

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest span.
    pub const MAX: Span = Span(i64::MAX);
    /// The longest negative span (symmetric to [`Span::MAX`], so that negation never overflows).
    pub const MIN: Span = Span(-i64::MAX);

    /// A span of `ns` nanoseconds; `i64::MIN` is taken as [`Span::MIN`].
    #[must_use]
    pub const fn from_nanos(ns: i64) -> Span {
        if ns == i64::MIN { Span::MIN } else { Span(ns) }
    }

    /// A span of `us` microseconds, saturating.
    #[must_use]
    pub const fn from_micros(us: i64) -> Span {
        Span::from_nanos(us.saturating_mul(1_000))
    }

    /// A span of `ms` milliseconds, saturating.
    #[must_use]
    pub const fn from_millis(ms: i64) -> Span {
        Span::from_nanos(ms.saturating_mul(1_000_000))
    }

    /// A span of `s` seconds, saturating.
    #[must_use]
    pub const fn from_secs(s: i64) -> Span {
        Span::from_nanos(s.saturating_mul(1_000_000_000))
    }

    /// The length in nanoseconds.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// The length in nanoseconds if it is not negative, else 0.
    #[must_use]
    pub const fn nanos_or_zero(self) -> u64 {
        if self.0 < 0 { 0 } else { self.0.unsigned_abs() }
    }

    /// Whether this is exactly no time.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether time runs backwards in this span.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The sum, or `None` out of range.
    #[must_use]
    pub const fn checked_add(self, other: Span) -> Option<Span> {
        match self.0.checked_add(other.0) {
            Some(ns) if ns != i64::MIN => Some(Span(ns)),
            _ => None,
        }
    }

    /// The difference, or `None` out of range.
    #[must_use]
    pub const fn checked_sub(self, other: Span) -> Option<Span> {
        match self.0.checked_sub(other.0) {
            Some(ns) if ns != i64::MIN => Some(Span(ns)),
            _ => None,
        }
    }

    /// The product, or `None` out of range.
    #[must_use]
    pub const fn checked_mul(self, by: i64) -> Option<Span> {
        match self.0.checked_mul(by) {
            Some(ns) if ns != i64::MIN => Some(Span(ns)),
            _ => None,
        }
    }

    /// The sum, held at the ends of the range.
    #[must_use]
    pub const fn saturating_add(self, other: Span) -> Span {
        Span::from_nanos(self.0.saturating_add(other.0))
    }

    /// The difference, held at the ends of the range.
    #[must_use]
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span::from_nanos(self.0.saturating_sub(other.0))
    }
}

/// Prints exactly, in the largest unit of `s`, `ms`, `us`, `ns` that keeps at least one whole
/// unit: `1.5s`, `1.02s`, `87us`. What is printed parses back to the same span.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let (unit, digits, name) = match magnitude {
            0 => return f.pad("0s"),
            n if n >= 1_000_000_000 => (1_000_000_000, 9, "s"),
            n if n >= 1_000_000 => (1_000_000, 6, "ms"),
            n if n >= 1_000 => (1_000, 3, "us"),
            _ => (1, 0, "ns"),
        };
        if self.0 < 0 {
            f.write_str("-")?;
        }
        write!(f, "{}", magnitude / unit)?;
        let mut rest = magnitude % unit;
        let mut width = digits;
        if rest != 0 {
            while rest.is_multiple_of(10) {
                rest /= 10;
                width -= 1;
            }
            write!(f, ".{rest:0width$}")?;
        }
        f.write_str(name)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn prints_in_the_largest_whole_unit() {
        for (ns, text) in [
            (0, "0s"),
            (1, "1ns"),
            (-1, "-1ns"),
            (87_000, "87us"),
            (1_020_000_000, "1.02s"),
            (3_100_000, "3.1ms"),
            (60_000_000_000, "60s"),
            (1_000_000_001, "1.000000001s"),
        ] {
            assert_eq!(Span::from_nanos(ns).to_string(), text);
        }
    }

    #[test]
    fn the_ends_of_the_range_do_not_wrap() {
        assert_eq!(Span::from_nanos(i64::MIN), Span::MIN);
        assert_eq!(Span::MAX.checked_add(Span::from_nanos(1)), None);
        assert_eq!(Span::MIN.checked_sub(Span::from_nanos(1)), None);
        assert_eq!(Span::MAX.saturating_add(Span::MAX), Span::MAX);
        assert_eq!(Span::MIN.saturating_sub(Span::MAX), Span::MIN);
        assert_eq!(Span::from_secs(i64::MAX), Span::MAX);
        assert_eq!(Span::MAX.checked_mul(2), None);
    }
}
