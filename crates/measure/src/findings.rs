//! From what the engine measured to the document: reports, manifest, warnings.

use hdrhistogram::Histogram;
use hourglass_clock::Calibration;
use hourglass_documents::document::{GapReport, LatencyReport, RunResult, ThreadReport, Warning};
use hourglass_documents::host::Host;
use hourglass_documents::manifest::{
    CalibrationFacts, ClockFacts, Epoch, MANIFEST_SCHEMA, Manifest, TableFacts, ThreadFacts,
};
use hourglass_machine::advice::{RefusedOperation, why_refused};
use hourglass_machine::refusal;
use hourglass_time::Span;
use hourglass_workload::Timeline;
use hourglass_workload::memory::{Gaps, LatencyRecorder};
use hourglass_workload::run::{RunMeasurement, ThreadOutcome};
use hourglass_workload::spec::{RunSpec, ThreadSpec};

use crate::affinity_violations;
use crate::evidence;
use crate::gates::with_lost;

/// ENOMEM, the kernel's answer to a lock beyond `RLIMIT_MEMLOCK`.
const ENOMEM: i32 = 12;
pub(crate) const MEMORY_UNLOCKED: &str = "memory-unlocked";

pub(crate) struct ManifestInputs<'a> {
    pub(crate) spec: &'a RunSpec,
    pub(crate) command_line: Vec<String>,
    pub(crate) dma_latency_us: Option<u32>,
    pub(crate) host: Host,
}

/// The findings, without switches, which need the merged trace.
pub(crate) fn result(
    measured: &RunMeasurement,
    spec: &RunSpec,
    warnings: Vec<Warning>,
) -> RunResult {
    let threads = measured
        .threads
        .iter()
        .zip(&spec.threads)
        .map(|(outcome, asked)| thread_report(&measured.timeline, outcome, asked))
        .collect();
    RunResult {
        threads,
        warnings,
        interrupted: measured.interrupted.is_some(),
        ..RunResult::default()
    }
}

/// Misses that no scheduler could have prevented.
fn missed_below(thread: &ThreadOutcome) -> Option<Warning> {
    let tally = &thread.recorded.tally;
    let missed = tally.deadlines.map_or(0, |deadlines| deadlines.missed);
    (tally.missed_below > 0).then(|| Warning {
        id: "missed-below-kernel".to_owned(),
        text: format!(
            "thread {}: {} of {missed} missed deadlines are due to gaps without a switch: \
             interrupts, or what is below the kernel",
            thread.id, tally.missed_below
        ),
        remedy: "hourglass show names the causes of the gaps; --trace distinguishes interrupts from a hypervisor or firmware"
            .to_owned(),
    })
}

fn thread_report(timeline: &Timeline, outcome: &ThreadOutcome, asked: &ThreadSpec) -> ThreadReport {
    let recorded = &outcome.recorded;
    let unstored = recorded.lateness.as_ref().map_or(0, |lateness| lateness.dropped);
    ThreadReport {
        id: outcome.id,
        tid: Some(outcome.tid),
        name: asked.name.clone(),
        workload: asked.model.to_string(),
        wake_up: asked.wake.to_string(),
        emulated: outcome.emulated.clone(),
        policy: outcome.policy.clone(),
        cpus: outcome.cpus.clone(),
        cpus_seen: recorded.cpus_seen.clone(),
        cpu_time_ns: timeline.ns_in(recorded.received),
        wall_ns: timeline.ns_in(recorded.end.saturating_sub(outcome.start)),
        intervals: recorded.intervals,
        gaps: gap_report(timeline, &recorded.gaps),
        deadlines: recorded.tally.deadlines,
        latency: recorded.lateness.as_ref().map(|late| {
            let demand = asked.model.demand();
            let period_ns = demand.period.filter(|_| demand.on_grid).map(Span::nanos_or_zero);
            latency_report(late, &with_lost(late, period_ns), recorded.tally.lost_wake_ups)
        }),
        work: recorded.tally.work,
        records_dropped: recorded.trace.dropped().saturating_add(unstored),
        migrations: recorded.migrations,
        strayed: recorded.strayed.map(|strayed| affinity_violations::report(timeline, &strayed)),
        kernel: outcome.kernel,
    }
}

