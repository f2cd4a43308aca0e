//! Handles: numbers for objects, so that a handle of a freed object is recognised.
//!
//! Owns: a table for each kind of object, generations, the rule that no object is freed while it is in
//! use. Must not: lock, or free anything within a look-up, which a signal handler may make.
//!
//! A handle is a kind, a generation and a place. A place is used again with the next generation, so that
//! an old handle finds another one there and is refused; after 2^24 objects in one place an old handle
//! would be taken for the new one.

use std::cell::UnsafeCell;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::error::{CapiError, HG_BUSY, HG_EXHAUSTED, HG_NULL, HG_STALE, hg_status};

/// Handles as C has them, each a number in a struct of its own.
macro_rules! handles {
    ($($name:ident, $what:literal;)*) => {$(
        #[doc = $what]
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            /// Number of the object; 0 for no object.
            pub handle: u64,
        }
    )*};
}

pub(crate) use handles;

/// Places of the first chunk; each further one doubles the table.
const FIRST: usize = 64;
/// Chunks at most: 2^22 places.
const CHUNKS: usize = 17;
/// The low half of a state: the content of a place.
const WHAT: u64 = 0xffff_ffff;
const FREE: u64 = 0;
/// The object is being made or removed.
const RESERVED: u64 = 1;
/// The object can be used; each look-up in progress adds one.
const LIVE: u64 = 2;
const GENERATION: u64 = 0x00ff_ffff;
/// How long freeing waits for calls that are about to return.
const PATIENCE: Duration = Duration::from_millis(100);

/// A place: its state, and what is in it while that says so.
struct Slot<T> {
    /// Generation in the high half, `WHAT` in the low one.
    state: AtomicU64,
    value: UnsafeCell<Option<T>>,
}

/// The objects of one kind.
pub(crate) struct HandleTable<T: 'static> {
    kind: u8,
    name: &'static str,
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    /// Where to look for room first.
    hint: AtomicUsize,
}

// SAFETY: a value is written and taken only by the thread that holds its place `RESERVED`, which one
// exchange gives to one thread; it is read only while `LIVE`, by any thread, so it is to be `Sync`, and it is
// taken by whichever thread frees it, so it is to be `Send`.
unsafe impl<T: Send + Sync> Sync for HandleTable<T> {}

/// An object in use: it is not freed before this is dropped.
pub(crate) struct HandleRef<T: 'static> {
    slot: &'static Slot<T>,
}

impl<T> Deref for HandleRef<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the place is `LIVE` and has this look-up counted, so no thread writes it meanwhile.
        let value = unsafe { &*self.slot.value.get() };
        match value {
            Some(value) => value,
            // A place is made `LIVE` only after its value was written.
            None => std::process::abort(),
        }
    }
}

impl<T> Drop for HandleRef<T> {
    fn drop(&mut self) {
        self.slot.state.fetch_sub(1, Ordering::Release);
    }
}

impl<T: Send + Sync> HandleTable<T> {
    pub(crate) const fn new(kind: u8, name: &'static str) -> HandleTable<T> {
        HandleTable {
            kind,
            name,
            chunks: [const { OnceLock::new() }; CHUNKS],
            hint: AtomicUsize::new(0),
        }
    }

    /// Stores an object and returns its handle, which is never 0.
    ///
    /// # Errors
    /// The table is full.
    pub(crate) fn insert(&'static self, value: T) -> Result<u64, CapiError> {
        let (index, slot, generation) = self.reserve()?;
        // SAFETY: the place was just reserved by this thread.
        unsafe { *slot.value.get() = Some(value) };
        slot.state.store(generation << 32 | LIVE, Ordering::Release);
        Ok(u64::from(self.kind) << 56 | (generation & GENERATION) << 32 | (index as u64 + 1))
    }

