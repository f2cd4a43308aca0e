//! The page that maker and guardians share: slots of words, written by the maker, and by guardians when it is gone.

use std::ffi::CStr;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use super::undo::{UndoWords, WORDS};
use crate::memfd::SharedWords;

pub(super) const SLOTS: usize = 2048;

/// Its name, which `/proc` shows.
pub(super) const PAGE: &CStr = c"hourglass-guardian";

/// Promises that there can be at once. The first is the maker's own; the others are taken when they are wanted.
pub(super) const PROMISES: usize = 32;

/// Words before the slots: for each promise until when it holds, how often it was broken, whether it is taken; then how
/// often any of them was.
const HEAD: usize = 3 * PROMISES + 2;
const ALL_BROKEN: usize = 3 * PROMISES;
/// Whether a guardian has tried to put back all that was left.
const FINISHED: usize = 3 * PROMISES + 1;
const UNTIL: usize = 0;
const BROKEN: usize = 1;
const MADE: usize = 2;

/// Words of a slot: its state and what is written there. The state counts up: a multiple of four
/// is free, one more is taken and being written, two more holds something.
const STRIDE: usize = 1 + WORDS;
const TAKEN: u64 = 1;
const FULL: u64 = 2;
const CYCLE: u64 = 4;

#[derive(Debug)]
pub(super) struct Table {
    words: SharedWords,
    /// Where a free slot is looked for first.
    hint: AtomicUsize,
}

/// A filled slot, and the state with which it was filled.
#[derive(Debug)]
pub(super) struct UndoSlot {
    index: usize,
    state: u64,
}

impl UndoSlot {
    pub(super) fn index(&self) -> usize {
        self.index
    }
}

impl Table {
    pub(super) fn new() -> io::Result<Table> {
        let words = SharedWords::create(PAGE, HEAD + SLOTS * STRIDE)?;
        Ok(Table { words, hint: AtomicUsize::new(0) })
    }

    /// Writes into a free slot. A reader finds all or nothing.
    pub(super) fn fill(&self, written: &UndoWords) -> io::Result<UndoSlot> {
        let first = self.hint.load(Ordering::Relaxed);
        for step in 0..SLOTS {
            let index = (first + step) % SLOTS;
            let (state, body) = self.slot(index);
            let found = state.load(Ordering::Relaxed);
            let taken = found + TAKEN;
            let order = (Ordering::Acquire, Ordering::Relaxed);
            if !found.is_multiple_of(CYCLE)
                || state.compare_exchange(found, taken, order.0, order.1).is_err()
            {
                continue;
            }
            fence(Ordering::Release);
            for (word, value) in body.iter().zip(written) {
                word.store(*value, Ordering::Relaxed);
            }
            state.store(found + FULL, Ordering::Release);
            self.hint.store(index + 1, Ordering::Relaxed);
            return Ok(UndoSlot { index, state: found + FULL });
        }
        Err(io::ErrorKind::StorageFull.into())
    }

    /// The words of a slot; `None` if it was cleared meanwhile.
    pub(super) fn read(&self, slot: &UndoSlot) -> Option<UndoWords> {
        self.read_slot(slot.index)
            .filter(|(state, _)| *state == slot.state)
            .map(|(_, written)| written)
    }

    /// Frees a slot.
    pub(super) fn clear(&self, slot: UndoSlot) {
        let (state, _) = self.slot(slot.index);
        state.store(slot.state.wrapping_sub(FULL).wrapping_add(CYCLE), Ordering::Release);
        self.hint.store(slot.index, Ordering::Relaxed);
    }

