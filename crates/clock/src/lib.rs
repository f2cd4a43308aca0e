//! Where a program is in time: counters, and their calibration with a bound on its error.
//!
//! Owns: everything that can be read ([`source`]), the choice among it and the evidence for the
//! choice ([`choice`]), the conversion between ticks and nanoseconds ([`rate`]), pairs of counter
//! and operating-system clock ([`calibration`]), the clock that bounds its own error
//! ([`timekeeping`]).
//! Must not: arm anything, wait (but where a measurement or the helper thread says that it does),
//! keep a global that a test can't replace.

#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]

#[cfg(target_os = "linux")]
pub mod calibration;
#[cfg(target_os = "linux")]
pub mod choice;
#[cfg(target_os = "linux")]
pub mod counter;
mod instant;
pub mod process;
pub mod rate;
pub mod source;
pub mod timekeeping;
pub mod trust;
#[cfg(target_os = "linux")]
pub mod utc;

#[cfg(target_os = "linux")]
pub use calibration::{Calibration, Pair};
#[cfg(target_os = "linux")]
pub use choice::{Choice, CounterKind, Selection, SelectionPolicy};
#[cfg(target_os = "linux")]
pub use counter::{Counter, OsMonotonic};
#[cfg(target_os = "linux")]
pub use hourglass_sys::counter::CounterReading;
pub use instant::Instant;
pub use rate::Rate;
pub use source::{ClockSource, SourceName};
pub use timekeeping::Clock;
pub use trust::TrustReport;

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
pub use counter::Cntvct;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use counter::Tsc;

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
