//! Whether a span was descheduled, and for how long, against the kernel's own record of switches.
//!
//! A thread marks spans one after another under four loads, and a private instance of the trace records
//! `sched_switch` on its CPU. The witness does not get to see it.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::sched::{Attributes, set};
use hourglass_sys::thread::{id, set_affinity};
use hourglass_sys::tracefs::{Field, Instance, Page, Tracefs};
use hourglass_witness::{Cause, Witness};

use crate::document::Row;
use crate::load::{BackgroundThreads, spin, work_and_rest};

const GOAL: f64 = 0.999;
/// Disturbed spans of each load, by the witness's word.
const WANTED: usize = 2_500;
const LONGEST: Duration = Duration::from_secs(40);
const KILOBYTES: u64 = 16 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Idle,
    Busy,
    /// A real-time thread that comes every half millisecond.
    Fifo,
    /// SIGSTOP and SIGCONT from another process.
    Stops,
}

struct ObservedSpan {
    /// Before and behind its begin, ns of `CLOCK_MONOTONIC`.
    begun_ns: (u64, u64),
    /// Before and behind its end.
    ended_ns: (u64, u64),
    /// At least, at most, why.
    lost: Option<(u64, u64, Cause)>,
}

#[derive(Debug, Default)]
struct Count {
    spans: u64,
    /// With a switch while it was begun or ended, which may be in it or not, or one that the trace left out: these are
    /// not judged.
    unclear: u64,
    there: u64,
    named: u64,
    both: u64,
    within: u64,
    caused: u64,
    widths: Vec<f64>,
}

/// All loads; nothing where the kernel cannot be traced: the reason is printed.
pub(super) fn measure() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for load in [Load::Idle, Load::Busy, Load::Fifo, Load::Stops] {
        for recorded in [false, true] {
            match count(load, recorded) {
                Ok(count) => rows.extend(count.rows(load, recorded)),
                Err(reason) => eprintln!("truth: {load:?}: left out: {reason:#}"),
            }
        }
    }
    Ok(rows)
}

impl Count {
    fn rows(&self, load: Load, recorded: bool) -> Vec<Row> {
        eprintln!(
            "truth: {load:?}, recorded {recorded}: {} spans, {} unclear, {} switched, {} named, {} both, {} within, {} causes",
            self.spans, self.unclear, self.there, self.named, self.both, self.within, self.caused
        );
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let bounds = if recorded { "/recorded" } else { "" };
        let subject = format!("hourglass/{load:?}{bounds}").to_lowercase();
        let row = |case, value| Row::alone(case, &subject, value, "share").at_least(GOAL);
        let mut widths = self.widths.clone();
        vec![
            Row::alone("truth_disturbed", &subject, self.there as f64, "count"),
            row("truth_precision", share(self.both, self.named)),
            row("truth_recall", share(self.both, self.there)),
            row("truth_off_cpu_within", share(self.within, self.both)),
            row("truth_cause", share(self.caused, self.both)),
            Row::alone("truth_width", &subject, crate::paired::median(&mut widths), "us"),
        ]
    }
}

/// One load: its spans and the kernel's switches. With the times of switches that users may record, or without.
fn count(load: Load, recorded: bool) -> Result<Count> {
    let cpu = *hourglass_sys::thread::affinity()?.first().context("no CPU")?;
    let tracefs = Tracefs::find().map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let mut trace = Instance::create(&tracefs)?;
    trace.set_clock("mono")?;
    trace.set_cpus(&[cpu], KILOBYTES)?;
    trace.enable("sched", "sched_switch")?;
    trace.switch(true)?;
    let beside = BackgroundLoad::start(load, cpu)?;
    let marked = std::thread::spawn(move || mark(load, cpu, recorded));
    let (tid, spans) =
        marked.join().map_err(|_| anyhow::anyhow!("the marking thread panicked"))??;
    drop(beside);
    trace.switch(false)?;
    ensure!(trace.counts(cpu).lost() == 0, "events were lost");
    let switches = switches(&mut trace, &tracefs, cpu, tid)?;
    Ok(compare(load, &spans, &switches))
}

