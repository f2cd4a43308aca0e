//! Table 5.1: the system's sleep.

use hourglass_documents::paper::PaperTable;

use super::super::{MeasuredTable, TableDef};
use super::INTEL_1000;
use super::sleep_rows::{Quantity, SINGLE, SweepTable, grid_row, percent, said};
use super::sleeps::SleepMethod;
use super::sleeps::stats::Values;
use super::sleeps::sweep::LENGTHS;

pub(super) const TABLE: TableDef = TableDef {
    id: "5.1",
    title: "Miss of the system's sleep, and of ours",
    measure: |bench| Some(assembled(&SweepTable::for_this_machine(bench)?)),
};

/// Miss of the system's sleep, us.
pub(super) const PRINTED_US: [f64; 20] = [
    161.135, 112.908, 92.139, 100.193, 74.393, 70.981, 68.225, 85.311, 66.612, 64.948, 59.379,
    64.359, 55.422, 53.916, 53.436, 53.439, 53.318, 53.269, 53.250, 53.267,
];

/// The table from what was slept.
pub(super) fn assembled(slept: &SweepTable) -> MeasuredTable {
    let us = |subject, statistic| Quantity { subject, statistic, unit: "us", size: 1e3 };
    let cpu = |subject| Quantity { subject, statistic: "CPU", unit: "%", size: 1.0 };
    let mut rows = Vec::new();
    for (at, length) in LENGTHS.into_iter().enumerate() {
        let [system, kernel, learned] =
            [SleepMethod::System, SleepMethod::KernelOnly, SleepMethod::Learned]
                .map(|way| slept.sweep.of(way, at));
        let misses = system.misses();
        let mut add = |quantity: &Quantity, paper, value| {
            rows.push(grid_row(length, quantity, slept.how, paper, value));
        };
        add(&us("system", "median"), Some(PRINTED_US[at]), (misses.median(), system));
        add(&us("system", "p99"), None, (misses.percentile(99), system));
        add(&cpu("system"), None, (system.cpu_percent(), system));
        add(&us("kernel only", "median"), None, (kernel.misses().median(), kernel));
        add(&us("learned", "median"), None, (learned.misses().median(), learned));
        add(&cpu("learned"), None, (learned.cpu_percent(), learned));
    }
    let table = PaperTable {
        id: TABLE.id.into(),
        title: TABLE.title.into(),
        paper_machine: INTEL_1000.into(),
        method: slept.method(),
        rows,
        decisions: Vec::new(),
        difference: explain(slept),
        notes: vec![
            SINGLE.into(),
            "The thesis ascribes the 53 us below 1/HZ to the scheduler's tick. They are the timer \
             slack of 50 us that every thread has, and the wake-up: with high-resolution timers \
             (Linux 2.6.16 and later) no tick is waited for."
                .into(),
        ],
        figure: None,
    };
    MeasuredTable { table, figure: None }
}

fn explain(slept: &SweepTable) -> String {
    const ONE_MS: usize = 10;
    let of = |way| slept.sweep.of(way, ONE_MS);
    let median = |way| of(way).misses().median();
    let shortest = slept.sweep.of(SleepMethod::System, LENGTHS.len() - 1);
    format!(
        "Of {} the system's sleep misses {} here and 59.4 us there, of 1 us {} and 53.3 us: most \
         of it is the timer slack, which ours does without: the same kernel wait misses {} then. \
         Learnt margins bring it to {}, at {} of a CPU instead of {}.",
        LENGTHS[ONE_MS].name,
        said(median(SleepMethod::System)),
        said(Values::median(&shortest.misses())),
        said(median(SleepMethod::KernelOnly)),
        said(median(SleepMethod::Learned)),
        percent(of(SleepMethod::Learned).cpu_percent()),
        percent(of(SleepMethod::System).cpu_percent())
    )
}
