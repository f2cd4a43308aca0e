//! The platform of a gate: a clock, a timer, and waiting.
//!
//! Owns: the trait. Must not: implement it; the kernel's is in `native`, others are simulated.

use super::atomics::{AtomicFamily, Native};

/// Platform of a gate.
///
/// Nothing of it may allocate or lock; all of it is called in signal handlers, where only the
/// implementation of this crate is ever put.
pub trait GatePlatform<W: AtomicFamily = Native> {
    /// The clock that deadlines are on, ns.
    fn now_ns(&self) -> u64;
    /// Sets the thread's timer for an absolute time ahead; it MUST make the thread call
    /// [`super::LateThread::expired`] then and not before. `false` if there is no such timer.
    fn set_timer(&self, at_ns: u64) -> bool;
    /// Stops it. It may still fire if it was about to.
    fn stop_timer(&self);
    /// Waits while `word` is `expected`, not beyond `until_ns`; may return sooner.
    fn wait(&self, word: &W::U32, expected: u32, until_ns: u64);
    /// Wakes all who wait on `word`.
    fn wake(&self, word: &W::U32);
    /// Whether this is a child made by `fork`, where no responder exists.
    fn is_child(&self) -> bool;
}
