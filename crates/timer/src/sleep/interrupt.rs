//! Ending a sleep from elsewhere.

use std::fmt;
#[cfg(target_os = "linux")]
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(target_os = "linux")]
use hourglass_sys::{futex, signal};

/// Set: an interrupt was requested. The lowest bit, as `signal::latch` sets it.
const SET: u32 = 1;
/// One thread that is in the kernel, or about to be, waiting for the word to change.
const WAITER: u32 = 2;

/// A latch that ends sleeps: the word that a sleeper waits on and looks at while it spins.
///
/// From [`Interrupt::interrupt`] until [`Interrupt::clear`] every sleep on it ends at once, the one
/// in progress and those that begin later, so that an interrupt that comes too early is not lost.
/// Each [`super::Sleeper`] makes one of its own, which wakes no other. Where one request is to end
/// the sleeps of a group, or comes from a signal handler, a `static` can be given to them:
///
/// ```
/// use hourglass_timer::sleep::{Interrupt, SleeperSettings, Sleeper};
///
/// static STOP: Interrupt = Interrupt::new();
///
/// let mut sleeper = Sleeper::with(SleeperSettings::DEFAULT).interrupted_by(&STOP);
/// STOP.interrupt();
/// assert!(sleeper.sleep_us(1_000_000).interrupted);
/// STOP.clear();
/// assert!(!sleeper.sleep_us(1).interrupted);
/// ```
///
/// Every method is lock-free and async-signal-safe. It has a cache line of its own, so that spinning
/// sleepers do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Interrupt(AtomicU32);

impl Interrupt {
    /// An interrupt that is not set.
    #[must_use]
    pub const fn new() -> Interrupt {
        Interrupt(AtomicU32::new(0))
    }

    /// Ends the sleep in progress and every later one until [`Interrupt::clear`]. What this thread did
    /// before is seen by the one that wakes. A system call only if a thread waits in the kernel.
    pub fn interrupt(&self) {
        let before = self.0.fetch_or(SET, Ordering::AcqRel);
        if before >= WAITER {
            wake(&self.0);
        }
    }

    /// Lets sleeps last again; tells whether it was set.
    pub fn clear(&self) -> bool {
        self.0.fetch_and(!SET, Ordering::AcqRel) & SET != 0
    }

    /// Whether it is set.
    #[inline]
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire) & SET != 0
    }

    /// Lets a signal do what [`Interrupt::interrupt`] does, on whatever thread it is delivered. The
    /// signal has no other effect from then on; a later call for the same signal replaces this one.
    /// (A handler of one's own may as well call `interrupt` itself.)
    ///
    /// # Errors
    /// EINVAL for signals that cannot be caught (SIGKILL, SIGSTOP), that do not exist, or that the
    /// processor raises (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP).
    #[cfg(target_os = "linux")]
    pub fn interrupt_on_signal(&'static self, signal: i32) -> io::Result<()> {
        signal::latch(signal, &self.0)
    }

    pub(super) fn enter(&self) {
        self.0.fetch_add(WAITER, Ordering::AcqRel);
    }

    pub(super) fn leave(&self) {
        self.0.fetch_sub(WAITER, Ordering::AcqRel);
    }

    /// What to wait on, and its value while nothing is set; `None` if it is.
    pub(super) fn unset(&self) -> Option<(&AtomicU32, u32)> {
        let value = self.0.load(Ordering::Acquire);
        (value & SET == 0).then_some((&self.0, value))
    }
}

#[cfg(target_os = "linux")]
fn wake(word: &AtomicU32) {
    futex::wake(word, u32::MAX);
}

/// Elsewhere a waiting thread checks the word from time to time.
#[cfg(not(target_os = "linux"))]
fn wake(_word: &AtomicU32) {}

/// A handle that interrupts one sleeper; may be cloned, sent and kept beyond the sleeper's life.
///
/// From a signal handler only calls are allowed, not dropping or cloning a handle.
#[derive(Clone)]
pub struct Interrupter(InterruptRef);

#[derive(Clone)]
enum InterruptRef {
    Own(Arc<Interrupt>),
    Static(&'static Interrupt),
}

impl Interrupter {
    /// On a word of its own: for sleepers that are
    /// [`interrupted_through`](super::Sleeper::interrupted_through) it.
    #[must_use]
    pub fn new() -> Interrupter {
        Interrupter(InterruptRef::Own(Arc::default()))
    }

    pub(super) const fn of(interrupt: &'static Interrupt) -> Interrupter {
        Interrupter(InterruptRef::Static(interrupt))
    }
}

impl Default for Interrupter {
    fn default() -> Self {
        Interrupter::new()
    }
}

impl Deref for Interrupter {
    type Target = Interrupt;

    #[inline]
    fn deref(&self) -> &Interrupt {
        match &self.0 {
            InterruptRef::Own(interrupt) => interrupt,
            InterruptRef::Static(interrupt) => interrupt,
        }
    }
}

impl fmt::Debug for Interrupter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Interrupter").field(&self.is_set()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_until_cleared() {
        let word = Interrupt::new();
        assert!(!word.is_set() && !word.clear());
        word.interrupt();
        word.interrupt();
        assert!(word.is_set() && word.unset().is_none());
        assert!(word.clear() && !word.is_set());
    }

    /// Waiters of one word come and go without changing whether it is set.
    #[test]
    fn waiters_are_counted() {
        let word = Interrupt::new();
        word.enter();
        word.enter();
        let (_, before) = word.unset().unwrap();
        word.leave();
        assert_ne!(word.unset().unwrap().1, before);
        word.interrupt();
        word.leave();
        assert!(word.clear());
        assert_eq!(word.unset().unwrap().1, 0);
    }

    #[test]
    fn each_has_a_cache_line() {
        assert_eq!((size_of::<Interrupt>(), align_of::<Interrupt>()), (64, 64));
    }
}
