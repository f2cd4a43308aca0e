//! Making Linux give a budget in every period.
//!
//! Owns: enforcing a reservation by what the kernel has ([`backend`]), saying why it is refused
//! ([`admission`]), what was delivered ([`supply`]), how far the reserved work is ([`progress`]),
//! keeping those who share its processor from taking it ([`smt`]), starting or adopting whom it is
//! for (`command`), whose threads may be changed at all ([`ownership`]), what a host took meanwhile ([`account`]), and putting
//! everything back whatever happens ([`guardian`], `stale_state`).
//! Must not: contain an analysis (sums and slack are `sched`'s), know what a run or a workload is,
//! print.

#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]

pub mod account;
pub mod admission;
pub mod backend;
pub mod command;
pub mod guardian;
pub mod ownership;
pub mod progress;
mod request;
pub mod session;
pub mod smt;
mod stale_state;
pub mod supply;
pub mod target;
#[cfg(test)]
mod testing;

pub use hourglass_documents::{Reservation, ReservationKind};

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
