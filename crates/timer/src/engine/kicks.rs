//! From other threads: when the engine wakes, and kicks that reach whatever device it has.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};

use crate::event::{DeviceId, Kick, Kicker};

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

/// The kicks of every device that the engine has had, and which one it has now.
///
/// Grows when the engine takes a device that it never had, in the engine's thread; kicking only
/// walks along it, so that a signal handler may.
pub(super) struct DeviceKicks {
    first: OnceLock<Box<Link>>,
    /// The place of the device in use, from 1; 0 without one.
    current: AtomicUsize,
}

struct Link {
    device: DeviceId,
    kick: Kick,
    next: OnceLock<Box<Link>>,
}

impl DeviceKicks {
    pub(super) fn new() -> Arc<DeviceKicks> {
        Arc::new(DeviceKicks { first: OnceLock::new(), current: AtomicUsize::new(0) })
    }

    /// From now on kicks go to this device. The engine must look at what it was handed afterwards:
    /// a kick may still have gone to the one before.
    pub(super) fn switch_to(&self, device: DeviceId, kick: &Kick) {
        let mut place = 1;
        let mut link = &self.first;
        while let Some(found) = link.get() {
            if found.device == device {
                break;
            }
            link = &found.next;
            place += 1;
        }
        link.get_or_init(|| Box::new(Link { device, kick: kick.clone(), next: OnceLock::new() }));
        self.current.store(place, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }
}

impl Kicker for DeviceKicks {
    fn kick(&self) {
        fence(Ordering::SeqCst);
        let place = self.current.load(Ordering::SeqCst);
        let mut link = &self.first;
        for _ in 1..place {
            let Some(found) = link.get() else { return };
            link = &found.next;
        }
        if place > 0
            && let Some(found) = link.get()
        {
            found.kick.kick();
        }
    }
}
