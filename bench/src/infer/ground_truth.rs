//! "Context switch" named from evidence that needs no privilege, against the kernel's own record of
//! switches: precision and recall.
//!
//! The kernel's events are only looked at here: the inference does not get them.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context, Result};
use hourglass_documents::document::Warning;
use hourglass_documents::{CpuSet, Policy};
use hourglass_machine::Refusal;
use hourglass_measure::{ExperimentObserver, Finished, RunFailure, RunOptions};
use hourglass_runs::Explanation;
use hourglass_time::Span;
use hourglass_trace::cause::AttributedGap;
use hourglass_trace::{KernelEvent, KernelEventKind};
use hourglass_workload::models;
use hourglass_workload::spec::{RunSpec, ThreadSpec};

use crate::document::Row;
use crate::load::{BackgroundThreads, work_and_rest};

const GOAL: f64 = 0.99;
/// With fewer switches a run is repeated, and then left out.
const FEWEST: u64 = 100;
const TRIES: u32 = 12;
/// A load works for `WORK`, then rests for `REST`.
const WORK: Duration = Duration::from_millis(2);
const REST: Duration = Duration::from_millis(7);

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Gaps, and switches outside of any gap, where the kernel recorded a switch.
    there: u64,
    named: u64,
    both: u64,
    outside: u64,
}

pub(super) struct Quiet;

impl ExperimentObserver for Quiet {
    fn warn(&mut self, _warnings: &[Warning]) {}
    fn started(&mut self, _duration: Span, _ticking: bool) {}
    fn tick(&mut self, _elapsed: Span) {}
    fn ended(&mut self) {}
}

/// All runs. None where the kernel cannot be traced here; the reason is printed.
pub(super) fn measure() -> Result<Vec<Row>> {
    let cpu = *hourglass_sys::thread::affinity()?.last().context("no CPU")?;
    let alone = || vec![pinned("CPU", Policy::Other(0), cpu)];
    // A latency test keeps no intervals: its thread is as unknown to the trace as anybody's.
    let fifo =
        || vec![pinned("CPU", Policy::Fifo(40), cpu), pinned("LAT 5ms", Policy::Fifo(60), cpu)];
    let mut rows = Vec::new();
    for (name, threads, seconds, load) in
        [("idle", alone(), 8, false), ("loaded", alone(), 4, true), ("fifo", fifo(), 2, false)]
    {
        let mut background = BackgroundThreads::default();
        if load {
            background.start("load", cpu, || work_and_rest(WORK, REST))?;
        }
        let count = match repeated(&threads, seconds) {
            Ok(count) => count,
            Err(reason) => {
                eprintln!("truth: {reason:#}");
                return Ok(rows);
            }
        };
        drop(background);
        if count.there < FEWEST {
            eprintln!("truth: {name}: only {} switches, left out", count.there);
            continue;
        }
        eprintln!("truth: {name}: {count:?}");
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let subject = format!("hourglass/{name}");
        let row = |case, value| Row::alone(case, &subject, value, "share").at_least(GOAL);
        rows.push(row("truth_precision", share(count.both, count.named)));
        rows.push(row("truth_recall", share(count.both, count.there)));
    }
    Ok(rows)
}

pub(super) fn pinned(words: &str, policy: Policy, cpu: u32) -> ThreadSpec {
    let words: Vec<&str> = words.split(' ').collect();
    let model = models::parse(&words).unwrap_or_else(|_| ThreadSpec::default().model);
    let cpus = Some(CpuSet::from_iter([cpu]));
    ThreadSpec { model, policy, cpus, ..ThreadSpec::default() }
}

pub(super) fn reason(failure: RunFailure) -> anyhow::Error {
    match failure {
        RunFailure::Refused(refusals) => {
            let why = |r: &Refusal| format!("{}: {}; {}", r.what, r.reason, r.remedy);
            anyhow::anyhow!(refusals.iter().map(why).collect::<Vec<_>>().join("; "))
        }
        other => anyhow::anyhow!(other),
    }
}

fn repeated(threads: &[ThreadSpec], seconds: i64) -> Result<Count> {
    let mut sum = Count::default();
    for _ in 0..TRIES {
        let spec = RunSpec {
            duration: Span::from_secs(seconds),
            records: 1_000_000,
            ..RunSpec::new(threads.to_vec())
        };
        let request = RunOptions { trace: true, ..RunOptions::new(spec) };
        let finished = hourglass_measure::run(request, &mut Quiet).map_err(reason)?;
        let count = compare(&finished)?;
        sum.there += count.there;
        sum.named += count.named;
        sum.both += count.both;
        sum.outside += count.outside;
        if sum.there >= FEWEST {
            break;
        }
    }
    Ok(sum)
}

/// The first thread of a run: its gaps as they are named without the kernel's events, and the
/// kernel's switches.
fn compare(finished: &Finished) -> Result<Count> {
    let mut blind = finished.document.clone();
    let kernel = blind.manifest.kernel.take().context("the kernel was not traced")?;
    anyhow::ensure!(kernel.lost() == 0, "{} kernel events were lost", kernel.lost());
    let tid = blind.result.threads.first().and_then(|thread| thread.tid);
    let tid = tid.context("the thread has no number")?;
    let switches: Vec<i64> = { finished.kernel_events() }
        .filter(|event| is_switch_of(event, tid))
        .map(|event| event.ns)
        .collect();
    let read = || finished.intervals().map(Ok::<_, Infallible>);
    let Ok(explanation) = Explanation::new(&blind, read());
    let mut count = Count::default();
    let mut inside = 0;
    for gap in explanation.gaps(read(), std::iter::empty()) {
        let Ok(gap) = gap;
        if gap.thread == 0 {
            let within = switches_in(&switches, &gap);
            inside += within;
            count.there += u64::from(within > 0);
            count.named += u64::from(gap.was_switched());
            count.both += u64::from(within > 0 && gap.was_switched());
        }
    }
    // Those of the thread's start and end lie outside of its trace.
    let mut own = finished.intervals().filter(|interval| interval.thread == 0);
    let begun = own.next().map_or(i64::MAX, |first| first.start_ns);
    let ended = own.last().map_or(i64::MIN, |last| last.end_ns);
    let all = switches.iter().filter(|ns| (begun..=ended).contains(*ns)).count() as u64;
    count.outside = all.saturating_sub(inside);
    // A gap has two of them, out and in.
    count.there += count.outside.div_ceil(2);
    Ok(count)
}

fn is_switch_of(event: &KernelEvent, tid: u32) -> bool {
    event.kind == KernelEventKind::Switch && (event.a == tid || event.b == tid)
}

fn switches_in(switches: &[i64], gap: &AttributedGap) -> u64 {
    let from = switches.partition_point(|ns| *ns < gap.start_ns);
    let to = switches.partition_point(|ns| *ns <= gap.end_ns);
    to.saturating_sub(from) as u64
}
