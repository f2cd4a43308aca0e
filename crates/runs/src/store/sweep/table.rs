//! `sweep.parquet` and `sets.parquet`: the points, and what was said of each set.
//!
//! Owns: their columns, which depend on the analyses compared. Must not: read them back.
//!
//! A point has `utilisation` (double), `sets`, and for each analysis `accepted_NAME` and
//! `undecided_NAME` (int64). A set has `utilisation` (double), `set` (int64, its number in the
//! point), and for each analysis `NAME` (int32): 1 accepted, 0 not, -1 undecided.

use std::io::{self, Write};
use std::sync::Arc;

use hourglass_documents::sweep::{ACCEPTED, StoredPoint, UNDECIDED};
use parquet::basic::{Compression, Repetition, Type as PhysicalType};
use parquet::data_type::{DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type as SchemaType;

use super::SweepFolderError;
use crate::store::partial::PartialFile;
use crate::store::table::write::write_column;

enum Values {
    Double(Vec<f64>),
    Int64(Vec<i64>),
    Int32(Vec<i32>),
}

impl Values {
    fn physical(&self) -> PhysicalType {
        match self {
            Values::Double(_) => PhysicalType::DOUBLE,
            Values::Int64(_) => PhysicalType::INT64,
            Values::Int32(_) => PhysicalType::INT32,
        }
    }

    fn write(
        &self,
        group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    ) -> Result<(), ParquetError> {
        match self {
            Values::Double(values) => write_column::<DoubleType, _>(group, values),
            Values::Int64(values) => write_column::<Int64Type, _>(group, values),
            Values::Int32(values) => write_column::<Int32Type, _>(group, values),
        }
    }
}

/// Writes a row for each point, and gives the file its name.
pub(super) fn write_points(
    partial: &PartialFile,
    analyses: &[String],
    points: &[StoredPoint],
) -> Result<(), SweepFolderError> {
    let count = |number: Option<&u64>| i64::try_from(number.copied().unwrap_or(0)).unwrap_or(0);
    let each = |value: &dyn Fn(&StoredPoint) -> i64| points.iter().map(value).collect();
    let mut columns = vec![
        ("utilisation".to_owned(), utilisations(points, |_| 1)),
        ("sets".to_owned(), Values::Int64(each(&|kept| count(Some(&kept.point.sets))))),
    ];
    for name in analyses {
        let accepted = each(&|kept| count(kept.point.accepted.get(name)));
        let undecided = each(&|kept| count(kept.point.undecided.get(name)));
        columns.push((format!("accepted_{name}"), Values::Int64(accepted)));
        columns.push((format!("undecided_{name}"), Values::Int64(undecided)));
    }
    write(partial, "points", &[columns])
}

/// Writes a row for each set, point by point, and gives the file its name.
pub(super) fn write_sets(
    partial: &PartialFile,
    analyses: &[String],
    points: &[StoredPoint],
) -> Result<(), SweepFolderError> {
    let group = |kept: &StoredPoint| {
        let sets = kept.point.sets;
        let numbers = (0..i64::try_from(sets).unwrap_or(i64::MAX)).collect();
        let mut columns = vec![
            ("utilisation".to_owned(), utilisations(std::slice::from_ref(kept), |_| sets)),
            ("set".to_owned(), Values::Int64(numbers)),
        ];
        for name in analyses {
            let letters = kept.answers.get(name).map_or("", String::as_str);
            columns.push((name.clone(), Values::Int32(letters.chars().map(number).collect())));
        }
        columns
    };
    write(partial, "sets", &points.iter().map(group).collect::<Vec<_>>())
}

fn utilisations(points: &[StoredPoint], times: impl Fn(&StoredPoint) -> u64) -> Values {
    let all = points.iter().flat_map(|kept| {
        std::iter::repeat_n(kept.point.utilisation, usize::try_from(times(kept)).unwrap_or(0))
    });
    Values::Double(all.collect())
}

fn number(letter: char) -> i32 {
    match letter {
        ACCEPTED => 1,
        UNDECIDED => -1,
        _ => 0,
    }
}

/// Writes groups of rows, all with the columns of the first.
fn write(
    partial: &PartialFile,
    name: &str,
    groups: &[Vec<(String, Values)>],
) -> Result<(), SweepFolderError> {
    let failed = |error: io::Error| SweepFolderError::io(partial.target(), error);
    try_write(partial, name, groups).map_err(|error| failed(io::Error::other(error)))?;
    partial.commit().map_err(failed)
}

fn try_write(
    partial: &PartialFile,
    name: &str,
    groups: &[Vec<(String, Values)>],
) -> Result<(), ParquetError> {
    let mut fields = Vec::new();
    for (name, values) in groups.first().into_iter().flatten() {
        let field = SchemaType::primitive_type_builder(name, values.physical())
            .with_repetition(Repetition::REQUIRED)
            .build()?;
        fields.push(Arc::new(field));
    }
    let schema = Arc::new(SchemaType::group_type_builder(name).with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::UNCOMPRESSED)
        .build();
    let mut writer = SerializedFileWriter::new(partial.file(), schema, Arc::new(properties))?;
    for columns in groups {
        let mut group = writer.next_row_group()?;
        for (_, values) in columns {
            values.write(&mut group)?;
        }
        group.close()?;
    }
    writer.finish().map(|_| ())
}
