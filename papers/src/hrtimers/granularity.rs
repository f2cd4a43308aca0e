//! Section 4.3: whether a coarser granularity of the wheel moves fewer timers, "currently a
//! speculation that must be tested"; and what it costs in accuracy.
//!
//! What is counted is exact and the same on every machine; what is timed is not.

use std::time::Instant as Watch;

use hourglass_documents::paper::{MeasurementKind, PaperRow};
use hourglass_queue::Handle;
use hourglass_time::{Instant, Sim, Span};
use hourglass_trace::statistics::quantile_of;

use super::super::bench::MeasurementHost;
use super::super::printed::{MeasuredTable, Table, Values};
use super::super::rows::row;
use super::contender::{Kind, Numbers, TimerStructure};

/// Ticks, ms: those of Linux that the paper names (early 2.6; HZ 250; 2.4), and one far coarser.
const TICKS_MS: [i64; 4] = [1, 4, 10, 100];

const KINDS: [Kind; 2] = [Kind::Cascading, Kind::Timeouts];

/// Timeouts armed in each millisecond.
const RATE: u64 = 10;

/// A timeout's delay: 128 ms to 131 s, ten doublings, each as likely.
const SHORTEST_MS: u64 = 128;
const DELAY_DOUBLINGS: u64 = 10;

/// What it waits for comes after 1 ms to 4 s, twelve doublings, each as likely, and removes it.
const ANSWER_DOUBLINGS: u64 = 12;

/// Simulated time in which timeouts are armed, ms.
const QUICK_MS: u64 = 20_000;
const FULL_MS: u64 = 200_000;

/// Rounds; the median of their times counts.
const ROUNDS: usize = 3;

const SEED: u64 = 43;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GranularityRun {
    pub(super) armed: u64,
    pub(super) removed: u64,
    pub(super) fired: u64,
    pub(super) moved: u64,
    pub(super) moved_at_once: u64,
    pub(super) late_most_ns: u64,
    late_sum_ns: u128,
    /// Time of all calls, ns.
    spent_ns: u64,
}

impl GranularityRun {
    fn late_mean_ns(&self) -> f64 {
        self.late_sum_ns as f64 / self.fired.max(1) as f64
    }

    fn each(&self, of: u64) -> f64 {
        of as f64 / self.armed.max(1) as f64
    }
}

/// Arms and removes timeouts for some milliseconds, and polls the structure in each of them and until all have
/// expired. `None` if `stopped` ended it, or if the structure refused a timeout.
pub(super) fn run(
    kind: Kind,
    tick: Span,
    length_ms: u64,
    stopped: fn() -> bool,
) -> Option<GranularityRun> {
    let mut structure = kind.empty(tick).ok()?;
    let mut numbers = Numbers::from_seed(SEED);
    let mut answers: Vec<Vec<Handle>> = vec![Vec::new(); 1 << ANSWER_DOUBLINGS];
    let mut run = GranularityRun::default();
    let end_ms = length_ms + ((SHORTEST_MS << DELAY_DOUBLINGS) * 16).div_ceil(15) + 200;
    for ms in 0..end_ms {
        if stopped() {
            return None;
        }
        let now = at(ms);
        let here = (ms % answers.len() as u64) as usize;
        let mut come = std::mem::take(&mut answers[here]);
        let mut wanted = [(0, 0); RATE as usize];
        if ms < length_ms {
            for each in &mut wanted {
                let delay_ms = numbers.log_uniform(SHORTEST_MS, DELAY_DOUBLINGS);
                *each = (delay_ms, numbers.log_uniform(1, ANSWER_DOUBLINGS));
            }
        }
        let watch = Watch::now();
        poll(structure.as_mut(), now, &mut run);
        for timer in come.drain(..) {
            structure.remove(timer).ok()?;
            run.removed += 1;
        }
        for (delay_ms, answer_ms) in wanted {
            if delay_ms == 0 {
                break;
            }
            let timer =
                structure.arm(now, Span::from_millis(i64::try_from(delay_ms).ok()?)).ok()?;
            run.armed += 1;
            // An answer that comes later finds no timeout any more.
            if answer_ms < delay_ms {
                let then = (ms + answer_ms) % answers.len() as u64;
                answers[then as usize].push(timer);
            }
        }
        run.spent_ns += u64::try_from(watch.elapsed().as_nanos()).ok()?;
    }
    Some(run)
}

