//! The run as a trace of Perfetto: its `TrackEvent` messages, which its UI and its trace
//! processor open (docs/reference/synthetic-track-event and `protos/perfetto/trace` there).
//!
//! One process with a track for each thread of the run, on which intervals are slices; below each
//! a track of its gaps, named by their causes, and tracks of the spans that its program recorded, with what they lost
//! inside of them (`spans.rs`); a track for each CPU with the threads that ran
//! there, or where the kernel was traced everybody who had it, by name; and a track for each CPU with the kernel's
//! events, interrupts among them.
//!
//! Time is `CLOCK_MONOTONIC` in nanoseconds; a snapshot ties it to `CLOCK_REALTIME`.

mod scheduling;
mod spans;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};

use hourglass_trace::{Interval, KernelEvent};

use crate::export::csv::onset;
use crate::export::kernel::{Phase, phase, words};
use crate::export::protobuf::Message;
use crate::run::{RunView, evidence, label};

/// Field numbers of the messages, as `protos/perfetto/trace` has them.
mod field {
    /// `Trace`.
    pub(super) const PACKET: u64 = 1;

    /// `TracePacket`.
    pub(super) const CLOCK_SNAPSHOT: u64 = 6;
    pub(super) const TIMESTAMP: u64 = 8;
    pub(super) const SEQUENCE_ID: u64 = 10;
    pub(super) const TRACK_EVENT: u64 = 11;
    pub(super) const SEQUENCE_FLAGS: u64 = 13;
    pub(super) const TIMESTAMP_CLOCK_ID: u64 = 58;
    pub(super) const DEFAULTS: u64 = 59;
    pub(super) const TRACK_DESCRIPTOR: u64 = 60;
    pub(super) const FIRST_ON_SEQUENCE: u64 = 87;

    /// `ClockSnapshot`.
    pub(super) const CLOCKS: u64 = 1;
    pub(super) const PRIMARY_CLOCK: u64 = 2;
    /// `ClockSnapshot.Clock`.
    pub(super) const CLOCK_ID: u64 = 1;
    pub(super) const CLOCK_TIMESTAMP: u64 = 2;

    /// `TrackDescriptor`.
    pub(super) const UUID: u64 = 1;
    pub(super) const NAME: u64 = 2;
    pub(super) const PROCESS: u64 = 3;
    pub(super) const THREAD: u64 = 4;
    pub(super) const PARENT_UUID: u64 = 5;
    /// `ProcessDescriptor` and `ThreadDescriptor`.
    pub(super) const PID: u64 = 1;
    pub(super) const PROCESS_NAME: u64 = 6;
    pub(super) const TID: u64 = 2;
    pub(super) const THREAD_NAME: u64 = 5;

    /// `TrackEvent`.
    pub(super) const ANNOTATION: u64 = 4;
    pub(super) const TYPE: u64 = 9;
    pub(super) const TRACK_UUID: u64 = 11;
    pub(super) const CATEGORY: u64 = 22;
    pub(super) const EVENT_NAME: u64 = 23;

    /// `DebugAnnotation`.
    pub(super) const UINT: u64 = 3;
    pub(super) const DOUBLE: u64 = 5;
    pub(super) const STRING: u64 = 6;
    pub(super) const ANNOTATION_NAME: u64 = 10;
}

/// `BuiltinClock`.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
/// The clock of scheduling events. A run does not keep how long the machine was suspended, so that it counts as never.
const BOOTTIME: u64 = 6;

/// `TrackEvent.Type`.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;

/// `SequenceFlags`: nothing before this packet is needed to read it.
const STATE_CLEARED: u64 = 1;

/// All packets come from one writer.
const SEQUENCE: u64 = 1;

/// What stands for a process's number where a run did not keep it; threads without a number have those behind it.
const MADE_UP_ID: i64 = 1_000_000_000;

/// Tracks by the ranges of their numbers.
const PROCESS_TRACK: u64 = 1;
const THREAD_TRACKS: u64 = 1 << 32;
const GAP_TRACKS: u64 = 2 << 32;
const CPU_TRACKS: u64 = 3 << 32;
const KERNEL_TRACKS: u64 = 4 << 32;

/// Writes the whole run.
///
/// # Errors
/// Those of the writer beneath.
pub fn perfetto(out: impl Write, run: &RunView<'_>) -> io::Result<()> {
    let zero_ns = run.document.manifest.epoch.monotonic_ns;
    let mut trace = Trace { out: BufWriter::new(out), zero_ns, traced: scheduling::cpus(run) };
    trace.clocks(run)?;
    trace.tracks(run)?;
    trace.whole_run(run)?;
    trace.intervals(run)?;
    trace.spans(run)?;
    trace.scheduling(run)?;
    trace.kernel(run)?;
    trace.out.flush()
}

