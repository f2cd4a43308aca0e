//! Table 5.2: sleep in a busy-wait loop; and Figure 5.3: what CPU time is counted for it.

use hourglass_documents::paper::{
    AxisScale, Curve, CurveOrigin, CurvePoint, Curves, Edge, EdgeUnit, PaperFigure, PaperTable,
};

use super::super::costs::PinnedThread;
use super::super::{MeasuredTable, TableDef};
use super::INTEL_1000;
use super::sleep_rows::{Quantity, SINGLE, SweepTable, grid_row, percent, said};
use super::sleeps::SleepMethod;
use super::sleeps::hz::{RATES, TickKernel, counted_here};
use super::sleeps::sweep::LENGTHS;

pub(super) const TABLE: TableDef = TableDef {
    id: "5.2",
    title: "Miss of sleep in a busy-wait loop, and of ours",
    measure: |bench| {
        let slept = SweepTable::for_this_machine(bench)?;
        let _pinned = PinnedThread::to_last_cpu();
        Some(assembled(&slept, counted_here))
    },
};

/// Miss of sleep in a busy-wait loop, ns.
pub(super) const PRINTED_NS: [f64; 20] = [
    334.0, 243.0, 159.0, 169.0, 105.0, 98.0, 91.0, 67.0, 62.0, 79.0, 56.0, 46.0, 53.0, 61.0, 38.0,
    60.0, 55.0, 50.0, 52.0, 44.0,
];

/// The table from what was slept; `counted` tells the CPU time counted for being busy, ns.
pub(super) fn assembled(slept: &SweepTable, counted: impl FnMut(u64) -> u64) -> MeasuredTable {
    let ns = |subject, statistic| Quantity { subject, statistic, unit: "ns", size: 1.0 };
    let cpu = |subject| Quantity { subject, statistic: "CPU", unit: "%", size: 1.0 };
    let mut rows = Vec::new();
    for (at, length) in LENGTHS.into_iter().enumerate() {
        let [busy, learned] =
            [SleepMethod::Busy, SleepMethod::Learned].map(|way| slept.sweep.of(way, at));
        let misses = busy.misses();
        let mut add = |quantity: &Quantity, paper, value| {
            rows.push(grid_row(length, quantity, slept.how, paper, value));
        };
        add(&ns("busy-wait", "median"), Some(PRINTED_NS[at]), (misses.median(), busy));
        add(&ns("busy-wait", "p99"), None, (misses.percentile(99), busy));
        add(&cpu("busy-wait"), None, (busy.cpu_percent(), busy));
        add(&ns("learned", "median"), None, (learned.misses().median(), learned));
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
            "The thesis finds the miss proportional to the time slept above 1/HZ. A loop that looks \
             at a counter cannot know how long it has been at it; what grows with the time is the \
             part of the CPU's caches that interrupts and other programs have taken meanwhile, and \
             the chance of an interruption at the end."
                .into(),
            "The thesis' Figure 5.3 is a picture without numbers, so that only its subject is drawn: \
             the CPU time counted for busy waiting, here and by simulated kernels that count in \
             ticks."
                .into(),
        ],
        figure: None,
    };
    MeasuredTable { table, figure: Some(PaperFigure::Curves(figure(counted))) }
}

fn explain(slept: &SweepTable) -> String {
    const ONE_MS: usize = 10;
    let of = |way, at| slept.sweep.of(way, at);
    let median = |way, at| said(of(way, at).misses().median());
    format!(
        "Of {} busy waiting misses {} here and 56 ns there, of 1 s {} and 334 ns: a step of the \
         loop, and the way out of it. It takes {} of the time, all that others leave it. Ours misses {} and {}, since it only \
         spins at the end, with {} and {} of a CPU.",
        LENGTHS[ONE_MS].name,
        median(SleepMethod::Busy, ONE_MS),
        median(SleepMethod::Busy, 0),
        percent(of(SleepMethod::Busy, ONE_MS).cpu_percent()),
        median(SleepMethod::Learned, ONE_MS),
        median(SleepMethod::Learned, 0),
        percent(of(SleepMethod::Learned, ONE_MS).cpu_percent()),
        percent(of(SleepMethod::Learned, 0).cpu_percent())
    )
}

/// Figure 5.3: busy times up to 25 ms.
fn figure(mut counted: impl FnMut(u64) -> u64) -> Curves {
    const STEP_NS: u64 = 1_000_000;
    const STEPS: u64 = 25;
    let curve = |name: String, origin, colour, of: &mut dyn FnMut(u64) -> u64| {
        let place = |busy: u64| CurvePoint { across: busy as f64, up: of(busy) as f64 };
        let points = (1..=STEPS).map(|n| n * STEP_NS).map(place).collect();
        Curve { name, origin, colour, joined: true, points }
    };
    let mut curves = vec![curve("this kernel".into(), CurveOrigin::Here, 0, &mut counted)];
    for (at, hz) in RATES.into_iter().enumerate() {
        let mut kernel = TickKernel::new(hz);
        let name = format!("counting in ticks, HZ {hz} (simulated)");
        let colour = at as u32 + 1;
        curves.push(curve(name, CurveOrigin::Simulated, colour, &mut |busy| kernel.counted(busy)));
    }
    let edge =
        |text: &str| Edge { text: text.into(), unit: EdgeUnit::Time, scale: AxisScale::Linear };
    Curves {
        id: "5.3".into(),
        title: "CPU time counted for busy waiting".into(),
        across: edge("time of busy waiting"),
        up: edge("CPU time counted by getrusage"),
        curves,
        note: "The thesis' own figure is a picture without numbers.".into(),
    }
}
