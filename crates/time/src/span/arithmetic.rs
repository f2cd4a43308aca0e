//! Sums, differences and products of spans: checked, saturating and wrapping.

use super::Span;
use crate::exact;

impl Span {
    /// The sum, or `None` out of range.
    #[must_use]
    pub const fn checked_add(self, other: Span) -> Option<Span> {
        match self.nanos().checked_add(other.nanos()) {
            Some(ns) if ns != i64::MIN => Some(Span(ns)),
            _ => None,
        }
    }

    /// The difference, or `None` out of range.
    #[must_use]
    pub const fn checked_sub(self, other: Span) -> Option<Span> {
        match self.nanos().checked_sub(other.nanos()) {
            Some(ns) if ns != i64::MIN => Some(Span(ns)),
            _ => None,
        }
    }

    /// The product, or `None` out of range.
    #[must_use]
    pub const fn checked_mul(self, by: i64) -> Option<Span> {
        match self.nanos().checked_mul(by) {
            Some(ns) if ns != i64::MIN => Some(Span(ns)),
            _ => None,
        }
    }

    /// The sum, held at the ends of the range.
    #[must_use]
    pub const fn saturating_add(self, other: Span) -> Span {
        Span::from_nanos(self.nanos().saturating_add(other.nanos()))
    }

    /// The difference, held at the ends of the range.
    #[must_use]
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span::from_nanos(self.nanos().saturating_sub(other.nanos()))
    }

    /// The product, held at the ends of the range.
    #[must_use]
    pub const fn saturating_mul(self, by: i64) -> Span {
        Span::from_nanos(self.nanos().saturating_mul(by))
    }

    /// The sum modulo 2^64 - 1: one step beyond [`Span::MAX`] is [`Span::MIN`].
    #[must_use]
    pub const fn wrapping_add(self, other: Span) -> Span {
        Span(exact::fold(self.nanos() as i128 + other.nanos() as i128))
    }

    /// The difference modulo 2^64 - 1: one step below [`Span::MIN`] is [`Span::MAX`].
    #[must_use]
    pub const fn wrapping_sub(self, other: Span) -> Span {
        Span(exact::fold(self.nanos() as i128 - other.nanos() as i128))
    }

    /// The product modulo 2^64 - 1.
    #[must_use]
    pub const fn wrapping_mul(self, by: i64) -> Span {
        Span(exact::fold(self.nanos() as i128 * by as i128))
    }
}
