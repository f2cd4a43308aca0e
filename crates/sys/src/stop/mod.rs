//! Stopping a thread at a time: by a timer of its own, whose signal makes it stand at a gate.
//!
//! Owns: the signal, its handler, the timer, and each thread's place in them; the words of the gate
//! ([`Gate`]) and the steps on both of its sides ([`Offender`], and [`Gate`]'s own methods), which run
//! on a simulated [`Machine`] as well. Must not: know why a thread is stopped, or decide when it goes on.
//!
//! The timer is armed by the thread itself, so that its interrupt comes on the thread's own CPU. The
//! handler uses atomics, the clock (`clock_gettime`, which is async-signal-safe), `timer_settime` and
//! futexes, and leaves errno as it was. It runs with all signals blocked, on the alternate stack where
//! the thread has one, and system calls that the kernel can restart are restarted.

mod gate;
mod machine;
mod native;
mod offender;
mod words;

pub use gate::{Answer, Expected, Gate, Mail, NEVER, OVERDUE_NS, Strength};
pub use machine::Machine;
pub use native::{Kernel, SeatError, Stops, WatchedThread, enter, has_ended, leave};
pub use offender::{Disarmed, Offender};
pub use words::{Native, Word, Words};

#[cfg(test)]
mod tests;
