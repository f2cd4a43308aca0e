//! `kernel.parquet`: the kernel's trace events, in order of ticks.

use std::iter::FusedIterator;
use std::path::PathBuf;

use hourglass_trace::{KernelEvent, KernelEventKind};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;

use crate::store::error::{RowFault, TraceError, WriteError};
use crate::store::partial::PartialFile;
use crate::store::table::read::{ColumnBuffer, DecodeColumn, DecodeRows, Rows};
use crate::store::table::write::{EncodeRows, RowGroup, TableWriter, write_column};
use crate::store::table::{Column, ColumnType, Layout, TableReader};

const NS: Column = Column::required("ns", ColumnType::Int64);
const TICKS: Column = Column::required("ticks", ColumnType::Uint64);
const CPU: Column = Column::required("cpu", ColumnType::Int32);
const KIND: Column = Column::required("kind", ColumnType::Int32);
const A: Column = Column::required("a", ColumnType::Uint32);
const B: Column = Column::required("b", ColumnType::Uint32);
const VALUE: Column = Column::required("value", ColumnType::Uint64);

const LAYOUT: Layout =
    Layout { name: "kernel", columns: &[NS, TICKS, CPU, KIND, A, B, VALUE], sorted_by: TICKS };

/// Writes the events into `partial` and gives it its name. Returns their number.
pub(crate) fn write(
    partial: &PartialFile,
    events: impl Iterator<Item = KernelEvent>,
) -> Result<u64, WriteError> {
    let mut table = TableWriter::start(partial, &LAYOUT, Buffer::default())?;
    for event in events {
        table.write(&event)?;
    }
    table.finish()
}

/// The events in the file `path`, decoded as they are asked for.
pub(crate) fn read(path: PathBuf) -> Result<KernelEvents, TraceError> {
    let table = TableReader::open(path, &LAYOUT)?;
    let columns = Columns {
        ns: ColumnBuffer::new(&table, NS)?,
        ticks: ColumnBuffer::new(&table, TICKS)?,
        cpu: ColumnBuffer::new(&table, CPU)?,
        kind: ColumnBuffer::new(&table, KIND)?,
        a: ColumnBuffer::new(&table, A)?,
        b: ColumnBuffer::new(&table, B)?,
        value: ColumnBuffer::new(&table, VALUE)?,
        last_ticks: 0,
        left_out: 0,
    };
    let rows = table.rows();
    Ok(KernelEvents { rows, events: Rows::new(&table, columns)? })
}

/// Iterator over the kernel's events of a run. After an error it ends. Events of kinds that only
/// a later version knows are left out and counted.
pub struct KernelEvents {
    rows: u64,
    events: Rows<Columns>,
}

impl KernelEvents {
    /// Number of events in the file.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Events left out so far because their kind is not known here.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.events.decoder().left_out
    }
}

impl Iterator for KernelEvents {
    type Item = Result<KernelEvent, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.events.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.events.size_hint()
    }
}

impl FusedIterator for KernelEvents {}

impl std::fmt::Debug for KernelEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelEvents")
            .field("file", &self.events.table().path())
            .finish_non_exhaustive()
    }
}

/// Checks that an event is not before the one above it, whose ticks are `last`.
fn admit(last: &mut u64, ticks: u64) -> Result<(), RowFault> {
    if ticks < *last {
        return Err(RowFault::EventOrder);
    }
    *last = ticks;
    Ok(())
}

/// The events of a row group, column by column.
#[derive(Default)]
struct Buffer {
    ns: Vec<i64>,
    ticks: Vec<i64>,
    cpu: Vec<i32>,
    kind: Vec<i32>,
    a: Vec<i32>,
    b: Vec<i32>,
    value: Vec<i64>,
    last_ticks: u64,
}

impl EncodeRows for Buffer {
    type Row = KernelEvent;

    fn push(&mut self, event: &KernelEvent) -> Result<(), RowFault> {
        let cpu = i32::try_from(event.cpu).map_err(|_| RowFault::Cpu)?;
        admit(&mut self.last_ticks, event.ticks)?;
        self.ns.push(event.ns);
        self.ticks.push(event.ticks.cast_signed());
        self.cpu.push(cpu);
        self.kind.push(i32::from(event.kind.code()));
        self.a.push(event.a.cast_signed());
        self.b.push(event.b.cast_signed());
        self.value.push(event.value.cast_signed());
        Ok(())
    }

