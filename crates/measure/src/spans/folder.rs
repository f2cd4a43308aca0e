//! Recorded spans as an ordinary run folder.

use std::collections::BTreeMap;

use hourglass_clock::timekeeping::{Native, ReferenceClock, Timebase};
use hourglass_documents::CpuSet;
use hourglass_documents::document::{
    LostSpan, RUN_SCHEMA, RunDocument, RunResult, SiteCause, SiteReport, ThreadReport, Warning,
};
use hourglass_documents::host::Host;
use hourglass_documents::manifest::{ClockFacts, EvidenceFacts, Manifest, ThreadFacts};
use hourglass_documents::sites::{RecordedLoss, RecordedSpan};
use hourglass_runs::store::{RunFolder, WriteError};
use hourglass_sys::thread as os;
use hourglass_time::Span;
use hourglass_trace::Interval;
use hourglass_trace::{ThreadSummary, TraceSummary};
use hourglass_witness::Witness;
use hourglass_witness::sites::{self, DroppedCounts, SiteSettings, Sites, SpanLost, StoredSpan};

use super::SpanRecording;
use super::span_intervals::{OmittedIntervals, intervals};
use crate::experiment::explain;
use crate::outside;
use hourglass_runs::causes::SPANS;

struct Thread {
    id: u32,
    tid: u32,
    name: String,
    policy: String,
    cpus: Vec<u32>,
}

pub(super) fn write(recording: SpanRecording) -> Result<RunFolder, WriteError> {
    let SpanRecording { sites, mut folder, reader, mut host, begin_ns, settings } = recording;
    let elapsed_ns = Native.reference_ns(ReferenceClock::Monotonic).saturating_sub(begin_ns);
    host.change = Some(reader.change_since(&host.start));
    let mut of_threads: BTreeMap<usize, Vec<StoredSpan>> = BTreeMap::new();
    for span in sites.spans().filter(|span| span.start_ns >= begin_ns) {
        of_threads.entry(span.thread).or_default().push(span);
    }
    let names = sites.threads();
    let pid = std::process::id();
    let thread = |(id, place): (u32, &usize)| {
        let (tid, name) = names.get(*place).cloned().unwrap_or_default();
        // A number that is used again belongs to another thread of this process at worst.
        let counts = reader.thread(pid, tid);
        let policy = counts.and_then(|counts| counts.policy).map(|policy| policy.to_string());
        let cpus = os::affinity_of(tid).unwrap_or_default();
        Thread { id, tid, name, policy: policy.unwrap_or_default(), cpus }
    };
    let threads: Vec<Thread> = (0..).zip(of_threads.keys()).map(thread).collect();
    let (trace, recorded, left_out) = trace(of_threads, begin_ns);
    let mut summary = TraceSummary::default();
    let mut writer = folder.trace()?;
    for interval in &trace {
        writer.write(interval)?;
        summary.push(interval);
    }
    writer.finish()?;
    folder.write_spans(recorded)?;
    let mut result = result(&sites, &threads, &summary, begin_ns, elapsed_ns);
    result.warnings = warnings(&sites.missed(), left_out, &settings);
    let manifest = manifest(&threads, host, begin_ns, elapsed_ns, trace.len() as u64);
    let mut document = RunDocument { schema: RUN_SCHEMA.to_owned(), manifest, result };
    explain(&mut document, || trace.iter().copied(), std::iter::empty());
    folder.finish(&Manifest { result: Some(document.result), ..document.manifest })
}

/// Intervals of all threads in order of start, their spans likewise, and what these leave out.
fn trace(
    of_threads: BTreeMap<usize, Vec<StoredSpan>>,
    begin_ns: u64,
) -> (Vec<Interval>, Vec<RecordedSpan>, OmittedIntervals) {
    let (mut trace, mut recorded) = (Vec::new(), Vec::new());
    let mut left_out = OmittedIntervals::default();
    for (id, (_, mut spans)) in (0..).zip(of_threads) {
        let (of_thread, without) = intervals(&mut spans, id, begin_ns);
        trace.extend(of_thread);
        left_out.overlapping += without.overlapping;
        recorded.extend(spans.iter().map(|span| record(span, id, begin_ns)));
    }
    trace.sort_by_key(|interval| (interval.start_ns, interval.thread));
    recorded.sort_by_key(|span| (span.start_ns, std::cmp::Reverse(span.end_ns)));
    (trace, recorded, left_out)
}

