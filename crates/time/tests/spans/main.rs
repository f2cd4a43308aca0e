//! Spans and instants: arithmetic, conversions, text.
//!
//! One program for all of it, which takes less time to link than four.

mod arithmetic;
mod common;
mod conversions;
mod interop;
mod text;
