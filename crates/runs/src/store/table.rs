//! Tables as Parquet files: their columns, and what they must look like.

pub(crate) mod checksums;
pub(crate) mod pages;
pub(crate) mod read;
pub(crate) mod write;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::schema::types::{ColumnDescriptor, Type as SchemaType};

use crate::store::error::{RowFault, TraceError};
use crate::store::guard::guarded;
use crate::store::table::checksums::Checksums;

/// A kind of table, with what its next row must keep against the rows before.
pub(crate) trait Table: Default {
    type Row;
    const LAYOUT: &'static Layout;
}

/// Stands in memory for a value that a row does not have. No run has such a number.
pub(crate) const NULL: i64 = i64::MIN;

/// The number of a nullable column for `value`.
pub(crate) fn or_null<T: Into<i64>>(value: Option<T>) -> i64 {
    value.map_or(NULL, T::into)
}

pub(crate) fn known(number: i64) -> Option<i64> {
    (number != NULL).then_some(number)
}

/// A number that a column of `i32` can hold, or `fault`.
pub(crate) fn to_int32(number: u32, fault: RowFault) -> Result<i64, RowFault> {
    i32::try_from(number).map(i64::from).map_err(|_| fault)
}

/// A number of a column of `i32`, which must not be below 0, or `fault`.
pub(crate) fn from_int32(number: i64, fault: RowFault) -> Result<u32, RowFault> {
    u32::try_from(number).map_err(|_| fault)
}

#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) name: &'static str,
    /// The columns in the order in which they are written.
    pub(crate) columns: &'static [Column],
    /// The column whose values never fall from row to row.
    pub(crate) sorted_by: Column,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: ColumnType,
    pub(crate) optional: bool,
    /// Whether a row may have no value in it (null).
    pub(crate) nullable: bool,
    /// Its name in files written before.
    pub(crate) formerly: Option<&'static str>,
}

impl Column {
    /// A column that every file has.
    pub(crate) const fn required(name: &'static str, kind: ColumnType) -> Column {
        Column { name, kind, optional: false, nullable: false, formerly: None }
    }

    pub(crate) const fn nullable(name: &'static str, kind: ColumnType) -> Column {
        Column { optional: true, nullable: true, ..Column::required(name, kind) }
    }
}

hourglass_documents::named_enum! {
    /// Type of a column's values. Parquet knows unsigned numbers only as an annotation of signed ones.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum ColumnType {
        Int32 => "int32",
        Uint32 => "uint32",
        Int64 => "int64",
        Uint64 => "uint64",
        /// UTF-8. Such columns are written, and none is read.
        Text => "text",
    }
}

/// Last four bytes of every Parquet file.
const PARQUET_MAGIC: [u8; 4] = *b"PAR1";

impl ColumnType {
    /// The type of the column that `descriptor` describes, or the name of one that is no number
    /// of ours.
    fn from_descriptor(descriptor: &ColumnDescriptor) -> Result<ColumnType, String> {
        let converted = descriptor.converted_type();
        let unsigned = match descriptor.logical_type_ref() {
            Some(LogicalType::Integer(integer)) => !integer.is_signed,
            Some(other) => return Err(format!("{other:?}")),
            None => match converted {
                ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64 => true,
                ConvertedType::NONE
                | ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::INT_64 => false,
                other => return Err(format!("{other:?}")),
            },
        };
        match (descriptor.physical_type(), unsigned) {
            (PhysicalType::INT32, false) => Ok(ColumnType::Int32),
            (PhysicalType::INT32, true) => Ok(ColumnType::Uint32),
            (PhysicalType::INT64, false) => Ok(ColumnType::Int64),
            (PhysicalType::INT64, true) => Ok(ColumnType::Uint64),
            (other, _) => Err(format!("{other:?}")),
        }
    }
}

impl Layout {
    fn schema(&self) -> Result<SchemaType, ParquetError> {
        let mut fields = Vec::with_capacity(self.columns.len());
        for column in self.columns {
            let (physical, annotation) = match column.kind {
                ColumnType::Int32 => (PhysicalType::INT32, None),
                ColumnType::Uint32 => (PhysicalType::INT32, Some(LogicalType::integer(32, false))),
                ColumnType::Int64 => (PhysicalType::INT64, None),
                ColumnType::Uint64 => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
                ColumnType::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            };
            let field = SchemaType::primitive_type_builder(column.name, physical)
                .with_repetition(if column.nullable {
                    Repetition::OPTIONAL
                } else {
                    Repetition::REQUIRED
                })
                .with_logical_type(annotation)
                .build()?;
            fields.push(Arc::new(field));
        }
        SchemaType::group_type_builder(self.name).with_fields(fields).build()
    }
}

/// A table on disk whose description has been read and found good; its rows have not.
#[derive(Clone, Debug)]
pub(crate) struct TableReader {
    path: PathBuf,
    metadata: Arc<ParquetMetaData>,
    checksums: Arc<Checksums>,
    rows: u64,
}

