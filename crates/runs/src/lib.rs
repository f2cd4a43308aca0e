//! Run folders: written ([`store`]), read back ([`mod@open_run`], [`run_contents`]), compared ([`compare`]), merged over nodes
//! ([`fleet`]).
//!
//! Owns: what follows from a kept run, also for one that has just ended: causes of its gaps ([`causes`]), statements about
//! its threads ([`inferences`]), whether its counter kept its rate ([`drift`]). It needs files only: a folder from any
//! machine is enough.
//! Must not: measure, read a clock, draw.

#![forbid(unsafe_code)]

pub mod causes;
pub mod compare;
pub mod drift;
pub mod fleet;
pub mod inferences;
pub mod late_jobs;
mod late_wake_ups;
pub mod open_run;
pub mod run_contents;
pub mod store;
pub mod task_model;

pub use causes::Explanation;
pub use open_run::{OpenRun, open_run};
pub use run_contents::{RunContents, RunContentsError};

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