fn mark(load: Load, cpu: u32, recorded: bool) -> Result<(u32, Vec<ObservedSpan>)> {
    set_affinity([cpu])?;
    let witness = Witness::new()?;
    if recorded {
        witness.record_switches()?;
    }
    let mut spans = Vec::with_capacity(1_000_000);
    let (begun, mut lost) = (Instant::now(), 0);
    while lost < WANTED && begun.elapsed() < LONGEST && spans.len() < spans.capacity() {
        let busy = load != Load::Idle;
        let begins_ns = now_ns(ClockId::Monotonic);
        let span = if busy { witness.begin_busy() } else { witness.begin() };
        let begun_ns = (begins_ns, now_ns(ClockId::Monotonic));
        match load {
            Load::Idle if spans.len() % 2 == 0 => std::thread::sleep(Duration::from_micros(200)),
            _ => spin(Duration::from_micros(300)),
        }
        let ends_ns = now_ns(ClockId::Monotonic);
        let found = witness.end(span);
        let ended_ns = (ends_ns, now_ns(ClockId::Monotonic));
        let found = found.map(|loss| {
            let [least, most] = [loss.off_cpu.earliest(), loss.off_cpu.latest()];
            (least.nanos_or_zero(), most.nanos_or_zero(), loss.cause)
        });
        lost += usize::from(found.is_some());
        spans.push(ObservedSpan { begun_ns, ended_ns, lost: found });
    }
    Ok((id(), spans))
}

#[derive(Debug, Default)]
struct ThreadSwitches {
    /// When the thread left the CPU, when it came back, and in which state it left, in order.
    switches: Vec<(u64, u64, u64)>,
    /// From when to when a switch of the CPU is missing: another thread left it than the one that got it last. Kernels
    /// leave switches out on a CPU that was offline once.
    lost: Vec<(u64, u64)>,
}

fn switches(trace: &mut Instance, tracefs: &Tracefs, cpu: u32, tid: u32) -> Result<ThreadSwitches> {
    let format = tracefs.format("sched", "sched_switch").context("no format of sched_switch")?;
    let field = |name: &str| format.field(name).with_context(|| format!("no field {name}"));
    let (prev, next, state) = (field("prev_pid")?, field("next_pid")?, field("prev_state")?);
    let layout = tracefs.page_layout()?;
    let mut reader = trace.reader(cpu)?;
    let mut room = vec![0; layout.size()];
    let mut found = ThreadSwitches::default();
    let mut out = None;
    let mut last = None;
    let read = |field: &Field, bytes: &[u8]| field.read(bytes).unwrap_or(0);
    while let Some(length) = reader.take(&mut room)? {
        let page = Page::new(&layout, &room[..length]).context("a piece of the ring is damaged")?;
        let mut entries = page.entries();
        for entry in entries.by_ref() {
            let runs = (entry.time, read(&next, entry.data));
            if let Some((since, ran)) = last.replace(runs)
                && ran != read(&prev, entry.data)
            {
                found.lost.push((since, entry.time));
                out = None;
            }
            if read(&prev, entry.data) == u64::from(tid) {
                out = Some((entry.time, read(&state, entry.data)));
            } else if read(&next, entry.data) == u64::from(tid)
                && let Some((left, state)) = out.take()
            {
                found.switches.push((left, entry.time, state));
            }
        }
        ensure!(!entries.damaged(), "a piece of the ring is damaged");
    }
    Ok(found)
}

