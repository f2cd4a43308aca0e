//! `kernel.parquet`: the kernel's trace events, in order of ticks.

use std::iter::FusedIterator;
use std::path::PathBuf;

use hourglass_trace::{KernelEvent, KernelEventKind};

use crate::store::error::{RowFault, TraceError};
use crate::store::table::read::{DecodeRows, Rows};
use crate::store::table::write::EncodeRows;
use crate::store::table::{Column, ColumnType, Layout, Table, from_int32, to_int32};

const TICKS: Column = Column::required("ticks", ColumnType::Uint64);

const LAYOUT: Layout = Layout {
    name: "kernel",
    columns: &[
        Column::required("ns", ColumnType::Int64),
        TICKS,
        Column::required("cpu", ColumnType::Int32),
        Column::required("kind", ColumnType::Int32),
        Column::required("a", ColumnType::Uint32),
        Column::required("b", ColumnType::Uint32),
        Column::required("value", ColumnType::Uint64),
    ],
    sorted_by: TICKS,
};

/// Iterator over the kernel's events of a run. After an error it ends. Events of kinds that only
/// a later version knows are left out and counted.
pub struct KernelEvents(Rows<Events, 7>);

impl KernelEvents {
    /// The events in the file `path`, decoded as they are asked for.
    pub(crate) fn open(path: PathBuf) -> Result<KernelEvents, TraceError> {
        Rows::open(path).map(KernelEvents)
    }

    pub fn rows(&self) -> u64 {
        self.0.table().rows()
    }

    /// Events left out so far because their kind is not known here.
    pub fn left_out(&self) -> u64 {
        self.0.decoder().left_out
    }
}

impl Iterator for KernelEvents {
    type Item = Result<KernelEvent, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl FusedIterator for KernelEvents {}

#[derive(Default)]
pub(crate) struct Events {
    last_ticks: u64,
    left_out: u64,
}

impl Events {
    fn admit(&mut self, ticks: u64) -> Result<(), RowFault> {
        if ticks < self.last_ticks {
            return Err(RowFault::EventOrder);
        }
        self.last_ticks = ticks;
        Ok(())
    }
}

impl Table for Events {
    type Row = KernelEvent;
    const LAYOUT: &'static Layout = &LAYOUT;
}

impl EncodeRows<7> for Events {
    fn encode(&mut self, event: &KernelEvent) -> Result<[i64; 7], RowFault> {
        let cpu = to_int32(event.cpu, RowFault::Cpu)?;
        self.admit(event.ticks)?;
        let (ticks, value) = (event.ticks.cast_signed(), event.value.cast_signed());
        let kind = i64::from(event.kind.code());
        Ok([event.ns, ticks, cpu, kind, i64::from(event.a), i64::from(event.b), value])
    }
}

impl DecodeRows<7> for Events {
    fn decode(&mut self, numbers: [i64; 7]) -> Result<Option<KernelEvent>, RowFault> {
        let [ns, ticks, cpu, kind, a, b, value] = numbers;
        let (ticks, value) = (ticks.cast_unsigned(), value.cast_unsigned());
        self.admit(ticks)?;
        let cpu = from_int32(cpu, RowFault::Cpu)?;
        let Some(kind) = u8::try_from(kind).ok().and_then(KernelEventKind::from_code) else {
            self.left_out += 1;
            return Ok(None);
        };
        // The columns are of `u32`.
        let (a, b) = (a as u32, b as u32);
        Ok(Some(KernelEvent { ns, ticks, value, cpu, a, b, kind }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::partial::PartialFile;
    use crate::store::table::write::write_rows;

    /// Writes every second event with a kind that no version knows yet.
    #[derive(Default)]
    struct Later(Events);

    impl Table for Later {
        type Row = KernelEvent;
        const LAYOUT: &'static Layout = &LAYOUT;
    }

    impl EncodeRows<7> for Later {
        fn encode(&mut self, event: &KernelEvent) -> Result<[i64; 7], RowFault> {
            let [ns, ticks, cpu, kind, a, b, value] = self.0.encode(event)?;
            Ok([ns, ticks, cpu, if a % 2 == 1 { 99 } else { kind }, a, b, value])
        }
    }

    #[test]
    fn kinds_of_a_later_version_are_left_out_and_counted() {
        let home = tempfile::tempdir().unwrap();
        let partial = PartialFile::create(home.path(), crate::store::KERNEL_FILE).unwrap();
        // A whole batch that is left out must not look like the end.
        let odd_first = (0..8192).map(|_| 1).chain([0, 1, 2, 3]);
        let (kind, ticks) = (KernelEventKind::Signal, 7);
        let event = |a| KernelEvent { ns: 0, ticks, value: 0, cpu: 0, a, b: 0, kind };
        write_rows::<Later, 7>(&partial, odd_first.map(event)).unwrap();
        let mut events = KernelEvents::open(home.path().join(crate::store::KERNEL_FILE)).unwrap();
        let kept: Vec<u32> = events.by_ref().map(|event| event.unwrap().a).collect();
        assert_eq!((kept, events.left_out()), (vec![0, 2], 8194));
    }
}
