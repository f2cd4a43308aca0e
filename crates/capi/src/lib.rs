//! Hourglass for C and C++.
//!
//! Owns: the functions behind `include/hourglass.h`, the handles by which C holds things of ours, the
//! border that no panic crosses. Must not: add behaviour to what it shows.
//!
//! Types are named as in the header, so that `tests/abi.rs` can compare both without a table between
//! them. What a function does, from where it may be called, and who frees what is said in the header.

#![allow(non_camel_case_types)]
#![expect(
    clippy::missing_safety_doc,
    reason = "every function here asks for what the header says of its pointers"
)]

pub mod clock;
pub mod error;
pub mod fault;
pub mod hardware;
pub mod interrupt;
pub mod job;
pub mod page;
pub mod periodic;
mod pointers;
pub mod progress;
pub mod recorder;
pub mod reserve;
pub mod scheduling;
pub mod service;
pub mod sleep;
pub mod sleeper;
mod table;
pub mod threads;
pub mod timer;
pub mod version;
pub mod watch;
