//! The buckets of a wheel: lists of timers, first in, first out.
//!
//! Owns: the links.
//! Must not: know when a bucket is due.

use hourglass_time::{ClockTag, Instant};

use super::Handle;
use super::arena::{Arena, NONE};

#[derive(Debug)]
pub(super) struct ListNode<C: ClockTag> {
    /// When it may fire, if it is armed.
    pub(super) expiry: Instant<C>,
    /// The list it is in, or [`NONE`].
    pub(super) list: u32,
    previous: u32,
    next: u32,
}

impl<C: ClockTag> Default for ListNode<C> {
    fn default() -> ListNode<C> {
        ListNode { expiry: Instant::ZERO, list: NONE, previous: NONE, next: NONE }
    }
}

pub(super) type TimerArena<C, T> = Arena<ListNode<C>, T>;

#[derive(Clone, Copy, Debug)]
struct ListEnds {
    first: u32,
    last: u32,
}

impl ListEnds {
    const EMPTY: ListEnds = ListEnds { first: NONE, last: NONE };
}

/// Doubly linked lists through the slots of an arena.
#[derive(Debug)]
pub(super) struct Lists(Box<[ListEnds]>);

impl Lists {
    pub(super) fn new(lists: usize) -> Lists {
        Lists(vec![ListEnds::EMPTY; lists].into())
    }

    #[inline]
    pub(super) fn first(&self, list: u32) -> Option<u32> {
        let first = self.0.get(list as usize)?.first;
        (first != NONE).then_some(first)
    }

    /// Puts a slot that is in no list behind the last of this one.
    #[inline]
    pub(super) fn push<C: ClockTag, T>(
        &mut self,
        timers: &mut TimerArena<C, T>,
        slot: u32,
        list: u32,
    ) {
        let Some(ends) = self.0.get_mut(list as usize) else { return };
        let previous = ends.last;
        ends.last = slot;
        match timers.kept_mut(previous) {
            Some(before) => before.next = slot,
            None => ends.first = slot,
        }
        if let Some(waiting) = timers.kept_mut(slot) {
            waiting.list = list;
            waiting.previous = previous;
            waiting.next = NONE;
        }
    }

    /// Takes a slot out of its list; which one is empty now, if it is.
    #[inline]
    pub(super) fn take_out<C: ClockTag, T>(
        &mut self,
        timers: &mut TimerArena<C, T>,
        slot: u32,
    ) -> Option<u32> {
        let waiting = timers.kept_mut(slot)?;
        let (list, previous, next) = (waiting.list, waiting.previous, waiting.next);
        let ends = self.0.get_mut(list as usize)?;
        waiting.list = NONE;
        match timers.kept_mut(previous) {
            Some(before) => before.next = next,
            None => ends.first = next,
        }
        match timers.kept_mut(next) {
            Some(after) => after.previous = previous,
            None => ends.last = previous,
        }
        (ends.first == NONE).then_some(list)
    }

    /// The slots of a list in order, with what is kept about each.
    pub(super) fn iter<'a, C: ClockTag, T>(
        &self,
        timers: &'a TimerArena<C, T>,
        list: u32,
    ) -> impl Iterator<Item = (Handle, &'a ListNode<C>)> {
        let at = |slot| timers.at(slot);
        std::iter::successors(self.first(list).and_then(at), move |(_, waiting)| at(waiting.next))
    }
}
