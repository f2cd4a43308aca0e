//! `spans.parquet`: spans of a program one by one, in order of their starts.

use std::path::PathBuf;

use hourglass_documents::Cause;
use hourglass_documents::sites::{RecordedLoss, RecordedSpan};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;

use crate::store::error::{RowFault, TraceError, WriteError};
use crate::store::partial::PartialFile;
use crate::store::table::read::{ColumnBuffer, DecodeColumn, DecodeRows, Rows};
use crate::store::table::write::{EncodeRows, RowGroup, TableWriter, write_column, write_nullable};
use crate::store::table::{Column, ColumnType, Layout, TableReader};

const THREAD: Column = Column::required("thread", ColumnType::Int32);
const SITE: Column = Column::required("site", ColumnType::Int32);
const START_NS: Column = Column::required("start_ns", ColumnType::Int64);
const END_NS: Column = Column::required("end_ns", ColumnType::Int64);
const CPU_BEFORE: Column = Column::required("cpu_before", ColumnType::Int32);
const CPU_AFTER: Column = Column::required("cpu_after", ColumnType::Int32);
const LOST_LEAST_NS: Column = Column::nullable("lost_least_ns", ColumnType::Int64);
const LOST_MOST_NS: Column = Column::nullable("lost_most_ns", ColumnType::Int64);
/// Place of the cause in the list of the documents; null where nothing was lost.
const CAUSE: Column = Column::nullable("cause", ColumnType::Int32);

const LAYOUT: Layout = Layout {
    name: "spans",
    columns: &[
        THREAD,
        SITE,
        START_NS,
        END_NS,
        CPU_BEFORE,
        CPU_AFTER,
        LOST_LEAST_NS,
        LOST_MOST_NS,
        CAUSE,
    ],
    sorted_by: START_NS,
};

/// Stand for null while rows are columns of numbers.
const NOTHING: i64 = -1;
const NO_CAUSE: i32 = -1;

/// Writes the spans into `partial` and gives it its name.
pub(crate) fn write(
    partial: &PartialFile,
    spans: impl Iterator<Item = RecordedSpan>,
) -> Result<(), WriteError> {
    let mut table = TableWriter::start(partial, &LAYOUT, Buffer::default())?;
    for span in spans {
        table.write(&span)?;
    }
    table.finish().map(|_| ())
}

/// The spans in the file `path`, decoded as they are asked for.
pub(crate) fn read(
    path: PathBuf,
) -> Result<impl Iterator<Item = Result<RecordedSpan, TraceError>> + use<>, TraceError> {
    let table = TableReader::open(path, &LAYOUT)?;
    let columns = Columns {
        numbers: [
            ColumnBuffer::new(&table, THREAD)?,
            ColumnBuffer::new(&table, SITE)?,
            ColumnBuffer::new(&table, CPU_BEFORE)?,
            ColumnBuffer::new(&table, CPU_AFTER)?,
        ],
        times: [ColumnBuffer::new(&table, START_NS)?, ColumnBuffer::new(&table, END_NS)?],
        lost: [LOST_LEAST_NS, LOST_MOST_NS]
            .map(|column| ColumnBuffer::nullable(&table, column, NOTHING)),
        cause: ColumnBuffer::nullable(&table, CAUSE, NO_CAUSE),
        last_ns: i64::MIN,
    };
    Rows::new(&table, columns)
}

/// Checks a span's times against those of the one above it, which started at `last_ns`.
fn admit(last_ns: &mut i64, start_ns: i64, end_ns: i64) -> Result<(), RowFault> {
    if end_ns < start_ns {
        return Err(RowFault::Reversed);
    }
    if start_ns < *last_ns {
        return Err(RowFault::OutOfOrder);
    }
    *last_ns = start_ns;
    Ok(())
}

/// The number of a CPU; an error for a negative number.
fn cpu(number: i32) -> Result<u32, RowFault> {
    u32::try_from(number).map_err(|_| RowFault::Cpu)
}

/// The spans of a row group, column by column.
struct Buffer {
    /// Thread, site, both CPUs.
    numbers: [Vec<i32>; 4],
    times: [Vec<i64>; 2],
    lost: [Vec<i64>; 2],
    cause: Vec<i32>,
    last_ns: i64,
}

impl Default for Buffer {
    fn default() -> Buffer {
        let (numbers, times, lost) = Default::default();
        Buffer { numbers, times, lost, cause: Vec::new(), last_ns: i64::MIN }
    }
}

impl EncodeRows for Buffer {
    type Row = RecordedSpan;

    fn push(&mut self, span: &RecordedSpan) -> Result<(), RowFault> {
        let number = |number: u32, fault| i32::try_from(number).map_err(|_| fault);
        let numbers = [
            number(span.thread, RowFault::Thread)?,
            number(span.site, RowFault::Thread)?,
            number(span.cpu_before, RowFault::Cpu)?,
            number(span.cpu_after, RowFault::Cpu)?,
        ];
        admit(&mut self.last_ns, span.start_ns, span.end_ns)?;
        let ns = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let lost = span.lost.map(|lost| [ns(lost.least_ns), ns(lost.most_ns)]);
        let code = |cause: Cause| Cause::ALL.iter().position(|one| *one == cause);
        let cause = span.lost.and_then(|lost| code(lost.cause)).map_or(NO_CAUSE, |at| at as i32);
        let push = |columns: &mut [Vec<i64>; 2], values: [i64; 2]| {
            columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        };
        self.numbers.iter_mut().zip(numbers).for_each(|(column, value)| column.push(value));
        push(&mut self.times, [span.start_ns, span.end_ns]);
        push(&mut self.lost, lost.unwrap_or([NOTHING; 2]));
        self.cause.push(cause);
        Ok(())
    }

