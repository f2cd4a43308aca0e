//! What theory says about a set of tasks: will every deadline hold, and why.
//!
//! Owns: the analyst's view of tasks, response-time bounds, demand, supply, admission, the one list of all
//! analyses ([`catalogue`]).
//! All of it are pure functions of exact integers. A time is a `u64` in whatever unit the caller
//! uses (the programs use nanoseconds); sums are checked or have 128 bits; utilisations are compared
//! as fractions.
//!
//! Must not: know Linux, read a clock or a file, start a thread, use floating point for a verdict,
//! run without a bound ([`effort`]).
//!
//! An answer is a [`Verdict`], never a bare bool. A bound comes with the fixed points that prove it,
//! and [`checker`] verifies them by substitution. In debug builds, small sets are also simulated
//! instant by instant (`twin`), and the simulation must stay within the bound.

#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]

pub mod admission;
pub mod assign;
pub mod blocking;
pub mod bounds;
pub mod bursts;
pub mod catalogue;
pub mod cbs;
pub mod chains;
pub mod checker;
pub mod corpus;
pub mod cpa;
pub mod curve;
pub mod design;
pub mod edf;
pub mod effort;
pub mod exact_fraction;
pub mod fifo;
pub mod fixed_priority;
pub mod global;
pub mod jobset;
pub mod offsets;
pub mod overheads;
pub mod partition;
mod pruning;
mod recurrence;
#[cfg(debug_assertions)]
pub(crate) mod reference;
pub mod sections;
pub mod sensitivity;
pub mod servers;
pub mod spin;
pub mod supply;
pub mod task;
pub mod thresholds;
pub mod verdict;

pub use task::{Task, TaskError, TaskSet};
pub use verdict::{
    Analysis, Point, Refusal, ResponseBound, ResponseTime, TaskResult, Verdict, Witness,
};

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
