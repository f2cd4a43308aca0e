//! Table 5.6: where in the thesis' sleep its miss comes from.

use hourglass_documents::paper::PaperTable;

use super::super::{MeasuredTable, TableDef};
use super::INTEL_1000;
use super::sleep_rows::{Quantity, SINGLE, SweepTable, UNRELIABLE, grid_row, said};
use super::sleeps::SleepMethod;
use super::sleeps::block::MissParts;
use super::sleeps::sweep::{LENGTHS, Tally};

pub(super) const TABLE: TableDef = TableDef {
    id: "5.6",
    title: "Parts of the miss of the thesis' sleep (medians)",
    measure: |bench| Some(assembled(&SweepTable::for_this_machine(bench)?)),
};

/// T4 - T1, T3 - T2, T2 - T1 and T4 - T3, ns; the length taken off the first two.
pub(super) const PRINTED_NS: [[f64; 4]; 20] = [
    [391.0, 16.0, 143.0, 273.0],
    [389.0, 15.0, 133.0, 241.0],
    [328.0, 12.0, 75.0, 241.0],
    [353.0, 31.0, 130.0, 213.0],
    [115.0, -14.0, 78.0, 52.0],
    [159.0, 21.0, 36.0, 103.0],
    [210.0, 10.0, 78.0, 123.0],
    [216.0, 16.0, 78.0, 123.0],
    [205.0, 8.0, 75.0, 123.0],
    [223.0, 22.0, 78.0, 123.0],
    [126.0, 21.0, 75.0, 30.0],
    [86.0, 23.0, 42.0, 20.0],
    [79.0, 21.0, 40.0, 18.0],
    [87.0, 34.0, 35.0, 18.0],
    [66.0, 13.0, 35.0, 18.0],
    [70.0, 18.0, 35.0, 18.0],
    [67.0, 17.0, 35.0, 15.0],
    [71.0, 14.0, 40.0, 18.0],
    [81.0, 29.0, 35.0, 18.0],
    [67.0, 14.0, 38.0, 15.0],
];

/// Subject and value of a column, in the order of the thesis.
type Column = (&'static str, fn(&Tally) -> Option<f64>);

const COLUMNS: [Column; 4] = [
    ("T4 - T1", |tally| tally.misses().median()),
    ("T3 - T2", |tally| tally.part(|parts: &MissParts| parts.inside).median()),
    ("T2 - T1", |tally| tally.part(|parts: &MissParts| parts.entry).median()),
    ("T4 - T3", |tally| tally.part(|parts: &MissParts| parts.exit).median()),
];

/// The table from what was slept.
pub(super) fn assembled(slept: &SweepTable) -> MeasuredTable {
    let mut rows = Vec::new();
    for (at, length) in LENGTHS.into_iter().enumerate() {
        let tally = slept.sweep.of(SleepMethod::Thesis, at);
        for (column, (subject, of)) in COLUMNS.into_iter().enumerate() {
            let quantity = Quantity { subject, statistic: "here", unit: "ns", size: 1.0 };
            let printed = Some(PRINTED_NS[at][column]);
            rows.push(grid_row(length, &quantity, slept.how, printed, (of(tally), tally)));
        }
    }
    let table = PaperTable {
        id: TABLE.id.into(),
        title: TABLE.title.into(),
        paper_machine: INTEL_1000.into(),
        method: format!(
            "T1 before the call, T2 the reading that the deadline is computed from, T3 the reading \
             that ends the sleep, T4 after the call; the length is taken off the first two columns; \
             {}",
            slept.method()
        ),
        rows,
        decisions: Vec::new(),
        difference: explain(slept),
        notes: vec![
            "The title in the thesis is that of Table 5.5 by mistake.".into(),
            SINGLE.into(),
            UNRELIABLE.into(),
        ],
        figure: None,
    };
    MeasuredTable { table, figure: None }
}

fn explain(slept: &SweepTable) -> String {
    const LONG: usize = 4;
    const SHORT: usize = 13;
    let of =
        |way, at, part: fn(&MissParts) -> i64| said(slept.sweep.of(way, at).part(part).median());
    format!(
        "After {} the way out takes {} here and 52 ns there, after {} {} and 18 ns: what the CPU's \
         caches lost meanwhile has to be fetched again. The thesis suspects 1/HZ; it is the time \
         in the kernel. Ours goes the way out once shortly before it counts, and takes {} and {}.",
        LENGTHS[LONG].name,
        of(SleepMethod::Thesis, LONG, |parts| parts.exit),
        LENGTHS[SHORT].name,
        of(SleepMethod::Thesis, SHORT, |parts| parts.exit),
        of(SleepMethod::Learned, LONG, |parts| parts.exit),
        of(SleepMethod::Learned, SHORT, |parts| parts.exit)
    )
}
