//! What can go wrong with a run folder, and what the user can do.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use thiserror::Error;

/// A run folder that cannot be made, found out before anything is measured.
#[derive(Debug, Error)]
pub enum CreateError {
    #[error("{} exists already; name a new folder or remove it", .0.display())]
    Exists(PathBuf),
    #[error("{} cannot be made because {} does not exist; make that first", .path.display(), .parent.display())]
    ParentMissing { path: PathBuf, parent: PathBuf },
    #[error("{} cannot be made because {} is not a folder; name another place", .path.display(), .parent.display())]
    ParentNotAFolder { path: PathBuf, parent: PathBuf },
    #[error("{} cannot be written ({source}); name a place where you may write", .path.display())]
    NotWritable { path: PathBuf, source: io::Error },
    #[error("{} cannot be made: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl CreateError {
    /// Whether the machine has no room for it, whatever place is named.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, CreateError::Io { source, .. } if is_full(source))
    }
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::QuotaExceeded | io::ErrorKind::StorageFull)
}

#[derive(Debug, Error)]
pub enum WriteError {
    #[error("{}: record {row} cannot be stored: it {fault}", .path.display())]
    Record {
        path: PathBuf,
        /// Which one, from 0.
        row: u64,
        fault: RowFault,
    },
    #[error("{} is complete already; a run has one trace", .0.display())]
    TraceComplete(PathBuf),
    #[error("{} is missing; write the trace, if only an empty one, before the manifest", .0.display())]
    TraceMissing(PathBuf),
    #[error("the manifest of a run folder needs its result; fill it in")]
    NoResult,
    /// The manifest does not survive being written and read, for example for a number that is
    /// infinite.
    #[error("the manifest cannot be stored as JSON: {0}")]
    Manifest(serde_json::Error),
    /// The system or an encoder refused; most often the disk is full.
    #[error("{} cannot be written: {source}", .path.display())]
    File { path: PathBuf, source: Box<dyn Error + Send + Sync> },
    /// All of the folder is written, and something failed after that.
    #[error("{} is whole, but {doubt}: {source}", .path.display())]
    Whole {
        path: PathBuf,
        /// What does not hold, or is not known.
        doubt: &'static str,
        source: Box<dyn Error + Send + Sync>,
    },
}

impl WriteError {
    /// The folder, where all of it is written.
    #[must_use]
    pub fn whole(&self) -> Option<&Path> {
        match self {
            WriteError::Whole { path, .. } => Some(path),
            _ => None,
        }
    }

    pub fn said_of(&self, what: &str) -> String {
        match self {
            WriteError::Whole { .. } => self.to_string(),
            _ => format!("{what} was not kept: {self}"),
        }
    }

