//! Sums, differences and products of spans: checked and saturating.

use super::Span;

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
}