    /// The object of a handle, pinned. Lock-free.
    ///
    /// # Errors
    /// No handle, one that was freed, or another kind's.
    pub(crate) fn get(&'static self, handle: u64) -> Result<HandleRef<T>, CapiError> {
        self.find(handle).map_err(|kind| self.failure(kind))
    }

    /// Like [`HandleTable::get`], without a text, which is allocated: for signal handlers.
    ///
    /// # Errors
    /// As [`HandleTable::get`].
    pub(crate) fn find(&'static self, handle: u64) -> Result<HandleRef<T>, hg_status> {
        let (slot, generation) = self.place(handle)?;
        let mut state = slot.state.load(Ordering::Acquire);
        loop {
            if state & WHAT < LIVE || (state >> 32) & GENERATION != generation {
                return Err(HG_STALE);
            }
            let pinned = slot.state.compare_exchange_weak(
                state,
                state + 1,
                Ordering::Acquire,
                Ordering::Acquire,
            );
            match pinned {
                Ok(_) => return Ok(HandleRef { slot }),
                Err(now) => state = now,
            }
        }
    }

    /// Removes an object; its handle becomes invalid. Waits for calls that are about to return.
    ///
    /// # Errors
    /// As [`HandleTable::get`]; `HG_BUSY` if a call on it goes on: then it stays.
    pub(crate) fn remove(&'static self, handle: u64) -> Result<T, CapiError> {
        let (slot, generation) = self.place(handle).map_err(|kind| self.failure(kind))?;
        let mut begun = None;
        loop {
            let state = slot.state.load(Ordering::Acquire);
            let (found, what) = (state >> 32, state & WHAT);
            if what < LIVE || found & GENERATION != generation {
                return Err(self.failure(HG_STALE));
            }
            if what == LIVE {
                let taken = slot.state.compare_exchange(
                    state,
                    found << 32 | RESERVED,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                if taken.is_ok() {
                    // SAFETY: the place was just reserved by this thread.
                    let value = unsafe { (*slot.value.get()).take() };
                    let next = found.wrapping_add(1) & WHAT;
                    slot.state.store(next << 32 | FREE, Ordering::Release);
                    return value.ok_or_else(|| self.failure(HG_STALE));
                }
                continue;
            }
            if begun.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                let text = format!("a call on this {} goes on: let it return first", self.name);
                return Err(CapiError::new(HG_BUSY, text));
            }
            std::thread::yield_now();
        }
    }

    fn failure(&self, kind: hg_status) -> CapiError {
        let name = self.name;
        let text = match kind {
            HG_NULL => format!("the {name} is a null handle: make one first"),
            _ => format!("this {name} was freed, or never was: make a new {name}"),
        };
        CapiError::new(kind, text)
    }

    fn place(&'static self, handle: u64) -> Result<(&'static Slot<T>, u64), hg_status> {
        if handle == 0 {
            return Err(HG_NULL);
        }
        let index = (handle & WHAT).wrapping_sub(1) as usize;
        let (chunk, offset) = split(index);
        let slot = self.chunks.get(chunk).and_then(OnceLock::get).and_then(|c| c.get(offset));
        match slot {
            Some(slot) if handle >> 56 == u64::from(self.kind) => {
                Ok((slot, (handle >> 32) & GENERATION))
            }
            _ => Err(HG_STALE),
        }
    }

    /// Reserves a place for the caller alone, with its generation.
    fn reserve(&'static self) -> Result<(usize, &'static Slot<T>, u64), CapiError> {
        for (number, chunk) in self.chunks.iter().enumerate() {
            let slots = chunk.get_or_init(|| chunk_of(number));
            let start = self.hint.load(Ordering::Relaxed) % slots.len();
            for step in 0..slots.len() {
                let offset = (start + step) % slots.len();
                let slot = &slots[offset];
                let state = slot.state.load(Ordering::Relaxed);
                if state & WHAT != FREE {
                    continue;
                }
                let taken = slot.state.compare_exchange(
                    state,
                    state | RESERVED,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                );
                if taken.is_ok() {
                    self.hint.store(offset + 1, Ordering::Relaxed);
                    return Ok((first_of(number) + offset, slot, state >> 32));
                }
            }
        }
        let text = format!("there are too many of {}: free some", self.name);
        Err(CapiError::new(HG_EXHAUSTED, text))
    }
}