fn gap_report(timeline: &Timeline, gaps: &Gaps) -> GapReport {
    let max_ns = timeline.ns_in(gaps.longest_ticks);
    let [p50_ns, p99_ns, p999_ns] = percentiles(&gaps.histogram, max_ns);
    GapReport {
        count: gaps.histogram.len(),
        total_ns: timeline.ns_in(gaps.total_ticks),
        p50_ns,
        p99_ns,
        p999_ns,
        max_ns,
    }
}

/// `all`: the wake-ups, and those that were lost.
pub(crate) fn latency_report(
    lateness: &LatencyRecorder,
    all: &Histogram<u64>,
    lost: u64,
) -> LatencyReport {
    let count = lateness.histogram.len();
    let [p50_ns, p99_ns, p999_ns] = percentiles(all, lateness.max_ns);
    LatencyReport {
        count,
        min_ns: if count == 0 { 0 } else { lateness.min_ns },
        p50_ns,
        p99_ns,
        p999_ns,
        max_ns: lateness.max_ns,
        mean_ns: lateness.total_ns.checked_div(count).unwrap_or(0),
        lost,
    }
}

/// Three percentiles of a histogram of three digits, held at the exact maximum.
pub(crate) fn percentiles(histogram: &Histogram<u64>, max_ns: u64) -> [u64; 3] {
    [0.5, 0.99, 0.999].map(|quantile| histogram.value_at_quantile(quantile).min(max_ns))
}

/// What a reader must know that only the measurement could tell.
pub(crate) fn warnings(measured: &RunMeasurement, spec: &RunSpec, host: &Host) -> Vec<Warning> {
    let mut warnings: Vec<Warning> =
        measured.shortfalls.iter().map(|shortfall| refusal::warning(shortfall, host)).collect();
    warnings.extend(unlocked(measured, spec, host));
    warnings.extend(measured.threads.iter().zip(&spec.threads).filter_map(|(thread, asked)| {
        let how = thread.emulated.as_deref()?;
        (!asked.wake.is_emulation()).then(|| Warning {
            id: "timer-emulated".to_owned(),
            text: format!("thread {}: timer {} is emulated: {how}", thread.id, asked.wake),
            remedy: "measure on a machine that has the device".to_owned(),
        })
    }));
    if !measured.choice.trusted {
        warnings.push(Warning {
            id: "os-clock".to_owned(),
            text: format!(
                "the OS clock measures instead of the processor's counter: {}",
                measured.choice.reason
            ),
            remedy: "expect a coarser GAP; `cat /sys/devices/system/clocksource/clocksource0/\
                     available_clocksource` shows what the kernel could use"
                .to_owned(),
        });
    }
    warnings.extend(measured.threads.iter().filter_map(missed_below));
    warnings.extend(dropped(measured, spec));
    warnings.extend(backwards(measured));
    warnings
}

fn unlocked(measured: &RunMeasurement, spec: &RunSpec, host: &Host) -> Option<Warning> {
    let memory = &measured.memory;
    if memory.all_locked {
        return None;
    }
    let (locked, not) = (memory.buffers_locked_bytes, memory.buffers_unlocked_bytes);
    let (reason, remedy) =
        why_refused(RefusedOperation::MemoryLock { bytes: spec.memory_bytes() }, ENOMEM, host);
    Some(Warning {
        id: MEMORY_UNLOCKED.to_owned(),
        text: format!(
            "not locked into memory: code, stacks, arrays, and {not} of {} bytes of record \
             buffers, all touched before the run: {reason}",
            locked.saturating_add(not)
        ),
        remedy,
    })
}

