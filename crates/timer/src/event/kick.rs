//! Making an engine that waits look again, from anywhere.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a device's kick does.
///
/// An implementation MUST
/// - make a wait of the device that is going on, or else the next one, return
///   [`super::DeviceWaitEnd::Kicked`], unless that wait returns for an event first: then the one after it;
/// - make everything that the kicker stored before visible to the engine after that return;
/// - neither block, allocate nor take a lock, so that a signal handler may kick;
/// - do no harm when the device is gone.
///
/// Several kicks before the engine sees one are one kick.
pub trait Kicker: Send + Sync {
    /// Ends the wait of the device, or its next one.
    fn kick(&self);
}

/// A handle that makes the engine look again. Any number of them, in any thread and in signal
/// handlers; it may outlive the device.
#[derive(Clone)]
pub struct Kick(Arc<dyn Kicker>);

impl Kick {
    /// A handle on what an implementation shares with its device.
    #[must_use]
    pub fn new(kicker: Arc<dyn Kicker>) -> Kick {
        Kick(kicker)
    }

    /// Makes the engine come back from its wait, or not begin the next one. 10 ns unless it waits;
    /// at most one system call.
    pub fn kick(&self) {
        self.0.kick();
    }
}

impl fmt::Debug for Kick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kick")
    }
}

const IDLE: u32 = 0;
const KICKED: u32 = 1;
/// The engine waits, or is about to.
const WAITING: u32 = 2;

/// One bit for a pending kick, and whether the engine must be woken to see it. One thread waits,
/// many kick.
#[derive(Debug, Default)]
pub(super) struct Latch(AtomicU32);

impl Latch {
    pub(super) const fn new() -> Latch {
        Latch(AtomicU32::new(IDLE))
    }

    /// Kicks; `wake` runs only if the engine waits and no earlier kick woke it.
    pub(super) fn kick(&self, wake: impl FnOnce()) {
        if self.0.swap(KICKED, Ordering::AcqRel) == WAITING {
            wake();
        }
    }

    /// Takes a pending kick. Returns whether there was one.
    pub(super) fn take(&self) -> bool {
        self.0.compare_exchange(KICKED, IDLE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Announces that the engine waits from now on. Returns false if a kick was pending, and takes
    /// it: do not wait then.
    pub(super) fn begin_wait(&self) -> bool {
        let waits = self.0.compare_exchange(IDLE, WAITING, Ordering::AcqRel, Ordering::Acquire);
        match waits {
            Ok(_) => true,
            // Only a kick can stand there: one thread waits, and it does not yet.
            Err(_) => !self.take(),
        }
    }

    /// The engine no longer waits. Takes a pending kick; returns whether there was one.
    pub(super) fn end_wait(&self) -> bool {
        self.0.swap(IDLE, Ordering::AcqRel) == KICKED
    }

    /// The engine no longer waits; a kick stays for the next wait.
    pub(super) fn end_wait_for_event(&self) {
        // Fails if a kick is pending, and then the kick must stay.
        let _ = self.0.compare_exchange(WAITING, IDLE, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// The futex word: it is [`Latch::WAITING`] while no kick is pending.
    pub(super) fn word(&self) -> &AtomicU32 {
        &self.0
    }

    pub(super) const WAITING: u32 = WAITING;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kick_stays_until_it_is_seen_and_wakes_once() {
        let latch = Latch::new();
        let mut woken = 0;
        latch.kick(|| woken += 1);
        latch.kick(|| woken += 1);
        assert!(!latch.begin_wait(), "a kick before the wait must end it");
        assert!(!latch.take());
        assert!(latch.begin_wait());
        latch.kick(|| woken += 1);
        latch.kick(|| woken += 1);
        assert!(latch.end_wait());
        assert!(!latch.end_wait());
        assert_eq!(woken, 1);
    }

    #[test]
    fn an_event_leaves_the_kick_for_the_next_wait() {
        let latch = Latch::new();
        assert!(latch.begin_wait());
        latch.kick(|| ());
        latch.end_wait_for_event();
        assert!(!latch.begin_wait());
        assert!(latch.begin_wait());
        latch.end_wait_for_event();
        assert!(!latch.take());
    }
}
