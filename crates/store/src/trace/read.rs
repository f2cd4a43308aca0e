//! The records of a trace, decoded in batches.

use std::fs::File;
use std::iter::FusedIterator;
use std::mem::size_of;
use std::sync::Arc;

use hourglass_model::{Interval, Onset};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::error::{RowFault, TraceError};
use crate::guard::guarded;
use crate::trace::pages::CheckedPages;
use crate::trace::{
    CPU, Column, END_NS, END_TICKS, ONSET, Order, START_NS, START_TICKS, THREAD, Trace, open_file,
};

/// Rows decoded at a time: enough to spread the cost of a call, few enough for the second-level
/// cache.
const BATCH_ROWS: usize = 8 * 1024;

impl Trace {
    /// The records in the order of their start, decoded as they are asked for. Each call starts
    /// from the first record.
    ///
    /// # Errors
    /// The file cannot be opened any more.
    pub fn intervals(&self) -> Result<Intervals, TraceError> {
        // A file of its own: threads that shared one would move each other's position in it.
        let file = Arc::new(open_file(self.path())?);
        let missing = |column: Column| TraceError::Damaged {
            path: self.path().to_path_buf(),
            reason: format!("the column '{}' is gone", column.name),
        };
        let narrow = |column| {
            self.index_of(column).map(ColumnBuffer::<Int32Type>::new).ok_or_else(|| missing(column))
        };
        let wide = |column| {
            self.index_of(column).map(ColumnBuffer::<Int64Type>::new).ok_or_else(|| missing(column))
        };
        let columns = Columns {
            thread: narrow(THREAD)?,
            cpu: narrow(CPU)?,
            start_ns: wide(START_NS)?,
            end_ns: wide(END_NS)?,
            start_ticks: wide(START_TICKS)?,
            end_ticks: wide(END_TICKS)?,
            onset: narrow(ONSET).ok(),
        };
        Ok(Intervals {
            trace: self.clone(),
            file,
            columns,
            group: 0,
            rows_in_group: 0,
            batch: Vec::with_capacity(BATCH_ROWS),
            next: 0,
            rows_before_batch: 0,
            order: Order::FIRST,
            ended: false,
            failure: None,
        })
    }
}

/// Iterator over the records of a trace. After an error it ends.
pub struct Intervals {
    trace: Trace,
    file: Arc<File>,
    columns: Columns,
    /// Number of the row group that comes after the one that is being read.
    group: usize,
    /// Rows of the row group that are not decoded yet.
    rows_in_group: usize,
    batch: Vec<Interval>,
    /// Place in `batch` of the next record.
    next: usize,
    rows_before_batch: u64,
    order: Order,
    ended: bool,
    /// What ended it, to be told after the records before it.
    failure: Option<TraceError>,
}

impl Intervals {
    /// Decodes the next batch; leaves it empty at the end.
    fn refill(&mut self) -> Result<(), TraceError> {
        self.rows_before_batch += self.batch.len() as u64;
        self.batch.clear();
        self.next = 0;
        let damaged =
            |reason| TraceError::Damaged { path: self.trace.path().to_path_buf(), reason };
        let metadata = self.trace.metadata();
        while self.rows_in_group == 0 {
            let Some(group) = metadata.row_groups().get(self.group) else {
                return Ok(());
            };
            // Checked when the trace was opened.
            self.rows_in_group = usize::try_from(group.num_rows()).unwrap_or(0);
            let (columns, file, number) = (&mut self.columns, &self.file, self.group);
            guarded(|| columns.start(file, metadata, number), decoder_panicked)
                .map_err(|error| damaged(error.to_string()))?;
            self.group += 1;
        }
        let rows = self.rows_in_group.min(BATCH_ROWS);
        let columns = &mut self.columns;
        guarded(|| columns.decode(rows), decoder_panicked)
            .map_err(|error| damaged(error.to_string()))?;
        self.rows_in_group -= rows;
        self.columns.assemble(rows, &mut self.batch, &mut self.order).map_err(|fault| {
            TraceError::Row {
                path: self.trace.path().to_path_buf(),
                row: self.rows_before_batch + self.batch.len() as u64,
                fault,
            }
        })
    }
}

impl Iterator for Intervals {
    type Item = Result<Interval, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(interval) = self.batch.get(self.next) {
                self.next += 1;
                return Some(Ok(*interval));
            }
            if self.ended {
                return self.failure.take().map(Err);
            }
            self.failure = self.refill().err();
            self.ended = self.failure.is_some() || self.batch.is_empty();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let handed_out = self.rows_before_batch + self.next as u64;
        // One more than the rows that are left: an error may come in their place or after them.
        let most = self.trace.rows().saturating_sub(handed_out).saturating_add(1);
        (0, usize::try_from(most).ok())
    }
}

impl FusedIterator for Intervals {}

impl std::fmt::Debug for Intervals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Intervals").field("trace", &self.trace.path()).finish_non_exhaustive()
    }
}

fn decoder_panicked(reason: String) -> ParquetError {
    ParquetError::General(reason)
}

