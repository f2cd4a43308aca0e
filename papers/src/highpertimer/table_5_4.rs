//! Table 5.4: the thesis' combined sleep; and Figure 5.5: the miss of every way by the time slept.

use hourglass_documents::paper::{
    AxisScale, Curve, CurveOrigin, CurvePoint, Curves, Edge, EdgeUnit, PaperFigure, PaperTable,
};

use super::super::{MeasuredTable, TableDef};
use super::INTEL_1000;
use super::sleep_rows::{Quantity, SINGLE, SweepTable, UNRELIABLE, grid_row, percent, said};
use super::sleeps::SleepMethod;
use super::sleeps::stats::Values;
use super::sleeps::sweep::LENGTHS;
use super::{table_5_1, table_5_2};

pub(super) const TABLE: TableDef = TableDef {
    id: "5.4",
    title: "Miss of the thesis' combined sleep in two runs, and of ours",
    measure: |bench| Some(assembled(&SweepTable::for_this_machine(bench)?)),
};

/// Miss in Run 1 and in Run 2, ns.
pub(super) const PRINTED_NS: [[f64; 2]; 20] = [
    [253.0, 397.0],
    [304.0, 266.0],
    [268.0, 290.0],
    [285.0, 265.0],
    [239.0, 281.0],
    [254.0, 242.0],
    [208.0, 230.0],
    [284.0, 226.0],
    [311.0, 236.0],
    [258.0, 182.0],
    [113.0, 161.0],
    [48.0, 128.0],
    [48.0, 114.0],
    [42.0, 89.0],
    [48.0, 96.0],
    [46.0, 85.0],
    [46.0, 100.0],
    [41.0, 83.0],
    [38.0, 114.0],
    [49.0, 112.0],
];

/// The table from what was slept.
pub(super) fn assembled(slept: &SweepTable) -> MeasuredTable {
    let ns = |subject, statistic| Quantity { subject, statistic, unit: "ns", size: 1.0 };
    let cpu = |subject| Quantity { subject, statistic: "CPU", unit: "%", size: 1.0 };
    let mut rows = Vec::new();
    for (at, length) in LENGTHS.into_iter().enumerate() {
        let [thesis, learned] =
            [SleepMethod::Thesis, SleepMethod::Learned].map(|way| slept.sweep.of(way, at));
        let mut add = |quantity: &Quantity, paper, value| {
            rows.push(grid_row(length, quantity, slept.how, paper, value));
        };
        let [first, second] = PRINTED_NS[at];
        add(&ns("run 1", "median"), Some(first), (thesis.half(false).median(), thesis));
        add(&ns("run 2", "median"), Some(second), (thesis.half(true).median(), thesis));
        add(&cpu("both"), None, (thesis.cpu_percent(), thesis));
        add(&ns("learned", "median"), None, (learned.misses().median(), learned));
        add(&cpu("learned"), None, (learned.cpu_percent(), learned));
    }
    let table = PaperTable {
        id: TABLE.id.into(),
        title: TABLE.title.into(),
        paper_machine: INTEL_1000.into(),
        method: format!("{}; run 2 is the later half of the sleeps", slept.method()),
        rows,
        decisions: Vec::new(),
        difference: explain(slept),
        notes: vec![
            SINGLE.into(),
            UNRELIABLE.into(),
            "The thesis' Figure 5.5 goes to 10 s and is a picture without numbers; drawn are those \
             of its Tables 5.1, 5.2 and 5.4, and ours."
                .into(),
        ],
        figure: None,
    };
    MeasuredTable { table, figure: Some(PaperFigure::Curves(figure(slept))) }
}

fn explain(slept: &SweepTable) -> String {
    const TWO_MS: usize = 9;
    const EIGHT_MS: usize = 7;
    let of = |way, at| slept.sweep.of(way, at);
    let median = |way, at| said(of(way, at).misses().median());
    let cpu = |way, at| percent(of(way, at).cpu_percent());
    format!(
        "Of {} the thesis' sleep misses {} here and 182 to 258 ns there, at {} of a CPU; of {} {}, \
         at {}: a sleep that is not much longer than 1/HZ is mostly spun, and a shorter one all \
         the time. Ours misses {} and {}, at {} and {}.",
        LENGTHS[TWO_MS].name,
        median(SleepMethod::Thesis, TWO_MS),
        cpu(SleepMethod::Thesis, TWO_MS),
        LENGTHS[EIGHT_MS].name,
        median(SleepMethod::Thesis, EIGHT_MS),
        cpu(SleepMethod::Thesis, EIGHT_MS),
        median(SleepMethod::Learned, TWO_MS),
        median(SleepMethod::Learned, EIGHT_MS),
        cpu(SleepMethod::Learned, TWO_MS),
        cpu(SleepMethod::Learned, EIGHT_MS)
    )
}

fn figure(slept: &SweepTable) -> Curves {
    let printed = |of: &dyn Fn(usize) -> f64| -> Vec<CurvePoint> {
        let place = |at: usize| CurvePoint { across: LENGTHS[at].ns as f64, up: of(at) };
        (0..LENGTHS.len()).rev().map(place).collect()
    };
    let here = |way: SleepMethod| -> Vec<CurvePoint> {
        let place = |at: usize| {
            let up = Values::median(&slept.sweep.of(way, at).misses())?;
            Some(CurvePoint { across: LENGTHS[at].ns as f64, up })
        };
        (0..LENGTHS.len()).rev().filter_map(place).collect()
    };
    let curve = |name: &str, origin, colour, points| Curve {
        name: name.into(),
        origin,
        colour,
        joined: true,
        points,
    };
    let there = |way: SleepMethod, colour, of: &dyn Fn(usize) -> f64| {
        curve(&format!("{}, paper", way.name()), CurveOrigin::Paper, colour, printed(of))
    };
    let own = |(at, way): (usize, SleepMethod)| {
        curve(&format!("{}, here", way.name()), CurveOrigin::Here, at as u32, here(way))
    };
    let mut curves = vec![
        there(SleepMethod::System, 0, &|at| table_5_1::PRINTED_US[at] * 1e3),
        there(SleepMethod::Busy, 2, &|at| table_5_2::PRINTED_NS[at]),
        there(SleepMethod::Thesis, 3, &|at| PRINTED_NS[at][0]),
    ];
    curves.extend(SleepMethod::COMPARED.into_iter().enumerate().map(own));
    let edge = |text: &str| Edge {
        text: text.into(),
        unit: EdgeUnit::Time,
        scale: AxisScale::Logarithmic,
    };
    Curves {
        id: "5.5".into(),
        title: "Miss by the time slept".into(),
        across: edge("time slept"),
        up: edge("median miss"),
        curves,
        note: "The paper's numbers are those of its Tables 5.1, 5.2 and 5.4 (run 1).".into(),
    }
}
