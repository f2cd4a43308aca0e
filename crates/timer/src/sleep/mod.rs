//! Precise sleep: absolute deadlines, a kernel wait, a learnt margin, a low-power spin.
//!
//! Owns: the [`Sleeper`] and what it learns, the ways to end a sleep early ([`Interrupt`]), what
//! sleeping is made of ([`Mechanism`]: [`KernelSleep`], or [`sim`]ulated), loops at a [`Rate`], and
//! futures that a [`Driver`] wakes.
//! Must not: keep a global, allocate while a thread sleeps (futures do when they are first polled).
//!
//! After the HighPerTimer thesis (2012), chapter 5, whose sleep is kept as a [`SleepPolicy`] for
//! comparison. What is different: the margin is learnt where the thesis takes 1/HZ, the kernel wait
//! is absolute, an interrupt ends it in both phases and is not lost when it comes early, and each
//! sleep tells what happened.
//!
//! # How a sleep goes
//!
//! `timer::sleep::Sleeper` gets near the deadline in the kernel and spins the rest. `kernel_wait.rs`: is
//! the deadline past (then the kernel is not entered), is an interrupt latched, how long is the margin;
//! then an absolute futex wait on the sleeper's own word, without timer slack. `spin.rs`: clock and
//! word are looked at in turn until a reading of `now_ordered` is at the deadline. What is to be learnt,
//! accounted and measured is done before that, or at the beginning of the next sleep; the way out is
//! rehearsed, and runs in the caller's own code.
//!
//! The margin (`margin.rs`, `overhead.rs`) is the smaller of a decaying quantile of the kernel's
//! overheads, relative to their recent mean, and what the CPU budget affords by the same histogram. The
//! budget is of spinning, in shares of what the kernel's wait takes here; `tests/budget.rs` holds it beside
//! peers on simulated machines of many kinds. Both published ways to go wrong are tests: a maximum that load inflates, an estimate above the time slept
//! that is never corrected. Everything a sleeper does to its machine goes through `Mechanism`; `sim.rs` is
//! one on virtual time, on which hours are slept in milliseconds; `portable.rs` is that of macOS (`mach_wait_until`)
//! and Windows (waitable timers), which learn their margins alike. Futures and the thesis' probe are Linux's only.

mod convenience;
#[cfg(target_os = "linux")]
mod driver;
mod grid;
mod interrupt;
#[cfg(target_os = "linux")]
mod kernel;
mod kernel_wait;
mod margin;
mod mechanism;
mod outcome;
mod overhead;
#[cfg(not(target_os = "linux"))]
mod portable;
mod rate;
mod settings;
pub mod sim;
mod sleeper;
mod spin;
#[cfg(target_os = "linux")]
mod tick_probe;
mod utc_wait;

#[cfg(test)]
pub(crate) mod tests;

#[cfg(target_os = "linux")]
pub use driver::{Driver, Interval, SleepUntil};
pub use grid::{MissedTicks, PeriodError, Tick};
pub use interrupt::{Interrupt, Interrupter};
#[cfg(target_os = "linux")]
pub use kernel::KernelSleep;
pub use mechanism::{Mechanism, SchedClass, WakeReason};
pub use outcome::{Delay, SleepOutcome};
#[cfg(not(target_os = "linux"))]
pub use portable::KernelSleep;
pub use rate::{Rate, RateTick};
pub use settings::{Budget, SleepEnd, SleepPolicy, SleeperSettings};
pub use sleeper::Sleeper;
#[cfg(target_os = "linux")]
pub use tick_probe::HzProbe;
pub use utc_wait::{UtcWait, UtcWaitEnd};
