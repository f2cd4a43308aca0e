//! Gap detection: the loop that polls the counter and records when the thread ran (Hourglass
//! paper, section 3.1 and Figure 2), made multi-core.
//!
//! # The measuring loop
//!
//! `workload::recorder::Recorder::watch` is Figure 2 of the paper, made multi-core. It is generic over
//! the counter and the work, so that it compiles to one loop for each pair, without indirection. Counter
//! and CPU number are read together (`rdtscp`; elsewhere the counter between two reads of the CPU
//! number). A difference above GAP, or another CPU number, ends the record. Received time is the sum of
//! the intervals, never the kernel's CPU clock. Where the kernel does not keep time with the processor's
//! counter, `CLOCK_MONOTONIC` serves and the result says so. Intervals on CPUs that the thread was not given are
//! counted apart (`recorder/affinity_check.rs`), since the kernel moves threads whose last CPU goes offline.

mod acts;
mod affinity_check;
mod intervals;
mod limits;
mod marks;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_arch = "aarch64")]
use hourglass_clock::Cntvct;
#[cfg(target_arch = "x86_64")]
use hourglass_clock::Tsc;
use hourglass_clock::{CounterReading, OsMonotonic};
use hourglass_documents::document::Deadlines;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::thread::CpuWords;
use hourglass_time::Span;
use hourglass_trace::{Evidence, IntervalStart};

use crate::buffer::{Record, TraceBuffer};
use crate::guard::LimitHit;
use crate::jobs::{JobLog, JobTiming};
use crate::live::LiveCounters;
use crate::long_gaps::LongGaps;
use crate::measuring_counter::MeasuringCounter;
use crate::memory::{Gaps, LatencyRecorder, Memory};
use crate::timeline::Timeline;
use crate::wake::{WakeUp, WakeUpTime};

use crate::gap_evidence::Witness;
use crate::wake_times::WakeTimes;
use affinity_check::AffinityCheck;
pub use affinity_check::AffinityViolation;

/// What a thread does between two reads of the counter.
///
/// `step` MUST be short (its length is the resolution of gap detection) and MUST NOT allocate,
/// block, or call the kernel.
pub trait Work: Send {
    fn step(&mut self);
}

/// No work: the thread only watches itself run.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWork;

