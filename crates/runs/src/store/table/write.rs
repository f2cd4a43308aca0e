//! Writing the rows of a table.

use std::io::{Seek, SeekFrom, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnPath;

use crate::store::error::{RowFault, WriteError};
use crate::store::partial::PartialFile;
use crate::store::table::checksums::{self, ChecksummedFile};
use crate::store::table::{Column, ColumnType, Layout, NULL, Table};

/// Rows in a row group. They are kept until the group is full: records of a trace, the widest
/// rows, have 60 bytes each, which makes 15 MiB.
const ROW_GROUP_ROWS: usize = 256 * 1024;

/// Values handed to an encoder at a time.
const WRITE_BATCH_ROWS: usize = 8 * 1024;

/// A table whose rows become numbers.
pub(crate) trait EncodeRows<const N: usize>: Table {
    /// The numbers of a row in the order of the columns that are no text, [`NULL`] for none; or refuses the row and
    /// stays as it was.
    fn encode(&mut self, row: &Self::Row) -> Result<[i64; N], RowFault>;

    /// The row's texts in the order of the columns of text.
    fn texts(_row: &Self::Row) -> &[ByteArray] {
        &[]
    }
}

/// Writes a table. Until [`TableWriter::finish`] the file has another name.
pub(crate) struct TableWriter<'a, E, const N: usize> {
    partial: &'a PartialFile,
    writer: SerializedFileWriter<ChecksummedFile<'a>>,
    /// The checksums of the groups that are written.
    checksums: Vec<String>,
    encoder: E,
    /// The rows of the row group, column by column.
    columns: Vec<ColumnValues>,
    rows: usize,
    written: u64,
}

/// Writes all rows into `partial` and gives it its name. Returns their number.
pub(crate) fn write_rows<E: EncodeRows<N>, const N: usize>(
    partial: &PartialFile,
    rows: impl IntoIterator<Item = E::Row>,
) -> Result<u64, WriteError> {
    let mut table = TableWriter::<E, N>::start(partial)?;
    for row in rows {
        table.write(&row)?;
    }
    table.finish()
}

impl<'a, E: EncodeRows<N>, const N: usize> TableWriter<'a, E, N> {
    /// Starts from an empty file.
    pub(crate) fn start(partial: &'a PartialFile) -> Result<TableWriter<'a, E, N>, WriteError> {
        let mut file = partial.file();
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .map_err(|error| WriteError::file(partial.target(), error))?;
        let encoder_failed = |error: ParquetError| WriteError::file(partial.target(), error);
        let schema = Arc::new(E::LAYOUT.schema().map_err(encoder_failed)?);
        let properties = Arc::new(properties(E::LAYOUT));
        let file = ChecksummedFile::new(file);
        let writer = SerializedFileWriter::new(file, schema, properties).map_err(encoder_failed)?;
        let columns = E::LAYOUT.columns.iter().map(ColumnValues::new).collect();
        let (checksums, encoder) = (Vec::new(), E::default());
        Ok(TableWriter { partial, writer, checksums, encoder, columns, rows: 0, written: 0 })
    }

    pub(crate) fn write(&mut self, row: &E::Row) -> Result<(), WriteError> {
        let numbers = self.encoder.encode(row).map_err(|fault| WriteError::Record {
            path: self.partial.target().to_path_buf(),
            row: self.written,
            fault,
        })?;
        let (mut numbers, mut texts) = (numbers.into_iter(), E::texts(row).iter());
        for column in &mut self.columns {
            match column {
                ColumnValues::Narrow(values) => values.extend(numbers.next().map(narrow)),
                ColumnValues::Wide(values) => values.extend(numbers.next()),
                ColumnValues::Text(values) => values.extend(texts.next().cloned()),
            }
        }
        self.rows += 1;
        self.written += 1;
        if self.rows == ROW_GROUP_ROWS {
            self.write_group()?;
        }
        Ok(())
    }

    /// Completes the file, brings it to the disk and gives it its name. Returns the number of
    /// rows.
    pub(crate) fn finish(mut self) -> Result<u64, WriteError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.writer.append_key_value_metadata(checksums::described(&self.checksums));
        self.writer.finish().map_err(|error| WriteError::file(self.partial.target(), error))?;
        self.partial.commit().map_err(|error| WriteError::file(self.partial.target(), error))?;
        Ok(self.written)
    }

    fn write_group(&mut self) -> Result<(), WriteError> {
        let written = self.writer.next_row_group().and_then(|mut group| {
            for (column, values) in E::LAYOUT.columns.iter().zip(&self.columns) {
                values.write(&mut group, column.nullable)?;
            }
            group.close().map(|_| ())
        });
        let written = written.and_then(|()| {
            self.writer.flush()?;
            let end = self.writer.bytes_written();
            self.checksums.push(self.writer.inner_mut().end_group(end));
            Ok(())
        });
        self.columns.iter_mut().for_each(ColumnValues::clear);
        self.rows = 0;
        written.map_err(|error| WriteError::file(self.partial.target(), error))
    }
}

enum ColumnValues {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
    Text(Vec<ByteArray>),
}

impl ColumnValues {
    fn new(column: &Column) -> ColumnValues {
        match column.kind {
            ColumnType::Int32 | ColumnType::Uint32 => ColumnValues::Narrow(Vec::new()),
            ColumnType::Int64 | ColumnType::Uint64 => ColumnValues::Wide(Vec::new()),
            ColumnType::Text => ColumnValues::Text(Vec::new()),
        }
    }

    fn write(
        &self,
        group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
        nullable: bool,
    ) -> Result<(), ParquetError> {
        match self {
            ColumnValues::Narrow(values) if nullable => {
                write_nullable::<Int32Type, _>(group, values, &NARROW_NULL)
            }
            ColumnValues::Wide(values) if nullable => {
                write_nullable::<Int64Type, _>(group, values, &NULL)
            }
            ColumnValues::Narrow(values) => write_column::<Int32Type, _>(group, values),
            ColumnValues::Wide(values) => write_column::<Int64Type, _>(group, values),
            ColumnValues::Text(values) => write_column::<ByteArrayType, _>(group, values),
        }
    }

    fn clear(&mut self) {
        match self {
            ColumnValues::Narrow(values) => values.clear(),
            ColumnValues::Wide(values) => values.clear(),
            ColumnValues::Text(values) => values.clear(),
        }
    }
}

/// [`NULL`] in a column of 32 bits.
const NARROW_NULL: i32 = i32::MIN;

/// The 32 bits that are stored of a number that fits `i32` or `u32`.
fn narrow(number: i64) -> i32 {
    if number == NULL { NARROW_NULL } else { number as i32 }
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
pub(crate) fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".to_owned()));
    };
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

/// Writes the next column of the row group, in which rows with the value `null` have none.
fn write_nullable<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
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
