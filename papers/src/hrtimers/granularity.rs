//! Section 4.3: whether a coarser granularity of the wheel moves fewer timers, "currently a
//! speculation that must be tested"; and what it costs in accuracy.
//!
//! What is counted is exact and the same on every machine; what is timed is not.

use std::time::Instant as Watch;

use hourglass_model::paper::{MeasurementKind, PaperRow, PaperTable};
use hourglass_time::{Instant, Sim, Span};
use hourglass_timer::queue::Handle;

use super::super::bench::{MeasurementHost, MeasurementSize};
use super::super::printed::MeasuredTable;
use super::super::rows::{found, without_figure};
use super::super::sentences::sentence;
use super::super::wakeups::quantile;
use super::NO_MACHINE;
use super::contender::{Kind, Numbers, TimerStructure};

pub(super) const ID: &str = "4.3";
pub(super) const TITLE: &str = "Coarser granularity: timers moved, and accuracy";

/// Ticks, ms: those of Linux that the paper names (early 2.6; HZ 250; 2.4), and one far coarser.
const TICKS_MS: [i64; 4] = [1, 4, 10, 100];

/// The structures that are compared.
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

/// What came of one structure at one granularity.
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
    fn late_mean_ms(&self) -> f64 {
        self.late_sum_ns as f64 / self.fired.max(1) as f64 / 1e6
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
    // The answers that come in each millisecond.
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

/// Looks until nothing more is due.
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

pub(super) fn measure(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let length_ms = match bench.effort {
        MeasurementSize::Quick => QUICK_MS,
        MeasurementSize::Full => FULL_MS,
    };
    measure_length(length_ms, ROUNDS, bench.stopped)
}

/// A tick, a structure, and what came of it.
type GranularityResult = (i64, Kind, GranularityRun);

pub(super) fn measure_length(
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
        run.spent_ns = quantile(times, 50);
    }
    let table = PaperTable {
        id: ID.into(),
        title: TITLE.into(),
        paper_machine: NO_MACHINE.into(),
        method: method(length_ms, rounds, &runs),
        rows: runs.iter().flat_map(rows_of).collect(),
        decisions: Vec::new(),
        difference: explain(&runs),
        notes: vec![
            "\"While this is an interesting possibility, it is currently a speculation that must be \
             tested\" (section 4.3): here it is."
                .into(),
            "The granule of the wheel of timeouts is the power of two nanoseconds below the tick."
                .into(),
        ],
        figure: None,
    };
    Some(without_figure(table))
}

fn method(length_ms: u64, rounds: usize, runs: &[GranularityResult]) -> String {
    let Some((_, _, first)) = runs.first() else { return "nothing".into() };
    format!(
        "{} timeouts, {RATE} armed in each of {length_ms} ms on the simulated clock, with delays of \
         128 ms to 131 s; what they wait for comes after 1 ms to 4 s (both with every doubling as \
         likely), so that {:.1} % are removed before they expire; the wheels are looked at every \
         millisecond; counts are exact; times are medians of {rounds} rounds in turns",
        first.armed,
        first.removed as f64 / first.armed.max(1) as f64 * 100.0,
    )
}

fn rows_of((tick_ms, kind, run): &GranularityResult) -> Vec<PaperRow> {
    let name = |what: &str| format!("{tick_ms} ms, {}: {what}", kind.name());
    let row = |what: &str, number: f64, unit: &str, how: MeasurementKind, count: u64| {
        found(name(what), number, unit, how, count)
    };
    let per_thousand = run.moved as f64 * 1e3 / run.armed.max(1) as f64;
    let mut rows = Vec::new();
    if *kind == Kind::Cascading {
        let at_once = run.moved_at_once as f64;
        rows.push(row(
            "moved of 1000",
            per_thousand,
            "timers",
            MeasurementKind::Simulated,
            run.armed,
        ));
        rows.push(row("moved at once", at_once, "timers", MeasurementKind::Simulated, run.armed));
    }
    let late_most_ms = run.late_most_ns as f64 / 1e6;
    rows.push(row("late, mean", run.late_mean_ms(), "ms", MeasurementKind::Simulated, run.fired));
    rows.push(row("late, most", late_most_ms, "ms", MeasurementKind::Simulated, run.fired));
    let each_ns = run.spent_ns as f64 / run.armed.max(1) as f64;
    rows.push(row("time of each", each_ns, "ns", MeasurementKind::Measured, run.armed));
    rows
}

fn explain(runs: &[GranularityResult]) -> String {
    let of = |kind: Kind| runs.iter().filter(move |(_, of, _)| *of == kind);
    let (Some(fine), Some(coarse), Some(wheel)) =
        (of(Kind::Cascading).next(), of(Kind::Cascading).next_back(), of(Kind::Timeouts).next())
    else {
        return "Nothing could be compared.".into();
    };
    let part = |run: &GranularityRun| run.moved as f64 * 1e3 / run.armed.max(1) as f64;
    let each = |run: &GranularityRun| run.spent_ns as f64 / run.armed.max(1) as f64;
    sentence(&format!(
        "with ticks of {} ms instead of {} ms the cascading wheel moves {:.1} timers of 1000 instead \
         of {:.1}, costs {:.0} ns a timeout instead of {:.0}, and is late by up to {:.0} ms; the wheel that never cascades moves none at any granularity, costs {:.0} ns, and is \
         late by a part of the delay instead, {:.1} ms on average with granules of {} ms",
        coarse.0,
        fine.0,
        part(&coarse.2),
        part(&fine.2),
        each(&coarse.2),
        each(&fine.2),
        coarse.2.late_most_ns as f64 / 1e6,
        each(&wheel.2),
        wheel.2.late_mean_ms(),
        wheel.0,
    ))
}
