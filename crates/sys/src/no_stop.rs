//! Locks whose holder is not stopped: a thread that its own deadline suspends ([`crate::stop`]) must
//! not stand with a lock that others wait for.
//!
//! Owns: [`Region`] and [`NoStopGuard`]. Must not: lock anything itself.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A region in which the calling thread is not stopped, until it is dropped. Nothing on systems
/// where threads cannot be.
#[must_use = "the region ends when this is dropped"]
#[derive(Debug)]
pub struct Region(PhantomData<*const ()>);

impl Region {
    /// From here on the calling thread is not stopped.
    #[inline]
    pub fn enter() -> Region {
        #[cfg(target_os = "linux")]
        crate::stop::enter();
        Region(PhantomData)
    }
}

impl Drop for Region {
    #[inline]
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        crate::stop::leave();
    }
}

/// A lock's guard in a region that begins before the lock is asked for and ends after it is given back.
#[must_use = "the lock is given back when this is dropped"]
#[derive(Debug)]
pub struct NoStopGuard<G> {
    // Dropped in this order.
    guard: G,
    _region: Region,
}

impl<G> NoStopGuard<G> {
    #[inline]
    pub fn new(lock: impl FnOnce() -> G) -> NoStopGuard<G> {
        let region = Region::enter();
        NoStopGuard { guard: lock(), _region: region }
    }

    /// As [`NoStopGuard::new`], for a lock that may be refused.
    #[inline]
    pub fn maybe(lock: impl FnOnce() -> Option<G>) -> Option<NoStopGuard<G>> {
        let region = Region::enter();
        Some(NoStopGuard { guard: lock()?, _region: region })
    }
}

impl<G: Deref> Deref for NoStopGuard<G> {
    type Target = G::Target;

    #[inline]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for NoStopGuard<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::posix_timer::realtime_signals;
    use crate::stop::{StopAction, WatchedThread};

    #[test]
    fn a_thread_that_holds_it_is_not_stopped() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let watched = WatchedThread::take(realtime_signals().0 + 6).unwrap();
                watched.gate().set_strength(StopAction::Suspend);
                let lock = Mutex::new(1);
                let mut held = NoStopGuard::new(|| lock.lock().unwrap());
                assert!(NoStopGuard::maybe(|| lock.try_lock().ok()).is_none());
                *held += 1;
                assert!(watched.arm(0));
                assert_eq!((*held, watched.gate().faults()), (2, 0));
                drop(held);
                assert_eq!(watched.gate().faults(), 1);
            });
        });
    }
}
