//! Earliest deadline first, on one processor.
//!
//! Owns: the demand of a set, tests whether it is ever too much (processor demand, QPA), response
//! times. Deadlines count from nominal arrivals, so release jitter shortens them.
//!
//! Must not: assume that deadlines are at most the periods.

pub(crate) mod analysis_length;
pub mod demand;
pub(crate) mod demand_set;
pub mod qpa;
mod response;
pub(crate) mod steps;
pub mod suspension;
#[cfg(test)]
mod tests;

pub use response::{response_times, response_times_by, response_times_within};