fn record(span: &StoredSpan, thread: u32, begin_ns: u64) -> RecordedSpan {
    let at = |ns: u64| i64::try_from(ns.saturating_sub(begin_ns)).unwrap_or(i64::MAX);
    RecordedSpan {
        thread,
        site: u32::try_from(span.site).unwrap_or(u32::MAX),
        start_ns: at(span.start_ns),
        end_ns: at(span.ended_ns.max(span.start_ns)),
        cpu_before: span.cpus.0,
        cpu_after: span.cpus.1,
        lost: span.lost.map(|lost| RecordedLoss {
            least_ns: lost.off_cpu.earliest().nanos_or_zero(),
            most_ns: lost.off_cpu.latest().nanos_or_zero(),
            cause: lost.cause,
        }),
    }
}

fn result(
    sites: &Sites,
    threads: &[Thread],
    summary: &TraceSummary,
    begin_ns: u64,
    elapsed_ns: u64,
) -> RunResult {
    let summaries = summary.threads();
    let report = |thread: &Thread| {
        let seen = summaries.iter().find(|summary| summary.thread == thread.id);
        of_thread(thread, seen, elapsed_ns)
    };
    RunResult {
        threads: threads.iter().map(report).collect(),
        sites: sites.report().iter().map(site).collect(),
        worst_spans: sites.worst().iter().map(|span| lost(span, begin_ns)).collect(),
        ..RunResult::default()
    }
}

fn of_thread(thread: &Thread, seen: Option<&ThreadSummary>, elapsed_ns: u64) -> ThreadReport {
    let cpus_seen = seen.map(|seen| seen.cpus_seen.clone()).unwrap_or_default();
    ThreadReport {
        id: thread.id,
        tid: Some(thread.tid),
        name: Some(thread.name.clone()).filter(|name| !name.is_empty()),
        workload: SPANS.to_owned(),
        policy: thread.policy.clone(),
        cpus: if thread.cpus.is_empty() { cpus_seen.clone() } else { thread.cpus.clone() },
        cpus_seen,
        cpu_time_ns: seen.map_or(0, |seen| seen.received_ns),
        wall_ns: elapsed_ns,
        intervals: seen.map_or(0, |seen| seen.intervals),
        gaps: seen.map(|seen| seen.gaps).unwrap_or_default(),
        migrations: seen.map_or(0, |seen| seen.migrations),
        ..ThreadReport::default()
    }
}

fn ns(span: Span) -> u64 {
    span.nanos_or_zero()
}

fn site(found: &sites::SiteReport) -> SiteReport {
    let at = |ppm: u32| ns(found.length.quantile(ppm));
    let cause = |cause: &sites::CauseLost| SiteCause {
        cause: cause.cause.name().to_owned(),
        count: cause.count,
        lost_least_ns: ns(cause.lost.earliest()),
        lost_most_ns: ns(cause.lost.latest()),
        p50_ns: ns(cause.distribution.quantile(500_000)),
        p99_ns: ns(cause.distribution.quantile(990_000)),
        max_ns: ns(cause.distribution.greatest()),
    };
    SiteReport {
        name: found.name.clone(),
        place: found.place.clone(),
        spans: found.spans,
        disturbed: found.disturbed,
        unknown: found.unknown,
        p50_ns: at(500_000),
        p99_ns: at(990_000),
        p999_ns: at(999_000),
        max_ns: ns(found.length.greatest()),
        lost_least_ns: ns(found.lost.earliest()),
        lost_most_ns: ns(found.lost.latest()),
        causes: found.causes.iter().map(cause).collect(),
    }
}

