//! The default order: an implicit heap of eight children a node.
//!
//! Owns: the layout of the heap in memory, and moving in it.
//! Must not: know about clocks, handles or payloads.
//!
//! Eight is measured. Fire and re-arm in ns with four, eight and sixteen children, and `BTreeMap`, in
//! turn on a loaded machine: 111, 96, 124 and 176 with 10^4 timers outstanding, 409, 395, 521 and 587
//! with 10^6. Keys and slots lie in arrays of their own, so that the keys of all children of a node are
//! one cache line, and choosing the least of them costs one miss; far down, where a node's children
//! are not in the nearest cache, all its grandchildren are asked for one level ahead (482 ns without
//! for 395 with), and memory is asked for in huge pages (706 ns without for 536 with, 0.72 and 0.56 of `BTreeMap`, on a
//! busy virtual machine). Buckets of far timers before a small heap (a calendar queue) were tried and are not better: with
//! 10^6 fire and re-arm took 0.7 to 1.2 of the heap's time, with 10^4 1.3, and inserting and cancelling five times
//! as long, since each goes to a place in memory that cannot be fetched in advance. A node's children start at a
//! multiple of eight because the root is entry 7.

use std::collections::TryReserveError;

use hourglass_sys::huge_pages;

use super::arena::NONE;
use super::{Key, MinEntry, PriorityStructure};

/// Children of a node, and keys in a cache line.
const WIDTH: usize = 8;

/// Where the root is: the children of entry `i` are the line `i - ROOT + 1`, so that each line but
/// the first holds the children of one entry.
const ROOT: usize = WIDTH - 1;

/// From this line on grandchildren are asked for in advance: they are beyond a first-level cache of
/// 32 KiB.
const FAR: usize = 64;

/// From this many on, what is known about a timer is beyond a second-level cache of 2 MiB.
const MANY: usize = 32_768;

/// Marks the key of an entry that is not in use, and may be that of one which is.
const LAST: i64 = i64::MAX;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Keys([i64; WIDTH]);

#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Slots([u32; WIDTH]);

#[derive(Clone, Copy, Debug)]
struct HeapEntry {
    expiry: i64,
    slot: u32,
}

/// An indexed 8-ary heap: 24 bytes a slot; placing is O(1) on average and O(log n) at worst,
/// removing O(log n).
#[derive(Clone, Debug, Default)]
pub struct Heap {
    /// By entry. Entries not in use have the key [`LAST`] and the slot [`NONE`].
    keys: Vec<Keys>,
    slots: Vec<Slots>,
    /// By slot: its entry, or [`NONE`] if it is not in.
    entries: Vec<u32>,
    /// By slot: the sequence of its key, looked at only when expiries are equal.
    sequences: Vec<u64>,
    len: usize,
}

impl Heap {
    #[inline]
    fn key(&self, at: usize) -> i64 {
        self.keys[at / WIDTH].0[at % WIDTH]
    }

    #[inline]
    fn slot(&self, at: usize) -> u32 {
        self.slots[at / WIDTH].0[at % WIDTH]
    }

    #[inline]
    fn put(&mut self, at: usize, entry: HeapEntry) {
        self.keys[at / WIDTH].0[at % WIDTH] = entry.expiry;
        self.slots[at / WIDTH].0[at % WIDTH] = entry.slot;
        // Entries are numbered with 32 bits because slots are, with some to spare.
        self.entries[entry.slot as usize] = at as u32;
    }

    fn clear(&mut self, at: usize) {
        self.keys[at / WIDTH].0[at % WIDTH] = LAST;
        self.slots[at / WIDTH].0[at % WIDTH] = NONE;
    }

    /// Of two slots with the same expiry, whether `a` was armed before `b`; an unused entry comes
    /// last.
    #[cold]
    #[inline(never)]
    fn armed_before(&self, a: u32, b: u32) -> bool {
        let of = |slot: u32| self.sequences.get(slot as usize).copied().unwrap_or(u64::MAX);
        of(a) < of(b)
    }

    #[inline]
    fn before(&self, entry: HeapEntry, at: usize) -> bool {
        let key = self.key(at);
        entry.expiry < key || (entry.expiry == key && self.armed_before(entry.slot, self.slot(at)))
    }

