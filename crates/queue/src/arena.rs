//! Timers in slots: which are alive, and handles that never name another caller's timer.
//!
//! Owns: the memory of timers, the free slots, the generations.
//! Must not: know about time or order.

use std::fmt;
use std::num::NonZeroU32;

use super::QueueError;

/// Names a timer of the queue that created it; 8 bytes, as an `Option` too.
///
/// A handle whose timer was removed is stale, and is refused from then on, also when its slot has a
/// new timer: each has a generation of its own. (A key that is used again means cancelling another
/// caller's timer: tokio-util issue 3270.) Generations never repeat: a slot that has used up its
/// 2^32 - 1 generations is left empty for good.
///
/// Handles are only meaningful to the queue they come from; another one either finds them stale or
/// takes them for its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    slot: u32,
    generation: NonZeroU32,
}

impl Handle {
    /// The timer's slot: small numbers, each that of at most one timer at a time.
    pub(super) fn slot(self) -> u32 {
        self.slot
    }

    /// As one number, which is never 0, for interfaces that have no handles.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation.get()) << 32 | u64::from(self.slot)
    }

    /// The handle of a number that [`Handle::to_bits`] gave; `None` for one that it never gives.
    #[must_use]
    pub fn from_bits(bits: u64) -> Option<Handle> {
        let generation = NonZeroU32::new(u32::try_from(bits >> 32).ok()?)?;
        Some(Handle { slot: u32::try_from(bits & u64::from(u32::MAX)).ok()?, generation })
    }
}

/// Slot and generation: `7.1`.
impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

pub(super) const NONE: u32 = u32::MAX;

/// As many slots as 32 bits can number, less a few numbers that the orders need for themselves.
pub(super) const SLOTS_MAX: usize = u32::MAX as usize - 64;

const ROOM_AT_FIRST: usize = 64;

/// The timers of a queue, each with what the queue keeps about it (`X`) and its payload.
#[derive(Debug)]
pub(super) struct Arena<X, T> {
    slots: Vec<ArenaSlot<X, T>>,
    /// Slots that may be used without growing.
    room: usize,
    free: u32,
    live: usize,
}

#[derive(Debug)]
pub(super) struct ArenaSlot<X, T> {
    generation: NonZeroU32,
    next_free: u32,
    /// Some if and only if a timer lives here.
    payload: Option<T>,
    pub(super) kept: X,
}

impl<X: Default, T> Arena<X, T> {
    pub(super) fn new() -> Arena<X, T> {
        Arena { slots: Vec::new(), room: 0, free: NONE, live: 0 }
    }

    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// For how many timers to make room before the next one: `None` if there is room.
    #[inline]
    pub(super) fn growth_needed(&self) -> Result<Option<usize>, QueueError> {
        if self.free != NONE || self.slots.len() < self.room {
            return Ok(None);
        }
        if self.room >= SLOTS_MAX {
            return Err(QueueError::Full { timers: self.live });
        }
        Ok(Some(self.room.saturating_mul(2).clamp(ROOM_AT_FIRST, SLOTS_MAX)))
    }

    /// Makes room for this many timers, exactly; less than before changes nothing.
    pub(super) fn reserve(&mut self, timers: usize) -> Result<(), QueueError> {
        if timers > SLOTS_MAX {
            return Err(QueueError::Full { timers: self.live });
        }
        let more = timers.saturating_sub(self.slots.len());
        let reserved = self.slots.try_reserve_exact(more);
        reserved.map_err(|_| QueueError::OutOfMemory { timers })?;
        hourglass_sys::huge_pages::ask_for(&self.slots);
        self.room = self.room.max(timers);
        Ok(())
    }

    /// A new timer in a free slot; no growth of the arena may be pending ([`Arena::wants`]).
    #[inline]
    pub(super) fn create(&mut self, payload: T) -> Handle {
        self.live += 1;
        let slot = self.free;
        if let Some(reused) = self.slots.get_mut(slot as usize) {
            self.free = reused.next_free;
            reused.payload = Some(payload);
            return Handle { slot, generation: reused.generation };
        }
        // Below `SLOTS_MAX`, as the room is.
        let slot = self.slots.len() as u32;
        let generation = NonZeroU32::MIN;
        self.slots.push(ArenaSlot {
            generation,
            next_free: NONE,
            payload: Some(payload),
            kept: X::default(),
        });
        Handle { slot, generation }
    }

    /// Takes the timer away; the handle is stale from now on.
    #[inline]
    pub(super) fn remove(&mut self, handle: Handle) -> Result<T, QueueError> {
        let free = self.free;
        let slot = self.find_mut(handle)?;
        let payload = slot.payload.take().ok_or(QueueError::StaleHandle { handle })?;
        slot.kept = X::default();
        // A slot without a generation left is not used again.
        if let Some(generation) = slot.generation.checked_add(1) {
            slot.generation = generation;
            slot.next_free = free;
            self.free = handle.slot;
        }
        self.live -= 1;
        Ok(payload)
    }

