//! Formats of others, so that their plots and parsers read our runs.
//!
//! Owns: how a run looks in each format. Must not: read a folder, choose a file's name, or
//! compute what a format does not ask for. Each writer says what its format cannot hold.

mod csv;
mod cyclictest;
mod hdr;
pub(crate) mod kernel;
pub(crate) mod moment;
mod perfetto;
mod protobuf;

pub use csv::csv;
pub use cyclictest::{cyclictest, cyclictest_histogram};
pub use hdr::{HdrError, hdr};
pub use perfetto::perfetto;