impl Work for NoWork {
    #[inline(always)]
    fn step(&mut self) {}
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum RecordingEnd {
    Done,
    /// The thread's time is over: it must return.
    TimeOver,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadCounts {
    pub deadlines: Option<Deadlines>,
    /// Passes, for models that scan.
    pub work: Option<u64>,
    /// Wake-ups that never took place, for models on a grid.
    pub lost_wake_ups: u64,
    /// Missed periods that would have been hit but for pauses below the kernel, in which the thread kept its CPU.
    pub missed_below: u64,
}

/// What a recorder needs before it starts. Everything in it was allocated and touched.
#[derive(Debug)]
pub struct RecorderSettings {
    /// Gaps longer than this are recorded, in ticks.
    pub gap: u64,
    pub timeline: Timeline,
    /// When the thread starts, on the counter.
    pub start: u64,
    /// When the thread's time is over, on the counter.
    pub finish: u64,
    /// A longer gap ends the run, in ticks.
    pub stop_gap: u64,
    /// A later wake-up ends the run, in ticks.
    pub stop_late: u64,
    pub live: Option<Arc<LiveCounters>>,
    /// After this many ticks of running, the thread has the kernel charge them to its budget; never,
    /// with `u64::MAX`. Without, the scheduler looks at budgets at its tick, milliseconds later.
    pub charge: u64,
}

/// A gap of this length in which the kernel did not take the CPU from the thread is not the
/// kernel's: its interrupts are shorter by a factor of ten.
const PAUSED: Span = Span::from_micros(100);

pub struct Recorder<'a, C: MeasuringCounter> {
    counter: C,
    stop: &'a AtomicBool,
    wake_up: &'a mut dyn WakeUp,
    settings: RecorderSettings,
    memory: Memory,
    witness: Witness<C::EvidenceSource>,
    /// What must pass at least on every interval so that its length in ns does not fall short
    /// when both ends are rounded down.
    rounding: u64,
    /// [`NOTING`], in ticks.
    noting: u64,
    /// The quickest question to the kernel's counters, in ticks.
    question: Option<u64>,
    /// From which length on a gap in which the kernel did not take the CPU is the host's, in ticks.
    paused: u64,
    /// What such gaps took of the job that has begun, in ticks.
    pub(crate) lost_below: u64,
    open: Option<CurrentInterval>,
    /// The job that has begun; its `received` is what the thread had received before.
    job: Option<JobTiming>,
    last: u64,
    last_cpu: u32,
    received_closed: u64,
    intervals: u64,
    migrations: u64,
    backwards: u64,
    cpus_seen: CpuWords,
    fence: AffinityCheck,
    hit: Option<LimitHit>,
    pub tally: ThreadCounts,
}

/// How long noting a gap takes at most, with caches as cold as a long gap leaves them; a second
/// interruption within that time of the first must be longer to be distinguished.
const NOTING: Span = Span::from_micros(2);

/// Interruptions noted one after the other before the loop goes on, so that a machine too slow
/// for [`NOTING`] gets on too.
const MOST_GAPS_IN_A_ROW: u32 = 4;

/// What a thread found out about a gap or a wait.
struct GapAnswer {
    /// When the gap ended.
    now: CounterReading,
    /// Until when it was asked about.
    asked_until: u64,
    evidence: Evidence,
}

impl GapAnswer {
    fn nothing(now: CounterReading) -> GapAnswer {
        GapAnswer { now, asked_until: now.ticks, evidence: Evidence::NONE }
    }
}

#[derive(Clone, Copy, Debug)]
struct CurrentInterval {
    start: u64,
    cpu: u32,
    onset: IntervalStart,
    evidence: Evidence,
}

/// A recorder with its counter known only at run time.
pub enum AnyRecorder<'a> {
    #[cfg(target_arch = "x86_64")]
    Tsc(Recorder<'a, Tsc>),
    #[cfg(target_arch = "aarch64")]
    Cntvct(Recorder<'a, Cntvct>),
    Os(Recorder<'a, OsMonotonic>),
}

#[derive(Debug)]
pub struct Recording {
    pub trace: TraceBuffer,
    pub lateness: Option<LatencyRecorder>,
    /// When those wake-ups took place, where that was wanted.
    pub wakes: Option<WakeTimes>,
    pub jobs: Option<JobLog>,
    pub gaps: Gaps,
    /// Long gaps that the trace had no room for, or, in a ring, may have lost.
    pub long_gaps: LongGaps,
    pub intervals: u64,
    /// Sum of all intervals, in ticks.
    pub received: u64,
    /// How often two intervals in a row ran on different CPUs.
    pub migrations: u64,
    /// How often the counter of the next CPU was behind.
    pub backwards: u64,
    /// In ascending order.
    pub cpus_seen: Vec<u32>,
    pub strayed: Option<AffinityViolation>,
    pub tally: ThreadCounts,
    /// When the thread's time ended, on the counter.
    pub end: u64,
    pub hit: Option<LimitHit>,
}

impl<'a, C: MeasuringCounter> Recorder<'a, C> {
    /// A recorder for the calling thread. `stop` ends it early.
    pub fn new(
        counter: C,
        settings: RecorderSettings,
        memory: Memory,
        wake_up: &'a mut dyn WakeUp,
        stop: &'a AtomicBool,
    ) -> Recorder<'a, C> {
        let rounding = settings.timeline.ticks_at_least(Span::from_nanos(1));
        let noting = settings.timeline.ticks_at_least(NOTING);
        let paused = settings.timeline.ticks_at_least(PAUSED);
        Recorder {
            counter,
            stop,
            wake_up,
            settings,
            memory,
            witness: Witness::default(),
            rounding,
            noting,
            question: None,
            paused,
            lost_below: 0,
            open: None,
            job: None,
            last: 0,
            last_cpu: 0,
            received_closed: 0,
            intervals: 0,
            migrations: 0,
            backwards: 0,
            cpus_seen: CpuWords::default(),
            fence: AffinityCheck::around(&[]),
            hit: None,
            tally: ThreadCounts::default(),
        }
    }

    /// This recorder, asking this source about every gap. It MUST be the calling thread's. A model that
    /// writes no trace has no use for them.
    pub fn asking(mut self, source: C::EvidenceSource) -> Recorder<'a, C> {
        if self.memory.lateness.is_none() {
            self.witness = Witness::with(source);
        }
        self
    }

    /// This recorder, counting intervals on other CPUs than these, which the thread was given.
    pub fn within(mut self, cpus: &[u32]) -> Recorder<'a, C> {
        self.fence = AffinityCheck::around(cpus);
        self
    }

    /// The thread was given other CPUs.
    pub(crate) fn move_to(&mut self, cpus: CpuWords) {
        self.fence.move_to(cpus);
    }

