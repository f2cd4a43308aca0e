//! Table 1: the ranges of the cascading timer wheel's arrays, found out from the wheel kept for
//! comparison by arming timers in it.

use hourglass_documents::paper::MeasurementKind;
use hourglass_queue::Handle;
use hourglass_queue::reference::CascadingWheel;
use hourglass_time::{Instant, Sim, Span};

use super::super::bench::MeasurementHost;
use super::super::printed::{MeasuredTable, Table, Values};
use super::super::rows::row;

/// The tick: all of Table 1 fits on the simulated clock with it.
const TICK: Span = Span::MILLISECOND;

struct Probe {
    wheel: CascadingWheel<Sim, ()>,
    timer: Handle,
}

impl Probe {
    fn new() -> Option<Probe> {
        let mut wheel = CascadingWheel::new(TICK, Instant::ZERO).ok()?;
        let timer = wheel.create(()).ok()?;
        Some(Probe { wheel, timer })
    }

    /// Array and entry of a timer that expires after `ticks`; `None` if the wheel refuses it.
    fn place(&mut self, ticks: u64) -> Option<(u32, u32)> {
        let since = TICK.checked_mul(i64::try_from(ticks).ok()?)?;
        self.wheel.arm(self.timer, Instant::from_zero(since)).ok()?;
        self.wheel.place(self.timer).ok()?
    }

    /// The last number of ticks ahead, from `first` on, of which something still holds.
    fn last(&mut self, first: u64, holds: impl Fn(Option<(u32, u32)>) -> bool) -> u64 {
        let mut step = 1;
        while holds(self.place(first + step)) {
            step *= 2;
        }
        // It holds at `low` and not at `high`.
        let (mut low, mut high) = (first + step / 2, first + step);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if holds(self.place(middle)) { low = middle } else { high = middle }
        }
        low
    }

    fn range(&mut self, array: u32, start: u64) -> Option<[u64; 3]> {
        let (found, entry) = self.place(start)?;
        if found != array {
            return None;
        }
        let end = self.last(start, |place| place.is_some_and(|(at, _)| at == array));
        // The entry at the start may be shared with ticks before it: the next one is whole.
        let same = |entry| move |place: Option<(u32, u32)>| place == Some((array, entry));
        let next = self.last(start, same(entry)) + 1;
        let (_, entry) = self.place(next)?;
        let granularity = self.last(next, same(entry)) + 1 - next;
        Some([start, end, granularity])
    }
}

pub(super) fn measure(table: &Table, _: &MeasurementHost) -> Option<MeasuredTable> {
    let ranges = ranges(table.lines.len());
    let mut rows = Vec::new();
    for (array, line) in table.lines.iter().enumerate() {
        for (column, what) in ["start", "end", "granularity"].into_iter().enumerate() {
            let range = ranges.get(array).ok_or("no timer got into this array");
            let found = range.map(|range| (range[column] as f64, 1)).map_err(str::to_owned);
            let (name, paper) = (format!("{}, {what}", line.name), line.printed(column));
            rows.push(row(name, &line.unit, paper, MeasurementKind::Simulated, found));
        }
    }
    let same = rows.iter().all(|row| row.measured == row.paper);
    let values = Values::default().with_if("same", same);
    Some(table.with_rows(rows, values))
}

fn ranges(arrays: usize) -> Vec<[u64; 3]> {
    let Some(mut probe) = Probe::new() else { return Vec::new() };
    let mut ranges: Vec<[u64; 3]> = Vec::new();
    for array in (1..).take(arrays) {
        let start = ranges.last().map_or(1, |before| before[1] + 1);
        let Some(range) = probe.range(array, start) else { break };
        ranges.push(range);
    }
    ranges
}
