//! When the engine wakes, for other threads.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// When an engine that waits will wake, for threads that hand it something to do.
///
/// The engine **publishes** the time, then **looks at what it was handed once more**, then waits
/// ([`Engine::wait_with`](super::Engine::wait_with)). A thread that hands it something first makes that
/// visible (a push onto a lock-free list), then asks [`NextWake::needs_kick`], and kicks if so.
/// A sequentially consistent fence lies on both sides between the write and the read. So in every
/// order either the engine's second look finds what was handed to it, or the other side reads the
/// new time: no wake-up is lost.
#[derive(Clone)]
pub struct NextWake(Arc<AtomicU64>);

/// The engine is awake, and looks at what it was handed before it waits.
const AWAKE: u64 = 0;

impl NextWake {
    pub(super) fn new() -> NextWake {
        NextWake(Arc::new(AtomicU64::new(AWAKE)))
    }

    /// Device time at which the engine wakes by itself, ns: `u64::MAX` if it does not, 0 while it is
    /// awake. Orders nothing; to decide on a kick ask [`NextWake::needs_kick`].
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether an engine must be kicked to act at device time `at_ns` on what was handed to it
    /// before this call.
    #[must_use]
    #[inline]
    pub fn needs_kick(&self, at_ns: u64) -> bool {
        fence(Ordering::SeqCst);
        at_ns < self.0.load(Ordering::Relaxed)
    }

    /// The engine is about to wait; it looks at what it was handed after this.
    #[inline]
    pub(super) fn publish(&self, at_ns: u64) {
        // 0 has a meaning of its own; what is due then is due at once.
        self.0.store(at_ns.max(AWAKE + 1), Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The engine is awake. A thread that still reads the previous time kicks for nothing.
    #[inline]
    pub(super) fn awake(&self) {
        self.0.store(AWAKE, Ordering::Relaxed);
    }
}

impl fmt::Debug for NextWake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NextWake({})", self.ns())
    }
}
