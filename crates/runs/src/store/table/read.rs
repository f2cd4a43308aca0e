//! The rows of a table, decoded in batches.

use std::fs::File;
use std::mem::size_of;
use std::sync::Arc;

use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::store::error::{RowFault, TraceError};
use crate::store::guard::guarded;
use crate::store::table::pages::CheckedPages;
use crate::store::table::{Column, TableReader, index_of, open_file};

/// Rows decoded at a time: enough to spread the cost of a call, few enough for the second-level
/// cache.
const BATCH_ROWS: usize = 8 * 1024;

/// The decoders of a table's columns, and how its rows are put together from their values.
pub(crate) trait DecodeRows {
    type Row: Copy;

    /// The decoder of each column.
    fn columns(&mut self) -> Vec<&mut dyn DecodeColumn>;

    /// Appends the decoded rows, of which there are `rows`, to `batch`, up to the first that no
    /// such table can have.
    fn assemble(&mut self, rows: usize, batch: &mut Vec<Self::Row>) -> Result<(), RowFault>;
}

/// The decoder of one column.
pub(crate) trait DecodeColumn {
    /// Goes to the beginning of a row group.
    fn start(
        &mut self,
        file: &Arc<File>,
        metadata: &ParquetMetaData,
        group: usize,
    ) -> Result<(), ParquetError>;

    /// Decodes the next `rows` rows of the row group.
    fn decode(&mut self, rows: usize) -> Result<(), ParquetError>;
}

/// Iterator over the rows of a table. After an error it ends.
pub(crate) struct Rows<D: DecodeRows> {
    table: TableReader,
    file: Arc<File>,
    decoder: D,
    /// Number of the row group that comes after the one that is being read.
    group: usize,
    /// Rows of the row group that are not decoded yet.
    rows_in_group: usize,
    batch: Vec<D::Row>,
    /// Place in `batch` of the next row.
    next: usize,
    rows_before_batch: u64,
    ended: bool,
    /// The fault that ended the table; returned after the rows before it.
    failure: Option<TraceError>,
}

impl<D: DecodeRows> Rows<D> {
    /// The rows of `table` from the first one on.
    pub(crate) fn new(table: &TableReader, decoder: D) -> Result<Rows<D>, TraceError> {
        // A file of its own: threads that shared one would move each other's position in it.
        let file = Arc::new(open_file(&table.path)?);
        Ok(Rows {
            table: table.clone(),
            file,
            decoder,
            group: 0,
            rows_in_group: 0,
            batch: Vec::with_capacity(BATCH_ROWS),
            next: 0,
            rows_before_batch: 0,
            ended: false,
            failure: None,
        })
    }

    pub(crate) fn table(&self) -> &TableReader {
        &self.table
    }

    /// The decoder, with what it has counted so far.
    pub(crate) fn decoder(&self) -> &D {
        &self.decoder
    }

    /// Decodes the next batch. Whether there was one; it may be empty where the decoder leaves
    /// rows out.
    fn refill(&mut self) -> Result<bool, TraceError> {
        self.rows_before_batch += self.batch.len() as u64;
        self.batch.clear();
        self.next = 0;
        let TableReader { path, metadata, .. } = &self.table;
        let damaged = |error: ParquetError| TraceError::Damaged {
            path: path.clone(),
            reason: error.to_string(),
        };
        let mut columns = self.decoder.columns();
        while self.rows_in_group == 0 {
            let (file, number) = (&self.file, self.group);
            let Some(group) = metadata.row_groups().get(number) else {
                return Ok(false);
            };
            // Checked when the table was opened.
            self.rows_in_group = usize::try_from(group.num_rows()).unwrap_or(0);
            let start = || columns.iter_mut().try_for_each(|c| c.start(file, metadata, number));
            guarded(start, decoder_panicked).map_err(damaged)?;
            self.group += 1;
        }
        let rows = self.rows_in_group.min(BATCH_ROWS);
        let decode = || columns.iter_mut().try_for_each(|column| column.decode(rows));
        guarded(decode, decoder_panicked).map_err(damaged)?;
        self.rows_in_group -= rows;
        self.decoder.assemble(rows, &mut self.batch).map_err(|fault| TraceError::Row {
            path: path.clone(),
            row: self.rows_before_batch + self.batch.len() as u64,
            fault,
        })?;
        Ok(true)
    }
}

