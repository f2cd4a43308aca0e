//! The set of timers that changed since the engine looked.
//!
//! Owns: a bit a timer and a bit for each 64 of them.
//! Must not: rely on another thread to finish what it began: each marking thread sets both bits
//! itself, which a list with one link a timer could not promise.

use super::super::atomic::{AtomicU64, Ordering, fence_behind_exchange};

/// A set of the numbers below `WORDS` times 64; `WORDS` is 64 at most.
pub(crate) struct DirtySet<const WORDS: usize> {
    /// A bit for each word that has one.
    upper: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> DirtySet<WORDS> {
    pub(crate) fn new() -> DirtySet<WORDS> {
        DirtySet { upper: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Adds a number. The thread that takes it out sees what the caller did before, which it MUST
    /// have published by a read-modify-write (the state word of a [`super::Slot`] is). Followed by
    /// a full fence, as [`super::Wake::wants`] needs it.
    ///
    /// A bit that is set is not set again: then it was not taken since, and the thread that takes
    /// it later has a fence after that, which comes after the first one here. The last one is for
    /// [`super::Wake::wants`] and stands in any case: the thread that set the bits may have had
    /// time, and may not have woken the engine.
    ///
    /// All three come after a read-modify-write with nothing stored in between: that of the caller,
    /// or one of those here. So an x86 processor, on which those are full fences, gets no others.
    pub(crate) fn mark(&self, number: usize) {
        let (word, bit) = ((number / 64) % WORDS, number % 64);
        fence_behind_exchange(Ordering::SeqCst);
        if set(&self.words[word], bit) {
            // Between both bits, as in `take`.
            fence_behind_exchange(Ordering::SeqCst);
        }
        set(&self.upper, word);
        fence_behind_exchange(Ordering::SeqCst);
    }

    /// Whether there is a number in the set. After a full fence, it sees every mark whose own
    /// fence came before that.
    pub(crate) fn has_changes(&self) -> bool {
        self.upper.load(Ordering::Relaxed) != 0
    }

    /// Takes out one word of numbers, the first one from word `from` on, in a circle: which word,
    /// and which of its numbers.
    pub(crate) fn take(&self, from: u32) -> Option<(usize, u64)> {
        let upper = self.upper.load(Ordering::Relaxed);
        if upper == 0 {
            return None;
        }
        let word = ((upper.rotate_right(from % 64).trailing_zeros() + from) % 64) as usize;
        self.upper.fetch_and(!(1 << word), Ordering::AcqRel);
        // A thread that still sees the upper bit set after this fence sets the lower one before the next.
        fence_behind_exchange(Ordering::SeqCst);
        let bits = self.words[word % WORDS].swap(0, Ordering::AcqRel);
        fence_behind_exchange(Ordering::SeqCst);
        Some((word, bits))
    }
}

fn set(word: &AtomicU64, bit: usize) -> bool {
    let bit = 1 << bit;
    let is_new = word.load(Ordering::Relaxed) & bit == 0;
    if is_new {
        word.fetch_or(bit, Ordering::AcqRel);
    }
    is_new
}
