//! Section 4.1: what one tick of the cascading timer wheel may cost, beside structures that save up
//! no work.
//!
//! What is counted is exact and the same on every machine; what is timed is not.

use std::time::Instant as Watch;

use hourglass_documents::paper::{MeasurementKind, PaperFigure, PaperRow, Series};
use hourglass_time::{Instant, Span};

use super::super::bench::MeasurementHost;
use super::super::downsample::Downsampler;
use super::super::drawing::measurements;
use super::super::printed::{MeasuredTable, Table, Value, Values};
use super::super::rows::row;
use super::contender::{BUDGET, Kind, Numbers};

/// The tick of "the early 2.6 kernels".
const TICK: Span = Span::MILLISECOND;

/// Timers expire within this, in ticks: the farthest lie in the third array.
const HORIZON: u64 = 60_000;

const QUICK: &[u64] = &[10_000, 100_000];
const FULL: &[u64] = &[10_000, 100_000, 1_000_000];

/// All is done so often; each tick counts with the least of its times, which leaves out what
/// other work and the host of a virtual machine did to it.
const ROUNDS: usize = 5;

/// In a hundred timers, those that are removed before the first cascade in the second case.
const CANCELLED: u64 = 95;

const SEED: u64 = 2006;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CascadeRun {
    pub(super) fired: u64,
    pub(super) moved: u64,
    pub(super) moved_at_once: u64,
    /// Entries and timers looked at for the next expiry.
    pub(super) looked_at: Option<u64>,
    /// Time of that search, ns.
    pub(super) search_ns: u64,
    /// Time of each look in turn, ns.
    pub(super) polls_ns: Vec<u64>,
}

impl CascadeRun {
    fn least_of(mut self, other: &CascadeRun) -> CascadeRun {
        self.search_ns = self.search_ns.min(other.search_ns);
        for (ns, other) in self.polls_ns.iter_mut().zip(&other.polls_ns) {
            *ns = (*ns).min(*other);
        }
        self
    }

    fn worst_ns(&self) -> f64 {
        self.polls_ns.iter().max().map_or(0.0, |ns| *ns as f64)
    }

    fn mean_ns(&self) -> f64 {
        self.polls_ns.iter().sum::<u64>() as f64 / self.polls_ns.len().max(1) as f64
    }
}

/// Arms timers in an empty structure, removes some, and polls it every tick until all have expired. `None` if
/// `stopped` ended it, or if the structure refused a timer.
pub(super) fn run(
    kind: Kind,
    timers: u64,
    cancelled: u64,
    stopped: fn() -> bool,
) -> Option<CascadeRun> {
    let mut structure = kind.empty(TICK).ok()?;
    let mut numbers = Numbers::from_seed(SEED);
    let horizon_ns = TICK.nanos_or_zero() * HORIZON;
    for _ in 0..timers {
        let after = i64::try_from(1 + numbers.next_below(horizon_ns)).ok()?;
        let timer = structure.arm(Instant::ZERO, Span::from_nanos(after)).ok()?;
        if numbers.next_below(100) < cancelled {
            structure.remove(timer).ok()?;
        }
    }
    let watch = Watch::now();
    let (_, looked_at) = structure.next();
    let search_ns = nanos(watch);
    let mut run = CascadeRun { looked_at, search_ns, ..CascadeRun::default() };
    for tick in 1..=last_tick(kind) {
        if stopped() {
            return None;
        }
        let now = Instant::from_zero(TICK.checked_mul(i64::try_from(tick).ok()?)?);
        let mut again = true;
        while again {
            let watch = Watch::now();
            let polled = structure.poll(now, &mut |_| ());
            run.polls_ns.push(nanos(watch));
            run.fired += polled.fired;
            run.moved += polled.moved;
            run.moved_at_once = run.moved_at_once.max(polled.moved);
            again = polled.again;
        }
    }
    Some(run)
}

/// The wheel of timeouts is up to a fifteenth of a delay late.
fn last_tick(kind: Kind) -> u64 {
    match kind {
        Kind::Timeouts => HORIZON + HORIZON / 15 + 2,
        _ => HORIZON + 1,
    }
}

