//! Whether an engine that sleeps must be woken.
//!
//! Owns: when the engine looks by itself.
//! Must not: wake anybody.

use super::super::atomic::{AtomicU64, Ordering, fence};

/// What is published while the engine is awake: it looks again before it sleeps.
pub(crate) const AWAKE: u64 = 0;

/// When the engine looks at its timers by itself, on its device's time, ns.
pub(crate) struct Wake(AtomicU64);

impl Wake {
    /// Of an engine that is awake.
    pub(crate) fn new() -> Wake {
        Wake(AtomicU64::new(AWAKE))
    }

    /// The engine is about to sleep until then. It MUST look at what changed once more after this:
    /// who marked a timer before either finds the new time, or is found.
    pub(crate) fn sleeps_until(&self, ns: u64) {
        self.0.store(ns, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The engine no longer sleeps, and will look before it does again.
    pub(crate) fn awake(&self) {
        self.0.store(AWAKE, Ordering::Relaxed);
    }

    /// Whether the engine must be kicked for something that it has to see by then. After a full
    /// fence, which comes after the mark.
    pub(crate) fn wants(&self, by_ns: u64) -> bool {
        by_ns < self.0.load(Ordering::Relaxed)
    }

    /// What was published last.
    pub(crate) fn published(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
