//! What a span knows of itself besides counts, in one word: small fields beside each other would be written apart and
//! read together, for which a processor waits.

use crate::raw::{code, error};
use crate::{DetachedSpan, SpanError};

/// The CPU of a span that has not begun.
pub(crate) const NOWHERE: u32 = u32::MAX;

const BUSY: u64 = 1 << 32;
const UNKNOWN_AT: u32 = 40;

/// The CPU on which a span began, whether it does not wait, and why it is unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks(u64);

impl Marks {
    #[inline(always)]
    pub(crate) fn on(cpu: u32) -> Marks {
        Marks(u64::from(cpu))
    }

    #[inline(always)]
    pub(crate) fn with_busy(self, busy: bool) -> Marks {
        Marks(self.0 | if busy { BUSY } else { 0 })
    }

    /// Of a span that is unknown already, the first reason stays.
    #[inline(always)]
    pub(crate) fn with_unknown(self, unknown: Option<SpanError>) -> Marks {
        match self.0 >> UNKNOWN_AT {
            0 => Marks(self.0 | u64::from(code(unknown)) << UNKNOWN_AT),
            _ => self,
        }
    }

    #[inline(always)]
    pub(crate) fn cpu(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    pub(crate) fn is_busy(self) -> bool {
        self.0 & BUSY != 0
    }

    #[inline(always)]
    pub(crate) fn is_unknown(self) -> bool {
        self.0 >> UNKNOWN_AT != 0
    }

    pub(crate) fn unknown(self) -> Option<SpanError> {
        error((self.0 >> UNKNOWN_AT) as u8)
    }

    /// On the first CPU that is known; busy if one was; and unknown for the first reason.
    #[inline(always)]
    pub(crate) fn and(self, other: Marks) -> Marks {
        let cpu = if self.cpu() == NOWHERE { other.cpu() } else { self.cpu() };
        let unknown = if self.is_unknown() { self } else { other };
        Marks(u64::from(cpu) | (self.0 | other.0) & BUSY | unknown.0 >> UNKNOWN_AT << UNKNOWN_AT)
    }
}

impl Default for Marks {
    fn default() -> Marks {
        Marks::on(NOWHERE)
    }
}

/// A [`crate::DetachedSpan`] that lost nothing so far, in two words: for many that are kept.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct UndisturbedSpan {
    pub(crate) ticks: u64,
    pub(crate) marks: Marks,
}

impl UndisturbedSpan {
    /// As words.
    #[must_use]
    pub fn words(self) -> [u64; 2] {
        [self.ticks, self.marks.0]
    }

    /// From its words.
    #[must_use]
    pub fn of_words([ticks, marks]: [u64; 2]) -> UndisturbedSpan {
        UndisturbedSpan { ticks, marks: Marks(marks) }
    }

    /// Both together: see [`crate::DetachedSpan::and`].
    #[must_use]
    pub fn and(self, other: UndisturbedSpan) -> UndisturbedSpan {
        let ticks = self.ticks.saturating_add(other.ticks);
        UndisturbedSpan { ticks, marks: self.marks.and(other.marks) }
    }
}

impl From<UndisturbedSpan> for DetachedSpan {
    fn from(UndisturbedSpan { ticks, marks }: UndisturbedSpan) -> DetachedSpan {
        DetachedSpan { ticks, marks, ..DetachedSpan::default() }
    }
}