    /// Frees a slot that the maker left behind. Takes no memory.
    pub(super) fn free(&self, index: usize, found: u64) {
        let (state, _) = self.slot(index);
        let next = found.wrapping_sub(FULL).wrapping_add(CYCLE);
        let _ = state.compare_exchange(found, next, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// The words of slot `index`, with its state. Takes no memory.
    pub(super) fn read_slot(&self, index: usize) -> Option<(u64, UndoWords)> {
        let (state, body) = self.slot(index);
        let before = state.load(Ordering::Acquire);
        if before % CYCLE != FULL {
            return None;
        }
        let mut written = [0; WORDS];
        for (value, word) in written.iter_mut().zip(body) {
            *value = word.load(Ordering::Relaxed);
        }
        fence(Ordering::Acquire);
        (state.load(Ordering::Relaxed) == before).then_some((before, written))
    }

    /// Takes a promise that has no owner; not the first one.
    pub(super) fn take_promise(&self) -> io::Result<usize> {
        let free =
            (1..PROMISES).find(|index| self.word(*index, MADE).swap(1, Ordering::AcqRel) == 0);
        let index = free.ok_or(io::ErrorKind::StorageFull)?;
        self.word(index, BROKEN).store(0, Ordering::Release);
        Ok(index)
    }

    /// Nothing is promised there any more.
    pub(super) fn release_slot(&self, index: usize) {
        self.word(index, UNTIL).store(0, Ordering::Release);
        self.word(index, MADE).store(0, Ordering::Release);
    }

    /// Promises; what was promised before.
    pub(super) fn promise(&self, index: usize, until_ns: u64) -> u64 {
        self.word(index, UNTIL).swap(until_ns, Ordering::AcqRel)
    }

    pub(super) fn promised(&self, index: usize) -> u64 {
        self.word(index, UNTIL).load(Ordering::Acquire)
    }

    pub(super) fn broken(&self, index: usize) -> u64 {
        self.word(index, BROKEN).load(Ordering::Acquire)
    }

    pub(super) fn count_broken(&self, index: usize) {
        // A reader that sees the count of this one sees that of all.
        self.words.words()[ALL_BROKEN].fetch_add(1, Ordering::AcqRel);
        self.word(index, BROKEN).fetch_add(1, Ordering::AcqRel);
    }

    /// Counts that all that was stopped ran again for want of a guardian.
    pub(super) fn count_woken(&self) {
        self.words.words()[ALL_BROKEN].fetch_add(1, Ordering::AcqRel);
    }

    /// All that was left has been tried.
    pub(super) fn finish(&self) {
        self.words.words()[FINISHED].store(1, Ordering::Release);
    }

    pub(super) fn finished(&self) -> bool {
        self.words.words()[FINISHED].load(Ordering::Acquire) != 0
    }

    /// Of all promises, also of those that were given back.
    pub(super) fn all_broken(&self) -> u64 {
        self.words.words()[ALL_BROKEN].load(Ordering::Acquire)
    }

    fn word(&self, promise: usize, which: usize) -> &AtomicU64 {
        &self.words.words()[3 * promise + which]
    }

    fn slot(&self, index: usize) -> (&AtomicU64, &[AtomicU64]) {
        let start = HEAD + index * STRIDE;
        let words = &self.words.words()[start..start + STRIDE];
        (&words[0], &words[1..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_filled_read_and_freed() {
        let table = Table::new().unwrap();
        let one = table.fill(&[1; WORDS]).unwrap();
        let two = table.fill(&[2; WORDS]).unwrap();
        assert_eq!(table.read(&one).unwrap(), [1; WORDS]);
        let stale = UndoSlot { index: one.index, state: one.state };
        table.clear(one);
        assert!(table.read_slot(stale.index).is_none());
        let three = table.fill(&[3; WORDS]).unwrap();
        // The slot is used again, and a holder of its old state reads nothing there.
        assert_eq!(three.index, stale.index);
        assert!(table.read(&stale).is_none());
        assert_eq!(table.read(&two).unwrap(), [2; WORDS]);
    }

    #[test]
    fn a_full_table_refuses() {
        let table = Table::new().unwrap();
        let slots: Vec<UndoSlot> = (0..SLOTS).map(|_| table.fill(&[7; WORDS]).unwrap()).collect();
        assert_eq!(table.fill(&[8; WORDS]).unwrap_err().kind(), io::ErrorKind::StorageFull);
        slots.into_iter().for_each(|slot| table.clear(slot));
        assert!(table.fill(&[8; WORDS]).is_ok());
    }

    #[test]
    fn promises_are_taken_and_given_back() {
        let table = Table::new().unwrap();
        let all: Vec<usize> = (1..PROMISES).map(|_| table.take_promise().unwrap()).collect();
        assert_eq!(all, (1..PROMISES).collect::<Vec<_>>());
        assert_eq!(table.take_promise().unwrap_err().kind(), io::ErrorKind::StorageFull);
        table.promise(7, 5);
        table.count_broken(7);
        table.release_slot(7);
        assert_eq!((table.promised(7), table.take_promise().unwrap(), table.broken(7)), (0, 7, 0));
        assert_eq!(table.all_broken(), 1);
    }
}
