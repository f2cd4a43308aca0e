//! What a queue is ordered by, and what orders it.

use std::collections::TryReserveError;

/// By what timers are ordered: the expiry, and among equal ones the order of arming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The latest time to fire, in nanoseconds from the clock's zero.
    pub expiry: i64,
    /// How many timers had been armed before; no two keys of a queue share it.
    pub sequence: u64,
}

/// The first of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinEntry {
    /// Slot of the timer.
    pub slot: u32,
    /// The expiry of its key.
    pub expiry: i64,
}

/// A set of slots, each with a key, that knows its least: the back-end of a
/// [`Queue`](super::Queue).
///
/// The queue numbers its timers by small slots and asks for room before it uses one. An
/// implementation MUST
/// - be exact: [`first`](PriorityStructure::first) is the slot of the least key, nanosecond and sequence
///   included, so that equal expiries come first in, first out;
/// - know its first in constant time;
/// - take logarithmic time at most for one placing or removing, whatever came before: no work may
///   be saved up for a later call (that is what the cascading wheel does);
/// - allocate only when it is made and in [`reserve`](PriorityStructure::reserve);
/// - neither panic nor touch another slot's key when asked about a slot beyond the room reserved:
///   placing it does nothing, and it is not contained.
///
/// Slots are removed in any order; nothing may be assumed about keys, which may also be earlier
/// than those that were first before.
pub trait PriorityStructure: Default {
    /// Makes room for the slots below `slots`, exactly; less than before changes nothing.
    ///
    /// # Errors
    /// The allocator's; the room is as before.
    fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError>;

    /// Puts a slot in with this key, or moves it there if it is in already.
    fn place(&mut self, slot: u32, key: Key);

    /// Takes a slot out; whether it was in.
    fn remove(&mut self, slot: u32) -> bool;

    /// The slot with the least key.
    fn first(&self) -> Option<MinEntry>;

    /// The key's expiry, if the slot is in.
    fn expiry(&self, slot: u32) -> Option<i64>;

    /// How many slots are in.
    fn len(&self) -> usize;

    /// Whether no slot is in.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slot that will probably be the first once the first is removed: a hint, in constant
    /// time; `None` also where knowing it early is not worth the trouble.
    fn second(&self) -> Option<u32> {
        None
    }

    /// A hint that this slot will be removed or placed soon.
    fn prefetch(&self, _slot: u32) {}
}
