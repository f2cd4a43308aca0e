//! Table 5.5: mean miss of each way; and Figure 5.6: sleeps one after the other.

use hourglass_documents::paper::{Cell, Figure, PaperFigure, PaperRow, PaperTable, Point, Series};

use super::super::bench::MeasurementSize;
use super::super::{MeasuredTable, TableDef};
use super::INTEL_1000;
use super::sleep_rows::{SweepTable, UNRELIABLE, said};
use super::sleeps::block::BlockSleeper;
use super::sleeps::local_sleeper::LocalSleeper;
use super::sleeps::stats::{Values, deviation_of, mean_of, median_of};
use super::sleeps::{SleepMethod, probe};

pub(super) const TABLE: TableDef = TableDef {
    id: "5.5",
    title: "Mean miss of each way to sleep, of sleeps >= 1/HZ and < 1/HZ",
    measure: |bench| {
        let slept = SweepTable::for_this_machine(bench)?;
        let count = match bench.effort {
            MeasurementSize::Quick => 1_000,
            MeasurementSize::Full => 2_000,
        };
        let mut here = LocalSleeper::new(&SHOWN, probe(bench).policy());
        let figure = figure(&mut here, count, bench.stopped)?;
        Some(assembled(&slept, figure))
    },
};

/// A line of the table, us.
struct PrintedRow {
    way: SleepMethod,
    /// Mean miss of long sleeps, mean miss and deviation of short ones.
    us: Option<[f64; 3]>,
}

const LINES: [PrintedRow; 5] = [
    PrintedRow { way: SleepMethod::System, us: Some([61.985, 50.879, 11.412]) },
    PrintedRow { way: SleepMethod::Busy, us: Some([0.160, 0.070, 0.0400]) },
    PrintedRow { way: SleepMethod::Thesis, us: Some([0.258, 0.095, 0.0404]) },
    PrintedRow { way: SleepMethod::KernelOnly, us: None },
    PrintedRow { way: SleepMethod::Learned, us: None },
];

/// The table from what was slept.
pub(super) fn assembled(slept: &SweepTable, figure: Figure) -> MeasuredTable {
    let rows = LINES.iter().flat_map(|line| line_rows(slept, line)).collect();
    let table = PaperTable {
        id: TABLE.id.into(),
        title: TABLE.title.into(),
        paper_machine: INTEL_1000.into(),
        method: format!(
            "{}; lengths from 0.25 s down, each of which counts alike; beside the means stand the \
             medians of the lengths' medians",
            slept.method()
        ),
        rows,
        decisions: Vec::new(),
        difference: explain(slept),
        notes: vec![
            "The text below the table gives the deviation of short sleeps as about 400 ns; the \
             table has 0.0404 us, which is 40 ns."
                .into(),
            UNRELIABLE.into(),
            "The thesis' Figure 5.6 is a picture without numbers and does not say how long its \
             2000 sleeps are; here they are of 122 us each."
                .into(),
        ],
        figure: None,
    };
    MeasuredTable { table, figure: Some(PaperFigure::Measurements(figure)) }
}

fn line_rows(slept: &SweepTable, line: &PrintedRow) -> Vec<PaperRow> {
    let misses = |long: bool| -> Vec<Values> {
        slept.class(long).iter().map(|at| slept.sweep.of(line.way, *at).misses()).collect()
    };
    let (long, short) = (misses(true), misses(false));
    let (long, short): (Vec<&Values>, Vec<&Values>) =
        (long.iter().collect(), short.iter().collect());
    let printed = |at: usize| line.us.map(|us| us[at]);
    let row =
        |class: &str, statistic: &str, paper, measured: Option<f64>, of: &[&Values]| PaperRow {
            name: format!("{}, {class}: {statistic}", line.way.name()),
            paper,
            measured: measured.map(|ns| ns / 1e3),
            unit: "us".into(),
            how: slept.how,
            count: measured.map(|_| of.iter().map(|values| values.count()).sum()),
            missing: measured.is_none().then(|| {
                "a sleep of 0.25 s or less could not be measured; run it under SCHED_OTHER".into()
            }),
            cell: Some(Cell {
                line: line.way.name().into(),
                subject: class.into(),
                statistic: statistic.into(),
            }),
        };
    vec![
        row(">= 1/HZ", "mean", printed(0), mean_of(&long, Values::mean), &long),
        row(">= 1/HZ", "median", None, median_of(&long), &long),
        row("< 1/HZ", "mean", printed(1), mean_of(&short, Values::mean), &short),
        row("< 1/HZ", "dev.", printed(2), deviation_of(&short), &short),
        row("< 1/HZ", "median", None, median_of(&short), &short),
    ]
}

fn explain(slept: &SweepTable) -> String {
    let median = |way: SleepMethod, long: bool| {
        let misses: Vec<Values> =
            slept.class(long).iter().map(|at| slept.sweep.of(way, *at).misses()).collect();
        said(median_of(&misses.iter().collect::<Vec<_>>()))
    };
    format!(
        "A mean over all sleeps is what preemptions make of it: one of a tick in a thousand sleeps \
         adds microseconds to it and is nobody's miss. By the medians the thesis' sleep misses {} \
         and {} (long and short), busy waiting {} and {}, ours {} and {}. 1/HZ is {:.0} ms here and \
         1 ms there.",
        median(SleepMethod::Thesis, true),
        median(SleepMethod::Thesis, false),
        median(SleepMethod::Busy, true),
        median(SleepMethod::Busy, false),
        median(SleepMethod::Learned, true),
        median(SleepMethod::Learned, false),
        slept.tick_ns() as f64 / 1e6
    )
}

/// Ways of Figure 5.6: the thesis' and busy waiting as there, and ours.
const SHOWN: [SleepMethod; 3] = [SleepMethod::Thesis, SleepMethod::Busy, SleepMethod::Learned];

/// Figure 5.6: sleeps by each way, in turns. `None` if `stopped` ended it.
pub(super) fn figure(
    machine: &mut impl BlockSleeper,
    count: usize,
    stopped: impl Fn() -> bool,
) -> Option<Figure> {
    const LENGTH_NS: u64 = 122_000;
    const TURN: usize = 50;
    let mut series: Vec<Series> = SHOWN.into_iter().map(empty).collect();
    for turn in 0..count.div_ceil(TURN) {
        for (way, series) in SHOWN.into_iter().zip(&mut series) {
            if stopped() {
                return None;
            }
            let times = TURN.min(count - turn * TURN);
            let samples = machine.block(way, LENGTH_NS, times).map(|block| block.samples);
            for sample in samples.unwrap_or_default() {
                let number = series.points.len() as u64;
                series.points.push(Point { number, ns: sample.miss as f64 });
            }
        }
    }
    for series in &mut series {
        let misses = Values::of(series.points.iter().map(|point| point.ns as i64));
        series.mean_ns = misses.mean();
    }
    Some(Figure {
        id: "5.6".into(),
        title: "Miss of sleeps of 122 us, one after the other".into(),
        quantity: "miss".into(),
        counted: "sleep".into(),
        count: count as u64,
        thinning: 1,
        series,
    })
}

fn empty(way: SleepMethod) -> Series {
    let printed = LINES.iter().find(|line| line.way == way).and_then(|line| line.us);
    Series {
        name: way.name().into(),
        paper_mean_ns: printed.map(|us| us[1] * 1e3),
        mean_ns: None,
        points: Vec::new(),
    }
}