    #[inline]
    fn first_of(&self, line: usize) -> usize {
        let keys = &self.keys[line].0;
        let [a, b, c, d, e, f, g, h] = *keys;
        let least = a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)));
        let mut holders = 0u32;
        for (child, key) in keys.iter().enumerate() {
            holders |= u32::from(*key == least) << child;
        }
        if holders.is_power_of_two() {
            line * WIDTH + holders.trailing_zeros() as usize
        } else {
            self.first_of_equals(line, holders)
        }
    }

    /// The first of those children whose bit is set, all of the same expiry.
    #[cold]
    #[inline(never)]
    fn first_of_equals(&self, line: usize, mut holders: u32) -> usize {
        let mut first = line * WIDTH + holders.trailing_zeros() as usize;
        holders &= holders.wrapping_sub(1);
        while holders != 0 {
            let other = line * WIDTH + holders.trailing_zeros() as usize;
            if self.armed_before(self.slot(other), self.slot(first)) {
                first = other;
            }
            holders &= holders - 1;
        }
        first
    }

    /// Moves a hole up to where the entry belongs, and puts it in.
    #[inline]
    fn rise(&mut self, mut at: usize, entry: HeapEntry) {
        while at > ROOT {
            let parent = at / WIDTH + ROOT - 1;
            if !self.before(entry, parent) {
                break;
            }
            let moved = HeapEntry { expiry: self.key(parent), slot: self.slot(parent) };
            self.put(at, moved);
            at = parent;
        }
        self.put(at, entry);
    }

    /// Moves a hole down to where the entry belongs, and puts it in.
    fn sink(&mut self, mut at: usize, entry: HeapEntry) {
        let end = ROOT + self.len;
        loop {
            let line = at - ROOT + 1;
            if line * WIDTH >= end {
                break;
            }
            if line >= FAR {
                self.ask_for_grandchildren(line);
            }
            let child = self.first_of(line);
            if self.before(entry, child) {
                break;
            }
            let moved = HeapEntry { expiry: self.key(child), slot: self.slot(child) };
            self.put(at, moved);
            at = child;
        }
        self.put(at, entry);
    }

    /// The children of the entries of a line are eight lines in a row.
    #[inline]
    fn ask_for_grandchildren(&self, line: usize) {
        let first = line * WIDTH - ROOT + 1;
        if first < self.keys.len() {
            for child in 0..WIDTH {
                hourglass_sys::prefetch::prefetch(&self.keys, first + child);
            }
            for child in (0..WIDTH).step_by(2) {
                hourglass_sys::prefetch::prefetch(&self.slots, first + child);
            }
        }
    }

    /// Puts the entry in the hole or where it belongs from there.
    #[inline]
    fn settle(&mut self, at: usize, entry: HeapEntry) {
        if at > ROOT && self.before(entry, at / WIDTH + ROOT - 1) {
            self.rise(at, entry);
        } else {
            self.sink(at, entry);
        }
    }
}

impl PriorityStructure for Heap {
    fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError> {
        if slots <= self.entries.len() {
            return Ok(());
        }
        let lines = (ROOT + slots).div_ceil(WIDTH);
        let more = lines - self.keys.len();
        self.keys.try_reserve_exact(more)?;
        self.slots.try_reserve_exact(more)?;
        self.sequences.try_reserve_exact(slots - self.sequences.len())?;
        self.entries.try_reserve_exact(slots - self.entries.len())?;
        huge_pages::ask_for(&self.keys);
        huge_pages::ask_for(&self.slots);
        huge_pages::ask_for(&self.sequences);
        huge_pages::ask_for(&self.entries);
        self.keys.resize(lines, Keys([LAST; WIDTH]));
        self.slots.resize(lines, Slots([NONE; WIDTH]));
        self.sequences.resize(slots, 0);
        self.entries.resize(slots, NONE);
        Ok(())
    }

    #[inline]
    fn place(&mut self, slot: u32, key: Key) {
        let Some(&at) = self.entries.get(slot as usize) else { return };
        self.sequences[slot as usize] = key.sequence;
        let entry = HeapEntry { expiry: key.expiry, slot };
        if at == NONE {
            let end = ROOT + self.len;
            self.len += 1;
            self.rise(end, entry);
        } else {
            self.settle(at as usize, entry);
        }
    }

