//! Spans of time in exact signed nanoseconds, and how people write them.
//!
//! Owns: [`Span`], its arithmetic, its text form (`3m`, `1.5s`, `1020ms`, `87.0us`).
//! Must not: read a clock, touch the operating system, use floating point, panic, allocate.
//!
//! Everything else of Hourglass is built on this crate; it depends on nothing.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod parse;
mod span;

pub use parse::{ParseSpanError, ParseSpanErrorKind};
pub use span::Span;
