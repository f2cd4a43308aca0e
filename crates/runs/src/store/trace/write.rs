//! Writing the records of a trace.

use hourglass_trace::{CounterDeltas, Evidence, Interval};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;

use crate::store::error::{RowFault, WriteError};
use crate::store::partial::PartialFile;
use crate::store::table::write::{EncodeRows, RowGroup, TableWriter, write_column, write_nullable};
use crate::store::trace::{LAYOUT, OrderCheck, UNKNOWN};

/// Writes `trace.parquet`. Until [`TraceWriter::finish`] the file has another name.
pub struct TraceWriter<'a>(TableWriter<'a, Rows>);

impl<'a> TraceWriter<'a> {
    /// Starts from an empty file.
    pub(crate) fn start(partial: &'a PartialFile) -> Result<TraceWriter<'a>, WriteError> {
        if partial.is_committed() {
            return Err(WriteError::TraceComplete(partial.target().to_path_buf()));
        }
        TableWriter::start(partial, &LAYOUT, Rows::new()).map(TraceWriter)
    }

    /// Appends a record. Records come in the order of their start, as
    /// [`merge_by_start`](crate::store::merge_by_start) gives them.
    ///
    /// # Errors
    /// The record starts before the last one, ends before it starts, or has a number that the
    /// format cannot hold; or the file refuses.
    pub fn write(&mut self, interval: &Interval) -> Result<(), WriteError> {
        self.0.write(interval)
    }

    /// Completes the file, brings it to the disk and gives it its name. Returns the number of
    /// records.
    ///
    /// # Errors
    /// The file refuses.
    pub fn finish(self) -> Result<u64, WriteError> {
        self.0.finish()
    }
}

impl std::fmt::Debug for TraceWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceWriter").field("written", &self.0.written()).finish_non_exhaustive()
    }
}

/// The records of a row group, column by column, and what the next one must keep.
struct Rows {
    thread: Vec<i32>,
    cpu: Vec<i32>,
    start_ns: Vec<i64>,
    end_ns: Vec<i64>,
    start_ticks: Vec<i64>,
    end_ticks: Vec<i64>,
    onset: Vec<i32>,
    cleared: Vec<i32>,
    involuntary: Vec<i32>,
    voluntary: Vec<i32>,
    faults: Vec<i32>,
    order: OrderCheck,
}

impl Rows {
    fn new() -> Rows {
        Rows {
            thread: Vec::new(),
            cpu: Vec::new(),
            start_ns: Vec::new(),
            end_ns: Vec::new(),
            start_ticks: Vec::new(),
            end_ticks: Vec::new(),
            onset: Vec::new(),
            cleared: Vec::new(),
            involuntary: Vec::new(),
            voluntary: Vec::new(),
            faults: Vec::new(),
            order: OrderCheck::FIRST,
        }
    }
}

impl EncodeRows for Rows {
    type Row = Interval;

    fn push(&mut self, interval: &Interval) -> Result<(), RowFault> {
        let thread = i32::try_from(interval.thread).map_err(|_| RowFault::Thread)?;
        let cpu = i32::try_from(interval.cpu).map_err(|_| RowFault::Cpu)?;
        self.order.admit(interval)?;
        self.thread.push(thread);
        self.cpu.push(cpu);
        self.start_ns.push(interval.start_ns);
        self.end_ns.push(interval.end_ns);
        self.start_ticks.push(interval.start_ticks.cast_signed());
        self.end_ticks.push(interval.end_ticks.cast_signed());
        self.onset.push(i32::from(interval.onset.code()));
        let Evidence { cleared, counted } = interval.evidence;
        let count = |count: fn(&CounterDeltas) -> u8| {
            counted.as_ref().map(count).map_or(UNKNOWN, i32::from)
        };
        self.cleared.push(cleared.map_or(UNKNOWN, i32::from));
        self.involuntary.push(count(|counted| counted.involuntary));
        self.voluntary.push(count(|counted| counted.voluntary));
        self.faults.push(count(|counted| counted.faults));
        Ok(())
    }

    fn len(&self) -> usize {
        self.thread.len()
    }

    fn write(&self, group: &mut RowGroup<'_, '_>) -> Result<(), ParquetError> {
        write_column::<Int32Type>(group, &self.thread)?;
        write_column::<Int32Type>(group, &self.cpu)?;
        write_column::<Int64Type>(group, &self.start_ns)?;
        write_column::<Int64Type>(group, &self.end_ns)?;
        write_column::<Int64Type>(group, &self.start_ticks)?;
        write_column::<Int64Type>(group, &self.end_ticks)?;
        write_column::<Int32Type>(group, &self.onset)?;
        [&self.cleared, &self.involuntary, &self.voluntary, &self.faults]
            .into_iter()
            .try_for_each(|values| write_nullable::<Int32Type>(group, values, &UNKNOWN))
    }

    fn clear(&mut self) {
        self.thread.clear();
        self.cpu.clear();
        self.start_ns.clear();
        self.end_ns.clear();
        self.start_ticks.clear();
        self.end_ticks.clear();
        self.onset.clear();
        self.cleared.clear();
        self.involuntary.clear();
        self.voluntary.clear();
        self.faults.clear();
    }
}