    fn len(&self) -> usize {
        self.ns.len()
    }

    fn write(&self, group: &mut RowGroup<'_, '_>) -> Result<(), ParquetError> {
        write_column::<Int64Type>(group, &self.ns)?;
        write_column::<Int64Type>(group, &self.ticks)?;
        write_column::<Int32Type>(group, &self.cpu)?;
        write_column::<Int32Type>(group, &self.kind)?;
        write_column::<Int32Type>(group, &self.a)?;
        write_column::<Int32Type>(group, &self.b)?;
        write_column::<Int64Type>(group, &self.value)
    }

    fn clear(&mut self) {
        self.ns.clear();
        self.ticks.clear();
        self.cpu.clear();
        self.kind.clear();
        self.a.clear();
        self.b.clear();
        self.value.clear();
    }
}

/// One decoder for each column.
struct Columns {
    ns: ColumnBuffer<Int64Type>,
    ticks: ColumnBuffer<Int64Type>,
    cpu: ColumnBuffer<Int32Type>,
    kind: ColumnBuffer<Int32Type>,
    a: ColumnBuffer<Int32Type>,
    b: ColumnBuffer<Int32Type>,
    value: ColumnBuffer<Int64Type>,
    last_ticks: u64,
    left_out: u64,
}

impl DecodeRows for Columns {
    type Row = KernelEvent;

    fn columns(&mut self) -> Vec<&mut dyn DecodeColumn> {
        vec![
            &mut self.ns,
            &mut self.ticks,
            &mut self.cpu,
            &mut self.kind,
            &mut self.a,
            &mut self.b,
            &mut self.value,
        ]
    }

    fn assemble(&mut self, rows: usize, batch: &mut Vec<KernelEvent>) -> Result<(), RowFault> {
        let (ns, ticks) = (&self.ns.values[..rows], &self.ticks.values[..rows]);
        let (cpus, kinds) = (&self.cpu.values[..rows], &self.kind.values[..rows]);
        let (a, b) = (&self.a.values[..rows], &self.b.values[..rows]);
        let values = &self.value.values[..rows];
        for row in 0..rows {
            let ticks = ticks[row].cast_unsigned();
            admit(&mut self.last_ticks, ticks)?;
            let cpu = u32::try_from(cpus[row]).map_err(|_| RowFault::Cpu)?;
            let kind = u8::try_from(kinds[row]).ok().and_then(KernelEventKind::from_code);
            let Some(kind) = kind else {
                self.left_out += 1;
                continue;
            };
            batch.push(KernelEvent {
                ns: ns[row],
                ticks,
                value: values[row].cast_unsigned(),
                cpu,
                a: a[row].cast_unsigned(),
                b: b[row].cast_unsigned(),
                kind,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes every second event with a kind that no version knows yet.
    #[derive(Default)]
    struct Later(Buffer);

    impl EncodeRows for Later {
        type Row = KernelEvent;

        fn push(&mut self, event: &KernelEvent) -> Result<(), RowFault> {
            self.0.push(event)?;
            if let (Some(kind), 1) = (self.0.kind.last_mut(), event.a % 2) {
                *kind = 99;
            }
            Ok(())
        }

        fn len(&self) -> usize {
            self.0.len()
        }

        fn write(&self, group: &mut RowGroup<'_, '_>) -> Result<(), ParquetError> {
            self.0.write(group)
        }

        fn clear(&mut self) {
            self.0.clear();
        }
    }

    #[test]
    fn kinds_of_a_later_version_are_left_out_and_counted() {
        let home = tempfile::tempdir().unwrap();
        let partial = PartialFile::create(home.path(), crate::store::KERNEL_FILE).unwrap();
        let mut table = TableWriter::start(&partial, &LAYOUT, Later::default()).unwrap();
        // A whole batch that is left out must not look like the end.
        let odd_first = (0..8192).map(|_| 1).chain([0, 1, 2, 3]);
        for a in odd_first {
            let (kind, ticks) = (KernelEventKind::Signal, 7);
            let event = KernelEvent { ns: 0, ticks, value: 0, cpu: 0, a, b: 0, kind };
            table.write(&event).unwrap();
        }
        table.finish().unwrap();
        let mut events = read(home.path().join(crate::store::KERNEL_FILE)).unwrap();
        let kept: Vec<u32> = events.by_ref().map(|event| event.unwrap().a).collect();
        assert_eq!((kept, events.left_out()), (vec![0, 2], 8194));
    }
}