/// A trace that is being written.
struct Trace<W: Write> {
    out: BufWriter<W>,
    /// The run's zero on `CLOCK_MONOTONIC`.
    zero_ns: u64,
    /// The CPUs of which every switch is known.
    traced: BTreeSet<u32>,
}

impl<W: Write> Trace<W> {
    fn packet(&mut self, packet: &Message) -> io::Result<()> {
        self.out.write_all(Message::new().message(field::PACKET, packet).bytes())
    }

    /// The first packet: which clock the others use, and what time it was.
    fn clocks(&mut self, run: &RunView<'_>) -> io::Result<()> {
        let epoch = &run.document.manifest.epoch;
        let clock =
            |id, at| Message::new().uint(field::CLOCK_ID, id).uint(field::CLOCK_TIMESTAMP, at);
        let snapshot = Message::new()
            .message(field::CLOCKS, &clock(MONOTONIC, epoch.monotonic_ns))
            .message(field::CLOCKS, &clock(REALTIME, epoch.realtime_ns))
            .message(field::CLOCKS, &clock(BOOTTIME, epoch.monotonic_ns))
            .uint(field::PRIMARY_CLOCK, MONOTONIC);
        let defaults = Message::new().uint(field::TIMESTAMP_CLOCK_ID, MONOTONIC);
        let packet = Message::new()
            .message(field::CLOCK_SNAPSHOT, &snapshot)
            .uint(field::SEQUENCE_ID, SEQUENCE)
            .uint(field::SEQUENCE_FLAGS, STATE_CLEARED)
            .message(field::DEFAULTS, &defaults)
            .uint(field::FIRST_ON_SEQUENCE, 1);
        self.packet(&packet)
    }

    fn track(&mut self, descriptor: &Message) -> io::Result<()> {
        let packet = Message::new()
            .uint(field::SEQUENCE_ID, SEQUENCE)
            .message(field::TRACK_DESCRIPTOR, descriptor);
        self.packet(&packet)
    }

    fn tracks(&mut self, run: &RunView<'_>) -> io::Result<()> {
        let pid = run.document.manifest.pid.map_or(MADE_UP_ID, i64::from);
        let process = Message::new().int(field::PID, pid).text(field::PROCESS_NAME, "hourglass");
        let descriptor = Message::new().uint(field::UUID, PROCESS_TRACK);
        self.track(&descriptor.message(field::PROCESS, &process))?;
        for thread in &run.document.result.threads {
            let name = format!("{}: {}", thread.id, label(thread));
            let tid = thread.tid.map_or(MADE_UP_ID + i64::from(thread.id), i64::from);
            let described = Message::new()
                .int(field::PID, pid)
                .int(field::TID, tid)
                .text(field::THREAD_NAME, &name);
            let descriptor = Message::new()
                .uint(field::UUID, THREAD_TRACKS + u64::from(thread.id))
                .uint(field::PARENT_UUID, PROCESS_TRACK);
            self.track(&descriptor.message(field::THREAD, &described))?;
            let parent = THREAD_TRACKS + u64::from(thread.id);
            self.named(GAP_TRACKS, thread.id, parent, &format!("gaps of thread {}", thread.id))?;
        }
        let cpus: BTreeSet<u32> = run.intervals.iter().map(|record| record.cpu).collect();
        for cpu in cpus.difference(&self.traced.clone()) {
            self.named(CPU_TRACKS, *cpu, PROCESS_TRACK, &format!("CPU {cpu}"))?;
        }
        let cpus: BTreeSet<u32> = run.events.iter().map(|event| event.cpu).collect();
        for cpu in cpus {
            self.named(KERNEL_TRACKS, cpu, PROCESS_TRACK, &format!("CPU {cpu}, kernel"))?;
        }
        Ok(())
    }

    fn named(&mut self, range: u64, number: u32, parent: u64, name: &str) -> io::Result<()> {
        let descriptor = Message::new()
            .uint(field::UUID, range + u64::from(number))
            .text(field::NAME, name)
            .uint(field::PARENT_UUID, parent);
        self.track(&descriptor)
    }

    /// A time of the run on the trace's clock.
    fn at(&self, ns: i64) -> u64 {
        self.zero_ns.saturating_add_signed(ns)
    }

    fn event(&mut self, ns: i64, event: &Message) -> io::Result<()> {
        let packet = Message::new()
            .uint(field::TIMESTAMP, self.at(ns))
            .uint(field::SEQUENCE_ID, SEQUENCE)
            .message(field::TRACK_EVENT, event);
        self.packet(&packet)
    }

    /// A slice from `begin` to `end`; `begin` is a whole event but for its type and track.
    fn slice(&mut self, track: u64, (from, to): (i64, i64), begin: Message) -> io::Result<()> {
        let begin = begin.uint(field::TYPE, SLICE_BEGIN).uint(field::TRACK_UUID, track);
        self.event(from, &begin)?;
        let end = Message::new().uint(field::TYPE, SLICE_END).uint(field::TRACK_UUID, track);
        self.event(to, &end)
    }

