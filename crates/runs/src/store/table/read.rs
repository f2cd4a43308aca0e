//! The rows of a table, decoded in batches.

use std::array;
use std::fs::File;
use std::iter::FusedIterator;
use std::mem::size_of;
use std::path::PathBuf;
use std::sync::Arc;

use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::store::error::{RowFault, TraceError};
use crate::store::guard::guarded;
use crate::store::table::pages::CheckedPages;
use crate::store::table::{Column, ColumnType, NULL, Table, TableReader, index_of, open_file};

/// Rows decoded at a time: enough to spread the cost of a call, few enough for the second-level
/// cache.
const BATCH_ROWS: usize = 8 * 1024;

/// A table whose rows are made of the numbers in its first `N` columns.
pub(crate) trait DecodeRows<const N: usize>: Table {
    /// The row of these numbers, [`NULL`] where a column has none. `None` leaves the row out.
    fn decode(&mut self, numbers: [i64; N]) -> Result<Option<Self::Row>, RowFault>;
}

/// Iterator over the rows of a table. After an error it ends.
pub(crate) struct Rows<D, const N: usize> {
    table: TableReader,
    file: Arc<File>,
    /// `None` for a column that the file lacks.
    columns: [Option<ColumnBuffer>; N],
    decoder: D,
    /// Number of the row group that comes after the one that is being read.
    group: usize,
    /// Rows of the row group that are not decoded yet.
    rows_in_group: usize,
    rows_in_batch: usize,
    next: usize,
    rows_before_batch: u64,
    ended: bool,
}

impl<D: DecodeRows<N>, const N: usize> Rows<D, N> {
    pub(crate) fn open(path: PathBuf) -> Result<Rows<D, N>, TraceError> {
        Rows::new(&TableReader::open(path, D::LAYOUT)?)
    }

    pub(crate) fn new(table: &TableReader) -> Result<Rows<D, N>, TraceError> {
        // A file of its own: threads that shared one would move each other's position in it.
        let file = Arc::new(open_file(&table.path)?);
        let columns = array::from_fn(|place| {
            let column = *D::LAYOUT.columns.get(place)?;
            Some(ColumnBuffer::new(index_of(&table.metadata, column)?, column))
        });
        Ok(Rows {
            table: table.clone(),
            file,
            columns,
            decoder: D::default(),
            group: 0,
            rows_in_group: 0,
            rows_in_batch: 0,
            next: 0,
            rows_before_batch: 0,
            ended: false,
        })
    }

    pub(crate) fn table(&self) -> &TableReader {
        &self.table
    }

    /// The decoder, with what it has counted so far.
    pub(crate) fn decoder(&self) -> &D {
        &self.decoder
    }

    /// Decodes the next batch. Returns whether there was one.
    fn refill(&mut self) -> Result<bool, TraceError> {
        self.rows_before_batch += self.rows_in_batch as u64;
        (self.rows_in_batch, self.next) = (0, 0);
        let TableReader { path, metadata, .. } = &self.table;
        let damaged = |reason: String| TraceError::Damaged { path: path.clone(), reason };
        let mut columns: Vec<&mut ColumnBuffer> = self.columns.iter_mut().flatten().collect();
        while self.rows_in_group == 0 {
            let (file, number) = (&self.file, self.group);
            let Some(group) = metadata.row_groups().get(number) else {
                return Ok(false);
            };
            self.table
                .checksums
                .compare(file, number)
                .map_err(|error| damaged(error.to_string()))?;
            // Checked when the table was opened.
            self.rows_in_group = usize::try_from(group.num_rows()).unwrap_or(0);
            let start = || columns.iter_mut().try_for_each(|c| c.start(file, metadata, number));
            guarded(start, ParquetError::General).map_err(|error| damaged(error.to_string()))?;
            self.group += 1;
        }
        let rows = self.rows_in_group.min(BATCH_ROWS);
        let decode = || columns.iter_mut().try_for_each(|column| column.decode(rows));
        guarded(decode, ParquetError::General).map_err(|error| damaged(error.to_string()))?;
        self.rows_in_group -= rows;
        self.rows_in_batch = rows;
        Ok(true)
    }

    fn row(&mut self) -> Result<Option<D::Row>, TraceError> {
        let place = self.next;
        self.next += 1;
        let numbers = self.columns.each_ref().map(|column| {
            column.as_ref().and_then(|column| column.numbers.get(place)).copied().unwrap_or(NULL)
        });
        self.decoder.decode(numbers).map_err(|fault| TraceError::Row {
            path: self.table.path.clone(),
            row: self.rows_before_batch + place as u64,
            fault,
        })
    }
}

