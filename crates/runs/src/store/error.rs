//! What can go wrong with a run folder, and what the user can do.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use parquet::errors::ParquetError;
use thiserror::Error;

/// A run folder that cannot be made, found out before anything is measured.
#[derive(Debug, Error)]
pub enum CreateError {
    /// Something with this name is there already.
    #[error("{} exists already; name a new folder or remove it", .0.display())]
    Exists(PathBuf),
    /// The folder that is to hold it does not exist.
    #[error("{} cannot be made because {} does not exist; make that first", .path.display(), .parent.display())]
    ParentMissing { path: PathBuf, parent: PathBuf },
    /// What is to hold it is no folder.
    #[error("{} cannot be made because {} is not a folder; name another place", .path.display(), .parent.display())]
    ParentNotAFolder {
        path: PathBuf,
        /// What is no folder.
        parent: PathBuf,
    },
    /// It may not be written there.
    #[error("{} cannot be written ({source}); name a place where you may write", .path.display())]
    NotWritable {
        /// The run folder, or the file in it.
        path: PathBuf,
        source: io::Error,
    },
    /// Any other refusal of the system.
    #[error("{} cannot be made: {source}", .path.display())]
    Io {
        /// The run folder, or the file in it.
        path: PathBuf,
        source: io::Error,
    },
}

/// A result that cannot be stored.
#[derive(Debug, Error)]
pub enum WriteError {
    /// A record that no reader would accept.
    #[error("{}: record {row} cannot be stored: it {fault}", .path.display())]
    Record {
        path: PathBuf,
        /// Which one, from 0.
        row: u64,
        /// What is wrong with it.
        fault: RowFault,
    },
    /// The trace was finished before.
    #[error("{} is complete already; a run has one trace", .0.display())]
    TraceComplete(PathBuf),
    /// The folder is to be finished without a trace.
    #[error("{} is missing; write the trace, if only an empty one, before the manifest", .0.display())]
    TraceMissing(PathBuf),
    /// The manifest carries no result.
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
    /// What to say of `what` that was to be kept.
    #[must_use]
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

/// A path that cannot be read as a run folder.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("{} does not exist", .0.display())]
    NotFound(PathBuf),
    #[error("{} is not a folder; name the folder that holds {}", .0.display(), crate::store::MANIFEST_FILE)]
    NotAFolder(PathBuf),
    /// A folder, but nothing of a run is in it.
    #[error("{} is not a run folder; make one with `hourglass run -o DIR`", .0.display())]
    NotARunFolder(PathBuf),
    /// Runs that `hourglass merge` put together.
    #[error(
        "{} has runs that were put together, not one; `hourglass report {}` shows them",
        .0.display(),
        .0.display()
    )]
    Merged(PathBuf),
    /// The run goes on, or ended before its manifest was written.
    #[error(
        "{} is half-written: its run goes on, or ended before {} was written; wait for its end, or measure again",
        .0.display(),
        crate::store::MANIFEST_FILE
    )]
    HalfWritten(PathBuf),
    /// The manifest has another schema, or another version of it.
    #[error(
        "{} has the schema '{found}', and this program reads '{wanted}'; use the version of Hourglass that wrote it",
        .path.display()
    )]
    ManifestVersion {
        path: PathBuf,
        /// The schema named in it; empty if none is.
        found: String,
        /// The schema that this version reads.
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
    /// The manifest holds no findings, as that of a run document does not.
    #[error("{} holds no 'result'; it does not come from a run folder", .0.display())]
    NoResult(PathBuf),
    #[error("{} cannot be read: {source}", .path.display())]
    Io {
        /// What was to be read.
        path: PathBuf,
        source: io::Error,
    },
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// A trace, or a table of single latencies, that cannot be read.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The run folder has no trace.
    #[error("{} is missing; restore it or measure again", .0.display())]
    Missing(PathBuf),
    /// It does not end as a Parquet file ends.
    #[error("{} is truncated: it does not end as a Parquet file; copy it again", .0.display())]
    Truncated(PathBuf),
    #[error("{} has no column '{column}' ({wanted})", .path.display())]
    MissingColumn {
        path: PathBuf,
        /// Name of the column.
        column: &'static str,
        /// Type that it should have.
        wanted: &'static str,
    },
    /// A column has another type.
    #[error("{}: the column '{column}' is {found} and should be {wanted}", .path.display())]
    WrongType {
        path: PathBuf,
        /// Name of the column.
        column: &'static str,
        /// Type that it has.
        found: String,
        /// Type that it should have.
        wanted: &'static str,
    },
    /// A column is compressed; Hourglass writes and reads uncompressed files only.
    #[error(
        "{}: the column '{column}' is compressed with {codec}; write the file without compression",
        .path.display()
    )]
    Compressed {
        path: PathBuf,
        /// Name of the column.
        column: &'static str,
        codec: String,
    },
    /// A row that no run can have.
    #[error("{}: row {row} {fault}", .path.display())]
    Row {
        path: PathBuf,
        /// Which one, from 0.
        row: u64,
        /// What is wrong with it.
        fault: RowFault,
    },
    #[error("{} is damaged: {reason}; restore it or measure again", .path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("{} cannot be read: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Why a row is not one of a trace or of a table of single latencies.
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
    /// It belongs to an earlier thread than the latency above it.
    #[error("belongs to an earlier thread than the one above it; sort the rows by thread")]
    ThreadOrder,
    /// It happened before the event above it.
    #[error("happened before the one above it; sort the rows by ticks")]
    EventOrder,
}

/// Latencies that cannot be read.
#[derive(Debug, Error)]
pub enum LatencyError {
    /// The manifest reports latencies and there is no log.
    #[error("{} is missing although the run recorded latencies; restore it or measure again", .0.display())]
    Missing(PathBuf),
    /// It is not an interval log, or a histogram in it cannot be decoded.
    #[error("{} is damaged: {reason}; restore it or measure again", .path.display())]
    Damaged {
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    #[error("{} cannot be read: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The single latencies cannot be read.
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
