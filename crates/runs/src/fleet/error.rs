//! Why folders cannot be put together, and what helps.

use std::io;
use std::path::PathBuf;

use crate::store::merged::MergedError;
use crate::store::{CreateError, LatencyError, OpenError, TraceError, WriteError};
use thiserror::Error;

/// Folders that cannot be put together. Nothing was written.
#[derive(Debug, Error)]
pub enum FleetError {
    /// A folder that was to hold runs cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// A folder without runs.
    #[error("{}: no run is there; name folders that hourglass run, noise or latency wrote with -o", .0.display())]
    NoRuns(PathBuf),
    /// A part of an experiment beside runs.
    #[error("{} is of hourglass sweep, and the others are measured; merge folders of one kind", .0.display())]
    Sweep(PathBuf),
    /// Several folders that cannot be read.
    #[error("{first}; {more} more {} not whole: {named}", if *more == 1 { "is" } else { "are" })]
    Several {
        /// What is wrong with the first.
        first: String,
        /// How many there are besides.
        more: usize,
        /// The first of those.
        named: String,
    },
    /// A run that was not measured.
    #[error("{} is {what}; leave it out", .path.display())]
    Kind { path: PathBuf, what: &'static str },
    /// Runs that did not measure the same.
    #[error(
        "{} measured {there}, {} {here}; merge runs that measured the same", .path.display(), .other.display()
    )]
    Another {
        path: PathBuf,
        there: String,
        other: PathBuf,
        /// What was measured in that one.
        here: String,
    },
    /// A run twice.
    #[error(
        "the run {run} of {node} is there twice, in {} and {}; leave one out", .path.display(), .other.display()
    )]
    Double { run: String, node: String, path: PathBuf, other: PathBuf },
    /// Latencies that are not those which the run counted.
    #[error(
        "{}: latency.hlog has {found} wake-ups of thread {thread}, of {counted} that were measured; copy the folder again",
        .path.display()
    )]
    Latencies {
        path: PathBuf,
        thread: u32,
        /// Wake-ups in the log.
        found: u64,
        /// Wake-ups that were measured.
        counted: u64,
    },
    /// A histogram with other steps.
    #[error(
        "{}: the histogram of thread {thread} has {digits} digits from {low_ns} ns on; those with at least 3 \
         from 1 ns on can be added exactly",
        .path.display()
    )]
    Steps {
        path: PathBuf,
        thread: u32,
        digits: u8,
        /// Its least value.
        low_ns: u64,
    },
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its trace or the kernel's events.
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Latency(#[from] LatencyError),
    /// A folder of runs put together.
    #[error(transparent)]
    Merged(#[from] MergedError),
    /// The new folder cannot be made.
    #[error("-o: {0}")]
    Create(#[from] CreateError),
    /// The new folder cannot be written.
    #[error("-o: {0}; free some space there, or name another place")]
    Write(#[from] WriteError),
}

impl FleetError {
    /// Whether the machine is at fault, and not what was asked for.
    #[must_use]
    pub fn is_of_machine(&self) -> bool {
        matches!(self, FleetError::Write(_))
    }
}