    /// A refusal of the system or of an encoder for the file at `path`.
    pub(crate) fn file(
        path: impl Into<PathBuf>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> WriteError {
        let source = match source.into().downcast::<ParquetError>() {
            // What the system said, without the encoder's word for it.
            Ok(error) => match *error {
                ParquetError::External(inner) => inner,
                other => other.into(),
            },
            Err(source) => source,
        };
        WriteError::File { path: path.into(), source }
    }
}

#[derive(Debug, Error)]
pub enum OpenError {
    #[error("{} does not exist", .0.display())]
    NotFound(PathBuf),
    #[error("{} is not a folder; name the folder that holds {}", .0.display(), crate::store::MANIFEST_FILE)]
    NotAFolder(PathBuf),
    #[error("{} is not a run folder; make one with `hourglass run -o DIR`", .0.display())]
    NotARunFolder(PathBuf),
    #[error(
        "{} is the folder of a sweep: `hourglass render {} -o FILE.pdf` draws it, `hourglass export {} --csv FILE` writes its points",
        .0.display(),
        .0.display(),
        .0.display()
    )]
    Sweep(PathBuf),
    #[error(
        "{} has runs that were put together, not one; `hourglass report {}` shows them",
        .0.display(),
        .0.display()
    )]
    Merged(PathBuf),
    #[error(
        "{} is half-written: its run goes on, or ended before {} was written; wait for its end, or measure again",
        .0.display(),
        crate::store::MANIFEST_FILE
    )]
    HalfWritten(PathBuf),
    #[error(
        "{} has the schema '{found}', and this program reads '{wanted}'; use the version of Hourglass that wrote it",
        .path.display()
    )]
    ManifestVersion {
        path: PathBuf,
        /// The schema named in it; empty if none is.
        found: String,
        wanted: &'static str,
    },
    /// The manifest is not JSON, or a key is missing or has a wrong type.
    #[error("{}:{line}:{column}: {reason}", .path.display())]
    ManifestMalformed {
        path: PathBuf,
        /// From 1; 0 where the place is not known.
        line: usize,
        /// From 1; 0 where the place is not known.
        column: usize,
        reason: String,
    },
    #[error(
        "{} is not as it was written, by its checksum; restore it, or take its key '{key}' away if you changed it yourself",
        .path.display()
    )]
    ManifestChanged { path: PathBuf, key: &'static str },
    #[error("{} holds no 'result'; it does not come from a run folder", .0.display())]
    NoResult(PathBuf),
    #[error("{} cannot be read: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// A trace, or a table of single latencies, that cannot be read.
#[derive(Debug, Error)]
pub enum TraceError {
    /// As of `watch` without `--trace`, or of threads that measured latencies alone.
    #[error(
        "{} has no switches of threads, only counts or latencies: nothing in it says when they ran; as root, \
         hourglass watch PID --trace -o DIR records that",
        .0.display()
    )]
    NoSwitches(PathBuf),
    #[error("{} is missing; restore it or measure again", .0.display())]
    Missing(PathBuf),
    #[error("{} is truncated: it does not end as a Parquet file; copy it again", .0.display())]
    Truncated(PathBuf),
    #[error("{} has no column '{column}' ({wanted})", .path.display())]
    MissingColumn { path: PathBuf, column: &'static str, wanted: &'static str },
    #[error("{}: the column '{column}' is {found} and should be {wanted}", .path.display())]
    WrongType { path: PathBuf, column: &'static str, found: String, wanted: &'static str },
    #[error(
        "{}: the column '{column}' is compressed with {codec}; write the file without compression",
        .path.display()
    )]
    Compressed { path: PathBuf, column: &'static str, codec: String },
    #[error("{}: row {row} {fault}", .path.display())]
    Row {
        path: PathBuf,
        /// Which one, from 0.
        row: u64,
        fault: RowFault,
    },
    #[error("{} is damaged: {reason}; restore it or measure again", .path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("{} cannot be read: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RowFault {
    /// The thread's number is below 0 or above `i32::MAX`.
    #[error("has a thread number that is not from 0 to 2147483647")]
    Thread,
    /// The CPU's number is below 0 or above `i32::MAX`.
    #[error("has a CPU number that is not from 0 to 2147483647")]
    Cpu,
    /// It ends before it starts, in nanoseconds or in ticks.
    #[error("ends before it starts")]
    Reversed,
    /// It starts before the record above it, in nanoseconds or in ticks.
    #[error("starts before the one above it; sort the trace by start")]
    OutOfOrder,
    #[error("belongs to an earlier thread than the one above it; sort the rows by thread")]
    ThreadOrder,
    #[error("happened before the one above it; sort the rows by ticks")]
    EventOrder,
}

#[derive(Debug, Error)]
pub enum LatencyError {
    #[error("{} is missing although the run recorded latencies; restore it or measure again", .0.display())]
    Missing(PathBuf),
    /// It is not an interval log, or a histogram in it cannot be decoded.
    #[error("{} is damaged: {reason}; restore it or measure again", .path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("{} cannot be read: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Samples(#[from] TraceError),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full disk is reported in the system's words, whichever writer met it.
    #[test]
    fn the_encoder_does_not_stand_before_the_system() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let wanted = format!("a/trace.parquet cannot be written: {}", full());
        let of_encoder = ParquetError::External(Box::new(full()));
        assert_eq!(WriteError::file("a/trace.parquet", of_encoder).to_string(), wanted);
        assert_eq!(WriteError::file("a/trace.parquet", full()).to_string(), wanted);
        let other = WriteError::file("a", ParquetError::General("no".to_owned())).to_string();
        assert!(other.ends_with("no"), "{other}");
    }
}
