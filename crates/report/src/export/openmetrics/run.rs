//! The metrics of a run.

use hdrhistogram::Histogram;
use hourglass_documents::document::{GateReport, RunDocument, ThreadReport};

use super::{Labels, Metric, MetricText};
use crate::clean::ranges;
use crate::run::{cpus_of, label};
use crate::units::seconds;

/// Times that a thread measured one by one.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredTimes<'a> {
    /// Number of the thread.
    pub thread: u32,
    /// Latency of its wake-ups in nanoseconds, and their sum; `None` where it measures none.
    pub latencies: Option<(&'a Histogram<u64>, u64)>,
    /// Its gaps in nanoseconds.
    pub gaps: &'a Histogram<u64>,
}

/// Upper bounds of the buckets in nanoseconds, and as OpenMetrics wants them written.
const BUCKETS: [(u64, &str); 25] = [
    (100, "1e-07"),
    (200, "2e-07"),
    (500, "5e-07"),
    (1_000, "1e-06"),
    (2_000, "2e-06"),
    (5_000, "5e-06"),
    (10_000, "1e-05"),
    (20_000, "2e-05"),
    (50_000, "5e-05"),
    (100_000, "0.0001"),
    (200_000, "0.0002"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_000_000, "0.002"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (20_000_000, "0.02"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (200_000_000, "0.2"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1.0"),
    (2_000_000_000, "2.0"),
    (5_000_000_000, "5.0"),
    (10_000_000_000, "10.0"),
];

/// The text of a run of `command` (`run`, `latency`, `noise`); `times` are of its threads.
#[must_use]
pub fn openmetrics_run(
    command: &str,
    document: &RunDocument,
    times: &[MeasuredTimes<'_>],
) -> String {
    let mut text = MetricText::new(Some(("command", command)));
    whole_run(&mut text, document);
    for thread in &document.result.threads {
        let number = thread.id.to_string();
        let cpus = ranges(&cpus_of(thread));
        let labels = [("thread", number.as_str()), ("cpus", cpus.as_str())];
        one_thread(&mut text, &labels, thread);
        let Some(times) = times.iter().find(|times| times.thread == thread.id) else { continue };
        if let Some((latencies, total_ns)) = times.latencies {
            histogram(&mut text, Metric::Latency, &labels, latencies, total_ns);
        }
        histogram(&mut text, Metric::Gap, &labels, times.gaps, thread.gaps.total_ns);
    }
    for cause in &document.result.causes {
        let labels = [("cause", cause.cause.as_str())];
        text.add(Metric::CauseGaps, &labels, cause.count);
        text.add_time(Metric::CauseTime, &labels, cause.total_ns);
        text.add_time(Metric::CauseMax, &labels, cause.max_ns);
    }
    document.result.gates.iter().for_each(|gate| limit(&mut text, gate));
    text.finish()
}

fn whole_run(text: &mut MetricText<'_>, document: &RunDocument) {
    let (manifest, result) = (&document.manifest, &document.result);
    let info = [
        ("version", manifest.hourglass.as_str()),
        ("kernel", manifest.host.kernel.as_str()),
        ("clock", manifest.clock.source.as_str()),
    ];
    text.add(Metric::RunInfo, &info, 1);
    text.add_time(Metric::RunStart, &[], manifest.epoch.realtime_ns);
    text.add_time(Metric::RunDuration, &[], manifest.elapsed_ns);
    text.add_flag(Metric::RunInterrupted, &[], result.interrupted);
    text.add(Metric::RunWarnings, &[], result.warnings.len());
    text.add(Metric::RunPremises, &[], result.premises.len());
}

fn one_thread(text: &mut MetricText<'_>, labels: &[(&str, &str); 2], thread: &ThreadReport) {
    let [number, cpus] = *labels;
    let policy = ("policy", thread.policy.as_str());
    text.add(Metric::ThreadInfo, &[number, cpus, ("workload", label(thread)), policy], 1);
    text.add_time(Metric::ThreadWall, labels, thread.wall_ns);
    text.add_time(Metric::ThreadCpu, labels, thread.cpu_time_ns);
    text.add_time(Metric::GapMax, labels, thread.gaps.max_ns);
    text.add_time(Metric::LostCpu, labels, thread.gaps.total_ns);
    if let Some(latency) = thread.latency {
        text.add_time(Metric::LatencyMax, labels, latency.max_ns);
        text.add(Metric::WakeUpsLost, labels, latency.lost);
        for (percentile, ns) in
            [("50", latency.p50_ns), ("99", latency.p99_ns), ("99.9", latency.p999_ns)]
        {
            let labels = [number, cpus, ("percentile", percentile)];
            text.add_time(Metric::LatencyPercentile, &labels, ns);
        }
    }
    if let Some(periods) = thread.deadlines {
        for (result, count) in
            [("hit", periods.hit), ("missed", periods.missed), ("lost", periods.lost)]
        {
            text.add(Metric::Periods, &[number, cpus, ("result", result)], count);
        }
    }
}

fn limit(text: &mut MetricText<'_>, gate: &GateReport) {
    let labels = [("gate", gate.name.as_str())];
    text.add_flag(Metric::GateMet, &labels, gate.passed);
    if gate.unit == "ns" {
        // Whole nanoseconds, which a document writes as floating-point numbers.
        text.add_time(Metric::GateValue, &labels, gate.value as u64);
        text.add_time(Metric::GateLimit, &labels, gate.limit as u64);
    } else {
        text.add(Metric::GateMisses, &labels, gate.value);
        text.add(Metric::GateMissesLimit, &labels, gate.limit);
    }
}

fn histogram(
    text: &mut MetricText<'_>,
    metric: Metric,
    labels: Labels<'_>,
    times: &Histogram<u64>,
    total_ns: u64,
) {
    let mut with_bound = labels.to_vec();
    let (mut at, mut below) = (0, 0_u64);
    let recorded: Vec<(u64, u64)> = times
        .iter_recorded()
        .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
        .collect();
    for (bound_ns, bound) in BUCKETS {
        // A step of the histogram belongs to a bucket whole, by its greatest value but for its last digit.
        let within = times.highest_equivalent(bound_ns);
        while let Some((_, count)) = recorded.get(at).filter(|(ns, _)| *ns <= within) {
            below = below.saturating_add(*count);
            at += 1;
        }
        with_bound.push(("le", bound));
        text.sample(metric, "_bucket", &with_bound, below);
        with_bound.pop();
    }
    with_bound.push(("le", "+Inf"));
    text.sample(metric, "_bucket", &with_bound, times.len());
    text.sample(metric, "_count", labels, times.len());
    text.sample(metric, "_sum", labels, seconds(total_ns));
}
