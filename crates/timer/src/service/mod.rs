//! The timer service: timers with an owner, armed and cancelled from any thread.
//!
//! After *Real-Time Mach Timers* (1993), section 3, in user space: create, sleep, arm once or
//! periodically, cancel the next expiry or all, terminate, with everything torn down with its owner.
//! The actions' two contexts and the raising of workers are the issue's.
//!
//! Owns: the [`TimerService`] and its threads, its simulated twin ([`SimService`]), [`Owner`],
//! [`Timer`], [`Action`], [`ActionClass`] and [`Port`].
//! Must not: keep a global but the cached priority of a thread; take a lock or allocate when arming,
//! cancelling or firing; let one class of actions wait for another.
//!
//! What a timer costs: some 350 bytes, its handle and its place in the engine's queue included, besides
//! what its action owns (`tests/alone/service_alone.rs` measures it). Memory is kept until the
//! service ends, for the next timer of the same clock that does the same when that is set: an engine
//! has 1,048,576 places, and one that was a timer's of one clock is never another's.
//!
//! # How a timer is armed from another thread
//!
//! `timer::service::Timer` is a place in a table that engine and threads share and that never moves. One
//! state word says whether the timer is armed, runs, waits for a worker or is terminated; every change of
//! it is one exchange, so that of an expiry and a cancelling one wins. Arming writes into a cell of the
//! timer that no other thread writes, makes it the current one by that exchange, sets the timer's bit in
//! the set of changed ones, and kicks the engine only if that sleeps for too long. On x86 the two
//! exchanges of the state word are all the fences there are. The engine publishes when it wakes, looks
//! at what changed once, and sleeps: a thread that arms after that look decides by what was published.
//! No thread relies on another one to finish what it began. `remote/` holds all of this, on atomics
//! alone: `tests/interleavings/service.rs` compiles the same files with those of a model checker (loom) and runs
//! every order in which threads can meet, in a second, with the other tests.
//!
//! What an expiry comes to is decided in `dispatcher.rs`, on the engine's thread and in `sim.rs` alike. A
//! deferred action goes to its class by a bounded queue without a lock; the worker orders what waits.

mod action;
mod arm;
mod class;
mod clock;
mod dispatcher;
mod error;
mod owner;
mod port;
mod remote;
#[cfg(test)]
mod ring_tests;
mod run;
#[expect(clippy::module_inception, reason = "the service itself")]
mod service;
mod sim;
mod statistics;
mod table;
mod thread;
mod timer;

/// The atomics of [`remote`], which a model checker replaces.
mod atomic {
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

    /// A full fence. On x86-64 a locked exchange is one, at a third of what `mfence` takes, which is
    /// what the standard library's becomes there.
    #[inline(always)]
    pub(crate) fn fence(order: Ordering) {
        #[cfg(target_arch = "x86_64")]
        {
            let word = AtomicU64::new(0);
            let exchanged =
                std::hint::black_box(&word).compare_exchange(0, 1, order, Ordering::Relaxed);
            std::hint::black_box(exchanged.is_ok());
            std::sync::atomic::compiler_fence(order);
        }
        #[cfg(not(target_arch = "x86_64"))]
        std::sync::atomic::fence(order);
    }

    /// A full fence for what this thread published by a read-modify-write (an exchange, say) before,
    /// and for all that came before that. Plain stores since then it need not hold back.
    ///
    /// On x86-64 the processor needs none: such an operation is locked, and so a full fence itself;
    /// loads after it stay in their order, among themselves and before later locked operations
    /// (Intel SDM volume 3, section 10.2.3). What is left is to hold the compiler to it. On ARM an
    /// exchange that acquires and releases is no full fence: what follows may be read before it is
    /// written. There this is one.
    #[inline(always)]
    pub(crate) fn fence_behind_exchange(order: Ordering) {
        #[cfg(target_arch = "x86_64")]
        std::sync::atomic::compiler_fence(order);
        #[cfg(not(target_arch = "x86_64"))]
        std::sync::atomic::fence(order);
    }
}

pub use action::{Action, Expiration};
pub use arm::{Expiry, TimerSpec, refresh_priority};
pub use class::{ActionClass, ClassSettings, ClassStatistics};
pub use error::ServiceError;
pub use owner::{Owner, TimerSettings};
pub use port::{Message, Port};
pub use remote::{CancelScope, MOST_ROOM};
pub use service::{MOST_ENGINES, ServiceSettings, TimerService};
pub use sim::SimService;
pub use statistics::{LEAST_DISTANCE_NS, LONG_NS, ServiceStatistics};
pub use thread::{Device, EngineSettings};
pub use timer::{Status, Timer};
