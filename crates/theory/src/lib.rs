//! Theory put to use: sets of tasks analysed, simulated, run and swept over.
//!
//! Owns: which analyses answer a file of tasks, what to reserve for it, and the documents that come of it. `sched` has the
//! theory itself, `tasks` the files.
//! Must not: parse arguments, draw, contain an analysis.

#![forbid(unsafe_code)]

pub mod check;
pub mod examples;
pub mod predict;
#[cfg(test)]
mod random;
pub mod reservations;
pub mod simulate;
pub mod sweep;

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
