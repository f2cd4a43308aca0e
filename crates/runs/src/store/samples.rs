//! `latency.parquet`: when single wake-ups were and how late, by thread and then in order of waking.

use std::path::PathBuf;

use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;

use crate::store::error::{RowFault, TraceError, WriteError};
use crate::store::partial::PartialFile;
use crate::store::table::read::{ColumnBuffer, DecodeColumn, DecodeRows, Rows};
use crate::store::table::write::{EncodeRows, RowGroup, TableWriter, write_column, write_nullable};
use crate::store::table::{Column, ColumnType, Layout, TableReader};

const THREAD: Column = Column::required("thread", ColumnType::Int32);
const LATENESS_PS: Column = Column::required("lateness_ps", ColumnType::Uint64);

/// Folders of earlier versions lack it.
const WOKE_NS: Column = Column::nullable("woke_ns", ColumnType::Int64);

const LAYOUT: Layout =
    Layout { name: "latency", columns: &[THREAD, LATENESS_PS, WOKE_NS], sorted_by: THREAD };

/// Stands for a time that is not known while rows are columns of numbers. No run has it.
const UNKNOWN: i64 = i64::MIN;

/// One wake-up that was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredWakeUp {
    /// When the thread saw the time, ns from the run's start; `None` where that was not kept.
    pub woke_ns: Option<i64>,
    /// How late that was, in picoseconds.
    pub lateness_ps: u64,
}

/// A wake-up of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakeUpSample {
    pub(crate) thread: u32,
    pub(crate) wake_up: StoredWakeUp,
}

/// Writes the samples into `partial` and gives it its name.
pub(crate) fn write(
    partial: &PartialFile,
    samples: impl Iterator<Item = WakeUpSample>,
) -> Result<(), WriteError> {
    let mut table = TableWriter::start(partial, &LAYOUT, Buffer::default())?;
    for sample in samples {
        table.write(&sample)?;
    }
    table.finish().map(|_| ())
}

/// The wake-ups of `thread` in the file `path`, decoded as they are asked for.
pub(crate) fn read(
    path: PathBuf,
    thread: u32,
) -> Result<impl Iterator<Item = Result<StoredWakeUp, TraceError>> + use<>, TraceError> {
    let table = TableReader::open(path, &LAYOUT)?;
    let columns = Columns {
        thread: ColumnBuffer::new(&table, THREAD)?,
        lateness_ps: ColumnBuffer::new(&table, LATENESS_PS)?,
        woke_ns: ColumnBuffer::nullable(&table, WOKE_NS, UNKNOWN),
        last_thread: 0,
    };
    let samples = Rows::new(&table, columns)?;
    // The threads ascend. An error is passed on wherever it comes.
    Ok(samples
        .skip_while(move |row| row.as_ref().is_ok_and(|sample| sample.thread < thread))
        .take_while(move |row| row.as_ref().map_or(true, |sample| sample.thread == thread))
        .map(|row| row.map(|sample| sample.wake_up)))
}

/// Checks that the rows of a thread are not below those of a later one; `last` is the row above.
fn admit(last: &mut u32, thread: u32) -> Result<(), RowFault> {
    if thread < *last {
        return Err(RowFault::ThreadOrder);
    }
    *last = thread;
    Ok(())
}

/// The samples of a row group, column by column.
#[derive(Default)]
struct Buffer {
    thread: Vec<i32>,
    lateness_ps: Vec<i64>,
    woke_ns: Vec<i64>,
    last_thread: u32,
}

impl EncodeRows for Buffer {
    type Row = WakeUpSample;

    fn push(&mut self, sample: &WakeUpSample) -> Result<(), RowFault> {
        let thread = i32::try_from(sample.thread).map_err(|_| RowFault::Thread)?;
        admit(&mut self.last_thread, sample.thread)?;
        self.thread.push(thread);
        self.lateness_ps.push(sample.wake_up.lateness_ps.cast_signed());
        self.woke_ns.push(sample.wake_up.woke_ns.unwrap_or(UNKNOWN));
        Ok(())
    }

    fn len(&self) -> usize {
        self.thread.len()
    }

    fn write(&self, group: &mut RowGroup<'_, '_>) -> Result<(), ParquetError> {
        write_column::<Int32Type>(group, &self.thread)?;
        write_column::<Int64Type>(group, &self.lateness_ps)?;
        write_nullable::<Int64Type>(group, &self.woke_ns, &UNKNOWN)
    }

    fn clear(&mut self) {
        self.thread.clear();
        self.lateness_ps.clear();
        self.woke_ns.clear();
    }
}

/// One decoder for each column.
struct Columns {
    thread: ColumnBuffer<Int32Type>,
    lateness_ps: ColumnBuffer<Int64Type>,
    woke_ns: Option<ColumnBuffer<Int64Type>>,
    last_thread: u32,
}

impl DecodeRows for Columns {
    type Row = WakeUpSample;

    fn columns(&mut self) -> Vec<&mut dyn DecodeColumn> {
        let mut columns: Vec<&mut dyn DecodeColumn> = vec![&mut self.thread, &mut self.lateness_ps];
        columns.extend(self.woke_ns.iter_mut().map(|column| column as &mut dyn DecodeColumn));
        columns
    }

    fn assemble(&mut self, rows: usize, batch: &mut Vec<WakeUpSample>) -> Result<(), RowFault> {
        let woke = self.woke_ns.as_ref().map(|column| &column.values[..rows]);
        let lateness = &self.lateness_ps.values[..rows];
        for (row, (thread, ps)) in self.thread.values[..rows].iter().zip(lateness).enumerate() {
            let thread = u32::try_from(*thread).map_err(|_| RowFault::Thread)?;
            admit(&mut self.last_thread, thread)?;
            let woke_ns = woke.map(|woke| woke[row]).filter(|ns| *ns != UNKNOWN);
            let wake_up = StoredWakeUp { woke_ns, lateness_ps: ps.cast_unsigned() };
            batch.push(WakeUpSample { thread, wake_up });
        }
        Ok(())
    }
}
