//! Stated confidence against the share that was right, by cause and load.
//!
//! Each run is recorded with the kernel's events, in a private instance of its trace on the run's own counter. The
//! inference does not get them: it sees what a user without privileges has (no events, no records of switches,
//! no kernel log). Each gap is then looked up in the record by the ticks of the counter, and judged by rules
//! of its own (`kernel.rs`).

mod kernel;
mod loads;

use std::collections::BTreeMap;
use std::convert::Infallible;

use anyhow::{Context, Result};
use hourglass_documents::{Cause, Policy};
use hourglass_measure::{Finished, RunOptions};
use hourglass_runs::Explanation;
use hourglass_time::Span;
use hourglass_workload::spec::{RunSpec, ThreadSpec};

use super::ground_truth::{Quiet, pinned, reason};
use crate::document::Row;
use kernel::{Record, is_right};
use loads::{Load, RIVAL};

const RUNS: u32 = 5;
/// How long each is; real-time competitors run no longer.
const SECONDS: i64 = 4;
const SECONDS_FIFO: i64 = 2;
const LONG_NS: u64 = 5_000;
const GOAL: f64 = 0.95;
/// A cause with fewer gaps tells nothing of its confidence.
const FEWEST: u64 = 20;

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    gaps: u64,
    right: u64,
    stated: f64,
}

impl Count {
    fn push(&mut self, right: bool, stated: f64) {
        self.gaps += 1;
        self.right += u64::from(right);
        self.stated += stated;
    }

    fn share(&self) -> f64 {
        self.right as f64 / self.gaps.max(1) as f64
    }

    fn mean(&self) -> f64 {
        self.stated / self.gaps.max(1) as f64
    }
}

#[derive(Clone, Debug, Default)]
struct LoadCounts {
    causes: BTreeMap<Cause, Count>,
    long: Count,
}

/// All loads. None where the kernel cannot be traced here; the reason is printed.
pub(super) fn measure() -> Result<Vec<Row>> {
    let cpu = *hourglass_sys::thread::affinity()?.last().context("no CPU")?;
    let mut rows = Vec::new();
    for load in Load::ALL {
        let mut counts = LoadCounts::default();
        for _ in 0..RUNS {
            let working = load.begin(cpu)?;
            let finished = run(load, cpu);
            drop(working);
            match finished {
                Ok(finished) => count(&finished, &mut counts)?,
                Err(reason) => {
                    eprintln!("calibration: {reason:#}");
                    return Ok(rows);
                }
            }
        }
        tell(load, &counts);
        rows.extend(rows_of(load, &counts));
    }
    Ok(rows)
}

fn run(load: Load, cpu: u32) -> Result<Finished> {
    let (policy, seconds) = match load {
        Load::Fifo => (Policy::Fifo(40), SECONDS_FIFO),
        _ => (Policy::Other(0), SECONDS),
    };
    let thread: ThreadSpec = pinned("CPU", policy, cpu);
    let duration = Span::from_secs(seconds);
    let spec = RunSpec { duration, records: 1_000_000, ..RunSpec::new(vec![thread]) };
    let request = RunOptions { trace: true, ..RunOptions::new(spec) };
    hourglass_measure::run(request, &mut Quiet).map_err(reason)
}

fn count(finished: &Finished, counts: &mut LoadCounts) -> Result<()> {
    let record = Record::new(&finished.document, finished.kernel_events().collect())?;
    let mut blind = finished.document.clone();
    let kernel = blind.manifest.kernel.take().context("the kernel was not traced")?;
    let is_rival = |name: &String| name.starts_with(RIVAL);
    let named = kernel.names.threads.iter().filter(|(_, name)| is_rival(name));
    let rivals: Vec<u32> = named.map(|(tid, _)| *tid).collect();
    if let Some(change) = &mut blind.manifest.host.change {
        change.rt_throttling_logged = None;
    }
    // The counter at both ends of each gap, by its end.
    let mut ticks: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
    let mut last = 0;
    for interval in finished.intervals() {
        ticks.insert(interval.start_ns, (last, interval.start_ticks));
        last = interval.end_ticks;
    }
    let read = || finished.intervals().map(Ok::<_, Infallible>);
    let Ok(explanation) = Explanation::new(&blind, read());
    for gap in explanation.gaps(read(), std::iter::empty()) {
        let Ok(gap) = gap;
        let (from, to) = ticks.get(&gap.end_ns).copied().context("a gap without an interval")?;
        let right = is_right(&gap, record.look(gap.cpu_before, from, to), &rivals);
        counts.causes.entry(gap.cause).or_default().push(right, gap.confidence());
        if gap.length_ns() > LONG_NS {
            counts.long.push(right, gap.confidence());
        }
    }
    Ok(())
}

fn tell(load: Load, counts: &LoadCounts) {
    for (cause, count) in &counts.causes {
        eprintln!(
            "calibration: {} {cause}: {} gaps, {:.3} right, {:.3} stated",
            load.name(),
            count.gaps,
            count.share(),
            count.mean()
        );
    }
}

fn rows_of(load: Load, counts: &LoadCounts) -> Vec<Row> {
    let load = load.name();
    let mut rows = Vec::new();
    for (cause, count) in counts.causes.iter().filter(|(_, count)| count.gaps >= FEWEST) {
        let case = format!("calibration/{cause}");
        let row = |what: &str, value, unit| {
            Row::alone(&case, &format!("hourglass/{load}/{what}"), value, unit)
        };
        let off = (count.share() - count.mean()).abs();
        rows.push(row("right", count.share(), "share"));
        rows.push(row("stated", count.mean(), "share"));
        rows.push(row("off", off, "share").at_most(0.05));
        rows.push(row("gaps", count.gaps as f64, "gaps"));
    }
    let subject = format!("hourglass/{load}/right");
    let long = Row::alone("calibration/above-5us", &subject, counts.long.share(), "share");
    rows.push(long.at_least(GOAL));
    rows
}