    /// The slot of a timer.
    #[inline]
    pub(super) fn find(&self, handle: Handle) -> Result<&ArenaSlot<X, T>, QueueError> {
        match self.slots.get(handle.slot as usize) {
            Some(slot) if slot.is(handle) => Ok(slot),
            _ => Err(QueueError::StaleHandle { handle }),
        }
    }

    /// The slot of a timer.
    #[inline]
    pub(super) fn find_mut(&mut self, handle: Handle) -> Result<&mut ArenaSlot<X, T>, QueueError> {
        match self.slots.get_mut(handle.slot as usize) {
            Some(slot) if slot.is(handle) => Ok(slot),
            _ => Err(QueueError::StaleHandle { handle }),
        }
    }

    /// The payload of a timer.
    pub(super) fn payload(&self, handle: Handle) -> Result<&T, QueueError> {
        self.find(handle)?.payload.as_ref().ok_or(QueueError::StaleHandle { handle })
    }

    /// The payload of a timer.
    pub(super) fn payload_mut(&mut self, handle: Handle) -> Result<&mut T, QueueError> {
        self.find_mut(handle)?.payload.as_mut().ok_or(QueueError::StaleHandle { handle })
    }

    /// What is kept about the timer in this slot, and its handle; `None` if there never was one.
    #[inline]
    pub(super) fn at(&self, slot: u32) -> Option<(Handle, &X)> {
        let found = self.slots.get(slot as usize)?;
        Some((Handle { slot, generation: found.generation }, &found.kept))
    }

    /// What is kept about the timer in this slot; `None` if there never was one.
    #[inline]
    pub(super) fn kept_mut(&mut self, slot: u32) -> Option<&mut X> {
        self.slots.get_mut(slot as usize).map(|found| &mut found.kept)
    }

    /// A hint that this slot will be looked at soon.
    #[inline]
    pub(super) fn prefetch(&self, slot: u32) {
        hourglass_sys::prefetch::prefetch(&self.slots, slot as usize);
    }
}

impl<X, T> ArenaSlot<X, T> {
    #[inline]
    fn is(&self, handle: Handle) -> bool {
        self.generation == handle.generation && self.payload.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena() -> Arena<(), &'static str> {
        let mut arena = Arena::new();
        arena.reserve(4).unwrap();
        arena
    }

    /// tokio-util issue 3270: a slot is used again, its old handle is not.
    #[test]
    fn a_new_timer_in_an_old_slot_has_another_handle() {
        let mut arena = arena();
        let first = arena.create("first");
        assert_eq!(arena.remove(first), Ok("first"));
        let second = arena.create("second");
        assert_eq!(first.slot(), second.slot());
        assert_ne!(first, second);
        assert_eq!(arena.remove(first), Err(QueueError::StaleHandle { handle: first }));
        assert_eq!(arena.payload(second), Ok(&"second"));
        assert_eq!(arena.live(), 1);
    }

    #[test]
    fn generations_do_not_wrap_around() {
        let mut arena = arena();
        let handle = arena.create("first");
        arena.slots[0].generation = NonZeroU32::MAX;
        let last = Handle { generation: NonZeroU32::MAX, ..handle };
        assert_eq!(arena.remove(last), Ok("first"));
        assert!(arena.find(last).is_err());
        // The slot is given up: else its next timer would have the handle of its first.
        let next = arena.create("second");
        assert_eq!(next.slot(), 1);
        assert!(arena.find(handle).is_err() && arena.find(last).is_err());
    }

    #[test]
    fn an_option_of_a_handle_costs_nothing() {
        assert_eq!(size_of::<Option<Handle>>(), 8);
    }

    #[test]
    fn room_is_exact_and_grows_by_doubling() {
        let mut arena = arena();
        for name in ["a", "b", "c", "d"] {
            assert_eq!(arena.growth_needed(), Ok(None));
            arena.create(name);
        }
        assert_eq!(arena.growth_needed(), Ok(Some(ROOM_AT_FIRST)));
        arena.reserve(ROOM_AT_FIRST).unwrap();
        assert_eq!(arena.growth_needed(), Ok(None));
        arena.free = NONE;
        arena.room = 4;
        assert_eq!(arena.reserve(usize::MAX), Err(QueueError::Full { timers: 4 }));
    }

    /// Without filling 2^32 slots: the room that was used up is the one that ends the numbers.
    #[test]
    fn a_full_queue_says_so() {
        let mut arena: Arena<(), ()> = Arena::new();
        arena.room = SLOTS_MAX - 1;
        assert_eq!(arena.growth_needed(), Ok(None));
        arena.room = 0;
        assert_eq!(arena.growth_needed(), Ok(Some(ROOM_AT_FIRST)));
    }
}
