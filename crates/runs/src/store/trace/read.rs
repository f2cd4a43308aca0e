//! The records of a trace, decoded in batches.

use std::iter::FusedIterator;

use hourglass_trace::{CounterDeltas, Evidence, Interval, IntervalStart};
use parquet::data_type::{Int32Type, Int64Type};

use crate::store::error::{RowFault, TraceError};
use crate::store::table::read::{ColumnBuffer, DecodeColumn, DecodeRows, Rows};
use crate::store::trace::{
    CLEARED, CPU, END_NS, END_TICKS, FAULTS, INVOLUNTARY, ONSET, OrderCheck, START_NS, START_TICKS,
    THREAD, Trace, UNKNOWN, VOLUNTARY,
};

impl Trace {
    /// The records in the order of their start, decoded as they are asked for. Each call starts
    /// from the first record.
    ///
    /// # Errors
    /// The file cannot be opened any more.
    pub fn intervals(&self) -> Result<Intervals, TraceError> {
        let table = &self.table;
        let evidence = |column| ColumnBuffer::nullable(table, column, UNKNOWN);
        let columns = Columns {
            thread: ColumnBuffer::new(table, THREAD)?,
            cpu: ColumnBuffer::new(table, CPU)?,
            start_ns: ColumnBuffer::new(table, START_NS)?,
            end_ns: ColumnBuffer::new(table, END_NS)?,
            start_ticks: ColumnBuffer::new(table, START_TICKS)?,
            end_ticks: ColumnBuffer::new(table, END_TICKS)?,
            onset: ColumnBuffer::if_there(table, ONSET),
            cleared: evidence(CLEARED),
            counts: evidence(INVOLUNTARY)
                .zip(evidence(VOLUNTARY))
                .zip(evidence(FAULTS))
                .map(|((involuntary, voluntary), faults)| [involuntary, voluntary, faults]),
            order: OrderCheck::FIRST,
        };
        Rows::new(table, columns).map(Intervals)
    }
}

/// Iterator over the records of a trace. After an error it ends.
pub struct Intervals(Rows<Columns>);

impl Iterator for Intervals {
    type Item = Result<Interval, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl FusedIterator for Intervals {}

impl std::fmt::Debug for Intervals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Intervals").field("trace", &self.0.table().path()).finish_non_exhaustive()
    }
}

/// One decoder for each column.
struct Columns {
    thread: ColumnBuffer<Int32Type>,
    cpu: ColumnBuffer<Int32Type>,
    start_ns: ColumnBuffer<Int64Type>,
    end_ns: ColumnBuffer<Int64Type>,
    start_ticks: ColumnBuffer<Int64Type>,
    end_ticks: ColumnBuffer<Int64Type>,
    onset: Option<ColumnBuffer<Int32Type>>,
    cleared: Option<ColumnBuffer<Int32Type>>,
    /// Involuntary switches, voluntary ones, faults; all of them or none.
    counts: Option<[ColumnBuffer<Int32Type>; 3]>,
    order: OrderCheck,
}

impl DecodeRows for Columns {
    type Row = Interval;

    fn columns(&mut self) -> Vec<&mut dyn DecodeColumn> {
        let mut columns: Vec<&mut dyn DecodeColumn> = vec![
            &mut self.thread,
            &mut self.cpu,
            &mut self.start_ns,
            &mut self.end_ns,
            &mut self.start_ticks,
            &mut self.end_ticks,
        ];
        let evidence = self.onset.iter_mut().chain(&mut self.cleared);
        let evidence = evidence.chain(self.counts.iter_mut().flatten());
        columns.extend(evidence.map(|column| column as &mut dyn DecodeColumn));
        columns
    }

    fn assemble(&mut self, rows: usize, batch: &mut Vec<Interval>) -> Result<(), RowFault> {
        let onsets = self.onset.as_ref().map(|onset| &onset.values[..rows]);
        let cleared = self.cleared.as_ref().map(|cleared| &cleared.values[..rows]);
        let counts =
            self.counts.as_ref().map(|counts| counts.each_ref().map(|c| &c.values[..rows]));
        let (threads, cpus) = (&self.thread.values[..rows], &self.cpu.values[..rows]);
        let (starts, ends) = (&self.start_ns.values[..rows], &self.end_ns.values[..rows]);
        let start_ticks = &self.start_ticks.values[..rows];
        let end_ticks = &self.end_ticks.values[..rows];
        for row in 0..rows {
            let interval = Interval {
                thread: u32::try_from(threads[row]).map_err(|_| RowFault::Thread)?,
                cpu: u32::try_from(cpus[row]).map_err(|_| RowFault::Cpu)?,
                start_ns: starts[row],
                end_ns: ends[row],
                start_ticks: start_ticks[row].cast_unsigned(),
                end_ticks: end_ticks[row].cast_unsigned(),
                onset: onsets.map_or(IntervalStart::Gap, |onsets| onset_of(onsets[row])),
                evidence: Evidence {
                    cleared: cleared.and_then(|cleared| cleared_of(cleared[row])),
                    counted: counts.and_then(|counts| counted_of(counts.map(|count| count[row]))),
                },
            };
            self.order.admit(&interval)?;
            batch.push(interval);
        }
        Ok(())
    }
}

/// What became of the critical section; a number of a later version tells nothing.
fn cleared_of(code: i32) -> Option<bool> {
    match code {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Counts, up to 255 each, if all of them are known.
fn counted_of([involuntary, voluntary, faults]: [i32; 3]) -> Option<CounterDeltas> {
    let count = |count: i32| u32::try_from(count).ok().map(|n| u8::try_from(n).unwrap_or(u8::MAX));
    Some(CounterDeltas {
        involuntary: count(involuntary)?,
        voluntary: count(voluntary)?,
        faults: count(faults)?,
    })
}

/// What a stored code means; a code of a later version is a gap of a kind not known here.
fn onset_of(code: i32) -> IntervalStart {
    u8::try_from(code).ok().and_then(IntervalStart::from_code).unwrap_or(IntervalStart::Gap)
}