    fn len(&self) -> usize {
        self.cause.len()
    }

    fn write(&self, group: &mut RowGroup<'_, '_>) -> Result<(), ParquetError> {
        let [thread, site, cpu_before, cpu_after] = &self.numbers;
        write_column::<Int32Type>(group, thread)?;
        write_column::<Int32Type>(group, site)?;
        for times in &self.times {
            write_column::<Int64Type>(group, times)?;
        }
        write_column::<Int32Type>(group, cpu_before)?;
        write_column::<Int32Type>(group, cpu_after)?;
        for lost in &self.lost {
            write_nullable::<Int64Type>(group, lost, &NOTHING)?;
        }
        write_nullable::<Int32Type>(group, &self.cause, &NO_CAUSE)
    }

    fn clear(&mut self) {
        self.numbers.iter_mut().for_each(Vec::clear);
        self.times.iter_mut().chain(&mut self.lost).for_each(Vec::clear);
        self.cause.clear();
    }
}

/// One decoder for each column.
struct Columns {
    /// Thread, site, both CPUs.
    numbers: [ColumnBuffer<Int32Type>; 4],
    times: [ColumnBuffer<Int64Type>; 2],
    lost: [Option<ColumnBuffer<Int64Type>>; 2],
    cause: Option<ColumnBuffer<Int32Type>>,
    last_ns: i64,
}

impl DecodeRows for Columns {
    type Row = RecordedSpan;

    fn columns(&mut self) -> Vec<&mut dyn DecodeColumn> {
        let mut columns: Vec<&mut dyn DecodeColumn> = Vec::new();
        columns.extend(self.numbers.iter_mut().map(|column| column as &mut dyn DecodeColumn));
        columns.extend(self.times.iter_mut().map(|column| column as &mut dyn DecodeColumn));
        let lost = self.lost.iter_mut().flatten();
        columns.extend(lost.map(|column| column as &mut dyn DecodeColumn));
        columns.extend(self.cause.iter_mut().map(|column| column as &mut dyn DecodeColumn));
        columns
    }

    fn assemble(&mut self, rows: usize, batch: &mut Vec<RecordedSpan>) -> Result<(), RowFault> {
        let [threads, sites, before, after] =
            self.numbers.each_ref().map(|column| &column.values[..rows]);
        let [starts, ends] = self.times.each_ref().map(|column| &column.values[..rows]);
        let [least, most] =
            self.lost.each_ref().map(|column| column.as_ref().map(|c| &c.values[..rows]));
        let causes = self.cause.as_ref().map(|column| &column.values[..rows]);
        for row in 0..rows {
            admit(&mut self.last_ns, starts[row], ends[row])?;
            // A code of a later version is a cause not known here.
            let cause = causes.map(|causes| causes[row]).filter(|code| *code != NO_CAUSE);
            let cause = cause.map(|code| {
                let at = usize::try_from(code).unwrap_or(usize::MAX);
                Cause::ALL.get(at).copied().unwrap_or(Cause::Unknown)
            });
            let ns = |column: Option<&[i64]>| {
                column.map(|column| column[row]).and_then(|ns| u64::try_from(ns).ok())
            };
            let lost = ns(least).zip(ns(most)).zip(cause);
            let number = |number: i32| u32::try_from(number).map_err(|_| RowFault::Thread);
            batch.push(RecordedSpan {
                thread: number(threads[row])?,
                site: number(sites[row])?,
                start_ns: starts[row],
                end_ns: ends[row],
                cpu_before: cpu(before[row])?,
                cpu_after: cpu(after[row])?,
                lost: lost.map(|((least_ns, most_ns), cause)| RecordedLoss {
                    least_ns,
                    most_ns,
                    cause,
                }),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start_ns: i64, lost: Option<RecordedLoss>) -> RecordedSpan {
        let (thread, site, cpu_before) = (start_ns as u32 % 3, 7, 1);
        RecordedSpan {
            thread,
            site,
            start_ns,
            end_ns: start_ns + 5,
            cpu_before,
            cpu_after: 0,
            lost,
        }
    }

    #[test]
    fn spans_come_back_as_they_were() {
        let home = tempfile::tempdir().unwrap();
        let partial = PartialFile::create(home.path(), crate::store::SPANS_FILE).unwrap();
        let losses = Cause::ALL.map(|cause| RecordedLoss { least_ns: 0, most_ns: 9, cause });
        let lost = losses.map(Some).into_iter().chain([None]);
        let all: Vec<_> = (0..).zip(lost).map(|(at, lost)| span(at / 2, lost)).collect();
        write(&partial, all.iter().copied()).unwrap();
        let path = home.path().join(crate::store::SPANS_FILE);
        let found: Vec<RecordedSpan> = read(path).unwrap().map(Result::unwrap).collect();
        assert_eq!(found, all);
    }

    #[test]
    fn spans_out_of_order_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let partial = PartialFile::create(home.path(), crate::store::SPANS_FILE).unwrap();
        assert!(write(&partial, [span(2, None), span(1, None)].into_iter()).is_err());
        let reversed = RecordedSpan { end_ns: 0, ..span(2, None) };
        assert!(write(&partial, [reversed].into_iter()).is_err());
    }
}
