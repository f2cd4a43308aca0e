//! Folders of measured runs that were put together.
//!
//! Owns: their layout. Must not: add or choose what is written.
//!
//! `histogram.parquet` has a row for each step of each histogram that is not empty: `run`, `node` (text), `thread`
//! (int32), `metric`, `cause` (text; empty for latencies, and for gaps too short for a cause), `lo_ns`, `hi_ns`,
//! `count` (int64). A step holds the values from `lo_ns` to below `hi_ns`. Rows are in the order of node, time of the
//! run, thread, metric, cause, and `lo_ns`. `merged.json` (`hourglass.merged/1`) is written last: a folder without it
//! is half-written.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use hourglass_documents::histogram_steps::step_of;
use hourglass_documents::merged::{MERGED_SCHEMA, MergedDocument, MergedRun, MergedSeries};
use parquet::data_type::ByteArray;
use serde_json::Value;
use thiserror::Error;

use crate::store::create::refused;
use crate::store::error::{CreateError, RowFault, TraceError, WriteError};
use crate::store::partial::{PartialFile, partial_path, sync_folder};
use crate::store::table::read::{DecodeRows, Rows};
use crate::store::table::write::{EncodeRows, TableWriter};
use crate::store::table::{Column, ColumnType, Layout, Table, TableReader, to_int32};

pub const MERGED_FILE: &str = "merged.json";
pub const HISTOGRAM_FILE: &str = "histogram.parquet";
const NODE: Column = Column::required("node", ColumnType::Text);
const LO_NS: Column = Column::required("lo_ns", ColumnType::Int64);
const COUNT: Column = Column::required("count", ColumnType::Int64);

const LAYOUT: Layout = Layout {
    name: "histogram",
    columns: &[
        Column::required("run", ColumnType::Text),
        NODE,
        Column::required("thread", ColumnType::Int32),
        Column::required("metric", ColumnType::Text),
        Column::required("cause", ColumnType::Text),
        LO_NS,
        Column::required("hi_ns", ColumnType::Int64),
        COUNT,
    ],
    sorted_by: NODE,
};

/// The columns that are read; the document says to which series a row belongs.
const READ: Layout = Layout { name: "histogram", columns: &[LO_NS, COUNT], sorted_by: LO_NS };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub lo_ns: u64,
    pub count: u64,
}

/// A folder that cannot be read as one of runs put together.
#[derive(Debug, Error)]
pub enum MergedError {
    #[error("{} is half-written: {MERGED_FILE} is missing; remove it and merge again", .0.display())]
    HalfWritten(PathBuf),
    #[error(
        "{} has the schema '{found}', and this program reads '{MERGED_SCHEMA}'; use the version of Hourglass that wrote it",
        .path.display()
    )]
    Version { path: PathBuf, found: String },
    #[error("{} is damaged: {reason}; merge again", .path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("{} cannot be read: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Table(#[from] TraceError),
}

/// A folder that is being written. Dropped unfinished, it is removed.
#[derive(Debug)]
pub struct NewMergedFolder {
    path: PathBuf,
    partial: PartialFile,
    finished: bool,
}

impl NewMergedFolder {
    /// Makes the folder.
    ///
    /// # Errors
    /// See [`CreateError`]; nothing is left behind.
    pub fn create(path: impl Into<PathBuf>) -> Result<NewMergedFolder, CreateError> {
        let path = path.into();
        fs::create_dir(&path).map_err(|error| refused(&path, error))?;
        match PartialFile::create(&path, HISTOGRAM_FILE) {
            Ok(partial) => Ok(NewMergedFolder { path, partial, finished: false }),
            Err(source) => {
                // It is empty and ours; failing to remove it is the lesser of the two errors.
                let _ = fs::remove_dir(&path);
                Err(refused(&path.join(HISTOGRAM_FILE), source))
            }
        }
    }

    /// Starts the histograms.
    ///
    /// # Errors
    /// The file refuses.
    pub fn histograms(&self) -> Result<HistogramWriter<'_>, WriteError> {
        TableWriter::start(&self.partial).map(|table| HistogramWriter { table })
    }

    /// Writes the document, which completes the folder. The histograms have been finished before.
    ///
    /// # Errors
    /// The file refuses.
    pub fn finish(mut self, document: &MergedDocument) -> Result<(), WriteError> {
        let failed = |error: io::Error| WriteError::file(self.path.join(MERGED_FILE), error);
        let mut text = serde_json::to_vec(document).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        PartialFile::write(&self.path, MERGED_FILE, &text).map_err(failed)?;
        self.finished = true;
        if let Some(parent) = self.path.parent() {
            // A parent that may be written but not read is no failure.
            let _ = sync_folder(parent);
        }
        Ok(())
    }
}

impl Drop for NewMergedFolder {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        // A drop cannot report an error; a reader recognises remaining files as half-written.
        self.partial.discard();
        let _ = fs::remove_file(self.path.join(HISTOGRAM_FILE));
        let _ = fs::remove_dir(&self.path);
    }
}

pub struct HistogramWriter<'a> {
    table: TableWriter<'a, WrittenSteps, 4>,
}

impl HistogramWriter<'_> {
    /// Appends a step of a series.
    ///
    /// # Errors
    /// The thread or the count is one that the format cannot hold; or the file refuses.
    pub fn write(&mut self, series: &SeriesName, step: Step) -> Result<(), WriteError> {
        self.table.write(&(series.clone(), step))
    }

    /// Completes the file; returns its rows.
    ///
    /// # Errors
    /// The file refuses.
    pub fn finish(self) -> Result<u64, WriteError> {
        self.table.finish()
    }
}

