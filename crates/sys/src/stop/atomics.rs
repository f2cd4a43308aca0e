//! The words that a gate is made of, so that a test can put others in their place.
//!
//! Owns: the operations a gate needs of a word of memory. Must not: know what a word means.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A word that several threads, and a signal handler, read and write.
///
/// Every operation MUST be one indivisible step, MUST be ordered with all others of the same thread
/// as written (sequentially consistent), and MUST not allocate, lock or fail.
pub trait AtomicWord<T> {
    /// A word that holds `value`.
    fn new(value: T) -> Self;
    fn load(&self) -> T;
    /// Replaces it.
    fn store(&self, value: T);
    /// Replaces it; what it held.
    fn swap(&self, value: T) -> T;
    /// Replaces it if it holds `current`; whether it did.
    fn replace(&self, current: T, value: T) -> bool;
    /// Sets bits; what it held.
    fn set_bits(&self, bits: T) -> T;
    /// Adds, around the end; what it held.
    fn add(&self, value: T) -> T;
}

pub trait AtomicFamily {
    /// Words of 32 bits.
    type U32: AtomicWord<u32>;
    /// Words of 64 bits.
    type U64: AtomicWord<u64>;
}

#[derive(Clone, Copy, Debug)]
pub struct Native;

impl AtomicFamily for Native {
    type U32 = AtomicU32;
    type U64 = AtomicU64;
}

macro_rules! native {
    ($atomic:ty, $value:ty) => {
        impl AtomicWord<$value> for $atomic {
            fn new(value: $value) -> Self {
                <$atomic>::new(value)
            }

            fn load(&self) -> $value {
                self.load(Ordering::SeqCst)
            }

            fn store(&self, value: $value) {
                self.store(value, Ordering::SeqCst);
            }

            fn swap(&self, value: $value) -> $value {
                self.swap(value, Ordering::SeqCst)
            }

            fn replace(&self, current: $value, value: $value) -> bool {
                self.compare_exchange(current, value, Ordering::SeqCst, Ordering::SeqCst).is_ok()
            }

            fn set_bits(&self, bits: $value) -> $value {
                self.fetch_or(bits, Ordering::SeqCst)
            }

            fn add(&self, value: $value) -> $value {
                self.fetch_add(value, Ordering::SeqCst)
            }
        }
    };
}

native!(AtomicU32, u32);
native!(AtomicU64, u64);
