//! When things happen: sleeping until a time, and timers.
//!
//! Owns: nothing yet; the queue and the sleeper come first.
//! Must not: read hardware but through `clock`; print.

#![forbid(unsafe_code)]
