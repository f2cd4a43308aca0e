//! Words that are read together, without a lock.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

/// A sequence lock over some words. Readers in other languages know its layout ([`super::Clock::utc_address`]).
#[derive(Debug)]
#[repr(C)]
pub(super) struct SeqWords<const N: usize> {
    /// Odd while the words are written.
    turn: AtomicU64,
    words: [AtomicU64; N],
}

impl<const N: usize> SeqWords<N> {
    pub(super) const fn new() -> SeqWords<N> {
        SeqWords { turn: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; N] }
    }

    /// The words, and the turn under which they stood; `None` while they are written.
    #[inline(always)]
    pub(super) fn read(&self) -> Option<([u64; N], u64)> {
        let turn = self.turn.load(Acquire);
        let words = std::array::from_fn(|index| self.words[index].load(Relaxed));
        fence(Acquire);
        (turn & 1 == 0 && self.turn.load(Relaxed) == turn).then_some((words, turn))
    }

    /// Writes them, unless another thread does; whether they were written.
    pub(super) fn write(&self, words: [u64; N]) -> bool {
        self.replace(self.turn.load(Relaxed), words)
    }

    /// Writes them if nothing was written since they were read under `turn`.
    pub(super) fn replace(&self, turn: u64, words: [u64; N]) -> bool {
        let begun = turn & 1 == 0
            && self.turn.compare_exchange(turn, turn.wrapping_add(1), Acquire, Relaxed).is_ok();
        if begun {
            fence(Release);
            for (word, value) in self.words.iter().zip(words) {
                word.store(value, Relaxed);
            }
            self.turn.store(turn.wrapping_add(2), Release);
        }
        begun
    }
}
