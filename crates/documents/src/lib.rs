//! The documents that scripts read, and the nouns of which they are made: policies, CPU sets, reservations,
//! execution times.
//!
//! Owns: the shape and the text form of these things, what a mistyped one may have meant, seeded random numbers.
//! Must not: touch the operating system, read a clock, hold an algorithm that judges anything.

#![forbid(unsafe_code)]

pub mod batch;
pub mod cache_cost;
pub mod cause;
pub mod check;
pub mod clocks;
pub mod concurrent_threads;
pub mod cpus;
pub mod diff;
pub mod doctor;
pub mod document;
pub mod execution_time;
pub mod expected_results;
pub mod explanation;
pub mod histogram_steps;
pub mod host;
pub mod host_limits;
pub mod inference;
pub mod kernel;
pub mod late_jobs;
pub mod live;
pub mod load;
pub mod manifest;
pub mod merged;
mod named_enum;
pub mod occupants;
pub mod paper;
pub mod policy;
pub mod predict;
pub mod premise;
pub mod random;
pub mod reservation;
pub mod reservations;
pub mod reserve;
pub mod reserve_clean;
pub mod simulation;
pub mod sites;
pub mod spelling;
pub mod stack;
pub mod sweep;
pub mod task_model;
mod thread_name;
pub mod tuning;
pub mod wakeup;
pub mod warning;
pub mod watched;

pub use cause::Cause;
pub use cpus::CpuSet;
pub use execution_time::{ExecutionTime, Sampler};
pub use inference::{Inference, InferenceBasis};
pub use policy::Policy;
pub use reservation::{Reservation, ReservationKind};
pub use thread_name::thread_name;

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