impl TableReader {
    /// Opens the table in the file `path`. Columns that are not ours are left alone.
    pub(crate) fn open(path: PathBuf, layout: &Layout) -> Result<TableReader, TraceError> {
        let file = open_file(&path)?;
        let length = length_if_complete(&file)
            .map_err(|source| TraceError::Io { path: path.clone(), source })?
            .ok_or_else(|| TraceError::Truncated(path.clone()))?;
        let damaged = |reason| TraceError::Damaged { path: path.clone(), reason };
        let metadata = guarded(
            || ParquetMetaDataReader::new().parse_and_finish(&file).map_err(|e| e.to_string()),
            |reason| reason,
        )
        .map_err(damaged)?;
        let rows = guarded(|| check(&path, layout, &metadata, length), damaged)?;
        let checksums = Checksums::of(&metadata, length).map_err(damaged)?;
        Ok(TableReader { path, metadata: Arc::new(metadata), checksums: Arc::new(checksums), rows })
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn open_file(path: &Path) -> Result<File, TraceError> {
    File::open(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => TraceError::Missing(path.to_path_buf()),
        _ => TraceError::Io { path: path.to_path_buf(), source },
    })
}

/// The file's length in bytes if it ends as a Parquet file does.
fn length_if_complete(mut file: &File) -> io::Result<Option<u64>> {
    let length = file.metadata()?.len();
    // The shortest is the magic, an empty description, its length, the magic.
    if length < 12 {
        return Ok(None);
    }
    let mut end = [0; PARQUET_MAGIC.len()];
    file.seek(SeekFrom::End(-4))?;
    file.read_exact(&mut end)?;
    Ok((end == PARQUET_MAGIC).then_some(length))
}

fn index_of(metadata: &ParquetMetaData, column: Column) -> Option<usize> {
    let columns = metadata.file_metadata().schema_descr().columns();
    let index = |wanted: &str| {
        // A column of this name inside a group is another column.
        columns.iter().position(|found| matches!(found.path().parts(), [name] if name == wanted))
    };
    index(column.name).or_else(|| column.formerly.and_then(index))
}

/// Checks columns and row groups against a file of `length` bytes; gives the number of rows.
fn check(
    path: &Path,
    layout: &Layout,
    metadata: &ParquetMetaData,
    length: u64,
) -> Result<u64, TraceError> {
    let damaged =
        |reason: &str| TraceError::Damaged { path: path.to_path_buf(), reason: reason.to_owned() };
    for &column in layout.columns {
        let Some(index) = index_of(metadata, column) else {
            if column.optional {
                continue;
            }
            return Err(TraceError::MissingColumn {
                path: path.to_path_buf(),
                column: column.name,
                wanted: column.kind.name(),
            });
        };
        check_type(path, column, &metadata.file_metadata().schema_descr().column(index))?;
        for group in metadata.row_groups() {
            let chunk = group.column(index);
            if chunk.num_values() != group.num_rows() {
                return Err(damaged("columns have different lengths"));
            }
            check_chunk(path, column, chunk, length)?;
        }
    }
    let mut rows = 0_u64;
    for group in metadata.row_groups() {
        rows = u64::try_from(group.num_rows())
            .ok()
            .and_then(|more| rows.checked_add(more))
            .ok_or_else(|| damaged("a row group has an impossible length"))?;
    }
    if u64::try_from(metadata.file_metadata().num_rows()) != Ok(rows) {
        return Err(damaged("the row groups do not add up to the number of rows"));
    }
    Ok(rows)
}

/// Checks that the column has its type and at most one value in a row.
fn check_type(
    path: &Path,
    column: Column,
    descriptor: &ColumnDescriptor,
) -> Result<(), TraceError> {
    let found = match ColumnType::from_descriptor(descriptor) {
        _ if descriptor.max_rep_level() > 0 => "a list".to_owned(),
        Ok(kind) if kind == column.kind => return Ok(()),
        Ok(kind) => kind.name().to_owned(),
        Err(name) => name,
    };
    Err(TraceError::WrongType {
        path: path.to_path_buf(),
        column: column.name,
        found,
        wanted: column.kind.name(),
    })
}

/// Checks that the column's part in a row group is uncompressed and lies inside the file, so that
/// no decoder asks for more memory than the file has bytes.
fn check_chunk(
    path: &Path,
    column: Column,
    chunk: &ColumnChunkMetaData,
    length: u64,
) -> Result<(), TraceError> {
    if chunk.compression() != Compression::UNCOMPRESSED {
        return Err(TraceError::Compressed {
            path: path.to_path_buf(),
            column: column.name,
            codec: format!("{:?}", chunk.compression()),
        });
    }
    let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
    let end = u64::try_from(start)
        .ok()
        .zip(u64::try_from(chunk.compressed_size()).ok())
        .and_then(|(start, bytes)| start.checked_add(bytes));
    match end {
        Some(end) if end <= length => Ok(()),
        _ => Err(TraceError::Damaged {
            path: path.to_path_buf(),
            reason: format!("the column '{}' lies outside the file", column.name),
        }),
    }
}
