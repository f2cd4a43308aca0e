//! A watch as an ordinary run folder.
//!
//! Where the kernel's events were recorded, its intervals are the times that the threads had a CPU, its latencies the
//! delays after their own waits, and gaps have their causes. Without them there are no intervals to write: the folder
//! has the counts only, as they were at every look.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hourglass_documents::CpuSet;
use hourglass_documents::document::{
    KernelAccount, LatencyReport, RUN_SCHEMA, RunDocument, RunResult, ThreadReport, Warning,
};
use hourglass_documents::host::Host;
use hourglass_documents::kernel::KernelFacts;
use hourglass_documents::manifest::{EvidenceFacts, Manifest, ThreadFacts};
use hourglass_documents::watched::{WatchedReport, WatchedSample, WatchedThread};
use hourglass_runs::store::{NewRunFolder, WriteError};
use hourglass_sys::thread as os;
use hourglass_time::Span;
use hourglass_trace::{ThreadSummary, TraceSummary};

use super::WatchRequest;
use super::kernel_tracer::StoredTrace;
use crate::experiment::explain;
use crate::findings::percentiles;
use crate::outside;

const WORKLOAD: &str = "WATCHED";

pub(super) struct WatchRecording {
    /// `CLOCK_MONOTONIC` at the first look.
    pub(super) begin_ns: u64,
    pub(super) kernel: Option<(KernelFacts, StoredTrace)>,
    /// Where each thread could run at its last look: one that has ended cannot be asked any more.
    pub(super) cpus: BTreeMap<u32, CpuSet>,
    pub(super) samples: Vec<WatchedSample>,
}

pub(super) fn keep(
    mut folder: NewRunFolder,
    request: &WatchRequest,
    host: Host,
    report: &WatchedReport,
    recorded: WatchRecording,
) -> Result<PathBuf, WriteError> {
    let path = folder.path().to_path_buf();
    let WatchRecording { begin_ns, kernel, cpus, samples: looks } = recorded;
    let (facts, mut kept) = kernel.unzip();
    let mut kept = kept.take().unwrap_or_default();
    let ids: BTreeMap<u32, u32> =
        { &report.threads }.iter().map(|thread| thread.tid).zip(0..).collect();
    kept.intervals.retain_mut(|interval| match ids.get(&interval.thread) {
        Some(id) => {
            interval.thread = *id;
            true
        }
        None => false,
    });
    kept.intervals.sort_by_key(|interval| (interval.start_ns, interval.thread));
    let records = kept.intervals.len() as u64;
    let mut trace = folder.trace()?;
    let mut summary = TraceSummary::default();
    for interval in &kept.intervals {
        trace.write(interval)?;
        summary.push(interval);
    }
    trace.finish()?;
    folder.write_looks(looks)?;
    let mut manifest = manifest(request, host, report, begin_ns, facts, records);
    for (facts, thread) in manifest.threads.iter_mut().zip(&report.threads) {
        facts.cpus = cpus.get(&thread.tid).map(CpuSet::to_string).unwrap_or_default();
    }
    let mut document = RunDocument {
        schema: RUN_SCHEMA.to_owned(),
        result: result(report, &ids, &summary, &kept),
        manifest,
    };
    if document.manifest.kernel.is_some() {
        let events = kept.events.iter().copied();
        explain(&mut document, || kept.intervals.iter().copied(), events);
        let of_thread = |(tid, delays): (&u32, _)| Some((*ids.get(tid)?, delays));
        let delays = kept.delays.iter().map(|(tid, delays)| (tid, &delays.histogram));
        let histograms: Vec<_> = delays.filter_map(of_thread).collect();
        folder.write_latencies(&document.manifest.epoch, report.elapsed_ns, &histograms)?;
        folder.write_kernel_events(std::mem::take(&mut kept.events))?;
    }
    let whole = Manifest { result: Some(document.result), ..document.manifest };
    folder.finish(&whole)?;
    Ok(path)
}

