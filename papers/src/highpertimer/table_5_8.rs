//! Table 5.8: CPU use of the system's sleep and of busy waiting.

use hourglass_documents::paper::{PaperRow, PaperTable};

use super::super::{MeasuredTable, TableDef};
use super::INTEL_1000;
use super::sleep_rows::{SweepTable, figure, percent, row};
use super::sleeps::{DRAWN, SleepMethod};

pub(super) const TABLE: TableDef = TableDef {
    id: "5.8",
    title: "CPU use of the system's sleep, of busy waiting, and of ours",
    measure: |bench| Some(assembled(&SweepTable::for_this_machine(bench)?)),
};

/// Real time, user, system, and both, s; ratio of CPU use to real time, per cent.
const SYSTEM: [f64; 5] = [minutes(835.0, 49.698), 3.619, 4.560, 8.179, 0.016];
const BUSY: [f64; 5] =
    [minutes(833.0, 18.146), minutes(830.0, 36.564), 2.115, minutes(830.0, 38.679), 99.681];

/// Seconds of minutes and seconds.
pub(super) const fn minutes(minutes: f64, seconds: f64) -> f64 {
    minutes * 60.0 + seconds
}

/// What the table is about, and the unit.
const NAMES: [(&str, &str); 5] = [
    ("real time", "s"),
    ("user CPU", "s"),
    ("system CPU", "s"),
    ("user + system CPU", "s"),
    ("CPU use of real time", "%"),
];

/// The table from what was slept.
pub(super) fn assembled(slept: &SweepTable) -> MeasuredTable {
    let ways = [
        (SleepMethod::System, Some(SYSTEM)),
        (SleepMethod::Busy, Some(BUSY)),
        (SleepMethod::KernelOnly, None),
        (SleepMethod::Learned, None),
    ];
    let rows = ways.into_iter().flat_map(|(way, printed)| rows(slept, way, printed)).collect();
    let table = PaperTable {
        id: TABLE.id.into(),
        title: TABLE.title.into(),
        paper_machine: INTEL_1000.into(),
        method: method(slept),
        rows,
        decisions: Vec::new(),
        difference: explain(slept),
        notes: vec![TIMES_TEN.into(), SPLIT.into()],
        figure: None,
    };
    MeasuredTable { table, figure: figure(slept, "table-5.8", DRAWN[0]) }
}

/// How the sums of Tables 5.8 and 5.9 come about.
pub(super) fn method(slept: &SweepTable) -> String {
    format!(
        "times are those of 100,000 rounds of the lengths from 0.25 s to 1 us, from the mean of \
         each length here; {}",
        slept.method()
    )
}

/// What the thesis' times tell of its loop.
pub(super) const TIMES_TEN: &str = "The text speaks of 10000 steps. One step of all lengths from 0.25 s to 1 us takes 0.5 s, and \
     833 minutes are 100,000 of them.";

pub(super) const SPLIT: &str = "The kernel counts a thread's CPU time precisely today, but divides it into user and system by \
     what its ticks happen to hit; of sleeps that end between ticks they hit little. \
     The sums are those of the precise count.";

fn rows(slept: &SweepTable, way: SleepMethod, printed: Option<[f64; 5]>) -> Vec<PaperRow> {
    let totals = slept.totals(way, &slept.lengths_of_5_8());
    let measured = [
        totals.map(|totals| totals.real),
        totals.and_then(|totals| Some(totals.split?.0)),
        totals.and_then(|totals| Some(totals.split?.1)),
        totals.map(|totals| totals.cpu),
        totals.and_then(super::sleep_rows::Totals::percent),
    ];
    let sleeps = totals.map_or(0, |totals| totals.sleeps);
    let row = |(at, (name, unit)): (usize, (&str, &str))| {
        let both = (printed.map(|printed| printed[at]), measured[at]);
        row(format!("{}: {name}", way.name()), both, unit, slept.how, sleeps)
    };
    NAMES.into_iter().enumerate().map(row).collect()
}

fn explain(slept: &SweepTable) -> String {
    let use_of = |way| {
        percent(slept.totals(way, &slept.lengths_of_5_8()).and_then(|totals| totals.percent()))
    };
    format!(
        "The system's sleep takes {} of a CPU here and 0.016 % there: 18 wake-ups in half a second, \
         each some microseconds of it; a virtual machine pays more for each, since its timer and \
         its idle CPU are the hypervisor's. Busy waiting takes {} and 99.7 %. Ours takes {}, for \
         misses of nanoseconds.",
        use_of(SleepMethod::System),
        use_of(SleepMethod::Busy),
        use_of(SleepMethod::Learned)
    )
}