    /// One slice over all of the run on the process's own track, with what explains the numbers.
    fn whole_run(&mut self, run: &RunView<'_>) -> io::Result<()> {
        let manifest = &run.document.manifest;
        let ended = i64::try_from(manifest.elapsed_ns).unwrap_or(i64::MAX);
        let begin = named("run", "run");
        let begin = with_text(begin, "command line", &manifest.command_line.join(" "));
        let begin = with_text(begin, "kernel", &manifest.host.kernel);
        let begin = with_text(begin, "clock source", &manifest.clock.source);
        let begin = with_number(begin, "counter at the start", manifest.epoch.ticks);
        let begin = with_double(begin, "counter ticks per second", manifest.clock.frequency_hz);
        self.slice(PROCESS_TRACK, (0, ended), begin)
    }

    fn intervals(&mut self, run: &RunView<'_>) -> io::Result<()> {
        let names: BTreeMap<u32, &str> =
            run.document.result.threads.iter().map(|thread| (thread.id, label(thread))).collect();
        let mut before: BTreeMap<u32, Interval> = BTreeMap::new();
        for record in run.intervals {
            let range = (record.start_ns, record.end_ns);
            let running = with_number(named("run", "running"), "CPU", u64::from(record.cpu));
            self.slice(THREAD_TRACKS + u64::from(record.thread), range, running)?;
            if self.traced.contains(&record.cpu) {
                self.gap_before(run, before.insert(record.thread, *record), record)?;
                continue;
            }
            let name = names.get(&record.thread).copied().unwrap_or("thread");
            let there = named("cpu", name);
            let there = with_number(there, "thread", u64::from(record.thread));
            self.slice(CPU_TRACKS + u64::from(record.cpu), range, there)?;
            self.gap_before(run, before.insert(record.thread, *record), record)?;
        }
        Ok(())
    }

    /// The gap before a record of a thread that had one before.
    fn gap_before(
        &mut self,
        run: &RunView<'_>,
        last: Option<Interval>,
        record: &Interval,
    ) -> io::Result<()> {
        match last.filter(|_| record.onset.is_gap()) {
            Some(last) => self.gap(run, &last, record),
            None => Ok(()),
        }
    }

    fn gap(&mut self, run: &RunView<'_>, last: &Interval, record: &Interval) -> io::Result<()> {
        let begin = match run.cause_of(record.thread, record.start_ns) {
            Some(why) => {
                let begin = named("gap", why.cause.name());
                let begin = with_double(begin, "confidence", why.confidence());
                with_text(begin, "evidence", &evidence(why, run.thread_names()))
            }
            None => named("gap", onset(record.onset)),
        };
        let begin = with_text(begin, "recorder", onset(record.onset));
        let begin = with_number(begin, "CPU before", u64::from(last.cpu));
        let begin = with_number(begin, "CPU after", u64::from(record.cpu));
        let track = GAP_TRACKS + u64::from(record.thread);
        // Where a damaged trace has the next record begin before the last one ends.
        let from = last.end_ns.min(record.start_ns);
        self.slice(track, (from, record.start_ns), begin)
    }

    fn kernel(&mut self, run: &RunView<'_>) -> io::Result<()> {
        for event in run.events {
            self.kernel_event(event, &words(event, run.names))?;
        }
        Ok(())
    }

    fn kernel_event(&mut self, event: &KernelEvent, words: &str) -> io::Result<()> {
        let track = KERNEL_TRACKS + u64::from(event.cpu);
        let (message, kind) = match phase(event.kind) {
            Phase::Begin => (named("kernel", words), SLICE_BEGIN),
            Phase::End => (Message::new(), SLICE_END),
            Phase::Moment => (named("kernel", words), INSTANT),
        };
        self.event(event.ns, &message.uint(field::TYPE, kind).uint(field::TRACK_UUID, track))
    }
}

/// An event with its category and its name.
fn named(category: &str, name: &str) -> Message {
    Message::new().text(field::CATEGORY, category).text(field::EVENT_NAME, name)
}

fn annotation(name: &str) -> Message {
    Message::new().text(field::ANNOTATION_NAME, name)
}

fn with_text(event: Message, name: &str, value: &str) -> Message {
    event.message(field::ANNOTATION, &annotation(name).text(field::STRING, value))
}

fn with_number(event: Message, name: &str, value: u64) -> Message {
    event.message(field::ANNOTATION, &annotation(name).uint(field::UINT, value))
}

fn with_double(event: Message, name: &str, value: f64) -> Message {
    event.message(field::ANNOTATION, &annotation(name).double(field::DOUBLE, value))
}
