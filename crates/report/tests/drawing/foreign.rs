//! What other tools get, read as they read it.

use std::collections::BTreeMap;

use crate::shown::{HOSTILE, competed, full, latency_run, made, thread, trace};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use hourglass_documents::Cause;
use hourglass_documents::document::Premise;
use hourglass_report::export;
use hourglass_trace::IntervalStart;
use hourglass_trace::cause::{GapOccupants, OccupantShare, Successor};
use prost::Message;
use serde_json::{Value, json};

/// The messages of `protos/perfetto/trace`, as far as they are looked at, for a decoder that is
/// not ours. What is not named here it skips.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(message, optional, tag = "1")]
    scheduling: Option<Bundle>,
    #[prost(message, optional, tag = "6")]
    clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    sequence: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "59")]
    defaults: Option<Defaults>,
    #[prost(message, optional, tag = "60")]
    track: Option<TrackDescriptor>,
}

/// Of `ftrace/ftrace_event_bundle.proto` and `ftrace/sched.proto`.
#[derive(Clone, PartialEq, Message)]
struct Bundle {
    #[prost(uint32, optional, tag = "1")]
    cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    events: Vec<Scheduling>,
}

#[derive(Clone, PartialEq, Message)]
struct Scheduling {
    #[prost(uint64, optional, tag = "1")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    tid: Option<u32>,
    #[prost(message, optional, tag = "4")]
    switch: Option<Switch>,
}