impl<D: DecodeRows> Iterator for Rows<D> {
    type Item = Result<D::Row, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.batch.get(self.next) {
                self.next += 1;
                return Some(Ok(*row));
            }
            if self.ended {
                return self.failure.take().map(Err);
            }
            match self.refill() {
                Ok(more) => self.ended = !more,
                Err(failure) => {
                    self.failure = Some(failure);
                    self.ended = true;
                }
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let handed_out = self.rows_before_batch + self.next as u64;
        // One more than the rows that are left: an error may come in their place or after them.
        let most = self.table.rows.saturating_sub(handed_out).saturating_add(1);
        (0, usize::try_from(most).ok())
    }
}

fn decoder_panicked(reason: String) -> ParquetError {
    ParquetError::General(reason)
}

/// The decoder of one column of numbers, and room for a batch of its values.
pub(crate) struct ColumnBuffer<T: DataType> {
    /// Place of the column in the file.
    index: usize,
    reader: Option<ColumnReaderImpl<T>>,
    /// Whether each value is there, in a column that could leave some out.
    levels: Vec<i16>,
    /// What stands for a value that is left out, in a column where that may be.
    null: Option<T::T>,
    pub(crate) values: Vec<T::T>,
}

impl<T: DataType> ColumnBuffer<T> {
    /// The decoder of `column` of `table`; its values are of type `T`, which was checked when the
    /// table was opened.
    pub(crate) fn new(table: &TableReader, column: Column) -> Result<ColumnBuffer<T>, TraceError> {
        ColumnBuffer::if_there(table, column).ok_or_else(|| TraceError::Damaged {
            path: table.path.clone(),
            reason: format!("the column '{}' is gone", column.name),
        })
    }

    /// The same for a column that the file may lack.
    pub(crate) fn if_there(table: &TableReader, column: Column) -> Option<ColumnBuffer<T>> {
        let index = index_of(&table.metadata, column)?;
        let (levels, values) = (Vec::new(), Vec::new());
        Some(ColumnBuffer { index, reader: None, levels, null: None, values })
    }

    /// The same for a column that may leave values out; `null` stands for them.
    pub(crate) fn nullable(
        table: &TableReader,
        column: Column,
        null: T::T,
    ) -> Option<ColumnBuffer<T>> {
        let buffer = ColumnBuffer::if_there(table, column)?;
        Some(ColumnBuffer { null: Some(null), ..buffer })
    }

    /// Puts `null` where a value is left out. The values are those that are there, in order.
    fn fill(&mut self, null: &T::T, rows: usize) {
        let mut there = self.values.len();
        self.values.resize(rows, null.clone());
        for row in (0..rows).rev() {
            if there > 0 && self.levels.get(row).is_some_and(|level| *level > 0) {
                there -= 1;
                self.values.swap(row, there);
            } else {
                self.values[row] = null.clone();
            }
        }
    }
}

impl<T: DataType> DecodeColumn for ColumnBuffer<T> {
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

    /// Replaces `values` by the next ones. Other programs mark every column as one that may leave
    /// values out; that is accepted as long as none is left out.
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
        if values < rows
            && self.levels.len() == rows
            && let Some(null) = self.null.clone()
        {
            self.fill(&null, rows);
            return Ok(());
        }
        if values != rows || self.values.len() != rows {
            return Err(ParquetError::General("a column has rows without a value".to_owned()));
        }
        Ok(())
    }
}