fn compare(load: Load, spans: &[ObservedSpan], seen: &ThreadSwitches) -> Count {
    let switches = &seen.switches;
    let mut count = Count::default();
    for span in spans {
        let within = |from: u64, to: u64| {
            let first = switches.partition_point(|(left, _, _)| *left < from);
            let behind = switches.partition_point(|(left, _, _)| *left <= to);
            &switches[first..behind.max(first)]
        };
        count.spans += 1;
        let edges = [span.begun_ns, span.ended_ns].map(|(from, to)| within(from, to).len());
        let lost = seen.lost.partition_point(|(_, to)| *to < span.begun_ns.0);
        let unseen = seen.lost.get(lost).is_some_and(|(from, _)| *from <= span.ended_ns.1);
        if edges != [0, 0] || unseen {
            count.unclear += 1;
            continue;
        }
        let there = within(span.begun_ns.1, span.ended_ns.0);
        count.there += u64::from(!there.is_empty());
        let Some((least, most, cause)) = span.lost else { continue };
        count.named += 1;
        if there.is_empty() {
            let (from, to) = (span.begun_ns.1, span.ended_ns.0);
            eprintln!(
                "truth: {load:?}: {least} to {most} ns by {cause} from {from} to {to}, and no switch"
            );
            continue;
        }
        count.both += 1;
        let off: u64 = there.iter().map(|(left, back, _)| back - left).sum();
        count.within += u64::from((least..=most).contains(&off));
        if !(least..=most).contains(&off) {
            let length = span.ended_ns.1 - span.begun_ns.0;
            eprintln!(
                "truth: {load:?}: {off} ns of {length} off the CPU, not in {least} to {most}: {there:?}"
            );
        }
        count.caused += u64::from(cause == expected(there));
        if cause != expected(there) {
            eprintln!("truth: {load:?}: {cause}, not {}: {there:?}", expected(there));
        }
        count.widths.push((most - least) as f64 / 1e3);
    }
    count
}

fn expected(switches: &[(u64, u64, u64)]) -> Cause {
    /// `TASK_INTERRUPTIBLE`, `TASK_UNINTERRUPTIBLE`; `__TASK_STOPPED` and `__TASK_TRACED`.
    const WAITS: u64 = 1 | 2;
    const STOPS: u64 = 4 | 8;
    let longest = |bits: fn(u64) -> bool| -> u64 {
        let of = switches.iter().filter(|(_, _, state)| bits(*state & 0xff));
        of.map(|(left, back, _)| back - left).sum()
    };
    let parts = [
        (longest(|state| state & (WAITS | STOPS) == 0), Cause::ContextSwitchInvoluntary),
        (longest(|state| state & WAITS != 0), Cause::ContextSwitchVoluntary),
        (longest(|state| state & STOPS != 0), Cause::Stopped),
    ];
    parts.into_iter().max_by_key(|(ns, _)| *ns).map_or(Cause::Unknown, |(_, cause)| cause)
}

/// A load that goes on until it is dropped; [`Load::Stops`] until it ends by itself.
struct BackgroundLoad {
    threads: BackgroundThreads,
    child: Option<Child>,
}

impl BackgroundLoad {
    fn start(load: Load, cpu: u32) -> Result<BackgroundLoad> {
        let mut beside = BackgroundLoad { threads: BackgroundThreads::default(), child: None };
        match load {
            Load::Idle => {}
            Load::Stops => {
                // It ends by itself, and never with this process stopped.
                let line = format!(
                    "n=0; while [ $n -lt {WANTED} ]; do n=$((n+1)); kill -STOP {0} || exit; \
                     sleep 0.001; kill -CONT {0} || exit; sleep 0.003; done",
                    std::process::id()
                );
                beside.child = Some(Command::new("sh").args(["-c", &line]).spawn()?);
            }
            Load::Busy => beside.threads.start("busy", cpu, || spin(Duration::from_micros(100)))?,
            Load::Fifo => {
                let mut first = true;
                beside.threads.start("fifo", cpu, move || {
                    if std::mem::take(&mut first) && set(Attributes::Fifo(10)).is_err() {
                        eprintln!("truth: no real-time priority: the load is an ordinary thread");
                    }
                    work_and_rest(Duration::from_micros(100), Duration::from_micros(400));
                })?;
            }
        }
        Ok(beside)
    }
}

impl Drop for BackgroundLoad {
    fn drop(&mut self) {
        // Whether it failed does not matter any more.
        let _ = self.child.take().map(|mut child| child.wait());
    }
}
