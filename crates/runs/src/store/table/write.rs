//! Writing the rows of a table.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnPath;

use crate::store::error::{RowFault, WriteError};
use crate::store::partial::PartialFile;
use crate::store::table::{ColumnType, Layout};

/// Rows in a row group. They are kept until the group is full: records of a trace, the widest
/// rows, have 60 bytes each, which makes 15 MiB.
const ROW_GROUP_ROWS: usize = 256 * 1024;

/// Values handed to an encoder at a time.
const WRITE_BATCH_ROWS: usize = 8 * 1024;

/// The rows of a row group, column by column.
pub(crate) trait EncodeRows {
    type Row;

    /// Appends a row, or refuses it and stays as it was.
    fn push(&mut self, row: &Self::Row) -> Result<(), RowFault>;

    /// Number of rows.
    fn len(&self) -> usize;

    /// Writes the columns in the order of the layout.
    fn write(&self, group: &mut RowGroup<'_, '_>) -> Result<(), ParquetError>;

    /// Removes all rows.
    fn clear(&mut self);
}

/// A row group that is being written.
pub(crate) type RowGroup<'a, 'f> = SerializedRowGroupWriter<'a, &'f File>;

/// Writes a table. Until [`TableWriter::finish`] the file has another name.
pub(crate) struct TableWriter<'a, E> {
    partial: &'a PartialFile,
    writer: SerializedFileWriter<&'a File>,
    rows: E,
    written: u64,
}

impl<'a, E: EncodeRows> TableWriter<'a, E> {
    /// Starts from an empty file.
    pub(crate) fn start(
        partial: &'a PartialFile,
        layout: &Layout,
        rows: E,
    ) -> Result<TableWriter<'a, E>, WriteError> {
        let mut file = partial.file();
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .map_err(|error| WriteError::file(partial.target(), error))?;
        let encoder_failed = |error: ParquetError| WriteError::file(partial.target(), error);
        let schema = Arc::new(layout.schema().map_err(encoder_failed)?);
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties(layout)))
            .map_err(encoder_failed)?;
        Ok(TableWriter { partial, writer, rows, written: 0 })
    }

    /// Number of rows so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Appends a row.
    pub(crate) fn write(&mut self, row: &E::Row) -> Result<(), WriteError> {
        self.rows.push(row).map_err(|fault| WriteError::Record {
            path: self.partial.target().to_path_buf(),
            row: self.written,
            fault,
        })?;
        self.written += 1;
        if self.rows.len() == ROW_GROUP_ROWS {
            self.write_group()?;
        }
        Ok(())
    }

    /// Completes the file, brings it to the disk and gives it its name. Returns the number of
    /// rows.
    pub(crate) fn finish(mut self) -> Result<u64, WriteError> {
        if self.rows.len() > 0 {
            self.write_group()?;
        }
        self.writer.finish().map_err(|error| WriteError::file(self.partial.target(), error))?;
        self.partial.commit().map_err(|error| WriteError::file(self.partial.target(), error))?;
        Ok(self.written)
    }

    fn write_group(&mut self) -> Result<(), WriteError> {
        let written = self.writer.next_row_group().and_then(|mut group| {
            self.rows.write(&mut group)?;
            group.close().map(|_| ())
        });
        self.rows.clear();
        written.map_err(|error| WriteError::file(self.partial.target(), error))
    }
}

/// How the columns are encoded: differences for times, which change little from row to row;
/// dictionaries and runs for the small numbers beside them. No compressor: it would cost more
/// time than it saves space, and every reader would need it.
fn properties(layout: &Layout) -> WriterProperties {
    let sorted_by = layout
        .columns
        .iter()
        .position(|column| column.name == layout.sorted_by.name)
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
        .set_sorting_columns(sorted_by);
    for column in layout.columns {
        if matches!(column.kind, ColumnType::Int64 | ColumnType::Uint64) {
            let path = ColumnPath::from(column.name);
            builder = builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    builder.build()
}

/// Writes the next column of the row group.
pub(crate) fn write_column<T: DataType>(
    group: &mut RowGroup<'_, '_>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".to_owned()));
    };
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

/// Writes the next column of the row group, in which rows with the value `null` have none.
pub(crate) fn write_nullable<T: DataType>(
    group: &mut RowGroup<'_, '_>,
    values: &[T::T],
    null: &T::T,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".to_owned()));
    };
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value != null)).collect();
    let there: Vec<T::T> = values.iter().filter(|value| *value != null).cloned().collect();
    column.typed::<T>().write_batch(&there, Some(&levels), None)?;
    column.close()
}
