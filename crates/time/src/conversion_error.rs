//! Why a value of one type has no equal in another.

use core::fmt;

/// Why a conversion is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConversionErrorKind {
    /// Further than 2^63 - 1 ns (292 years) from zero, which is what 64 bits of nanoseconds hold.
    OutOfRange,
    /// Below zero, where the other type begins.
    Negative,
    /// The part of a second is a whole second or more, or negative.
    Fraction,
    /// The other type, on this machine, does not reach that far.
    Foreign,
}

/// A value that the target type cannot hold; says why and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversionError {
    kind: ConversionErrorKind,
}

impl ConversionError {
    pub(crate) const fn new(kind: ConversionErrorKind) -> ConversionError {
        ConversionError { kind }
    }

    /// Why it is refused.
    #[must_use]
    pub const fn kind(&self) -> ConversionErrorKind {
        self.kind
    }
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ConversionErrorKind::OutOfRange => {
                "out of range: 64 bits of nanoseconds reach 292 years either way; use a shorter time"
            }
            ConversionErrorKind::Negative => {
                "negative, and the other type begins at zero; take the magnitude and keep the sign beside it"
            }
            ConversionErrorKind::Fraction => {
                "the part of a second lies outside 0 to 1 s; carry whole seconds into the seconds"
            }
            ConversionErrorKind::Foreign => {
                "the other type does not reach that far on this machine; use a time nearer to its zero"
            }
        })
    }
}

impl core::error::Error for ConversionError {}
