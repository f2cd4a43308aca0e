//! Precise sleep: absolute deadlines, a kernel wait, a learnt margin, a low-power spin.
//!
//! Owns: the [`Sleeper`] and what it learns, the ways to end a sleep early ([`Interrupt`]), what
//! sleeping is made of ([`Mechanism`]: [`Kernel`], or [`sim`]ulated), loops at a [`Rate`], and
//! futures that a [`Driver`] wakes.
//! Must not: keep a global, allocate while a thread sleeps (futures do when they are first polled).
//!
//! After the HighPerTimer thesis (2012), chapter 5, whose sleep is kept as a [`Policy`] for
//! comparison. What is different: the margin is learnt where the thesis takes 1/HZ, the kernel wait
//! is absolute, an interrupt ends it in both phases and is not lost when it comes early, and each
//! sleep tells what happened.

mod approach;
mod driver;
mod finish;
mod forms;
mod future;
mod grid;
mod interrupt;
mod kernel;
mod margin;
mod mechanism;
mod outcome;
mod overhead;
mod rate;
mod settings;
pub mod sim;
mod sleeper;
mod thesis;

#[cfg(test)]
pub(crate) mod tests;

pub use driver::Driver;
pub use forms::SleepToThis;
pub use future::{Interval, SleepUntil};
pub use grid::{MissedTicks, PeriodError, Tick};
pub use interrupt::{Interrupt, Interrupter};
pub use kernel::Kernel;
pub use mechanism::{Class, Mechanism, Woken};
pub use outcome::{Delay, Slept};
pub use rate::{Beat, Rate};
pub use settings::{Budget, EndsWhen, Policy, Settings};
pub use sleeper::Sleeper;
pub use thesis::HzProbe;
