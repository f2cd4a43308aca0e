//! One run of scanning threads on one CPU, and what it did.

use std::sync::Arc;

use hourglass_clock::Choice;
use hourglass_documents::CpuSet;
use hourglass_time::Span;
use hourglass_trace::CpuTimeline;
use hourglass_workload::models::Model;
use hourglass_workload::run::{RunError, RunMeasurement};
use hourglass_workload::{RunSpec, ThreadSpec};

use crate::records::merged;
use crate::reserver::KernelReserver;

/// Records of each thread, and of each second of its run: a switch and two interrupts in a millisecond.
const RECORDS_PER_THREAD: u64 = 2_000;
const RECORDS_PER_SECOND: u64 = 3_000;

/// A pass that the end of a run cut off counts as half of one.
const CUT_OFF: f64 = 0.5;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TrialResult {
    pub(super) passes: f64,
    pub(super) received_ns: f64,
    pub(super) elapsed_ns: f64,
    pub(super) switches: u64,
    pub(super) interrupted: bool,
}

/// The run of `count` threads that scan by `model`, on `cpu`, under the usual policy.
pub(super) fn spec(model: &Arc<dyn Model>, count: u32, cpu: u32, duration: Span) -> RunSpec {
    let thread = ThreadSpec {
        model: Arc::clone(model),
        cpus: Some(CpuSet::from_iter([cpu])),
        ..ThreadSpec::default()
    };
    let threads = vec![thread; count as usize];
    let seconds = duration.nanos_or_zero().div_ceil(1_000_000_000);
    let each = RECORDS_PER_THREAD.saturating_add(RECORDS_PER_SECOND.saturating_mul(seconds));
    let records = each.saturating_mul(u64::from(count));
    RunSpec { duration, records, ..RunSpec::new(threads) }
}

pub(super) fn run(spec: &RunSpec, choice: &Choice) -> Result<TrialResult, RunError> {
    let measured = hourglass_workload::run(
        spec,
        choice.clone(),
        &KernelReserver::default(),
        &mut NullObserver,
    )?;
    Ok(summed(&measured))
}

fn summed(measured: &RunMeasurement) -> TrialResult {
    let threads = &measured.threads;
    let passes = |work: Option<u64>| work.map_or(0.0, |passes| passes as f64 + CUT_OFF);
    TrialResult {
        passes: threads.iter().map(|thread| passes(thread.recorded.tally.work)).sum(),
        received_ns: threads
            .iter()
            .map(|thread| measured.timeline.ns_in(thread.recorded.received) as f64)
            .sum(),
        elapsed_ns: measured.elapsed.nanos() as f64,
        switches: switches(measured),
        interrupted: measured.interrupted.is_some(),
    }
}

/// Switches that the trace proves, or where it is not whole, those that the kernel counted.
fn switches(measured: &RunMeasurement) -> u64 {
    if measured.threads.iter().any(|thread| thread.recorded.trace.dropped() > 0) {
        let counted = measured.threads.iter().filter_map(|thread| thread.kernel);
        return counted.map(|k| k.involuntary_switches + k.voluntary_switches).sum();
    }
    let mut timeline = CpuTimeline::default();
    merged(measured).for_each(|interval| {
        timeline.push(&interval);
    });
    timeline.switches()
}

/// A single run has no observer: a progress display would run on a CPU beside it.
struct NullObserver;

impl hourglass_workload::RunObserver for NullObserver {
    fn started(&mut self, _duration: Span, _ticking: bool) {}
    fn tick(&mut self, _elapsed: Span) {}
    fn ended(&mut self) {}
}
