//! Why folders cannot be put together, and what helps.

use std::io;
use std::path::PathBuf;

use crate::store::merged::MergedError;
use crate::store::{CreateError, LatencyError, OpenError, TraceError, WriteError};
use thiserror::Error;

/// Folders that cannot be put together. Nothing was written.
#[derive(Debug, Error)]
pub enum FleetError {
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{}: no run is there; name folders that hourglass run, noise or latency wrote with -o", .0.display())]
    NoRuns(PathBuf),
    #[error("{} is of hourglass sweep, and the others are measured; merge folders of one kind", .0.display())]
    Sweep(PathBuf),
    #[error("{first}; {more} more {} not whole: {named}", if *more == 1 { "is" } else { "are" })]
    Several { first: String, more: usize, named: String },
    #[error("{} is {what}; leave it out", .path.display())]
    Kind { path: PathBuf, what: &'static str },
    #[error(
        "{} measured {there}, {} {here}; merge runs of one measurement", .path.display(), .other.display()
    )]
    Another { path: PathBuf, there: String, other: PathBuf, here: String },
    #[error(
        "the run {run} of {node} is there twice, in {} and {}; leave one out", .path.display(), .other.display()
    )]
    Double { run: String, node: String, path: PathBuf, other: PathBuf },
    #[error(
        "{}: latency.hlog has {found} wake-ups of thread {thread}, of {counted} that were measured; copy the folder again",
        .path.display()
    )]
    Latencies { path: PathBuf, thread: u32, found: u64, counted: u64 },
    #[error(
        "{}: the histogram of thread {thread} has {digits} digits from {low_ns} ns on; those with at least 3 \
         from 1 ns on can be added exactly",
        .path.display()
    )]
    Steps { path: PathBuf, thread: u32, digits: u8, low_ns: u64 },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Latency(#[from] LatencyError),
    #[error(transparent)]
    Merged(#[from] MergedError),
    #[error("-o: {0}")]
    Create(#[from] CreateError),
    #[error("-o: {0}; free some space there, or name another place")]
    Write(#[from] WriteError),
}

impl FleetError {
    /// Whether the machine is at fault, and not what was asked for.
    pub fn is_of_machine(&self) -> bool {
        matches!(self, FleetError::Write(_))
    }
}
