//! Causes for ten million intervals and ten million kernel events: seconds and memory.

use std::convert::Infallible;
use std::time::Instant;

use anyhow::{Context, Result};
use hourglass_documents::Policy;
use hourglass_trace::cause::{self, CauseTally, KernelCoverage, RunFacts, ThreadFacts};
use hourglass_trace::{
    CounterDeltas, Evidence, Interval, IntervalStart, KernelEvent, KernelEventKind as Kind, Vector,
};

use crate::document::Row;

const INTERVALS: u64 = 10_000_000;
const THREADS: u32 = 4;
const EVERY_NS: i64 = 400_000;
/// One gap in `ONE_IN` is a switch, and one has no event.
const ONE_IN: u64 = 10;

/// The limits: seconds, and bytes.
const SECONDS: f64 = 10.0;
const BYTES: f64 = 1e9;

pub(super) fn measure() -> Result<Vec<Row>> {
    let facts = facts();
    let trace = || (0..INTERVALS).map(|n| Ok::<_, Infallible>(interval(n)));
    let events = (0..INTERVALS).flat_map(events);
    let begun = Instant::now();
    let Ok(patterns) = cause::survey(&facts, trace());
    let mut tally = CauseTally::default();
    let mut gaps = cause::attribute(&facts, &patterns, trace(), events);
    for gap in gaps.by_ref() {
        let Ok(gap) = gap;
        tally.push(&gap);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let remarks = gaps.remarks();
    eprintln!(
        "attribute: {} intervals, {} events, {} gaps with {} causes",
        remarks.intervals,
        remarks.events,
        remarks.gaps,
        tally.reports().len()
    );
    Ok(vec![
        Row::alone("attribute", "hourglass", seconds, "s").at_most(SECONDS),
        Row::alone("attribute", "hourglass/memory", peak_bytes()? as f64, "bytes").at_most(BYTES),
    ])
}

fn facts() -> RunFacts {
    let thread = ThreadFacts {
        policy: Some(Policy::Other(0)),
        never_waits: true,
        waits_unseen: false,
        highest: false,
        reservation: None,
        in_user_space: false,
        number: None,
    };
    let kernel = KernelCoverage { cpus: (0..THREADS).map(|cpu| (cpu, 0)).collect(), error_ns: 0 };
    RunFacts {
        threads: (0..THREADS).map(|id| (id, thread)).collect(),
        tick_hz: Some(250),
        virtual_machine: Some(true),
        kernel: Some(kernel),
        ..RunFacts::default()
    }
}

/// Which gap it is, of which thread, and when it begins.
fn place(n: u64) -> (u64, u32, i64) {
    let thread = (n % u64::from(THREADS)) as u32;
    let turn = n / u64::from(THREADS);
    let begins = turn as i64 * EVERY_NS + i64::from(thread) * (EVERY_NS / i64::from(THREADS));
    (turn, thread, begins)
}

/// Each interval begins with the end of a gap of 20 us.
const GAP_NS: i64 = 20_000;

fn interval(n: u64) -> Interval {
    let (turn, thread, begins) = place(n);
    let switched = turn % ONE_IN == 0;
    let counted = switched.then_some(CounterDeltas { involuntary: 1, ..CounterDeltas::default() });
    Interval {
        thread,
        cpu: thread,
        start_ns: begins + GAP_NS,
        end_ns: begins + EVERY_NS,
        start_ticks: 0,
        end_ticks: 0,
        onset: if turn == 0 { IntervalStart::Start } else { IntervalStart::Gap },
        evidence: Evidence { cleared: Some(switched), counted },
    }
}

fn events(n: u64) -> impl Iterator<Item = Result<KernelEvent, Infallible>> {
    let (turn, thread, begins) = place(n);
    let timer = Vector::LocalTimer.code();
    let (kinds, a, b) = match turn % ONE_IN {
        0 => (Some([Kind::Switch, Kind::Switch]), 4_000 + thread, 0),
        turn if turn < ONE_IN / 2 => (Some([Kind::VectorEntry, Kind::VectorExit]), timer, timer),
        _ => (None, 0, 0),
    };
    let event = move |(kind, late)| {
        let (a, b) = if late == 0 { (a, b) } else { (b, a) };
        let ns = begins + 5_000 + late;
        Ok(KernelEvent { ns, ticks: 0, value: 0, cpu: thread, a, b, kind })
    };
    kinds.into_iter().flat_map(|[first, second]| [(first, 0), (second, 14_000)]).map(event)
}

fn peak_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("cannot read memory use")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.context("the kernel does not tell the peak of memory use")?.saturating_mul(1024))
}
