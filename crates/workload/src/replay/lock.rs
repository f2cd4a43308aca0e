//! Locks of resources, by the protocol of each.
//!
//! Owns: taking and giving up, as far as that needs no waiting; waiting is a call that the caller
//! repeats. Must not: change priorities (the execution does).

use std::sync::atomic::{AtomicU32, Ordering};

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::futex;
use hourglass_sys::wait::nanosleep_until;
use hourglass_tasks::Protocol;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and a thread may wait in the kernel.
const CONTENDED: u32 = 2;

#[derive(Debug)]
pub(super) struct Lock {
    pub(super) protocol: Protocol,
    /// The priority of its holder, for the protocols that raise it: also that of threads that wait
    /// for a spin lock.
    pub(super) ceiling: Option<u8>,
    word: AtomicU32,
    /// Of a spin lock: the next ticket. `word` has the one that is served.
    tickets: AtomicU32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockAttempt {
    Yes,
    /// Call [`Lock::wait`] until it says so.
    NotYet,
    /// Poll [`Lock::is_served`] with this ticket.
    Ticket(u32),
}

impl Lock {
    pub(super) fn new(protocol: Protocol, ceiling: Option<u8>) -> Lock {
        Lock { protocol, ceiling, word: AtomicU32::new(FREE), tickets: AtomicU32::new(0) }
    }

    /// Takes the lock if it is free. `me` is the number of the calling thread.
    pub(super) fn take(&self, me: u32) -> LockAttempt {
        let exchange =
            |wanted| self.word.compare_exchange(FREE, wanted, Ordering::Acquire, Ordering::Relaxed);
        let taken = match self.protocol {
            Protocol::Spin => {
                let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
                return if self.is_served(ticket) {
                    LockAttempt::Yes
                } else {
                    LockAttempt::Ticket(ticket)
                };
            }
            Protocol::Inheritance => exchange(me),
            Protocol::Ceiling | Protocol::Plain => exchange(HELD),
        };
        if taken.is_ok() { LockAttempt::Yes } else { LockAttempt::NotYet }
    }

    pub(super) fn is_served(&self, ticket: u32) -> bool {
        self.word.load(Ordering::Acquire) == ticket
    }

    /// Blocks until the caller may hold the lock or `latest_ns` (`CLOCK_MONOTONIC`) has come.
    /// Whether it holds it now.
    pub(super) fn wait(&self, latest_ns: u64) -> bool {
        match self.protocol {
            Protocol::Inheritance => self.wait_inheriting(latest_ns),
            _ => self.wait_plain(latest_ns),
        }
    }

    /// The mutex of Drepper, *Futexes Are Tricky*, section 5.
    fn wait_plain(&self, latest_ns: u64) -> bool {
        if self.word.swap(CONTENDED, Ordering::Acquire) == FREE {
            return true;
        }
        // However the wait ends, the word is looked at again.
        let _ = futex::wait_until(&self.word, CONTENDED, latest_ns);
        self.word.swap(CONTENDED, Ordering::Acquire) == FREE
    }

    fn wait_inheriting(&self, latest_ns: u64) -> bool {
        // The kernel takes this deadline by the wall clock. It matters only to threads that wait
        // for each other without end.
        let left = latest_ns.saturating_sub(now_ns(ClockId::Monotonic));
        let deadline_ns = now_ns(ClockId::Realtime).saturating_add(left);
        match futex::lock_inheriting(&self.word, deadline_ns) {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::Deadlock => {
                // No thread in the ring can go on; a signal or the end of the run ends it.
                let _ = nanosleep_until(latest_ns);
                false
            }
            Err(_) => false,
        }
    }

    /// Gives the lock up. `me` holds it.
    pub(super) fn release(&self, me: u32) {
        match self.protocol {
            Protocol::Spin => {
                self.word.fetch_add(1, Ordering::Release);
            }
            Protocol::Inheritance => {
                let given =
                    self.word.compare_exchange(me, FREE, Ordering::Release, Ordering::Relaxed);
                if given.is_err() {
                    // Refused only to a thread that does not hold it.
                    let _ = futex::unlock_inheriting(&self.word);
                }
            }
            Protocol::Ceiling | Protocol::Plain => {
                if self.word.swap(FREE, Ordering::Release) == CONTENDED {
                    futex::wake(&self.word, 1);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hourglass_sys::thread;

    use super::*;

    /// However many threads come, one is inside at a time, and each comes in as often as it wants.
    #[test]
    fn one_at_a_time_under_every_protocol() {
        const TURNS: u32 = 2_000;
        let protocols = [Protocol::Plain, Protocol::Ceiling, Protocol::Inheritance, Protocol::Spin];
        for protocol in protocols {
            let lock = Lock::new(protocol, None);
            let (inside, total) = (AtomicU32::new(0), AtomicU32::new(0));
            let visit = || {
                let me = thread::id();
                for _ in 0..TURNS {
                    match lock.take(me) {
                        LockAttempt::Yes => {}
                        LockAttempt::NotYet => while !lock.wait(u64::MAX) {},
                        LockAttempt::Ticket(ticket) => {
                            while !lock.is_served(ticket) {
                                thread::yield_now();
                            }
                        }
                    }
                    assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "{protocol:?}");
                    total.fetch_add(1, Ordering::Relaxed);
                    inside.fetch_sub(1, Ordering::Relaxed);
                    lock.release(me);
                }
            };
            std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(visit))));
            assert_eq!(total.into_inner(), 3 * TURNS, "{protocol:?}");
        }
    }

    #[test]
    fn a_wait_ends_by_its_deadline() {
        for protocol in [Protocol::Plain, Protocol::Inheritance] {
            let lock = Lock::new(protocol, None);
            assert_eq!(lock.take(thread::id()), LockAttempt::Yes);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    assert_eq!(lock.take(thread::id()), LockAttempt::NotYet);
                    let latest = now_ns(ClockId::Monotonic) + 5_000_000;
                    assert!(!lock.wait(latest), "{protocol:?}");
                    assert!(now_ns(ClockId::Monotonic) >= latest, "{protocol:?}");
                });
            });
        }
    }
}