    /// Begins the thread's first interval, now. It was to run from its start on: what it lost until now is a gap, and
    /// the interval before that has no length.
    pub fn begin(&mut self) {
        let mut now = self.counter.read();
        for _ in 0..MOST_GAPS_IN_A_ROW {
            self.witness.begin();
            let asked = self.asked_since(now, true);
            // What came while it asked is before the first interval.
            now = asked.map_or_else(|then| then, |ticks| CounterReading { ticks, ..now });
            if asked.is_ok() {
                break;
            }
        }
        let start = self.settings.start.min(self.settings.finish);
        let late = now.ticks.saturating_sub(start) > self.paused.max(self.settings.gap);
        // Models that measure wake-ups write no trace.
        let late = late && self.memory.lateness.is_none();
        self.last = if late { start } else { now.ticks };
        self.open_at(now.cpu, IntervalStart::Start, Evidence::NONE);
        if late {
            self.note_gap_with(now, IntervalStart::Gap, Evidence::NONE);
        }
    }

    /// When the thread was to start, on the counter: the origin of its periods.
    pub fn start(&self) -> u64 {
        self.settings.start
    }

    /// When the thread's time is over, on the counter.
    pub fn finish_at(&self) -> u64 {
        self.settings.finish
    }

    /// The last moment at which the thread was seen to run.
    pub fn now(&self) -> u64 {
        self.last
    }

    pub fn timeline(&self) -> &Timeline {
        &self.settings.timeline
    }

    /// Runs `work` until the thread has received `amount` of processor time from now, counted in
    /// its own gap-free intervals: never less.
    #[inline(always)]
    pub fn receive(&mut self, amount: Span, work: &mut impl Work) -> RecordingEnd {
        let ticks = self.settings.timeline.ticks_at_least(amount).saturating_add(self.rounding);
        self.watch(ticks, work)
    }

    /// Runs `work` until the thread's time is over.
    #[inline(always)]
    pub fn receive_all(&mut self, work: &mut impl Work) {
        let _ = self.watch(u64::MAX, work);
    }

    /// The loop of Figure 2. `wanted` is in ticks.
    #[inline(always)]
    fn watch(&mut self, wanted: u64, work: &mut impl Work) -> RecordingEnd {
        if !self.ensure_open() {
            return RecordingEnd::TimeOver;
        }
        // What passed since the last read was the thread's own, or else is noted as a gap.
        let (received, intervals) = (self.received(), self.intervals);
        self.catch_up();
        let wanted = wanted
            .saturating_sub(self.received() - received)
            .saturating_add(self.rounding_since(intervals));
        let (gap, finish, charge) = (self.settings.gap, self.settings.finish, self.settings.charge);
        let mut cpu = self.last_cpu;
        let mut last = self.last;
        let mut target = last.saturating_add(wanted);
        let mut until = target.min(finish).min(last.saturating_add(charge));
        loop {
            while last < until && !self.stop.load(Ordering::Relaxed) {
                work.step();
                let now = self.counter.read();
                if now.ticks.saturating_sub(last) > gap || now.cpu != cpu {
                    self.last = last;
                    let intervals = self.intervals;
                    let lost = self.interrupted(now, IntervalStart::Gap);
                    target =
                        target.saturating_add(lost).saturating_add(self.rounding_since(intervals));
                    cpu = self.last_cpu;
                    last = self.last;
                    until = target.min(finish).min(last.saturating_add(charge));
                } else {
                    // Behind only on a CPU whose counter is, until it has caught up.
                    last = now.ticks.max(last);
                }
            }
            if last >= target.min(finish) || self.stop.load(Ordering::Relaxed) {
                break;
            }
            self.last = last;
            let intervals = self.intervals;
            let lost = self.be_charged();
            target = target.saturating_add(lost).saturating_add(self.rounding_since(intervals));
            cpu = self.last_cpu;
            last = self.last;
            until = target.min(finish).min(last.saturating_add(charge));
        }
        self.last = last;
        // What was received in full at the very last moment still counts; the caller's next call
        // tells it that its time is over.
        if last >= target { RecordingEnd::Done } else { RecordingEnd::TimeOver }
    }

    /// Has the kernel charge what the thread has run: it does when it is asked for that time. A thread
    /// that has used up a budget waits there for the next one. Returns what was lost to gaps, in ticks.
    #[inline(never)]
    fn be_charged(&mut self) -> u64 {
        self.witness.makes_system_calls();
        let _ = now_ns(ClockId::ThreadCpu);
        self.catch_up()
    }