/// One decoder for each column.
struct Columns {
    thread: ColumnBuffer<Int32Type>,
    cpu: ColumnBuffer<Int32Type>,
    start_ns: ColumnBuffer<Int64Type>,
    end_ns: ColumnBuffer<Int64Type>,
    start_ticks: ColumnBuffer<Int64Type>,
    end_ticks: ColumnBuffer<Int64Type>,
    onset: Option<ColumnBuffer<Int32Type>>,
}

impl Columns {
    /// Goes to the beginning of a row group.
    fn start(
        &mut self,
        file: &Arc<File>,
        metadata: &ParquetMetaData,
        group: usize,
    ) -> Result<(), ParquetError> {
        self.thread.start(file, metadata, group)?;
        self.cpu.start(file, metadata, group)?;
        self.start_ns.start(file, metadata, group)?;
        self.end_ns.start(file, metadata, group)?;
        self.start_ticks.start(file, metadata, group)?;
        self.end_ticks.start(file, metadata, group)?;
        self.onset.as_mut().map_or(Ok(()), |onset| onset.start(file, metadata, group))
    }

    /// Decodes the next `rows` rows of the row group.
    fn decode(&mut self, rows: usize) -> Result<(), ParquetError> {
        self.thread.decode(rows)?;
        self.cpu.decode(rows)?;
        self.start_ns.decode(rows)?;
        self.end_ns.decode(rows)?;
        self.start_ticks.decode(rows)?;
        self.end_ticks.decode(rows)?;
        self.onset.as_mut().map_or(Ok(()), |onset| onset.decode(rows))
    }

    /// Appends the decoded rows to `batch`, up to the first that is no record.
    fn assemble(
        &self,
        rows: usize,
        batch: &mut Vec<Interval>,
        order: &mut Order,
    ) -> Result<(), RowFault> {
        let onsets = self.onset.as_ref().map(|onset| &onset.values[..rows]);
        let (threads, cpus) = (&self.thread.values[..rows], &self.cpu.values[..rows]);
        let (starts, ends) = (&self.start_ns.values[..rows], &self.end_ns.values[..rows]);
        let start_ticks = &self.start_ticks.values[..rows];
        let end_ticks = &self.end_ticks.values[..rows];
        for row in 0..rows {
            let interval = Interval {
                thread: u32::try_from(threads[row]).map_err(|_| RowFault::Thread)?,
                cpu: u32::try_from(cpus[row]).map_err(|_| RowFault::Cpu)?,
                start_ns: starts[row],
                end_ns: ends[row],
                start_ticks: start_ticks[row].cast_unsigned(),
                end_ticks: end_ticks[row].cast_unsigned(),
                onset: onsets.map_or(Onset::Gap, |onsets| onset_of(onsets[row])),
            };
            order.admit(&interval)?;
            batch.push(interval);
        }
        Ok(())
    }
}

/// What a stored code means; a code of a later version is a gap of a kind not known here.
fn onset_of(code: i32) -> Onset {
    u8::try_from(code).ok().and_then(Onset::from_code).unwrap_or(Onset::Gap)
}

/// The decoder of one column, and room for a batch of its values.
struct ColumnBuffer<T: DataType> {
    /// Place of the column in the file.
    index: usize,
    reader: Option<ColumnReaderImpl<T>>,
    /// Whether each value is there, in a column that could leave some out.
    levels: Vec<i16>,
    values: Vec<T::T>,
}

impl<T: DataType> ColumnBuffer<T> {
    fn new(index: usize) -> ColumnBuffer<T> {
        ColumnBuffer { index, reader: None, levels: Vec::new(), values: Vec::new() }
    }

    fn start(
        &mut self,
        file: &Arc<File>,
        metadata: &ParquetMetaData,
        group: usize,
    ) -> Result<(), ParquetError> {
        let group = metadata.row_group(group);
        let chunk = group.column(self.index);
        let rows = usize::try_from(group.num_rows())?;
        let pages = SerializedPageReader::new(Arc::clone(file), chunk, rows, None)?;
        let pages = CheckedPages::new(pages, size_of::<T::T>());
        self.reader = Some(ColumnReaderImpl::new(chunk.column_descr_ptr(), Box::new(pages)));
        Ok(())
    }

    /// Replaces `values` by the next `rows` values. Other programs mark every column as one that
    /// may leave values out; that is accepted as long as none is left out.
    fn decode(&mut self, rows: usize) -> Result<(), ParquetError> {
        self.levels.clear();
        self.values.clear();
        let reader = self
            .reader
            .as_mut()
            .ok_or_else(|| ParquetError::General("no row group was started".to_owned()))?;
        let (read, values, _) =
            reader.read_records(rows, Some(&mut self.levels), None, &mut self.values)?;
        if read != rows {
            return Err(ParquetError::EOF(format!("a column ends {} rows early", rows - read)));
        }
        if values != rows || self.values.len() != rows {
            return Err(ParquetError::General("a column has rows without a value".to_owned()));
        }
        Ok(())
    }
}
