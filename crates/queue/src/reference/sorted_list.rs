//! The slow twin of every exact order: a list, kept sorted.
//!
//! Owns: being obviously right.
//! Must not: be clever.

use std::collections::TryReserveError;

use crate::{Key, MinEntry, PriorityStructure};

/// A list sorted by key; placing and removing walk along it, as the kernel's timer list of before
/// 1997 did ("Hrtimers and Beyond", 2006, section 4.1).
#[derive(Clone, Debug, Default)]
pub struct SortedList {
    entries: Vec<(Key, u32)>,
    room: usize,
}

impl PriorityStructure for SortedList {
    fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError> {
        self.entries.try_reserve_exact(slots.saturating_sub(self.entries.len()))?;
        self.room = self.room.max(slots);
        Ok(())
    }

    fn place(&mut self, slot: u32, key: Key) {
        self.remove(slot);
        if (slot as usize) < self.room {
            let before = self.entries.iter().take_while(|entry| entry.0 < key).count();
            self.entries.insert(before, (key, slot));
        }
    }

    fn remove(&mut self, slot: u32) -> bool {
        let at = self.entries.iter().position(|entry| entry.1 == slot);
        at.map(|at| self.entries.remove(at)).is_some()
    }

    fn first(&self) -> Option<MinEntry> {
        self.entries.first().map(|&(key, slot)| MinEntry { slot, expiry: key.expiry })
    }

    fn expiry(&self, slot: u32) -> Option<i64> {
        self.entries.iter().find(|entry| entry.1 == slot).map(|entry| entry.0.expiry)
    }

    fn len(&self) -> usize {
        self.entries.len()
    }
}