    pub fn is_over(&self) -> bool {
        self.last >= self.settings.finish || self.stop.load(Ordering::Relaxed)
    }

    /// Ends the interval and blocks until `due` (on the counter) by the thread's wake-up method.
    /// Returns at once if that has passed. Never returns `JobCounter` early.
    pub fn wait_until(&mut self, due: u64) -> RecordingEnd {
        if self.open.is_some() {
            self.catch_up();
        }
        if self.last < due {
            self.close();
        }
        self.witness.makes_system_calls();
        let mut now = CounterReading { ticks: self.last, cpu: self.last_cpu };
        while now.ticks < due && !self.is_over_at(now.ticks) {
            // A wake-up beyond the end of the thread's time would only delay the end of the run.
            let alarm_at = due.min(self.settings.finish);
            let now_ns = now_ns(ClockId::Monotonic);
            let ahead = self.settings.timeline.ns_in(alarm_at - now.ticks);
            self.wake_up.wait(WakeUpTime {
                now_ns,
                due_ns: now_ns.saturating_add(ahead),
                epoch_ns: self.settings.timeline.epoch.monotonic_ns,
            });
            now = self.counter.read();
        }
        if now.ticks < due || self.is_over_at(now.ticks) {
            self.last = now.ticks.clamp(self.last, self.settings.finish.max(self.last));
            return RecordingEnd::TimeOver;
        }
        self.last = now.ticks.max(self.last);
        if self.open.is_none() {
            self.open_behind_wait(now);
        }
        RecordingEnd::Done
    }

    /// Ends recording: an interval still open is written.
    pub fn end(mut self) -> Recording {
        self.close();
        if let (Some(jobs), Some(job)) = (&mut self.memory.jobs, self.job) {
            jobs.unfinished = Some(job);
        }
        Recording {
            trace: self.memory.trace,
            lateness: self.memory.lateness,
            wakes: self.memory.wakes,
            jobs: self.memory.jobs,
            gaps: self.memory.gaps,
            long_gaps: self.memory.long_gaps,
            intervals: self.intervals,
            received: self.received_closed,
            migrations: self.migrations,
            backwards: self.backwards,
            cpus_seen: cpus_in(&self.cpus_seen),
            strayed: self.fence.strayed,
            tally: self.tally,
            end: self.last,
            hit: self.hit,
        }
    }

    fn is_over_at(&self, ticks: u64) -> bool {
        ticks >= self.settings.finish || self.stop.load(Ordering::Relaxed)
    }

    /// Opens an interval if the model's last wait left none. Whether there is time for one.
    fn ensure_open(&mut self) -> bool {
        if self.open.is_none() && !self.is_over() {
            let now = self.counter.read();
            self.last = now.ticks.max(self.last);
            if !self.is_over() {
                self.open_behind_wait(now);
            }
        }
        self.open.is_some()
    }

    /// What must pass in addition so that the intervals that ended since there were `intervals`
    /// do not fall short when they are rounded to ns.
    fn rounding_since(&self, intervals: u64) -> u64 {
        self.rounding.saturating_mul(self.intervals - intervals)
    }

    /// How long what the thread does of its own between two looks may take, in ticks.
    fn settling(&self) -> u64 {
        self.noting.saturating_add(self.settings.gap)
    }

    /// Received time so far, in ticks.
    fn received(&self) -> u64 {
        let running = self.open.map_or(0, |open| self.last - open.start);
        self.received_closed + running
    }

    /// Begins an interval at the last moment seen.
    fn open_at(&mut self, cpu: u32, onset: IntervalStart, evidence: Evidence) {
        if let Some(word) = self.cpus_seen.get_mut((cpu / 64) as usize) {
            *word |= 1 << (cpu % 64);
        }
        self.migrations += u64::from(onset != IntervalStart::Start && self.last_cpu != cpu);
        self.fence.enter(self.last, self.last_cpu, cpu);
        self.last_cpu = cpu;
        self.open = Some(CurrentInterval { start: self.last, cpu, onset, evidence });
    }

    /// Ends the open interval at the last moment seen.
    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.received_closed += self.last - open.start;
            self.fence.leave(open.cpu, self.last - open.start);
            self.intervals += 1;
            if self.memory.lateness.is_none() {
                let record =
                    Record::new(open.start, self.last, open.cpu, open.onset, open.evidence);
                self.memory.trace.push(record);
            }
        }
    }
}

pub(crate) fn cpus_in(words: &CpuWords) -> Vec<u32> {
    (0u32..)
        .zip(words)
        .flat_map(|(i, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| i * 64 + bit)
        })
        .collect()
}
