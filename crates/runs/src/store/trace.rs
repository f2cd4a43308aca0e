//! `trace.parquet`: its columns, and what its records must keep.

use std::iter::FusedIterator;
use std::path::{Path, PathBuf};

use hourglass_trace::{CounterDeltas, Evidence, Interval, IntervalStart};

use crate::store::error::{RowFault, TraceError, WriteError};
use crate::store::partial::PartialFile;
use crate::store::table::read::{DecodeRows, Rows};
use crate::store::table::write::{EncodeRows, TableWriter};
use crate::store::table::{Column, ColumnType, Layout, NULL, Table, TableReader};
use crate::store::table::{from_int32, or_null, to_int32};

const START_TICKS: Column = Column::required("start_ticks", ColumnType::Uint64);

const LAYOUT: Layout = Layout {
    name: "trace",
    columns: &[
        Column::required("thread", ColumnType::Int32),
        Column::required("cpu", ColumnType::Int32),
        Column::required("start_ns", ColumnType::Int64),
        Column::required("end_ns", ColumnType::Int64),
        START_TICKS,
        Column::required("end_ticks", ColumnType::Uint64),
        // From here on the columns are ours: traces of others have no such evidence.
        Column { optional: true, ..Column::required("onset", ColumnType::Int32) },
        // Whether the kernel cleared the thread's critical section before the interval: 0 no, 1 yes, null not known.
        // In folders written before it is `rseq`, with -1 for null.
        Column { formerly: Some("rseq"), ..Column::nullable("cleared", ColumnType::Int32) },
        // What the kernel counted meanwhile, up to 255; null not asked.
        Column::nullable("involuntary", ColumnType::Int32),
        Column::nullable("voluntary", ColumnType::Int32),
        Column::nullable("faults", ColumnType::Int32),
    ],
    sorted_by: START_TICKS,
};

/// What every record of a trace must keep, against the record before it.
#[derive(Debug)]
struct Records {
    start_ns: i64,
    start_ticks: u64,
}

impl Default for Records {
    fn default() -> Records {
        Records { start_ns: i64::MIN, start_ticks: 0 }
    }
}

impl Records {
    /// Checks the next record's times and makes it the one before.
    fn admit(&mut self, interval: &Interval) -> Result<(), RowFault> {
        if interval.end_ns < interval.start_ns || interval.end_ticks < interval.start_ticks {
            return Err(RowFault::Reversed);
        }
        if interval.start_ns < self.start_ns || interval.start_ticks < self.start_ticks {
            return Err(RowFault::OutOfOrder);
        }
        *self = Records { start_ns: interval.start_ns, start_ticks: interval.start_ticks };
        Ok(())
    }
}

impl Table for Records {
    type Row = Interval;
    const LAYOUT: &'static Layout = &LAYOUT;
}

impl EncodeRows<11> for Records {
    fn encode(&mut self, interval: &Interval) -> Result<[i64; 11], RowFault> {
        let thread = to_int32(interval.thread, RowFault::Thread)?;
        let cpu = to_int32(interval.cpu, RowFault::Cpu)?;
        self.admit(interval)?;
        let Evidence { cleared, counted } = interval.evidence;
        let [involuntary, voluntary, faults] = counted.map_or([NULL; 3], |counted| {
            [counted.involuntary, counted.voluntary, counted.faults].map(i64::from)
        });
        Ok([
            thread,
            cpu,
            interval.start_ns,
            interval.end_ns,
            interval.start_ticks.cast_signed(),
            interval.end_ticks.cast_signed(),
            interval.onset.code().into(),
            or_null(cleared),
            involuntary,
            voluntary,
            faults,
        ])
    }
}

impl DecodeRows<11> for Records {
    fn decode(&mut self, numbers: [i64; 11]) -> Result<Option<Interval>, RowFault> {
        let [thread, cpu, start_ns, end_ns, start_ticks, end_ticks, onset, cleared, counts @ ..] =
            numbers;
        let interval = Interval {
            thread: from_int32(thread, RowFault::Thread)?,
            cpu: from_int32(cpu, RowFault::Cpu)?,
            start_ns,
            end_ns,
            start_ticks: start_ticks.cast_unsigned(),
            end_ticks: end_ticks.cast_unsigned(),
            onset: onset_of(onset),
            evidence: Evidence { cleared: cleared_of(cleared), counted: counted_of(counts) },
        };
        self.admit(&interval)?;
        Ok(Some(interval))
    }
}

/// A trace on disk whose description has been read and found good; its records have not.
#[derive(Clone, Debug)]
pub struct Trace {
    table: TableReader,
}

impl Trace {
    /// Opens the trace in the file `path`. Columns that are not ours are left alone; without
    /// `onset` every interval is taken to follow a gap, and what `cleared`, `involuntary`, `voluntary` and
    /// `faults` do not tell is not known.
    pub fn open(path: impl Into<PathBuf>) -> Result<Trace, TraceError> {
        Ok(Trace { table: TableReader::open(path.into(), &LAYOUT)? })
    }

    pub fn rows(&self) -> u64 {
        self.table.rows()
    }

    pub fn path(&self) -> &Path {
        self.table.path()
    }

    /// The records in the order of their start, decoded as they are asked for. Each call starts
    /// from the first record. After an error the iterator ends.
    ///
    /// # Errors
    /// The file cannot be opened any more.
    pub fn intervals(
        &self,
    ) -> Result<impl FusedIterator<Item = Result<Interval, TraceError>> + use<>, TraceError> {
        Rows::<Records, 11>::new(&self.table)
    }
}

/// What became of the critical section; a number of a later version tells nothing.
fn cleared_of(code: i64) -> Option<bool> {
    match code {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Counts, up to 255 each, if all of them are known.
fn counted_of([involuntary, voluntary, faults]: [i64; 3]) -> Option<CounterDeltas> {
    let count = |count: i64| u32::try_from(count).ok().map(|n| u8::try_from(n).unwrap_or(u8::MAX));
    Some(CounterDeltas {
        involuntary: count(involuntary)?,
        voluntary: count(voluntary)?,
        faults: count(faults)?,
    })
}

/// What a stored code means; a code of a later version is a gap of a kind not known here.
fn onset_of(code: i64) -> IntervalStart {
    u8::try_from(code).ok().and_then(IntervalStart::from_code).unwrap_or(IntervalStart::Gap)
}

/// Writes `trace.parquet`. Until [`TraceWriter::finish`] the file has another name.
pub struct TraceWriter<'a>(TableWriter<'a, Records, 11>);

impl<'a> TraceWriter<'a> {
    /// Starts from an empty file.
    pub(crate) fn start(partial: &'a PartialFile) -> Result<TraceWriter<'a>, WriteError> {
        if partial.is_committed() {
            return Err(WriteError::TraceComplete(partial.target().to_path_buf()));
        }
        TableWriter::start(partial).map(TraceWriter)
    }

    /// Appends a record. Records come in the order of their start, as
    /// [`merge_by_start`](crate::store::merge_by_start) gives them.
    ///
    /// # Errors
    /// The record starts before the last one, ends before it starts, or has a number that the
    /// format cannot hold; or the file refuses.
    pub fn write(&mut self, interval: &Interval) -> Result<(), WriteError> {
        self.0.write(interval)
    }

    /// Completes the file, brings it to the disk and gives it its name. Returns the number of
    /// records.
    ///
    /// # Errors
    /// The file refuses.
    pub fn finish(self) -> Result<u64, WriteError> {
        self.0.finish()
    }
}
