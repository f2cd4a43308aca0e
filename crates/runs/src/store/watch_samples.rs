//! `looks.parquet`: what the kernel counted for watched threads, look by look, in order of time.

use std::path::PathBuf;

use hourglass_documents::watched::WatchedSample;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;

use crate::store::error::{RowFault, TraceError, WriteError};
use crate::store::partial::PartialFile;
use crate::store::table::read::{ColumnBuffer, DecodeColumn, DecodeRows, Rows};
use crate::store::table::write::{EncodeRows, RowGroup, TableWriter, write_column, write_nullable};
use crate::store::table::{Column, ColumnType, Layout, TableReader};

const NS: Column = Column::required("ns", ColumnType::Uint64);
const TID: Column = Column::required("tid", ColumnType::Uint32);
const STATE: Column = Column::required("state", ColumnType::Uint32);
const CPU: Column = Column::nullable("cpu", ColumnType::Int32);
const RUN_NS: Column = Column::nullable("run_ns", ColumnType::Uint64);
const WAIT_NS: Column = Column::nullable("wait_ns", ColumnType::Uint64);
const VOLUNTARY: Column = Column::nullable("voluntary_switches", ColumnType::Uint64);
const INVOLUNTARY: Column = Column::nullable("involuntary_switches", ColumnType::Uint64);

const LAYOUT: Layout = Layout {
    name: "looks",
    columns: &[NS, TID, STATE, CPU, RUN_NS, WAIT_NS, VOLUNTARY, INVOLUNTARY],
    sorted_by: NS,
};

/// Stand for what is not known while rows are columns of numbers. The kernel counts no such number.
const UNKNOWN: i64 = i64::MIN;
const NO_CPU: i32 = i32::MIN;

/// Writes the looks into `partial` and gives it its name.
pub(crate) fn write(
    partial: &PartialFile,
    looks: impl Iterator<Item = WatchedSample>,
) -> Result<(), WriteError> {
    let mut table = TableWriter::start(partial, &LAYOUT, Buffer::default())?;
    for look in looks {
        table.write(&look)?;
    }
    table.finish().map(|_| ())
}

/// The looks in the file `path`, decoded as they are asked for.
pub(crate) fn read(
    path: PathBuf,
) -> Result<impl Iterator<Item = Result<WatchedSample, TraceError>> + use<>, TraceError> {
    let table = TableReader::open(path, &LAYOUT)?;
    let number = |column| ColumnBuffer::nullable(&table, column, UNKNOWN);
    let columns = Columns {
        ns: ColumnBuffer::new(&table, NS)?,
        tid: ColumnBuffer::new(&table, TID)?,
        state: ColumnBuffer::new(&table, STATE)?,
        cpu: ColumnBuffer::nullable(&table, CPU, NO_CPU),
        counts: [RUN_NS, WAIT_NS, VOLUNTARY, INVOLUNTARY].map(number),
    };
    Rows::new(&table, columns)
}

/// The looks of a row group, column by column.
#[derive(Default)]
struct Buffer {
    ns: Vec<i64>,
    tid: Vec<i32>,
    state: Vec<i32>,
    cpu: Vec<i32>,
    counts: [Vec<i64>; 4],
}

impl EncodeRows for Buffer {
    type Row = WatchedSample;

    fn push(&mut self, look: &WatchedSample) -> Result<(), RowFault> {
        let cpu = look.cpu.map(i32::try_from).transpose().map_err(|_| RowFault::Cpu)?;
        self.ns.push(look.ns.cast_signed());
        self.tid.push(look.tid.cast_signed());
        self.state.push(u32::from(look.state).cast_signed());
        self.cpu.push(cpu.unwrap_or(NO_CPU));
        let counts =
            [look.run_ns, look.wait_ns, look.voluntary_switches, look.involuntary_switches];
        for (column, count) in self.counts.iter_mut().zip(counts) {
            column.push(count.map_or(UNKNOWN, u64::cast_signed));
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.ns.len()
    }

    fn write(&self, group: &mut RowGroup<'_, '_>) -> Result<(), ParquetError> {
        write_column::<Int64Type>(group, &self.ns)?;
        write_column::<Int32Type>(group, &self.tid)?;
        write_column::<Int32Type>(group, &self.state)?;
        write_nullable::<Int32Type>(group, &self.cpu, &NO_CPU)?;
        self.counts
            .iter()
            .try_for_each(|column| write_nullable::<Int64Type>(group, column, &UNKNOWN))
    }

    fn clear(&mut self) {
        self.ns.clear();
        self.tid.clear();
        self.state.clear();
        self.cpu.clear();
        self.counts.iter_mut().for_each(Vec::clear);
    }
}

/// One decoder for each column.
struct Columns {
    ns: ColumnBuffer<Int64Type>,
    tid: ColumnBuffer<Int32Type>,
    state: ColumnBuffer<Int32Type>,
    cpu: Option<ColumnBuffer<Int32Type>>,
    counts: [Option<ColumnBuffer<Int64Type>>; 4],
}

impl DecodeRows for Columns {
    type Row = WatchedSample;

    fn columns(&mut self) -> Vec<&mut dyn DecodeColumn> {
        let mut columns: Vec<&mut dyn DecodeColumn> =
            vec![&mut self.ns, &mut self.tid, &mut self.state];
        columns.extend(self.cpu.iter_mut().map(|column| column as &mut dyn DecodeColumn));
        let counts = self.counts.iter_mut().flatten();
        columns.extend(counts.map(|column| column as &mut dyn DecodeColumn));
        columns
    }

    fn assemble(&mut self, rows: usize, batch: &mut Vec<WatchedSample>) -> Result<(), RowFault> {
        let (ns, tids) = (&self.ns.values[..rows], &self.tid.values[..rows]);
        let states = &self.state.values[..rows];
        let cpus = self.cpu.as_ref().map(|column| &column.values[..rows]);
        let counts =
            self.counts.each_ref().map(|column| column.as_ref().map(|c| &c.values[..rows]));
        for row in 0..rows {
            let count = |place: usize| {
                let known = counts.get(place).copied().flatten().map(|values| values[row]);
                known.filter(|count| *count != UNKNOWN).map(i64::cast_unsigned)
            };
            let cpu = cpus.map(|cpus| cpus[row]).filter(|cpu| *cpu != NO_CPU);
            batch.push(WatchedSample {
                ns: ns[row].cast_unsigned(),
                tid: tids[row].cast_unsigned(),
                state: char::from_u32(states[row].cast_unsigned()).unwrap_or('?'),
                cpu: cpu.map(u32::try_from).transpose().map_err(|_| RowFault::Cpu)?,
                run_ns: count(0),
                wait_ns: count(1),
                voluntary_switches: count(2),
                involuntary_switches: count(3),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_back_as_they_were() {
        let home = tempfile::tempdir().unwrap();
        let partial = PartialFile::create(home.path(), crate::store::LOOKS_FILE).unwrap();
        let look = |ns: u64, cpu, run_ns| WatchedSample {
            ns,
            tid: 7 + (ns % 2) as u32,
            state: 'R',
            cpu,
            run_ns,
            wait_ns: run_ns.map(|ns| ns / 2),
            voluntary_switches: Some(0),
            involuntary_switches: None,
        };
        let all = vec![look(0, Some(1), None), look(1, None, Some(5)), look(2, Some(0), Some(0))];
        write(&partial, all.iter().copied()).unwrap();
        let path = home.path().join(crate::store::LOOKS_FILE);
        let found: Vec<WatchedSample> = read(path).unwrap().map(Result::unwrap).collect();
        assert_eq!(found, all);
    }
}
