//! Making Linux give a budget in every period.
//!
//! Owns: enforcing a reservation for the calling thread; today by the kernel's deadline class.
//! Must not: contain an analysis, know what a run or a workload is.

#![forbid(unsafe_code)]

pub mod deadline;
