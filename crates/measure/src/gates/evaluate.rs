//! Whether a run kept its limits.

use hourglass_documents::document::{GateReport, HitReport};
use hourglass_time::Span;
use hourglass_workload::guard::HitKind;
use hourglass_workload::run::{RunMeasurement, ThreadOutcome};
use hourglass_workload::{Guard, RunSpec};

use super::confidence::of_latency;
use super::{Gates, Limit, Percentile, with_lost};

const NS: &str = "ns";

pub(crate) fn hit_report(measured: &RunMeasurement, guard: &Guard) -> Option<HitReport> {
    let (thread, hit) = measured.hit()?;
    let (kind, limit) = match hit.kind {
        HitKind::Gap => ("gap", guard.stop_on_gap),
        HitKind::Latency => ("latency", guard.stop_on_latency),
    };
    let limit_ns = limit.unwrap_or(Span::ZERO).nanos_or_zero();
    Some(HitReport {
        kind: kind.to_owned(),
        thread,
        cpu: hit.cpu,
        limit_ns,
        // It was beyond in ticks; the rate over the whole run may say less by a rounding.
        value_ns: measured.timeline.ns_in(hit.ticks).max(limit_ns.saturating_add(1)),
        at_ns: measured.timeline.ns_at(hit.end),
    })
}

/// One gate for each limit, those that end a run last.
pub(crate) fn evaluate(
    gates: &Gates,
    measured: &RunMeasurement,
    spec: &RunSpec,
    hit: Option<&HitReport>,
) -> Vec<GateReport> {
    let mut all: Vec<GateReport> =
        gates.limits.iter().map(|limit| evaluate_limit(*limit, measured, spec)).collect();
    for (kind, limit) in [("gap", spec.guard.stop_on_gap), ("latency", spec.guard.stop_on_latency)]
    {
        let Some(limit) = limit else { continue };
        let broken = hit.filter(|hit| hit.kind == kind);
        let longest = match kind {
            "gap" => worst(measured, longest_gap),
            _ => worst(measured, latest),
        };
        let limit_ns = limit.nanos_or_zero();
        let value = broken.map_or(longest.min(limit_ns), |hit| hit.value_ns);
        all.push(times(format!("stop-on-{kind}"), limit, value, broken.is_none()));
    }
    all
}

fn evaluate_limit(limit: Limit, measured: &RunMeasurement, spec: &RunSpec) -> GateReport {
    let name = limit.to_string();
    match limit {
        Limit::MaxLatency(span) => {
            let value = worst(measured, latest);
            let none = wake_ups(measured).all(|(_, count)| count == 0);
            let passed = value <= span.nanos_or_zero() && !none;
            let confidence = of_latency(measured, span);
            GateReport { confidence, ..times(name, span, value, passed) }
        }
        Limit::MaxGap(span) => {
            let value = worst(measured, longest_gap);
            times(name, span, value, value <= span.nanos_or_zero())
        }
        Limit::MaxMisses(most) => {
            let missed = measured.threads.iter().map(misses).fold(0, u64::saturating_add);
            GateReport {
                name,
                limit: most as f64,
                value: missed as f64,
                unit: "periods".to_owned(),
                passed: missed <= most,
                confidence: None,
            }
        }
        Limit::Percentile(percentile, span) => {
            let (value, passed) = at_percentile(measured, spec, percentile, span);
            times(name, span, value, passed)
        }
    }
}

fn times(name: String, limit: Span, value_ns: u64, passed: bool) -> GateReport {
    let limit = limit.nanos_or_zero() as f64;
    GateReport {
        name,
        limit,
        value: value_ns as f64,
        unit: NS.to_owned(),
        passed,
        confidence: None,
    }
}

fn worst(
    measured: &RunMeasurement,
    of: impl Fn(&RunMeasurement, &ThreadOutcome) -> Option<u64>,
) -> u64 {
    measured.threads.iter().filter_map(|thread| of(measured, thread)).max().unwrap_or(0)
}

fn latest(_: &RunMeasurement, thread: &ThreadOutcome) -> Option<u64> {
    thread.recorded.lateness.as_ref().map(|lateness| lateness.max_ns)
}

fn longest_gap(measured: &RunMeasurement, thread: &ThreadOutcome) -> Option<u64> {
    Some(measured.timeline.ns_in(thread.recorded.gaps.longest_ticks))
}

fn wake_ups(measured: &RunMeasurement) -> impl Iterator<Item = (u32, u64)> + '_ {
    measured
        .threads
        .iter()
        .filter_map(|thread| Some((thread.id, thread.recorded.lateness.as_ref()?.histogram.len())))
}

fn misses(thread: &ThreadOutcome) -> u64 {
    let tally = &thread.recorded.tally;
    let periods = tally.deadlines.unwrap_or_default();
    periods.missed.saturating_add(periods.lost).saturating_add(tally.lost_wake_ups)
}

/// The worst thread's percentile, and whether all keep it. The verdict comes from the exact counts
/// of what was beyond the limit; the value, which has the three digits of a histogram, is held on
/// the side of the limit that the verdict says.
fn at_percentile(
    measured: &RunMeasurement,
    spec: &RunSpec,
    percentile: Percentile,
    limit: Span,
) -> (u64, bool) {
    let any_latency = measured.threads.iter().any(|thread| thread.recorded.lateness.is_some());
    let limit_ns = limit.nanos_or_zero();
    let (mut value, mut passed) = (0, true);
    for (thread, asked) in measured.threads.iter().zip(&spec.threads) {
        let recorded = &thread.recorded;
        let (found, held) = match &recorded.lateness {
            Some(lateness) => {
                let demand = asked.model.demand();
                let period = demand.period.filter(|_| demand.on_grid).map(Span::nanos_or_zero);
                let count = lateness.histogram.len().saturating_add(recorded.tally.lost_wake_ups);
                let beyond = lateness.excess.beyond(limit).unwrap_or(0);
                let found = percentile.of(&with_lost(lateness, period)).min(lateness.max_ns);
                (found, percentile.holds(count, beyond))
            }
            None if any_latency => continue,
            None => {
                let gaps = &recorded.gaps;
                let longest = measured.timeline.ns_in(gaps.longest_ticks);
                let beyond = gaps.excess.beyond(limit).unwrap_or(0);
                let count = gaps.histogram.len();
                // A run without gaps has no gap beyond the limit.
                let held = count == 0 || percentile.holds(count, beyond);
                (percentile.of(&gaps.histogram).min(longest), held)
            }
        };
        let found = if held { found.min(limit_ns) } else { found.max(limit_ns.saturating_add(1)) };
        value = value.max(found);
        passed &= held;
    }
    (value, passed)
}
