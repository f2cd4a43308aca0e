//! When things happen: sleeping until a time, and timers.
//!
//! Owns: timers and timeouts in order of expiry ([`queue`]).
//! Must not: read hardware but through `clock`; print.

#![forbid(unsafe_code)]

pub mod queue;