#[derive(Clone, Debug)]
pub struct SeriesName {
    thread: u32,
    /// Run, node, metric, cause.
    texts: [ByteArray; 4],
}

impl SeriesName {
    pub fn of(run: &MergedRun, series: &MergedSeries) -> SeriesName {
        let cause = series.cause.map_or("", |cause| cause.name());
        let texts = [run.run.as_str(), run.node.as_str(), series.metric.name(), cause];
        SeriesName { thread: series.thread, texts: texts.map(ByteArray::from) }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[derive(Default)]
struct WrittenSteps;

impl Table for WrittenSteps {
    type Row = (SeriesName, Step);
    const LAYOUT: &'static Layout = &LAYOUT;
}

impl EncodeRows<4> for WrittenSteps {
    fn encode(&mut self, (series, step): &Self::Row) -> Result<[i64; 4], RowFault> {
        let thread = to_int32(series.thread, RowFault::Thread)?;
        let (low, high) = step_of(step.lo_ns);
        Ok([thread, signed(low), signed(high), signed(step.count)])
    }

    fn texts((series, _): &Self::Row) -> &[ByteArray] {
        &series.texts
    }
}

#[derive(Debug)]
pub struct MergedFolder {
    path: PathBuf,
    document: MergedDocument,
    table: TableReader,
}

impl MergedFolder {
    /// Whether `path` is such a folder, or one that is half-written.
    pub fn is_at(path: &Path) -> bool {
        let histogram = path.join(HISTOGRAM_FILE);
        path.join(MERGED_FILE).exists()
            || histogram.exists()
            || partial_path(path, HISTOGRAM_FILE).exists()
    }

    /// Opens it: reads the document, and checks that the histograms have as many rows.
    pub fn open(path: &Path) -> Result<MergedFolder, MergedError> {
        let document = read_document(path)?;
        let table = TableReader::open(path.join(HISTOGRAM_FILE), &READ)?;
        let rows = { document.runs.iter() }
            .flat_map(|run| &run.series)
            .fold(0, |sum: u64, series| sum.saturating_add(series.rows));
        if rows != table.rows() || rows != document.rows {
            return Err(MergedError::Damaged {
                path: table.path().to_path_buf(),
                reason: format!("it has {} rows, and {MERGED_FILE} {rows}", table.rows()),
            });
        }
        Ok(MergedFolder { path: path.to_path_buf(), document, table })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn document(&self) -> &MergedDocument {
        &self.document
    }

    pub fn take_runs(&mut self) -> Vec<MergedRun> {
        std::mem::take(&mut self.document.runs)
    }

    /// The steps of all series, in the order of the document.
    ///
    /// # Errors
    /// The file cannot be opened any more.
    pub fn steps(&self) -> Result<Steps, MergedError> {
        Ok(Steps { rows: Rows::new(&self.table)?, path: self.table.path().to_path_buf() })
    }
}

fn read_document(folder: &Path) -> Result<MergedDocument, MergedError> {
    let path = folder.join(MERGED_FILE);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(MergedError::HalfWritten(folder.to_path_buf()));
        }
        Err(source) => return Err(MergedError::Io { path, source }),
    };
    let read: Result<MergedDocument, _> = serde_json::from_reader(BufReader::new(file));
    match read {
        Ok(document) if document.schema == MERGED_SCHEMA => Ok(document),
        Ok(document) => Err(MergedError::Version { path, found: document.schema }),
        Err(error) => {
            // Another version may lack any key but this one.
            let text = fs::read(&path).unwrap_or_default();
            let value: Value = serde_json::from_slice(&text).unwrap_or_default();
            match value.get("schema").and_then(Value::as_str) {
                Some(found) if found != MERGED_SCHEMA => {
                    Err(MergedError::Version { path, found: found.to_owned() })
                }
                _ => Err(MergedError::Damaged { path, reason: error.to_string() }),
            }
        }
    }
}

pub struct Steps {
    rows: Rows<ReadSteps, 2>,
    path: PathBuf,
}

impl Steps {
    /// Hands on the steps of the next series. Their counts add up to what the document says.
    ///
    /// # Errors
    /// The file is damaged; or what `each` says.
    pub fn series<E: From<MergedError>>(
        &mut self,
        series: &MergedSeries,
        mut each: impl FnMut(Step) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut count, mut last) = (0_u64, None);
        for _ in 0..series.rows {
            let row = self.rows.next().ok_or_else(|| self.damaged("it ends early"))?;
            let (lo_ns, seen) = row.map_err(MergedError::from)?;
            let number = |number: i64| u64::try_from(number).ok();
            let step = number(lo_ns).zip(number(seen)).map(|(lo_ns, count)| Step { lo_ns, count });
            let step = step.filter(|step| step_of(step.lo_ns).0 == step.lo_ns && step.count > 0);
            let step = step.filter(|step| last.is_none_or(|last| last < step.lo_ns));
            let step = step.ok_or_else(|| self.damaged("a row is no step"))?;
            last = Some(step.lo_ns);
            count = count.saturating_add(step.count);
            each(step)?;
        }
        if count != series.count {
            return Err(self.damaged("its counts are not those of the document").into());
        }
        Ok(())
    }

    fn damaged(&self, reason: &str) -> MergedError {
        MergedError::Damaged { path: self.path.clone(), reason: reason.to_owned() }
    }
}

#[derive(Default)]
struct ReadSteps;

impl Table for ReadSteps {
    type Row = (i64, i64);
    const LAYOUT: &'static Layout = &READ;
}

impl DecodeRows<2> for ReadSteps {
    fn decode(&mut self, [lo_ns, count]: [i64; 2]) -> Result<Option<Self::Row>, RowFault> {
        Ok(Some((lo_ns, count)))
    }
}
