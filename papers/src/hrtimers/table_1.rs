//! Table 1: the ranges of the cascading timer wheel's arrays, found out from the wheel kept for
//! comparison by arming timers in it.

use hourglass_model::paper::{MeasurementKind, PaperTable};
use hourglass_time::{Instant, Sim, Span};
use hourglass_timer::queue::Handle;
use hourglass_timer::queue::reference::CascadingWheel;

use super::super::bench::MeasurementHost;
use super::super::printed::MeasuredTable;
use super::super::rows::{beside, found, lacking, without_figure};
use super::NO_MACHINE;

pub(super) const ID: &str = "1";
pub(super) const TITLE: &str = "Cascading Timer Wheel array ranges";

/// Start, end and granularity of the arrays, in ticks, as the paper prints them.
pub(super) const PRINTED: [[u64; 3]; 5] = [
    [1, 256, 1],
    [257, 16_384, 256],
    [16_385, 1_048_576, 16_384],
    [1_048_577, 67_108_864, 1_048_576],
    [67_108_865, 4_294_967_295, 67_108_864],
];

/// The tick: all of Table 1 fits on the simulated clock with it.
const TICK: Span = Span::MILLISECOND;

/// The wheel's own word on where a timer lies.
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

    /// Start, end and granularity of an array; `None` if no timer gets there.
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

pub(super) fn measure(_: &MeasurementHost) -> Option<MeasuredTable> {
    let ranges = ranges();
    let rows = PRINTED.iter().enumerate().flat_map(|(array, printed)| {
        let range = ranges.get(array).copied();
        ["start", "end", "granularity"].into_iter().enumerate().map(move |(column, what)| {
            let name = format!("array {}, {what}", array + 1);
            let row = match range {
                Some(range) => {
                    found(name, range[column] as f64, "ticks", MeasurementKind::Simulated, 1)
                }
                None => lacking(
                    name,
                    "ticks",
                    MeasurementKind::Simulated,
                    "no timer got into this array",
                ),
            };
            beside(Some(printed[column] as f64), row)
        })
    });
    let table = PaperTable {
        id: ID.into(),
        title: TITLE.into(),
        paper_machine: NO_MACHINE.into(),
        method: "one timer, armed ever farther ahead in an empty wheel, which says in which array \
                 and which entry it lies; on the simulated clock"
            .into(),
        rows: rows.collect(),
        decisions: Vec::new(),
        difference: difference(&ranges),
        notes: vec![
            "The text says that an entry of the second array represents n1 * n2 ticks, and one of \
             the third n1 * n2 * n3; by the table they represent n1 and n1 * n2."
                .into(),
        ],
        figure: None,
    };
    Some(without_figure(table))
}

/// What was found of the arrays, from the first on.
pub(super) fn ranges() -> Vec<[u64; 3]> {
    let Some(mut probe) = Probe::new() else { return Vec::new() };
    let mut ranges: Vec<[u64; 3]> = Vec::new();
    for array in 1..=PRINTED.len() as u32 {
        let start = ranges.last().map_or(1, |before| before[1] + 1);
        let Some(range) = probe.range(array, start) else { break };
        ranges.push(range);
    }
    ranges
}

fn difference(ranges: &[[u64; 3]]) -> String {
    match ranges == PRINTED {
        true => "The reference wheel has the arrays of the paper: nothing differs.".into(),
        false => "The reference wheel has other arrays than the paper.".into(),
    }
}