/// The first place of a chunk.
const fn first_of(chunk: usize) -> usize {
    if chunk == 0 { 0 } else { FIRST << (chunk - 1) }
}

fn chunk_of<T>(number: usize) -> Box<[Slot<T>]> {
    let places = if number == 0 { FIRST } else { first_of(number) };
    let slot = || Slot { state: AtomicU64::new(FREE), value: UnsafeCell::new(None) };
    (0..places).map(|_| slot()).collect()
}

/// The chunk of a place, and which of that.
fn split(index: usize) -> (usize, usize) {
    let chunk = (usize::BITS - (index / FIRST).leading_zeros()) as usize;
    (chunk, index - first_of(chunk).min(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_split_into_chunks() {
        let at = [(0, (0, 0)), (63, (0, 63)), (64, (1, 0)), (127, (1, 63)), (128, (2, 0))];
        for (index, place) in at {
            assert_eq!(split(index), place, "{index}");
        }
        assert_eq!(split(usize::MAX >> 33).0, 25);
    }

    #[test]
    fn a_freed_handle_is_recognised_after_its_place_is_used_again() {
        static TABLE: HandleTable<String> = HandleTable::new(1, "thing");
        let first = TABLE.insert("first".to_owned()).unwrap();
        assert_eq!(*TABLE.get(first).unwrap(), "first");
        assert_eq!(TABLE.remove(first).unwrap(), "first");
        let kind = |result: Result<HandleRef<String>, CapiError>| result.err().map(|f| f.kind);
        assert_eq!(kind(TABLE.get(first)), Some(HG_STALE));
        // All places again, so that one of them is the first's.
        let more: Vec<u64> = (0..200).map(|n| TABLE.insert(n.to_string()).unwrap()).collect();
        assert!(more.iter().any(|handle| handle & WHAT == first & WHAT));
        assert_eq!(kind(TABLE.get(first)), Some(HG_STALE));
        assert_eq!(TABLE.remove(first).unwrap_err().kind, HG_STALE);
        for (n, handle) in more.iter().enumerate() {
            assert_eq!(TABLE.remove(*handle).unwrap(), n.to_string());
        }
        assert_eq!(kind(TABLE.get(0)), Some(HG_NULL));
        for wrong in [1, u64::MAX, 1 << 56, 1 << 56 | 0xffff_ffff, 2 << 56 | 1] {
            assert_eq!(kind(TABLE.get(wrong)), Some(HG_STALE), "{wrong:#x}");
        }
    }

    #[test]
    fn nothing_is_freed_while_it_is_used() {
        static TABLE: HandleTable<u32> = HandleTable::new(2, "thing");
        let handle = TABLE.insert(7).unwrap();
        let pinned = TABLE.get(handle).unwrap();
        assert_eq!(TABLE.remove(handle).unwrap_err().kind, HG_BUSY);
        assert_eq!(*pinned, 7);
        drop(pinned);
        assert_eq!(TABLE.remove(handle).unwrap(), 7);
    }

    /// Threads that free, make and look up: one thread frees each object, and no look-up finds another object.
    #[test]
    fn threads_meet() {
        static TABLE: HandleTable<u64> = HandleTable::new(3, "thing");
        const ROUNDS: u64 = 2_000;
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let value = thread << 32 | round;
                        let handle = TABLE.insert(value).unwrap();
                        assert_eq!(*TABLE.get(handle).unwrap(), value);
                        assert_eq!(TABLE.remove(handle).unwrap(), value);
                        assert!(TABLE.get(handle).is_err());
                    }
                });
            }
        });
    }
}
