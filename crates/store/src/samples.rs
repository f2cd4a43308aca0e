//! `latency.parquet`: how late single wake-ups were, by thread and then in order of waking.

use std::path::PathBuf;

use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;

use crate::error::{RowFault, TraceError, WriteError};
use crate::partial::PartialFile;
use crate::table::read::{ColumnBuffer, DecodeColumn, DecodeRows, Rows};
use crate::table::write::{EncodeRows, RowGroup, TableWriter, write_column};
use crate::table::{Column, Kind, Layout, Table};

const THREAD: Column = Column::required("thread", Kind::Int32);
const LATENESS_PS: Column = Column::required("lateness_ps", Kind::Uint64);

const LAYOUT: Layout =
    Layout { name: "latency", columns: &[THREAD, LATENESS_PS], sorted_by: THREAD };

/// One wake-up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) thread: u32,
    pub(crate) lateness_ps: u64,
}

/// Writes the samples into `partial` and gives it its name.
pub(crate) fn write(
    partial: &PartialFile,
    samples: impl Iterator<Item = Sample>,
) -> Result<(), WriteError> {
    let mut table = TableWriter::start(partial, &LAYOUT, Buffer::default())?;
    for sample in samples {
        table.write(&sample)?;
    }
    table.finish().map(|_| ())
}

/// The lateness of each wake-up of `thread` in the file `path`, decoded as it is asked for.
pub(crate) fn read(
    path: PathBuf,
    thread: u32,
) -> Result<impl Iterator<Item = Result<u64, TraceError>> + use<>, TraceError> {
    let table = Table::open(path, &LAYOUT)?;
    let columns = Columns {
        thread: ColumnBuffer::new(&table, THREAD)?,
        lateness_ps: ColumnBuffer::new(&table, LATENESS_PS)?,
        last_thread: 0,
    };
    let samples = Rows::new(&table, columns)?;
    // The threads ascend. An error is passed on wherever it comes.
    Ok(samples
        .skip_while(move |row| row.as_ref().is_ok_and(|sample| sample.thread < thread))
        .take_while(move |row| row.as_ref().map_or(true, |sample| sample.thread == thread))
        .map(|row| row.map(|sample| sample.lateness_ps)))
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
    last_thread: u32,
}

impl EncodeRows for Buffer {
    type Row = Sample;

    fn push(&mut self, sample: &Sample) -> Result<(), RowFault> {
        let thread = i32::try_from(sample.thread).map_err(|_| RowFault::Thread)?;
        admit(&mut self.last_thread, sample.thread)?;
        self.thread.push(thread);
        self.lateness_ps.push(sample.lateness_ps.cast_signed());
        Ok(())
    }

    fn len(&self) -> usize {
        self.thread.len()
    }

    fn write(&self, group: &mut RowGroup<'_, '_>) -> Result<(), ParquetError> {
        write_column::<Int32Type>(group, &self.thread)?;
        write_column::<Int64Type>(group, &self.lateness_ps)
    }

    fn clear(&mut self) {
        self.thread.clear();
        self.lateness_ps.clear();
    }
}

/// One decoder for each column.
struct Columns {
    thread: ColumnBuffer<Int32Type>,
    lateness_ps: ColumnBuffer<Int64Type>,
    last_thread: u32,
}

impl DecodeRows for Columns {
    type Row = Sample;

    fn columns(&mut self) -> Vec<&mut dyn DecodeColumn> {
        vec![&mut self.thread, &mut self.lateness_ps]
    }

    fn assemble(&mut self, rows: usize, batch: &mut Vec<Sample>) -> Result<(), RowFault> {
        let lateness = &self.lateness_ps.values[..rows];
        for (thread, ps) in self.thread.values[..rows].iter().zip(lateness) {
            let thread = u32::try_from(*thread).map_err(|_| RowFault::Thread)?;
            admit(&mut self.last_thread, thread)?;
            batch.push(Sample { thread, lateness_ps: ps.cast_unsigned() });
        }
        Ok(())
    }
}
