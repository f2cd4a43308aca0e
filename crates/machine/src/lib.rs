//! The machine: facts about it, what of them spoils real-time work, and the line that mends it.
//!
//! Owns: reading the facts ([`facts`]), advice before a run ([`advice`]), why the kernel refused something and what
//! grants it ([`refusal`]), a diagnosis ([`doctor`]), what can tell the time ([`clocks`]) and tick
//! ([`clock_devices`]), where threads may run
//! ([`cpus`]).
//! Must not: change anything, run an experiment, draw, print, or parse arguments.

#![forbid(unsafe_code)]

pub mod advice;
pub mod clock_devices;
pub mod clocks;
pub mod cpus;
pub mod doctor;
pub mod facts;
pub mod idle_latency;
pub mod refusal;

pub use cpus::{permitted_cpus, usual_cpus};
pub use facts::HostReader;
pub use refusal::Refusal;

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