#[derive(Clone, PartialEq, Message)]
struct Switch {
    #[prost(int32, optional, tag = "2")]
    prev: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    next: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Defaults {
    #[prost(uint32, optional, tag = "58")]
    timestamp_clock_id: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    clocks: Vec<Clock>,
    #[prost(uint32, optional, tag = "2")]
    primary: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct Clock {
    #[prost(uint32, optional, tag = "1")]
    id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    timestamp: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    parent: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    tid: Option<i32>,
    #[prost(string, optional, tag = "5")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    annotations: Vec<Annotation>,
    #[prost(enumeration = "Kind", optional, tag = "9")]
    kind: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum Kind {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
}

#[derive(Clone, PartialEq, Message)]
struct Annotation {
    #[prost(uint64, optional, tag = "3")]
    uint: Option<u64>,
    #[prost(double, optional, tag = "5")]
    double: Option<f64>,
    #[prost(string, optional, tag = "6")]
    text: Option<String>,
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
}

fn decoded(run: &crate::shown::TestRun) -> Trace {
    let mut bytes = Vec::new();
    export::perfetto(&mut bytes, &run.run()).unwrap();
    Trace::decode(bytes.as_slice()).unwrap()
}

/// Slices of a track: begin, end and name, in order; every slice ends.
fn slices(trace: &Trace, track: u64) -> Vec<(u64, u64, String)> {
    let mut open: Vec<(u64, String)> = Vec::new();
    let mut slices = Vec::new();
    for packet in &trace.packet {
        let Some(event) = packet.track_event.as_ref().filter(|e| e.track == Some(track)) else {
            continue;
        };
        let at = packet.timestamp.unwrap();
        match event.kind() {
            Kind::SliceBegin => open.push((at, event.name.clone().unwrap())),
            Kind::SliceEnd => {
                let (from, name) = open.pop().expect("an end has a beginning");
                assert!(from <= at);
                slices.push((from, at, name));
            }
            Kind::Instant => slices.push((at, at, event.name.clone().unwrap())),
            Kind::Unspecified => panic!("{event:?}"),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    slices
}

fn track_named(trace: &Trace, name: &str) -> u64 {
    let tracks = trace.packet.iter().filter_map(|packet| packet.track.as_ref());
    let named = |track: &&TrackDescriptor| {
        let thread = track.thread.as_ref().and_then(|thread| thread.name.as_deref());
        track.name.as_deref() == Some(name) || thread == Some(name)
    };
    tracks.into_iter().find(named).and_then(|track| track.uuid).unwrap()
}

/// Perfetto's documentation on synthetic tracks: threads have tracks below their process, other
/// tracks name their parent; the clock of the events is in the snapshot.
#[test]
fn perfetto_has_every_interval_gap_and_event() {
    let run = full(500, 2, 9);
    let trace = decoded(&run);
    let first = &trace.packet[0];
    let snapshot = first.clock_snapshot.as_ref().unwrap();
    let clock = |id| snapshot.clocks.iter().find(|c| c.id == Some(id)).unwrap().timestamp.unwrap();
    assert_eq!((snapshot.primary, first.sequence_flags), (Some(3), Some(1)));
    assert_eq!(first.defaults.as_ref().unwrap().timestamp_clock_id, Some(3), "CLOCK_MONOTONIC");
    let epoch = run.document.manifest.epoch;
    assert_eq!((clock(3), clock(1)), (epoch.monotonic_ns, epoch.realtime_ns));
    assert!(trace.packet.iter().all(|packet| packet.sequence == Some(1)));
    let at = |ns: i64| epoch.monotonic_ns.checked_add_signed(ns).unwrap();
    for id in 0..2 {
        let mine = run.intervals.iter().filter(|record| record.thread == id);
        let ran: Vec<_> =
            mine.clone().map(|r| (at(r.start_ns), at(r.end_ns), "running".to_owned())).collect();
        let track = track_named(&trace, &format!("{id}: CPU_PERIODIC 3ms 8ms"));
        assert_eq!(slices(&trace, track), ran);
        let track = track_named(&trace, &format!("gaps of thread {id}"));
        let causes: Vec<_> = run.causes.iter().filter(|why| why.thread == id).collect();
        let gaps = slices(&trace, track);
        assert_eq!(gaps.len(), causes.len());
        for (gap, why) in gaps.iter().zip(causes) {
            assert_eq!((gap.1, gap.2.as_str()), (at(why.end_ns), why.cause.name()));
        }
    }
    let kernel = slices(&trace, track_named(&trace, "CPU 0, kernel"));
    assert!(kernel.iter().any(|slice| slice.2 == "local timer interrupt" && slice.1 > slice.0));
    assert!(kernel.iter().any(|slice| slice.2 == "switch from idle to kworker/0:1 (12)"));
}

/// Every switch is a scheduling event, of which Perfetto makes its own table; processor's interrupts are on a track.
#[test]
fn perfetto_has_who_ran() {
    let mut run = competed();
    run.document.manifest.pid = Some(69);
    let trace = decoded(&run);
    let at = |ms: u64| run.document.manifest.epoch.monotonic_ns + ms * 1_000_000;
    let bundles: Vec<_> = trace.packet.iter().filter_map(|p| p.scheduling.as_ref()).collect();
    assert!(bundles.iter().all(|bundle| bundle.cpu == Some(0)));
    let events: Vec<_> = bundles.iter().flat_map(|bundle| &bundle.events).collect();
    assert_eq!(events.len(), 200);
    let of = |place: usize| {
        let switch = events[place].switch.clone().unwrap();
        let times = (events[place].timestamp.unwrap(), events[place].tid.unwrap());
        (
            times,
            switch.prev.unwrap(),
            switch.prev_state.unwrap(),
            switch.next.unwrap(),
            switch.next_comm.unwrap(),
        )
    };
    assert_eq!(of(0), ((at(4), 70), 70, 0, 812, "spinner".to_owned()));
    assert_eq!(of(1), ((at(6), 812), 812, 0, 70, "hourglass".to_owned()));
    let process = trace.packet.iter().find_map(|p| p.track.as_ref()?.process.clone()).unwrap();
    assert_eq!(process.pid, Some(69));
    let kernel = slices(&trace, track_named(&trace, "CPU 0, kernel"));
    assert_eq!(kernel.iter().filter(|slice| slice.2 == "local timer interrupt").count(), 1_000);
}

#[test]
fn perfetto_says_why() {
    let mut run = full(50, 1, 9);
    run.causes[0].cause = Cause::RtThrottling;
    let who = Successor::Kernel(12);
    run.causes[0].to_thread = Some(who);
    let share = |who, ns| OccupantShare { who, ns };
    let also = share(Successor::OfRun(3), 900);
    run.causes[0].occupants =
        GapOccupants::from_shares([share(Successor::Kernel(0), 4), also, share(who, 3_200_000)]);
    run.names.threads.insert(12, HOSTILE.to_owned());
    let trace = decoded(&run);
    let events = trace.packet.iter().filter_map(|packet| packet.track_event.as_ref());
    let gap = events.into_iter().find(|e| e.name.as_deref() == Some("rt_throttling")).unwrap();
    let noted = |name: &str| {
        gap.annotations.iter().find(|noted| noted.name.as_deref() == Some(name)).unwrap()
    };
    let said =
        format!("ran meanwhile: {HOSTILE} (12) 3.20 ms, thread 3 of the run 900 ns, idle 4 ns");
    let text = noted("evidence").text.as_deref().unwrap();
    assert!(text.starts_with(&said), "{text}");
    assert!((noted("confidence").double.unwrap() - run.causes[0].confidence()).abs() < 1e-12);
    assert_eq!(noted("CPU before").uint, Some(0));
}

/// Times before the run's start and at the end of the range do not wrap.
#[test]
fn perfetto_at_the_edges() {
    let mut records = trace(3, 1, 1);
    records[0].start_ns = i64::MIN;
    records[2].end_ns = i64::MAX;
    let trace = decoded(&made(vec![thread(0, "CPU")], records));
    let stamps: Vec<u64> = trace.packet.iter().filter_map(|packet| packet.timestamp).collect();
    assert!(stamps.contains(&0) && stamps.contains(&(1_000_000_000_000 + i64::MAX.unsigned_abs())));
    assert_eq!(decoded(&made(Vec::new(), Vec::new())).packet.len(), 4, "clocks, process, run");
}

#[test]
fn csv_has_a_line_for_each_record() {
    let run = full(300, 3, 4);
    let mut out = Vec::new();
    export::csv(&mut out, &run.run()).unwrap();
    let text = String::from_utf8(out).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place = |name: &str| header.iter().position(|column| *column == name).unwrap();
    for (line, record) in lines.by_ref().zip(&run.intervals) {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), header.len(), "{line}");
        assert_eq!(fields[place("start_ns")], record.start_ns.to_string());
        assert_eq!(fields[place("end_ticks")], record.end_ticks.to_string());
        let cause = run
            .causes
            .iter()
            .find(|why| (why.thread, why.end_ns) == (record.thread, record.start_ns));
        assert_eq!(fields[place("cause")], cause.map_or("", |why| why.cause.name()));
        assert_eq!(fields[place("onset")] == "wait", record.onset == IntervalStart::Wait);
        let counted = record.evidence.counted.map(|n| n.faults.to_string()).unwrap_or_default();
        assert_eq!(fields[place("page_faults")], counted);
    }
    assert_eq!(text.lines().count(), run.intervals.len() + 1);
}

/// The keys of cyclictest 2.4 as it wrote them (`tests/data/cyclictest.json`), colons included.
#[test]
fn cyclictest_json_has_its_keys() {
    let theirs: Value = serde_json::from_str(include_str!("../data/cyclictest.json")).unwrap();
    let mut run = latency_run(2, 5);
    run.document.manifest.command_line = vec![HOSTILE.to_owned()];
    let mut out = Vec::new();
    export::cyclictest(&mut out, &run.run()).unwrap();
    let ours: Value = serde_json::from_slice(&out).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&ours), keys(&theirs));
    assert_eq!(keys(&ours["sysinfo"]), keys(&theirs["sysinfo"]));
    assert_eq!(keys(&ours["thread"]["1"]), keys(&theirs["thread"]["1"]));
    for (path, value) in [("file_version", 1), ("num_threads", 2), ("resolution_in_ns", 0)] {
        assert_eq!(ours[path], value, "{path}");
    }
    assert_eq!((&ours["cmdline:"], &ours["return_code"]), (&json!(HOSTILE), &json!(0)));
    let premise = Premise { id: "pinning-lost".to_owned(), text: "moved".to_owned(), at_ns: 1 };
    run.document.result.premises = vec![premise];
    let mut out = Vec::new();
    export::cyclictest(&mut out, &run.run()).unwrap();
    let undecided: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(undecided["return_code"], 4, "no verdict");
    assert_eq!(ours["start_time"], "Tue, 03 Dec 2019 15:56:57 +0000");
    let thread = &ours["thread"]["1"];
    let counts = thread["histogram"].as_object().unwrap();
    let sum: u64 = counts.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!((sum, thread["cycles"].as_u64()), (20_001, Some(20_001)));
    assert_eq!((thread["max"].as_u64(), thread["avg"].as_f64()), (Some(335), Some(7.12)));
    for key in keys(thread) {
        let (ours, theirs) = (&thread[&key], &theirs["thread"]["1"][&key]);
        assert_eq!(ours.is_number(), theirs.is_number(), "{key}");
    }
}

/// The form of what cyclictest 2.4 printed (`tests/data/cyclictest.hist`): every line but the
/// numbers of cycles, which a run does not keep.
#[test]
fn cyclictest_histogram_has_its_lines() {
    let run = latency_run(2, 5);
    let mut out = Vec::new();
    let over = [(run.document.result.threads[1].id, vec![7, 65])];
    export::cyclictest_histogram(&mut out, &run.run(), 60, &over.into_iter().collect()).unwrap();
    let ours = String::from_utf8(out).unwrap();
    let theirs = include_str!("../data/cyclictest.hist");
    let form = |line: &str| {
        let line = line.split_once("# Thread").map_or(line, |_| "# Thread");
        line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect::<String>()
    };
    let forms = |text: &str| text.lines().map(form).collect::<Vec<_>>();
    assert_eq!(forms(&ours), forms(theirs));
    let columns: Vec<Vec<u64>> = ours
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
        .collect();
    assert_eq!(columns.len(), 60);
    let total: u64 = columns.iter().map(|row| row[1]).sum();
    assert!(ours.contains(&format!("# Total: {total:09} ")), "{ours}");
    assert!(ours.contains(&format!("# Histogram Overflows: {:05} ", 20_001 - total)), "{ours}");
    assert!(ours.contains("# Max Latencies: 00310 00335\n"), "{ours}");
    // Folders have the wake-ups one by one: "# 00008 others" was all that was said.
    assert!(ours.contains("# Thread 1: 00007 00065"), "{ours}");
}

/// Read by HdrHistogram's own reader: nothing is lost, and each thread has its tag.
#[test]
fn hdr_log_is_read_back() {
    let mut histograms = BTreeMap::new();
    for thread in [0_u32, 7] {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for ns in [900, 7_100, 7_100, 3_000_000 + u64::from(thread)] {
            histogram.record(ns).unwrap();
        }
        histograms.insert(thread, histogram);
    }
    let mut out = Vec::new();
    export::hdr(&mut out, &crate::shown::manifest(), &histograms).unwrap();
    let text = String::from_utf8(out.clone()).unwrap();
    assert!(text.contains("#[StartTime: 1575388617.9"), "{text}");
    let mut seen = Vec::new();
    for entry in IntervalLogIterator::new(&out) {
        let LogEntry::Interval(entry) = entry.unwrap() else { continue };
        use base64::Engine as _;
        let engine = base64::engine::general_purpose::STANDARD;
        let bytes = engine.decode(entry.encoded_histogram()).unwrap();
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        let tag = entry.tag().unwrap().as_str().to_owned();
        let thread: u32 = tag.strip_prefix("thread-").unwrap().parse().unwrap();
        assert_eq!(read, histograms[&thread]);
        assert!((entry.max() - 3.0).abs() < 0.01, "the column of maxima is in ms: {}", entry.max());
        seen.push(thread);
    }
    assert_eq!(seen, [0, 7]);
    let mut none = Vec::new();
    export::hdr(&mut none, &crate::shown::manifest(), &BTreeMap::new()).unwrap();
}

/// No run at all is a valid file of every format.
#[test]
fn nothing_is_written_as_nothing() {
    let run = made(Vec::new(), Vec::new());
    let mut out = Vec::new();
    export::csv(&mut out, &run.run()).unwrap();
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
    let mut out = Vec::new();
    export::cyclictest(&mut out, &run.run()).unwrap();
    let json: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(json["num_threads"], 0);
    let mut out = Vec::new();
    export::cyclictest_histogram(&mut out, &run.run(), 2, &BTreeMap::new()).unwrap();
    assert!(
        String::from_utf8(out).unwrap().starts_with("# Histogram\n000000 \n000001 \n# Total:\n")
    );
}
