//! Which lanes are ready, and the first of them.
//!
//! Owns: [`ReadySet`], a bit each; of more than a word, a second level says which words have any. Must not: know
//! what a lane is.

pub(super) const WORD: usize = u64::BITS as usize;

/// Lanes that there are bits for: a word of words.
pub(super) const MOST_THREADS: usize = WORD * WORD;

#[derive(Debug)]
pub(super) struct ReadySet {
    /// The only word; of many, a bit for each word that has one.
    top: u64,
    words: Vec<u64>,
}

impl ReadySet {
    /// A set over `lanes` lanes, with none in it.
    pub(super) fn new(lanes: usize) -> ReadySet {
        let words = if lanes > WORD { lanes.div_ceil(WORD) } else { 0 };
        ReadySet { top: 0, words: vec![0; words] }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.top == 0
    }

    #[inline]
    pub(super) fn insert<const MANY: bool>(&mut self, lane: usize) {
        if MANY {
            self.words[lane / WORD] |= 1 << (lane % WORD);
            self.top |= 1 << (lane / WORD);
        } else {
            self.top |= 1 << lane;
        }
    }

    #[inline]
    pub(super) fn remove<const MANY: bool>(&mut self, lane: usize) {
        if MANY {
            let word = &mut self.words[lane / WORD];
            *word &= !(1 << (lane % WORD));
            self.top &= !(u64::from(*word == 0) << (lane / WORD));
        } else {
            self.top &= !(1 << lane);
        }
    }

    #[inline]
    pub(super) fn has<const MANY: bool>(&self, lane: usize) -> bool {
        let word = if MANY { self.words[lane / WORD] } else { self.top };
        word & (1 << (lane % WORD)) != 0
    }

    /// Whether a lane is in it, few or many.
    pub(super) fn contains(&self, lane: usize) -> bool {
        if self.words.is_empty() { self.has::<false>(lane) } else { self.has::<true>(lane) }
    }

    /// The first lane, of one at least.
    #[inline]
    pub(super) fn first<const MANY: bool>(&self) -> usize {
        let top = self.top.trailing_zeros() as usize;
        if MANY { top * WORD + self.words[top].trailing_zeros() as usize } else { top }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::random::SimRng;
    use super::*;

    /// Against a sorted set.
    #[test]
    fn the_first_is_the_least() {
        let mut dice = SimRng::new(1);
        let (mut few, mut many) = (ReadySet::new(WORD), ReadySet::new(MOST_THREADS));
        let (mut few_twin, mut many_twin) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..20_000 {
            let lane = dice.next_at_most(WORD as u64 - 1) as usize;
            let far = dice.next_at_most(MOST_THREADS as u64 - 1) as usize;
            if dice.next_at_most(2) == 0 {
                few.insert::<false>(lane);
                many.insert::<true>(far);
                few_twin.insert(lane);
                many_twin.insert(far);
            } else {
                few.remove::<false>(lane);
                many.remove::<true>(far);
                few_twin.remove(&lane);
                many_twin.remove(&far);
            }
            assert_eq!(few.is_empty(), few_twin.is_empty());
            assert_eq!(many.is_empty(), many_twin.is_empty());
            assert_eq!(many.contains(far), many_twin.contains(&far));
            if let (Some(first), false) = (few_twin.first(), few.is_empty()) {
                assert_eq!(few.first::<false>(), *first);
            }
            if let (Some(first), false) = (many_twin.first(), many.is_empty()) {
                assert_eq!(many.first::<true>(), *first);
            }
        }
    }
}