fn at(ms: u64) -> Instant<Sim> {
    Instant::from_zero(Span::from_millis(i64::try_from(ms).unwrap_or(i64::MAX)))
}

fn poll(structure: &mut dyn TimerStructure, now: Instant<Sim>, run: &mut GranularityRun) {
    let mut late = (0_u64, 0_u128);
    loop {
        let polled = structure.poll(now, &mut |expired| {
            let ns = now.saturating_since(expired.expiry).nanos_or_zero();
            late = (late.0.max(ns), late.1 + u128::from(ns));
        });
        run.fired += polled.fired;
        run.moved += polled.moved;
        run.moved_at_once = run.moved_at_once.max(polled.moved);
        if !polled.again {
            break;
        }
    }
    run.late_most_ns = run.late_most_ns.max(late.0);
    run.late_sum_ns += late.1;
}

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    measure_length(table, bench.at_most(FULL_MS, QUICK_MS), ROUNDS, bench.stopped)
}

type GranularityResult = (i64, Kind, GranularityRun);

pub(super) fn measure_length(
    table: &Table,
    length_ms: u64,
    rounds: usize,
    stopped: fn() -> bool,
) -> Option<MeasuredTable> {
    let mut runs: Vec<GranularityResult> = Vec::new();
    let mut spent: Vec<Vec<u64>> = Vec::new();
    for _ in 0..rounds {
        let pairs = TICKS_MS.iter().flat_map(|tick| KINDS.map(|kind| (*tick, kind)));
        for (at, (tick_ms, kind)) in pairs.enumerate() {
            let run = run(kind, Span::from_millis(tick_ms), length_ms, stopped)?;
            match spent.get_mut(at) {
                Some(times) => times.push(run.spent_ns),
                None => {
                    spent.push(vec![run.spent_ns]);
                    runs.push((tick_ms, kind, run));
                }
            }
        }
    }
    for ((_, _, run), times) in runs.iter_mut().zip(&mut spent) {
        times.sort_unstable();
        run.spent_ns = quantile_of(times, 0.5).unwrap_or(0);
    }
    let rows = runs.iter().flat_map(rows_of).collect();
    let values = values(length_ms, rounds, &runs)?;
    Some(table.with_rows(rows, values))
}

fn rows_of((tick_ms, kind, run): &GranularityResult) -> Vec<PaperRow> {
    let (counted, timed) = (MeasurementKind::Simulated, MeasurementKind::Measured);
    let row = |what: &str, unit: &str, how, number: f64, count: u64| {
        let name = format!("{tick_ms} ms, {}: {what}", kind.name());
        row(name, unit, None, how, Ok((number, count)))
    };
    let mut rows = Vec::new();
    if *kind == Kind::Cascading {
        let moved = run.each(run.moved) * 1e3;
        rows.push(row("moved of 1000", "timers", counted, moved, run.armed));
        rows.push(row("moved at once", "timers", counted, run.moved_at_once as f64, run.armed));
    }
    rows.push(row("late, mean", "ms", counted, run.late_mean_ns(), run.fired));
    rows.push(row("late, most", "ms", counted, run.late_most_ns as f64, run.fired));
    rows.push(row("time of each", "ns", timed, run.each(run.spent_ns), run.armed));
    rows
}

fn values(length_ms: u64, rounds: usize, runs: &[GranularityResult]) -> Option<Values> {
    let of = |kind: Kind| runs.iter().filter(move |(_, of, _)| *of == kind);
    let (fine, coarse) = (of(Kind::Cascading).next()?, of(Kind::Cascading).next_back()?);
    let wheel = of(Kind::Timeouts).next()?;
    let removed = fine.2.each(fine.2.removed) * 100.0;
    let mut values = Values::default()
        .with("armed", fine.2.armed)
        .with("rate", RATE)
        .with("length", length_ms)
        .with("removed", format!("{removed:.1}"))
        .with("rounds", rounds)
        .with("coarse late", format!("{:.0}", coarse.2.late_most_ns as f64 / 1e6))
        .with("wheel late", format!("{:.1}", wheel.2.late_mean_ns() / 1e6));
    for (name, (tick_ms, _, run)) in [("fine", fine), ("coarse", coarse), ("wheel", wheel)] {
        values = values
            .with(name, tick_ms.to_string())
            .with(&format!("{name} moved"), format!("{:.1}", run.each(run.moved) * 1e3))
            .with(&format!("{name} time"), format!("{:.0}", run.each(run.spent_ns)));
    }
    Some(values)
}
