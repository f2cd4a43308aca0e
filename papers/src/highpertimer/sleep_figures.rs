//! Figures 5.3, 5.5 and 5.6, and misses over CPU time.

use hourglass_documents::paper::{
    AxisScale, CurveOrigin, Curves, EdgeUnit, PaperFigure, Point, Series,
};

use super::super::drawing::{curve, curves, edge, measurements};
use super::super::printed::Table;
use super::sleeps::SleepMethod;
use super::sleeps::block::BlockSleeper;
use super::sleeps::hz::{RATES, TickKernel};
use super::sleeps::stats::Values;
use super::sleeps::sweep::{LENGTHS, Sweep};
use crate::miss_over_cpu::{Sleeps, figure};

/// Figure 5.3: busy times up to 25 ms; `counted` tells the CPU time counted for being busy, ns.
pub(super) fn counted_time(mut counted: impl FnMut(u64) -> u64) -> Curves {
    const STEP_NS: u64 = 1_000_000;
    const STEPS: u64 = 25;
    let points = |of: &mut dyn FnMut(u64) -> u64| -> Vec<(f64, f64)> {
        (1..=STEPS).map(|n| n * STEP_NS).map(|busy| (busy as f64, of(busy) as f64)).collect()
    };
    let mut all = vec![curve("this kernel", CurveOrigin::Here, 0, points(&mut counted))];
    for (colour, hz) in (1..).zip(RATES) {
        let mut kernel = TickKernel::new(hz);
        let name = format!("counting in ticks, HZ {hz} (simulated)");
        let points = points(&mut |busy| kernel.counted(busy));
        all.push(curve(name, CurveOrigin::Simulated, colour, points));
    }
    let edges = ["time of busy waiting", "CPU time counted by getrusage"]
        .map(|text| edge(text, EdgeUnit::Time, AxisScale::Linear));
    let title = "CPU time counted for busy waiting";
    curves(("5.3", title), edges, all, "The thesis' own figure is a picture without numbers.")
}

pub(super) fn miss_by_length(sweep: &Sweep) -> Curves {
    const PRINTED: [(SleepMethod, u32, &str, &str, f64); 3] = [
        (SleepMethod::System, 0, "5.1", "system: median", 1e3),
        (SleepMethod::Busy, 2, "5.2", "busy-wait: median", 1.0),
        (SleepMethod::Thesis, 3, "5.4", "run 1: median", 1.0),
    ];
    let points = |of: &dyn Fn(usize) -> Option<f64>| -> Vec<(f64, f64)> {
        let place = |at: usize| Some((LENGTHS[at].ns as f64, of(at)?));
        (0..LENGTHS.len()).rev().filter_map(place).collect()
    };
    let paper = crate::Paper::named("highpertimer");
    let there = |(way, colour, id, column, ns): (SleepMethod, u32, &str, &str, f64)| {
        let table = paper.and_then(|paper| paper.table(id));
        let points = points(&|at| Some(table?.printed(column, at)? * ns));
        curve(format!("{}, paper", way.name()), CurveOrigin::Paper, colour, points)
    };
    let own = |(colour, way): (u32, SleepMethod)| {
        let points = points(&|at| sweep.of(way, at).misses().median());
        curve(format!("{}, here", way.name()), CurveOrigin::Here, colour, points)
    };
    let all = PRINTED.into_iter().map(there).chain((0..).zip(SleepMethod::COMPARED).map(own));
    let edges = ["time slept", "median miss"]
        .map(|text| edge(text, EdgeUnit::Time, AxisScale::Logarithmic));
    let note = "The paper's numbers are those of its Tables 5.1, 5.2 and 5.4 (run 1).";
    curves(("5.5", "Miss by the time slept"), edges, all.collect(), note)
}

pub(super) fn miss_over_cpu(sweep: &Sweep, id: &str, length_ns: u64) -> Option<Curves> {
    let at = LENGTHS.iter().position(|length| length.ns == length_ns)?;
    let sleeps = |way: &SleepMethod| {
        let tally = sweep.of(*way, at);
        let misses = tally.misses();
        Some(Sleeps {
            name: way.name().to_owned(),
            cpu_percent: tally.cpu_percent()?,
            p50_ns: misses.median()?,
            p99_ns: misses.percentile(99)?,
        })
    };
    let ours =
        [SleepMethod::KernelOnly, SleepMethod::Frugal, SleepMethod::Learned, SleepMethod::Precise];
    let peers = [SleepMethod::System, SleepMethod::Busy, SleepMethod::Thesis];
    let ours: Vec<Sleeps> = ours.iter().filter_map(sleeps).collect();
    let peers: Vec<Sleeps> = peers.iter().filter_map(sleeps).collect();
    let title = format!("Miss over CPU time, sleeps of {}", LENGTHS[at].name);
    Some(figure(id, &title, &ours, &peers))
}

pub(super) const SHOWN: [SleepMethod; 3] =
    [SleepMethod::Thesis, SleepMethod::Busy, SleepMethod::Learned];

/// Figure 5.6: sleeps by each way, in turns, beside the means of Table 5.5. `None` if `stopped` ended it.
pub(super) fn one_after_the_other(
    table: &Table,
    machine: &mut impl BlockSleeper,
    count: usize,
    stopped: impl Fn() -> bool,
) -> Option<PaperFigure> {
    const LENGTH_NS: u64 = 122_000;
    const TURN: usize = 50;
    let mut misses: [Vec<i64>; 3] = Default::default();
    for turn in 0..count.div_ceil(TURN) {
        for (way, misses) in SHOWN.into_iter().zip(&mut misses) {
            if stopped() {
                return None;
            }
            let times = TURN.min(count - turn * TURN);
            let samples = machine.block(way, LENGTH_NS, times).map(|block| block.samples);
            misses.extend(samples.unwrap_or_default().iter().map(|sample| sample.miss));
        }
    }
    let series = SHOWN.into_iter().zip(misses).map(|(way, misses)| Series {
        name: way.name().into(),
        paper_mean_ns: table.printed(way.name(), 1).map(|us| us * 1e3),
        mean_ns: Values::of(misses.iter().copied()).mean(),
        points: (0..).zip(&misses).map(|(number, ns)| Point { number, ns: *ns as f64 }).collect(),
    });
    let names = ("5.6", "Miss of sleeps of 122 us, one after the other");
    Some(measurements(names, ("miss", "sleep", count as u64), 1, series.collect()))
}