fn nanos(watch: Watch) -> u64 {
    u64::try_from(watch.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn turns(
    timers: u64,
    cancelled: u64,
    rounds: usize,
    stopped: fn() -> bool,
) -> Option<Vec<(Kind, CascadeRun)>> {
    let mut found: Vec<(Kind, CascadeRun)> = Vec::new();
    for round in 0..rounds {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            let run = run(kind, timers, cancelled, stopped)?;
            match found.get_mut(at) {
                Some((_, least)) if round > 0 => *least = run.least_of(least),
                _ => found.push((kind, run)),
            }
        }
    }
    Some(found)
}

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let (sizes, rounds) = bench.at_most((FULL, ROUNDS), (QUICK, ROUNDS - 2));
    measure_sizes(table, sizes, rounds, bench.stopped)
}

pub(super) fn measure_sizes(
    table: &Table,
    sizes: &[u64],
    rounds: usize,
    stopped: fn() -> bool,
) -> Option<MeasuredTable> {
    let (mut rows, mut of_most, mut figure) = (Vec::new(), Values::default(), None);
    for &timers in sizes {
        let all = turns(timers, 0, rounds, stopped)?;
        for (kind, run) in &all {
            rows.extend(rows_of(*kind, run, timers));
        }
        let few = run(Kind::Cascading, timers, CANCELLED, stopped)?;
        let name = format!("{}, {CANCELLED} % removed: moved at once", short(timers));
        let found = Ok((few.moved_at_once as f64, timers));
        rows.push(row(name, "timers", None, MeasurementKind::Simulated, found));
        of_most = values(timers, &all, &few).with("rounds", rounds);
        figure = Some(drawn(table, timers, &all));
    }
    Some(table.with_rows(rows, of_most).with_figure(figure))
}

fn rows_of(kind: Kind, run: &CascadeRun, timers: u64) -> Vec<PaperRow> {
    let of = |what: &str, unit: &str, how, number: f64, count: u64| {
        let name = format!("{} {}: {what}", short(timers), kind.name());
        row(name, unit, None, how, Ok((number, count)))
    };
    let counted = |what, unit, number: u64, count| {
        of(what, unit, MeasurementKind::Simulated, number as f64, count)
    };
    let timed = |what, unit, ns, count| of(what, unit, MeasurementKind::Measured, ns, count);
    let looks = run.polls_ns.len() as u64;
    let mut rows = Vec::new();
    if kind == Kind::Cascading {
        rows.push(counted("moved at once", "timers", run.moved_at_once, looks));
        rows.push(counted("moved in all", "timers", run.moved, looks));
    }
    rows.push(timed("dearest look", "us", run.worst_ns(), looks));
    rows.push(timed("mean look", "ns", run.mean_ns(), looks));
    rows.extend(run.looked_at.map(|count| counted("searched", "entries", count, 1)));
    rows.push(timed("search", "us", run.search_ns as f64, 1));
    rows
}

fn short(timers: u64) -> String {
    match timers {
        n if n >= 1_000_000 && n % 1_000_000 == 0 => format!("{}M", n / 1_000_000),
        n if n >= 1_000 && n % 1_000 == 0 => format!("{}k", n / 1_000),
        n => n.to_string(),
    }
}

fn drawn(table: &Table, timers: u64, all: &[(Kind, CascadeRun)]) -> PaperFigure {
    let mut thinning = 1;
    let mut series = Vec::new();
    for (kind, run) in all {
        let mut thinned = Downsampler::default();
        run.polls_ns.iter().for_each(|ns| thinned.push(*ns));
        thinning = thinning.max(thinned.stretch());
        series.push(Series {
            name: kind.name().into(),
            paper_mean_ns: None,
            mean_ns: Some(run.mean_ns()),
            points: thinned.drawn(1.0),
        });
    }
    let count = all.iter().map(|(_, run)| run.polls_ns.len() as u64).max().unwrap_or(0);
    let title = format!("Looks at structures of {timers} timers");
    measurements((&table.id, &title), ("cost", "look", count), thinning, series)
}

fn values(timers: u64, all: &[(Kind, CascadeRun)], few: &CascadeRun) -> Values {
    let run = |kind: Kind| all.iter().find(|(of, _)| *of == kind).map(|(_, run)| run);
    let worst = |kind: Kind| run(kind).map(|run| Value::Time(run.worst_ns()));
    let cascading = run(Kind::Cascading);
    Values::default()
        .with("budget", BUDGET)
        .with("timers", timers)
        .with("cancelled", CANCELLED)
        .with_some("moved", cascading.map(|run| run.moved_at_once))
        .with("moved of few", few.moved_at_once)
        .with_some("cascading", worst(Kind::Cascading))
        .with_some("mean", cascading.map(|run| Value::Time(run.mean_ns())))
        .with_some("wheel", worst(Kind::Timeouts))
        .with_some("heap", worst(Kind::Heap))
}