fn dropped(measured: &RunMeasurement, spec: &RunSpec) -> Option<Warning> {
    let dropped: u64 = measured
        .threads
        .iter()
        .map(|t| t.recorded.trace.dropped() + t.recorded.lateness.as_ref().map_or(0, |l| l.dropped))
        .sum();
    let kept = if spec.ring { "newest" } else { "oldest" };
    let lacking = { &measured.threads }.iter().filter(|t| t.recorded.trace.dropped() > 0);
    let known = lacking.map(|t| t.recorded.long_gaps.complete_from_ns()).max();
    let causes = known.map_or_else(String::new, |ns| {
        format!(
            "; causes cover all gaps of {} and more, of shorter ones those that are stored",
            Span::saturating_from_nanos(ns)
        )
    });
    (dropped > 0).then(|| Warning {
        id: "records-dropped".to_owned(),
        text: format!(
            "the trace was full: {dropped} records are counted in the summary but not stored; \
             the {kept} are kept{causes}"
        ),
        remedy: format!(
            "raise -e above {}, or --gap above the smallest gaps of interest",
            spec.records.saturating_add(dropped)
        ),
    })
}

fn backwards(measured: &RunMeasurement) -> Option<Warning> {
    let times: u64 = measured.threads.iter().map(|thread| thread.recorded.backwards).sum();
    (times > 0).then(|| Warning {
        id: "counters-disagree".to_owned(),
        text: format!(
            "{times} times the counter was behind when a thread came to another CPU; the counters \
             of this machine are not in step"
        ),
        remedy: "pin threads with --cpu, so that no interval spans two counters".to_owned(),
    })
}

pub(crate) fn manifest(measured: &RunMeasurement, facts: ManifestInputs) -> Manifest {
    let ManifestInputs { spec, command_line, dma_latency_us, host } = facts;
    let timeline = &measured.timeline;
    Manifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        pid: Some(std::process::id()),
        utc: Vec::new(),
        hourglass: env!("CARGO_PKG_VERSION").to_owned(),
        command_line,
        epoch: Epoch {
            monotonic_ns: timeline.epoch.monotonic_ns,
            realtime_ns: timeline.epoch.realtime_ns,
            ticks: timeline.epoch.ticks,
        },
        duration_ns: spec.duration.nanos_or_zero(),
        elapsed_ns: measured.elapsed.nanos_or_zero(),
        seed: spec.seed,
        records_capacity: spec.records,
        ring: spec.ring,
        clock: ClockFacts {
            source: measured.counter.to_owned(),
            trusted: measured.choice.trusted,
            reason: measured.choice.reason.clone(),
            frequency_hz: timeline.calibration.rate.hertz(),
            calibration_start: calibration(&measured.calibration_start),
            calibration_end: calibration(&timeline.calibration),
        },
        threads: measured
            .threads
            .iter()
            .zip(&spec.threads)
            .map(|(outcome, asked)| thread_facts(timeline, spec.duration, outcome, asked))
            .collect(),
        memory: measured.memory,
        dma_latency_us,
        load: None,
        evidence: evidence::of_threads(measured),
        host,
        kernel: None,
        simulation: None,
        result: None,
    }
}

fn calibration(found: &Calibration) -> CalibrationFacts {
    CalibrationFacts {
        frequency_hz: found.rate.hertz(),
        window_ns: found.window_ns,
        rate_error_ppb: found.rate_error_ppb,
        bracket_ns: found.bracket_ns,
    }
}

fn thread_facts(
    timeline: &Timeline,
    duration: Span,
    outcome: &ThreadOutcome,
    asked: &ThreadSpec,
) -> ThreadFacts {
    let recorded = &outcome.recorded;
    let capacity =
        recorded.lateness.as_ref().map_or(recorded.trace.capacity(), LatencyRecorder::capacity);
    let cpus: hourglass_documents::CpuSet = outcome.cpus.iter().copied().collect();
    ThreadFacts {
        id: outcome.id,
        workload: asked.model.to_string(),
        wake_up: asked.wake.to_string(),
        policy_asked: asked.policy.to_string(),
        policy: outcome.policy.clone(),
        reservation: asked.deadline_reservation().map(|reservation| reservation.to_string()),
        reserved: None,
        cpus: cpus.to_string(),
        start_ns: asked.start.nanos_or_zero(),
        finish_ns: asked.finish_in(duration).nanos_or_zero(),
        settled_ns: None,
        gap_ns: timeline.ns_in(outcome.gap),
        loop_ns: timeline.ns_in(outcome.typical_iteration),
        records_capacity: capacity as u64,
        amounts: TableFacts::of(asked.model.amounts()),
    }
}
