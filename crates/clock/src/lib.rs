//! Where a program is in time: counters, and their calibration with a bound on its error.
//!
//! Owns: the choice of a counter and the reason for it ([`choice`]), the conversion between
//! ticks and nanoseconds ([`rate`]), pairs of counter and operating-system clock
//! ([`calibration`]).
//! Must not: arm anything, wait, keep a global that a test can't replace.

#![forbid(unsafe_code)]

pub mod calibration;
pub mod choice;
pub mod counter;
pub mod rate;

pub use calibration::{Calibration, Pair};
pub use choice::{Choice, CounterKind};
pub use counter::{Counter, OsMonotonic};
pub use hourglass_sys::counter::Reading;
pub use rate::Rate;

#[cfg(target_arch = "aarch64")]
pub use counter::Cntvct;
#[cfg(target_arch = "x86_64")]
pub use counter::Tsc;
