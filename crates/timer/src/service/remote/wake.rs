//! Whether an engine that sleeps must be woken.
//!
//! Owns: when the engine looks by itself, and how often it looks before it sleeps.
//! Must not: wake a thread.

use super::super::atomic::{AtomicU64, Ordering, fence};

/// What is published while the engine is awake: it looks again before it sleeps.
pub(crate) const AWAKE: u64 = 0;

/// When the engine looks at its timers by itself, on its device's time, ns.
pub(crate) struct Wake(AtomicU64);

impl Wake {
    pub(crate) fn new() -> Wake {
        Wake(AtomicU64::new(AWAKE))
    }

    /// The engine is about to sleep until then. It MUST look at what changed once more after this:
    /// a thread that marked a timer before either finds the new time, or is found.
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

    pub(crate) fn published(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// An engine on its way to sleep: it publishes when it wakes, looks at what changed, and sleeps.
///
/// One look is enough unless that puts the wake-up off: a thread that marks a timer after it compares
/// with what was published before it, and kicks if that is too late. So an engine whose timers are armed
/// all the time sleeps all the same. (If it slept only once nothing had changed, it would look for ever,
/// on a CPU of its own, and each of its looks would take a line of memory away from those that
/// arm.)
#[derive(Default)]
pub(crate) struct SleepTransition {
    /// What was published before a look at everything that had changed by then.
    published: Option<u64>,
}

impl SleepTransition {
    /// Whether the engine may sleep until then, with all that it knows. If not, it MUST look at what
    /// changed, tell by [`SleepTransition::looked`], and ask again.
    pub(crate) fn may_sleep(
        &mut self,
        wake: &Wake,
        until_ns: u64,
        any_changed: impl FnOnce() -> bool,
    ) -> bool {
        wake.sleeps_until(until_ns);
        if self.published.take().is_some_and(|published| until_ns <= published) {
            return true;
        }
        if !any_changed() {
            return true;
        }
        self.published = Some(until_ns);
        false
    }

    /// The engine looked, `at_everything` that was marked when it began or not.
    pub(crate) fn looked(&mut self, at_everything: bool) {
        if !at_everything {
            self.published = None;
        }
    }
}
