//! Writing the records of a trace.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::sync::Arc;

use hourglass_model::Interval;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnPath;

use crate::error::{RowFault, WriteError};
use crate::partial::PartialFile;
use crate::trace::{COLUMNS, END_NS, END_TICKS, Order, START_NS, START_TICKS, schema};

/// Records in a row group. They are kept until the group is full, 44 bytes each: 11 MiB.
const ROW_GROUP_ROWS: usize = 256 * 1024;

/// Values handed to an encoder at a time.
const WRITE_BATCH_ROWS: usize = 8 * 1024;

/// Writes `trace.parquet`. Until [`TraceWriter::finish`] the file has another name.
pub struct TraceWriter<'a> {
    partial: &'a PartialFile,
    writer: SerializedFileWriter<&'a File>,
    rows: Rows,
    order: Order,
    written: u64,
}

impl<'a> TraceWriter<'a> {
    /// Starts from an empty file.
    pub(crate) fn start(partial: &'a PartialFile) -> Result<TraceWriter<'a>, WriteError> {
        if partial.is_committed() {
            return Err(WriteError::TraceComplete(partial.target().to_path_buf()));
        }
        let mut file = partial.file();
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .map_err(|error| WriteError::file(partial.target(), error))?;
        let encoder_failed = |error: ParquetError| WriteError::file(partial.target(), error);
        let schema = Arc::new(schema().map_err(encoder_failed)?);
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties()))
            .map_err(encoder_failed)?;
        Ok(TraceWriter { partial, writer, rows: Rows::new(), order: Order::FIRST, written: 0 })
    }

    /// Appends a record. Records come in the order of their start, as
    /// [`merge_by_start`](crate::merge_by_start) gives them.
    ///
    /// # Errors
    /// The record starts before the last one, ends before it starts, or has a number that the
    /// format cannot hold; or the file refuses.
    pub fn write(&mut self, interval: &Interval) -> Result<(), WriteError> {
        self.order
            .admit(interval)
            .and_then(|()| self.rows.push(interval))
            .map_err(|fault| WriteError::Record { row: self.written, fault })?;
        self.written += 1;
        if self.rows.thread.len() == ROW_GROUP_ROWS {
            self.write_group()?;
        }
        Ok(())
    }

    /// Completes the file, brings it to the disk and gives it its name. Returns the number of
    /// records.
    ///
    /// # Errors
    /// The file refuses.
    pub fn finish(mut self) -> Result<u64, WriteError> {
        if !self.rows.thread.is_empty() {
            self.write_group()?;
        }
        self.writer.finish().map_err(|error| WriteError::file(self.partial.target(), error))?;
        self.partial.commit().map_err(|error| WriteError::file(self.partial.target(), error))?;
        Ok(self.written)
    }

    fn write_group(&mut self) -> Result<(), WriteError> {
        let written = self.writer.next_row_group().and_then(|group| self.rows.write(group));
        self.rows.clear();
        written.map_err(|error| WriteError::file(self.partial.target(), error))
    }
}

impl std::fmt::Debug for TraceWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceWriter").field("written", &self.written).finish_non_exhaustive()
    }
}

/// How the columns are encoded: differences for times, which grow slowly from row to row;
/// dictionaries and runs for the small numbers beside them. No compressor: it would cost more
/// time than it saves space, and every reader would need it.
fn properties() -> WriterProperties {
    let by_start = COLUMNS
        .iter()
        .position(|column| column.name == START_TICKS.name)
        .and_then(|index| i32::try_from(index).ok())
        .map(|column_idx| {
            vec![SortingColumn { column_idx, descending: false, nulls_first: false }]
        });
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(true)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_write_batch_size(WRITE_BATCH_ROWS)
        .set_sorting_columns(by_start);
    for column in [START_NS, END_NS, START_TICKS, END_TICKS] {
        let path = ColumnPath::from(column.name);
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}

/// The records of a row group, column by column.
struct Rows {
    thread: Vec<i32>,
    cpu: Vec<i32>,
    start_ns: Vec<i64>,
    end_ns: Vec<i64>,
    start_ticks: Vec<i64>,
    end_ticks: Vec<i64>,
    onset: Vec<i32>,
}

impl Rows {
    fn new() -> Rows {
        Rows {
            thread: Vec::new(),
            cpu: Vec::new(),
            start_ns: Vec::new(),
            end_ns: Vec::new(),
            start_ticks: Vec::new(),
            end_ticks: Vec::new(),
            onset: Vec::new(),
        }
    }

    fn push(&mut self, interval: &Interval) -> Result<(), RowFault> {
        let thread = i32::try_from(interval.thread).map_err(|_| RowFault::Thread)?;
        let cpu = i32::try_from(interval.cpu).map_err(|_| RowFault::Cpu)?;
        self.thread.push(thread);
        self.cpu.push(cpu);
        self.start_ns.push(interval.start_ns);
        self.end_ns.push(interval.end_ns);
        self.start_ticks.push(interval.start_ticks.cast_signed());
        self.end_ticks.push(interval.end_ticks.cast_signed());
        self.onset.push(i32::from(interval.onset.code()));
        Ok(())
    }

    fn clear(&mut self) {
        self.thread.clear();
        self.cpu.clear();
        self.start_ns.clear();
        self.end_ns.clear();
        self.start_ticks.clear();
        self.end_ticks.clear();
        self.onset.clear();
    }

    /// Writes the columns in the order of [`COLUMNS`].
    fn write(&self, mut group: SerializedRowGroupWriter<'_, &File>) -> Result<(), ParquetError> {
        write_column::<Int32Type>(&mut group, &self.thread)?;
        write_column::<Int32Type>(&mut group, &self.cpu)?;
        write_column::<Int64Type>(&mut group, &self.start_ns)?;
        write_column::<Int64Type>(&mut group, &self.end_ns)?;
        write_column::<Int64Type>(&mut group, &self.start_ticks)?;
        write_column::<Int64Type>(&mut group, &self.end_ticks)?;
        write_column::<Int32Type>(&mut group, &self.onset)?;
        group.close().map(|_| ())
    }
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &File>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".to_owned()));
    };
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}