    #[inline]
    fn remove(&mut self, slot: u32) -> bool {
        // The first is usually the one, and need not be looked up.
        let at = match self.first() {
            Some(first) if first.slot == slot => ROOT,
            _ => match self.entries.get(slot as usize) {
                Some(&at) if at != NONE => at as usize,
                _ => return false,
            },
        };
        self.entries[slot as usize] = NONE;
        self.len -= 1;
        let end = ROOT + self.len;
        let last = HeapEntry { expiry: self.key(end), slot: self.slot(end) };
        self.clear(end);
        if at != end {
            self.settle(at, last);
        }
        true
    }

    #[inline]
    fn first(&self) -> Option<MinEntry> {
        (self.len > 0).then(|| MinEntry { slot: self.slot(ROOT), expiry: self.key(ROOT) })
    }

    #[inline]
    fn expiry(&self, slot: u32) -> Option<i64> {
        let at = *self.entries.get(slot as usize)?;
        (at != NONE).then(|| self.key(at as usize))
    }

    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn second(&self) -> Option<u32> {
        (self.len >= MANY).then(|| self.slot(self.first_of(1)))
    }

    #[inline]
    fn prefetch(&self, slot: u32) {
        hourglass_sys::prefetch::prefetch(&self.entries, slot as usize);
        hourglass_sys::prefetch::prefetch(&self.sequences, slot as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_heap(heap: &Heap) {
        for at in ROOT..ROOT + heap.len {
            let slot = heap.slot(at);
            assert_eq!(heap.entries[slot as usize] as usize, at);
            let entry = HeapEntry { expiry: heap.key(at), slot };
            assert!(at == ROOT || !heap.before(entry, at / WIDTH + ROOT - 1), "entry {at}");
        }
        for at in (ROOT + heap.len)..heap.keys.len() * WIDTH {
            assert_eq!((heap.key(at), heap.slot(at)), (LAST, NONE));
        }
    }

    #[test]
    fn every_line_but_the_first_holds_the_children_of_one_entry() {
        for at in ROOT..5_000 {
            let line = at - ROOT + 1;
            for child in line * WIDTH..(line + 1) * WIDTH {
                assert_eq!(child / WIDTH + ROOT - 1, at);
            }
        }
    }

    /// The order is a heap after every step, over several levels and with many equal expiries, the
    /// last possible one included.
    #[test]
    fn it_stays_a_heap() {
        let (slots, mut dice) = (3_000, hourglass_dice::Dice::new(12_345));
        let mut heap = Heap::default();
        heap.reserve(3_000).unwrap();
        for sequence in 0..30_000 {
            let (slot, roll) = (dice.below(slots) as u32, dice.below(16));
            if roll < 12 {
                let expiry = if roll == 0 { LAST } else { dice.within(0, 500) };
                heap.place(slot, Key { expiry, sequence });
            } else {
                let was_in = heap.expiry(slot).is_some();
                assert_eq!(heap.remove(slot), was_in);
            }
            if sequence % 100 == 0 {
                assert_heap(&heap);
            }
        }
        assert_heap(&heap);
        assert!(heap.len() > 1_000);
    }

    /// Room for this many and not one more: no look beyond the end, whatever the last line holds.
    #[test]
    fn a_full_heap_of_any_size() {
        for slots in 1..300u32 {
            let mut heap = Heap::default();
            heap.reserve(slots as usize).unwrap();
            for slot in 0..slots {
                heap.place(slot, Key { expiry: i64::from(slot), sequence: slot.into() });
            }
            // Each in turn from the front to the back, in place.
            for slot in 0..slots {
                assert_eq!(heap.first(), Some(MinEntry { slot, expiry: i64::from(slot) }));
                heap.place(slot, Key { expiry: LAST, sequence: (slots + slot).into() });
            }
            assert_heap(&heap);
            for slot in 0..slots {
                assert_eq!(heap.first(), Some(MinEntry { slot, expiry: LAST }));
                assert!(heap.remove(slot));
            }
            assert!(heap.first().is_none());
        }
    }

    #[test]
    fn slots_without_room_are_not_placed() {
        let mut heap = Heap::default();
        let key = Key { expiry: 1, sequence: 1 };
        heap.place(0, key);
        assert!(heap.is_empty() && !heap.remove(0) && !heap.remove(NONE));
        heap.reserve(1).unwrap();
        heap.place(0, key);
        heap.place(1, key);
        assert_eq!((heap.len(), heap.first()), (1, Some(MinEntry { slot: 0, expiry: 1 })));
        assert_eq!(heap.expiry(1), None);
    }
}
