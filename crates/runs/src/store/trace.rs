//! `trace.parquet`: its columns, and what its records must keep.

pub(crate) mod read;
pub(crate) mod write;

use std::path::{Path, PathBuf};

use hourglass_trace::Interval;

use crate::store::error::{RowFault, TraceError};
use crate::store::table::{Column, ColumnType, Layout, TableReader};

const THREAD: Column = Column::required("thread", ColumnType::Int32);
const CPU: Column = Column::required("cpu", ColumnType::Int32);
const START_NS: Column = Column::required("start_ns", ColumnType::Int64);
const END_NS: Column = Column::required("end_ns", ColumnType::Int64);
const START_TICKS: Column = Column::required("start_ticks", ColumnType::Uint64);
const END_TICKS: Column = Column::required("end_ticks", ColumnType::Uint64);
/// From here on the columns are ours: traces of others have no such evidence.
const ONSET: Column = Column { optional: true, ..Column::required("onset", ColumnType::Int32) };

/// Whether the kernel cleared the thread's critical section before the interval: 0 no, 1 yes, null not known.
/// In folders written before it is `rseq`, with -1 for null.
const CLEARED: Column =
    Column { formerly: Some("rseq"), ..Column::nullable("cleared", ColumnType::Int32) };
/// What the kernel counted meanwhile, up to 255; null not asked.
const INVOLUNTARY: Column = Column::nullable("involuntary", ColumnType::Int32);
const VOLUNTARY: Column = Column::nullable("voluntary", ColumnType::Int32);
const FAULTS: Column = Column::nullable("faults", ColumnType::Int32);

/// Stands in memory where a column of evidence has no value.
const UNKNOWN: i32 = -1;

const LAYOUT: Layout = Layout {
    name: "trace",
    columns: &[
        THREAD,
        CPU,
        START_NS,
        END_NS,
        START_TICKS,
        END_TICKS,
        ONSET,
        CLEARED,
        INVOLUNTARY,
        VOLUNTARY,
        FAULTS,
    ],
    sorted_by: START_TICKS,
};

/// What every record of a trace must keep, against the record before it.
#[derive(Clone, Copy, Debug)]
struct OrderCheck {
    start_ns: i64,
    start_ticks: u64,
}

impl OrderCheck {
    /// Before the first record.
    const FIRST: OrderCheck = OrderCheck { start_ns: i64::MIN, start_ticks: 0 };

    /// Checks the next record's times and makes it the one before.
    fn admit(&mut self, interval: &Interval) -> Result<(), RowFault> {
        if interval.end_ns < interval.start_ns || interval.end_ticks < interval.start_ticks {
            return Err(RowFault::Reversed);
        }
        if interval.start_ns < self.start_ns || interval.start_ticks < self.start_ticks {
            return Err(RowFault::OutOfOrder);
        }
        *self = OrderCheck { start_ns: interval.start_ns, start_ticks: interval.start_ticks };
        Ok(())
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
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Trace, TraceError> {
        Ok(Trace { table: TableReader::open(path.into(), &LAYOUT)? })
    }

    /// Number of records.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.table.rows()
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.table.path()
    }
}
