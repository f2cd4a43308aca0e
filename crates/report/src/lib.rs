//! Drawing results: the paper's record lines, the summary on a terminal, execution traces as SVG,
//! a report as one page, and the formats of others.
//!
//! Owns: how a result looks. Everything is written into a `String` or a [`std::io::Write`].
//! Must not: compute a result (a percentile, a switch, a cause: those come from `trace` and the
//! run document), read a file, fetch anything from a network, ask what terminal it is on.
//!
//! Text that comes from outside (workloads, host names, titles) is never trusted: control
//! characters do not reach a terminal, and markup does not reach a picture.

#![forbid(unsafe_code)]

mod clean;
pub mod export;
pub mod html;
mod occupants;
mod run;
pub mod svg;
pub mod text;
mod units;

pub use run::{LatencyCounts, RunView};
pub use units::rounded;

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