fn result(
    report: &WatchedReport,
    ids: &BTreeMap<u32, u32>,
    summary: &TraceSummary,
    kept: &StoredTrace,
) -> RunResult {
    let summaries = summary.threads();
    let threads = report.threads.iter().filter_map(|thread| {
        let id = *ids.get(&thread.tid)?;
        let seen = summaries.iter().find(|summary| summary.thread == id);
        Some(of_thread(id, thread, seen, kept, report.elapsed_ns))
    });
    let mut warnings = report.warnings.clone();
    if kept.dropped > 0 {
        warnings.push(Warning {
            id: "records-dropped".to_owned(),
            text: format!(
                "an eighth of the memory was full: {} events of the kernel are counted but not stored; the \
                 oldest are kept",
                kept.dropped
            ),
            remedy: "watch for a shorter time (-d)".to_owned(),
        });
    }
    RunResult {
        threads: threads.collect(),
        switches: summary.switches(),
        warnings,
        interrupted: report.interrupted,
        watched: Some(report.clone()),
        ..RunResult::default()
    }
}

fn of_thread(
    id: u32,
    thread: &WatchedThread,
    seen: Option<&ThreadSummary>,
    kept: &StoredTrace,
    elapsed_ns: u64,
) -> ThreadReport {
    let cpus_seen = match seen {
        Some(seen) => seen.cpus_seen.clone(),
        None => thread.cpu.into_iter().collect(),
    };
    let account = || {
        Some(KernelAccount {
            run_ns: thread.run_ns?,
            wait_ns: thread.wait_ns?,
            voluntary_switches: thread.voluntary_switches?,
            involuntary_switches: thread.involuntary_switches?,
        })
    };
    ThreadReport {
        id,
        tid: Some(thread.tid),
        name: Some(thread.name.clone()),
        workload: WORKLOAD.to_owned(),
        policy: thread.policy.clone().unwrap_or_default(),
        cpus: os::affinity_of(thread.tid).unwrap_or_else(|_| cpus_seen.clone()),
        cpus_seen,
        cpu_time_ns: seen.map_or(thread.run_ns.unwrap_or(0), |seen| seen.received_ns),
        wall_ns: elapsed_ns.saturating_sub(thread.since_ns),
        intervals: seen.map_or(0, |seen| seen.intervals),
        gaps: seen.map(|seen| seen.gaps).unwrap_or_default(),
        latency: latency(kept, thread.tid),
        migrations: thread.migrations.unwrap_or(0),
        kernel: account(),
        ..ThreadReport::default()
    }
}

fn latency(kept: &StoredTrace, tid: u32) -> Option<LatencyReport> {
    let delays = kept.delays.get(&tid)?;
    let count = delays.histogram.len();
    let [p50_ns, p99_ns, p999_ns] = percentiles(&delays.histogram, delays.max_ns);
    Some(LatencyReport {
        count,
        min_ns: delays.min_ns,
        p50_ns,
        p99_ns,
        p999_ns,
        max_ns: delays.max_ns,
        mean_ns: delays.total_ns.checked_div(count).unwrap_or(0),
        lost: 0,
    })
}

fn manifest(
    request: &WatchRequest,
    host: Host,
    report: &WatchedReport,
    begin_ns: u64,
    kernel: Option<KernelFacts>,
    records: u64,
) -> Manifest {
    let traced = kernel.is_some();
    let found =
        if traced { "the kernel's switches, wakings and migrations" } else { "not recorded" };
    let threads = report.threads.iter().zip(0..).map(|(thread, id)| facts(id, thread, records));
    let command_line = request.command_line.clone();
    Manifest {
        pid: match report.processes.as_slice() {
            [one] => Some(one.pid),
            _ => None,
        },
        duration_ns: request.length.map_or(report.elapsed_ns, Span::nanos_or_zero),
        records_capacity: records,
        threads: threads.collect(),
        evidence: vec![EvidenceFacts {
            source: EvidenceFacts::TRACE.to_owned(),
            used: traced,
            found: found.to_owned(),
            remedy: (!traced).then(|| "run as root with --trace".to_owned()),
            ..EvidenceFacts::default()
        }],
        kernel,
        ..outside::manifest(command_line, host, begin_ns, report.elapsed_ns)
    }
}

fn facts(id: u32, thread: &WatchedThread, records: u64) -> ThreadFacts {
    let policy = thread.policy.clone().unwrap_or_default();
    ThreadFacts {
        id,
        workload: WORKLOAD.to_owned(),
        policy_asked: policy.clone(),
        policy,
        reservation: thread.reservation.clone(),
        start_ns: thread.since_ns,
        settled_ns: thread.settled_ns,
        records_capacity: records,
        ..ThreadFacts::default()
    }
}
