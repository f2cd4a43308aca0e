//! Spans as code of other languages keeps them.

use std::marker::PhantomData;

use crate::marks::{Marks, NOWHERE};
use crate::sample::Totals;
use crate::{DetachedSpan, OpenSpan, SpanError};

/// A span, or one that travels, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawSpan {
    /// The thread's when it began; no thread's if it travels.
    pub generation: u64,
    /// The thread's sums when it began; what it lost if it travels.
    pub sums: [u64; 8],
    /// The counter when it began; how many ticks it was if it travels.
    pub ticks: u64,
    /// Where it began; [`RawSpan::NOWHERE`] if it has not.
    pub cpu: u32,
    /// Whether it does not wait.
    pub busy: bool,
    /// Why it is unknown: 0, or a place in `ERRORS` and one.
    pub unknown: u8,
}

const ERRORS: [SpanError; 3] = [SpanError::OtherThread, SpanError::Forked, SpanError::Interrupted];

pub(crate) fn code(unknown: Option<SpanError>) -> u8 {
    let place = ERRORS.iter().position(|error| Some(*error) == unknown);
    place.map_or(0, |place| place as u8 + 1)
}

pub(crate) fn error(code: u8) -> Option<SpanError> {
    // An unknown code was not written by this process.
    let place = usize::from(code.checked_sub(1)?);
    Some(ERRORS.get(place).copied().unwrap_or(SpanError::OtherThread))
}

impl Totals {
    fn words(self) -> [u64; 8] {
        let Totals { voluntary, involuntary, faults, major_faults, .. } = self;
        let Totals { min_ns: least_ns, max_ns: most_ns, waited_ns, throttled_ns, .. } = self;
        [voluntary, involuntary, faults, major_faults, least_ns, most_ns, waited_ns, throttled_ns]
    }

    fn of_words(words: [u64; 8]) -> Totals {
        let [voluntary, involuntary, faults, major_faults, times @ ..] = words;
        let [least_ns, most_ns, waited_ns, throttled_ns] = times;
        Totals {
            voluntary,
            involuntary,
            faults,
            major_faults,
            min_ns: least_ns,
            max_ns: most_ns,
            waited_ns,
            throttled_ns,
        }
    }
}

impl RawSpan {
    /// The CPU of a span that has not begun.
    pub const NOWHERE: u32 = NOWHERE;

    fn marks(self) -> Marks {
        Marks::on(self.cpu).with_busy(self.busy).with_unknown(error(self.unknown))
    }

    pub(crate) fn open(self) -> OpenSpan {
        OpenSpan {
            generation: if self.unknown == 0 { self.generation } else { 0 },
            before: Totals::of_words(self.sums),
            start: self.ticks,
            marks: self.marks(),
            _of_this_thread: PhantomData,
        }
    }

    /// The span that travels.
    pub fn travelling(self) -> DetachedSpan {
        DetachedSpan { lost: Totals::of_words(self.sums), ticks: self.ticks, marks: self.marks() }
    }
}

impl OpenSpan {
    #[doc(hidden)]
    #[must_use]
    pub fn into_raw(self) -> RawSpan {
        RawSpan {
            generation: self.generation,
            sums: self.before.words(),
            ticks: self.start,
            cpu: self.marks.cpu(),
            busy: self.marks.is_busy(),
            unknown: code(self.marks.unknown()),
        }
    }
}

impl DetachedSpan {
    #[doc(hidden)]
    #[must_use]
    pub fn into_raw(self) -> RawSpan {
        RawSpan {
            generation: 0,
            sums: self.lost.words(),
            ticks: self.ticks,
            cpu: self.marks.cpu(),
            busy: self.marks.is_busy(),
            unknown: code(self.marks.unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_back() {
        for unknown in [None, Some(ERRORS[0]), Some(ERRORS[1]), Some(ERRORS[2])] {
            assert_eq!(error(code(unknown)), unknown);
        }
        assert_eq!(error(200), Some(SpanError::OtherThread));
        let raw = RawSpan {
            generation: 9,
            sums: [1, 2, 3, 4, 5, 6, 7, 8],
            ticks: 8,
            cpu: 3,
            busy: true,
            unknown: 0,
        };
        assert_eq!(raw.open().into_raw(), raw);
        assert_eq!(raw.travelling().into_raw(), RawSpan { generation: 0, ..raw });
    }
}