impl<D: DecodeRows<N>, const N: usize> Iterator for Rows<D, N> {
    type Item = Result<D::Row, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let row = if self.next < self.rows_in_batch {
                self.row()
            } else {
                self.refill().map(|more| {
                    self.ended = !more;
                    None
                })
            };
            self.ended |= row.is_err();
            if let Some(row) = row.transpose() {
                return Some(row);
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let handed_out = self.rows_before_batch + self.next as u64;
        // One more than the rows that are left: an error may come in their place or after them.
        let most = self.table.rows.saturating_sub(handed_out).saturating_add(1);
        (0, usize::try_from(most).ok())
    }
}

impl<D: DecodeRows<N>, const N: usize> FusedIterator for Rows<D, N> {}

struct ColumnBuffer {
    /// Place of the column in the file.
    index: usize,
    column: Column,
    reader: Option<ColumnReader>,
    /// Whether each value is there, in a column that could leave some out.
    levels: Vec<i16>,
    numbers: Vec<i64>,
}

enum ColumnReader {
    Narrow(ColumnReaderImpl<Int32Type>, Vec<i32>),
    Wide(ColumnReaderImpl<Int64Type>),
}

impl ColumnBuffer {
    fn new(index: usize, column: Column) -> ColumnBuffer {
        ColumnBuffer { index, column, reader: None, levels: Vec::new(), numbers: Vec::new() }
    }

    /// Goes to the beginning of a row group.
    fn start(
        &mut self,
        file: &Arc<File>,
        metadata: &ParquetMetaData,
        group: usize,
    ) -> Result<(), ParquetError> {
        // The type was checked when the table was opened.
        self.reader = Some(match self.column.kind {
            ColumnType::Int32 | ColumnType::Uint32 => {
                ColumnReader::Narrow(open_column(file, metadata, group, self.index)?, Vec::new())
            }
            _ => ColumnReader::Wide(open_column(file, metadata, group, self.index)?),
        });
        Ok(())
    }

    /// Replaces the numbers by those of the next `rows` rows of the row group. Other programs mark every column as one
    /// that may leave values out; that is accepted as long as none is left out.
    fn decode(&mut self, rows: usize) -> Result<(), ParquetError> {
        let ColumnBuffer { column, reader, levels, numbers, .. } = self;
        levels.clear();
        numbers.clear();
        match reader {
            None => return Err(ParquetError::General("no row group was started".to_owned())),
            Some(ColumnReader::Wide(reader)) => read_values(reader, rows, levels, numbers)?,
            Some(ColumnReader::Narrow(reader, values)) => {
                values.clear();
                read_values(reader, rows, levels, values)?;
                if column.kind == ColumnType::Uint32 {
                    numbers.extend(values.iter().map(|value| i64::from(value.cast_unsigned())));
                } else {
                    numbers.extend(values.iter().map(|value| i64::from(*value)));
                }
            }
        }
        if numbers.len() < rows && levels.len() == rows && column.nullable {
            self.fill(rows);
        }
        if self.numbers.len() != rows {
            return Err(ParquetError::General("a column has rows without a value".to_owned()));
        }
        Ok(())
    }

    /// Puts [`NULL`] where a value is left out. The numbers are those that are there, in order.
    fn fill(&mut self, rows: usize) {
        let mut there = self.numbers.len();
        self.numbers.resize(rows, NULL);
        for row in (0..rows).rev() {
            if there > 0 && self.levels.get(row).is_some_and(|level| *level > 0) {
                there -= 1;
                self.numbers.swap(row, there);
            } else {
                self.numbers[row] = NULL;
            }
        }
    }
}

fn open_column<T: DataType>(
    file: &Arc<File>,
    metadata: &ParquetMetaData,
    group: usize,
    index: usize,
) -> Result<ColumnReaderImpl<T>, ParquetError> {
    let group = metadata.row_group(group);
    let chunk = group.column(index);
    let rows = usize::try_from(group.num_rows())?;
    let pages = SerializedPageReader::new(Arc::clone(file), chunk, rows, None)?;
    let pages = CheckedPages::new(pages, size_of::<T::T>());
    Ok(ColumnReaderImpl::new(chunk.column_descr_ptr(), Box::new(pages)))
}

fn read_values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    levels: &mut Vec<i16>,
    values: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    let (read, _, _) = reader.read_records(rows, Some(levels), None, values)?;
    if read != rows {
        return Err(ParquetError::EOF(format!("a column ends {} rows early", rows - read)));
    }
    Ok(())
}
