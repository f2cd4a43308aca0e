//! Time as a value: spans and instants in exact signed nanoseconds, on clocks that do not mix.
//!
//! Owns: [`Span`], its arithmetic, its text form (`3m`, `1.5s`, `1020ms`, `87.0us`); [`Instant`],
//! a point in time tagged with its clock ([`ClockTag`]); [`Bounded`], a time known up to an error;
//! conversions to and from other libraries' times: [`TimeSpec`], `core::time::Duration`.
//!
//! Must not: read a clock, touch the operating system, panic, wrap or round unasked, allocate, use
//! floating point.
//!
//! Everything else of Hourglass is built on this crate; without features it depends on nothing.
//!
//! # Features
//! None is on by default, and without `std` the crate is `no_std`.
//!
//! | feature | gives |
//! |---|---|
//! | `std` | `Instant<Realtime>` from and to `std::time::SystemTime` |
//! | `jiff` | [`Span`] from and to `jiff::SignedDuration`, `Instant<Realtime>` from and to `jiff::Timestamp` |

#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]

#[cfg(any(test, feature = "std"))]
extern crate std;

mod bounded;
mod clock_tag;
mod conversion_error;
mod exact;
mod instant;
mod interop;
mod span;
mod time_spec;

pub use bounded::{Bounded, Shift};
pub use clock_tag::{
    Boottime, ClockTag, Counter, Monotonic, MonotonicRaw, ProcessCpu, Realtime, Sim, Tai, ThreadCpu,
};
pub use conversion_error::{ConversionError, ConversionErrorKind};
pub use instant::Instant;
pub use span::{ParseSpanError, ParseSpanErrorKind, Span};
pub use time_spec::TimeSpec;

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
