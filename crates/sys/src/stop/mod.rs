//! Stopping a thread at a time: by a timer of its own, whose signal makes it stand at a gate.
//!
//! Owns: the signal, its handler, the timer, and each thread's place in them; the words of the gate
//! ([`StopGate`]) and the steps on both of its sides ([`LateThread`], and [`StopGate`]'s own methods), which run
//! on a simulated [`GatePlatform`] as well. Must not: know why a thread is stopped, or decide when it goes on.
//!
//! The timer is armed by the thread itself, so that its interrupt comes on the thread's own CPU. The
//! handler uses atomics, the clock (`clock_gettime`, which is async-signal-safe), `timer_settime` and
//! futexes, and leaves errno as it was. It runs with all signals blocked, on the alternate stack where
//! the thread has one, and system calls that the kernel can restart are restarted.

mod atomics;
mod gate;
mod late_thread;
mod machine;
mod native;

pub use atomics::{AtomicFamily, AtomicWord, Native};
pub use gate::{
    ExpectedDeadline, FaultMessage, FaultResponse, NEVER, OVERDUE_NS, StopAction, StopGate,
};
pub use late_thread::{DisarmOutcome, LateThread};
pub use machine::GatePlatform;
pub use native::{NativePlatform, SeatError, StopHandle, WatchedThread, enter, has_ended, leave};

#[cfg(test)]
mod tests;
