//! A bounded queue of a few words each, for any number of threads, without a lock.
//!
//! Owns: the order of what was pushed. (After Vyukov's bounded queue: each place counts whose turn
//! it is.)
//! Must not: allocate after it was made, or wait.

use super::super::atomic::{AtomicU64, Ordering};

type Words<const W: usize> = [u64; W];

struct RingSlot<const W: usize> {
    /// Whose turn it is: that of the push with this number, or of the pop with one less.
    turn: AtomicU64,
    words: [AtomicU64; W],
}

pub(crate) struct Ring<const W: usize> {
    places: Box<[RingSlot<W>]>,
    pushed: AtomicU64,
    popped: AtomicU64,
}

/// The most that a queue has room for.
pub const MOST_ROOM: usize = 1 << 24;

/// The room that is made for a requested one: a power of two.
fn rounded(room: usize) -> usize {
    room.clamp(2, MOST_ROOM).next_power_of_two()
}

impl<const W: usize> Ring<W> {
    /// What a queue with that room takes, bytes.
    pub(crate) fn bytes(room: usize) -> u128 {
        rounded(room) as u128 * size_of::<RingSlot<W>>() as u128
    }

    /// With room for at least `room`, up to [`MOST_ROOM`]; a power of two.
    pub(crate) fn new(room: usize) -> Ring<W> {
        let room = rounded(room) as u64;
        let place = |turn| RingSlot {
            turn: AtomicU64::new(turn),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        Ring {
            places: (0..room).map(place).collect(),
            pushed: AtomicU64::new(0),
            popped: AtomicU64::new(0),
        }
    }

    pub(crate) fn room(&self) -> usize {
        self.places.len()
    }

    /// Whether nothing is queued, or what is being pushed is not there yet.
    pub(crate) fn is_empty(&self) -> bool {
        let number = self.popped.load(Ordering::Acquire);
        self.place(number).turn.load(Ordering::Acquire) <= number
    }

    fn place(&self, number: u64) -> &RingSlot<W> {
        // A power of two, so that the mask is within the places.
        &self.places[(number & (self.places.len() as u64 - 1)) as usize]
    }

    pub(crate) fn push(&self, words: Words<W>) -> bool {
        let mut number = self.pushed.load(Ordering::Relaxed);
        loop {
            let place = self.place(number);
            let turn = place.turn.load(Ordering::Acquire);
            if turn < number {
                return false;
            }
            let next = number.wrapping_add(1);
            let order = (Ordering::Relaxed, Ordering::Relaxed);
            if turn > number {
                number = self.pushed.load(Ordering::Relaxed);
            } else if let Err(other) =
                self.pushed.compare_exchange_weak(number, next, order.0, order.1)
            {
                number = other;
            } else {
                for (own, word) in place.words.iter().zip(words) {
                    own.store(word, Ordering::Relaxed);
                }
                place.turn.store(next, Ordering::Release);
                return true;
            }
        }
    }

    pub(crate) fn pop(&self) -> Option<Words<W>> {
        let mut number = self.popped.load(Ordering::Relaxed);
        loop {
            let place = self.place(number);
            let turn = place.turn.load(Ordering::Acquire);
            let next = number.wrapping_add(1);
            if turn < next {
                return None;
            }
            let order = (Ordering::Relaxed, Ordering::Relaxed);
            if turn > next {
                number = self.popped.load(Ordering::Relaxed);
            } else if let Err(other) =
                self.popped.compare_exchange_weak(number, next, order.0, order.1)
            {
                number = other;
            } else {
                let words = std::array::from_fn(|at| place.words[at].load(Ordering::Relaxed));
                place.turn.store(number.wrapping_add(self.places.len() as u64), Ordering::Release);
                return Some(words);
            }
        }
    }
}