fn lost(span: &SpanLost, begin_ns: u64) -> LostSpan {
    let at = i128::from(span.begun_ns) - i128::from(begin_ns);
    LostSpan {
        site: span.site.clone(),
        tid: span.tid,
        thread: span.thread.clone(),
        at_ns: i64::try_from(at).unwrap_or(i64::MAX),
        length_ns: ns(span.length),
        lost_least_ns: ns(span.off_cpu.earliest()),
        lost_most_ns: ns(span.off_cpu.latest()),
        waited_ns: ns(span.waited),
        voluntary: span.switches.voluntary,
        involuntary: span.switches.involuntary,
        faults: span.faults,
        cpu_before: span.cpus.0,
        cpu_after: span.cpus.1,
        cause: span.cause.name().to_owned(),
        confidence: span.confidence,
        evidence: span.evidence.to_string(),
        who: span.who,
    }
}

/// What a reader must know.
fn warnings(
    missed: &DroppedCounts,
    left_out: OmittedIntervals,
    settings: &SiteSettings,
) -> Vec<Warning> {
    let counts = [
        (
            missed.spans_dropped,
            "spans-dropped",
            "spans found the memory full: they are in the numbers of their call sites, not in the trace",
            "Settings::spans",
            u64::from(settings.spans),
        ),
        (
            missed.other_sites,
            "sites-full",
            "spans are of call sites that found no room: they are counted together",
            "Settings::sites",
            u64::from(settings.sites),
        ),
        (
            missed.without_histogram,
            "histograms-full",
            "losses are in the sums of their causes, but in no histogram",
            "Settings::sites",
            u64::from(settings.sites),
        ),
    ];
    let mut all: Vec<Warning> = { counts.into_iter() }
        .filter(|(count, ..)| *count > 0)
        .map(|(count, id, what, setting, now)| Warning {
            id: id.to_owned(),
            text: format!("{count} {what}"),
            remedy: format!("raise {setting}, which is {now}"),
        })
        .collect();
    if missed.left_out > 0 {
        all.push(Warning {
            id: "spans-left-out".to_owned(),
            text: format!(
                "{} spans are in no number: a signal handler ended each while its thread counted another one",
                missed.left_out
            ),
            remedy: String::new(),
        });
    }
    if left_out.overlapping > 0 {
        all.push(Warning {
            id: "spans-overlap".to_owned(),
            text: format!(
                "{} spans began within another one of their thread and ended behind it: they are not in the trace",
                left_out.overlapping
            ),
            remedy: format!("see the call sites, and {}", hourglass_runs::store::SPANS_FILE),
        });
    }
    all
}

fn manifest(
    threads: &[Thread],
    host: Host,
    begin_ns: u64,
    elapsed_ns: u64,
    records: u64,
) -> Manifest {
    let facts = |thread: &Thread| ThreadFacts {
        id: thread.id,
        workload: SPANS.to_owned(),
        policy_asked: thread.policy.clone(),
        policy: thread.policy.clone(),
        cpus: thread.cpus.iter().copied().collect::<CpuSet>().to_string(),
        finish_ns: elapsed_ns,
        records_capacity: records,
        ..ThreadFacts::default()
    };
    let outside = outside::manifest(std::env::args().collect(), host, begin_ns, elapsed_ns);
    Manifest {
        pid: Some(std::process::id()),
        records_capacity: records,
        clock: ClockFacts {
            reason: "spans are read by the processor's counter and placed on this clock".to_owned(),
            ..outside.clock
        },
        threads: threads.iter().map(facts).collect(),
        evidence: vec![section()],
        ..outside
    }
}

/// Whether the kernel said by itself that it had taken the CPU.
fn section() -> EvidenceFacts {
    let asks = Witness::new().ok().and_then(|witness| witness.counter_read_reason().cloned());
    EvidenceFacts {
        source: EvidenceFacts::RSEQ.to_owned(),
        used: asks.is_none(),
        found: match asks {
            None => "the kernel clears a word of the thread when it takes the CPU".to_owned(),
            Some(why) => format!("each begin and end of a span asks the kernel: {why}"),
        },
        ..EvidenceFacts::default()
    }
}
