//! A loop of the user's own, an audio callback or a robot's control, that marks its periods.
//!
//! Owns: the handle, the account of its periods, what a run of it measured. Must not: wait for it,
//! choose its policy or its CPUs, allocate or lock between two marks; write anything (`measure` does).

use std::sync::atomic::AtomicBool;

use hourglass_clock::{Choice, Pair};
use hourglass_documents::document::{Deadlines, KernelAccount};
use hourglass_documents::manifest::MemoryFacts;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::memory::has_room;
use hourglass_sys::rseq::{self, ClearRule, RseqUnusable};
use hourglass_sys::thread as os;
use hourglass_time::Span;
use thiserror::Error;

use crate::buffer::Record;
use crate::gap_evidence::ThreadEvidence;
use crate::jobs::{JobTerms, JobTiming};
use crate::measuring_counter::{AnyCounter, MeasuringCounter, with_counter, with_recorder};
use crate::memory::Memory;
use crate::recorder::{AnyRecorder, Recorder, RecorderSettings, cpus_in};
use crate::run::{RunMeasurement, ThreadOutcome, calibrate, conclude};
use crate::spec::DEFAULT_RECORDS;
use crate::thread::{account, difference, wrap};
use crate::timeline::Timeline;
use crate::wake::{WakeUp, WakeUpTime};
use begins::{LoopBegins, LoopConditions};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopSpec {
    pub name: String,
    pub period: Span,
    /// From the time at which a period was due to the time at which it must be done; the period
    /// itself if `None`.
    pub deadline: Option<Span>,
    /// Two marks further apart than this are a gap, whatever lay between them: for loops that call
    /// [`OwnLoop::check`] often. `None` leaves gaps to what kernel and CPU clock say.
    pub gap: Option<Span>,
    /// Room for this many intervals: one a period, and one more for each gap (two more for a late begin). As many begins
    /// are kept one by one.
    pub records: u64,
    /// Whether a full buffer keeps the newest.
    pub ring: bool,
    /// How many periods are kept one by one. With 0, a run that is kept in a folder keeps as many as a limited room holds.
    pub jobs: usize,
}

impl LoopSpec {
    pub fn every(name: &str, period: Span) -> LoopSpec {
        LoopSpec {
            name: name.to_owned(),
            period,
            deadline: None,
            gap: None,
            records: DEFAULT_RECORDS,
            ring: false,
            jobs: 0,
        }
    }

    fn terms(&self) -> JobTerms {
        let deadline = self.deadline.unwrap_or(self.period);
        JobTerms { deadline: Some(deadline), grid: Some(self.period), until_end: false }
    }

    /// What intervals, begins and periods take, bytes.
    fn bytes(&self) -> u128 {
        let of = |count: u128, size: usize| count.saturating_mul(size as u128);
        let records = of(self.records.into(), size_of::<Record>() + 2 * size_of::<u64>());
        records.saturating_add(of(self.jobs as u128, size_of::<JobTiming>()))
    }

    /// Checks the specification for contradictions.
    ///
    /// # Errors
    /// The first contradiction found.
    pub fn check(&self) -> Result<(), LoopError> {
        let times = [("period", Some(self.period)), ("deadline", self.deadline), ("gap", self.gap)];
        for (name, time) in times {
            if time.is_some_and(|time| time <= Span::ZERO) {
                return Err(LoopError::NotPositive(name));
            }
        }
        if self.records == 0 {
            return Err(LoopError::NotPositive("records"));
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LoopError {
    /// A number of the specification that must be above zero.
    #[error("{0} must be above zero")]
    NotPositive(&'static str),
    #[error("the counter {0} does not advance")]
    Counter(&'static str),
    #[error(
        "room for {records} intervals and {jobs} periods is more memory than there is: give less, \
         or a ring of fewer"
    )]
    Memory { records: u64, jobs: usize },
}

/// What was measured of a loop.
#[derive(Debug)]
pub struct LoopMeasurement {
    pub measured: RunMeasurement,
    pub changed: Option<LoopChange>,
}

/// Policy and CPUs of a loop's thread in the end, where they are not those of its first period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopChange {
    pub policy: String,
    pub cpus: Vec<u32>,
}

/// A loop that is being measured. It belongs to the thread that started it.
///
/// The marks may come in any order: a period begins where none had, ends where one had begun, and a
/// mark that does not fit changes nothing. None of them allocates, takes a lock, or waits; each costs
/// some tens of nanoseconds, and the first of a period, or one behind a gap, up to four system calls
/// (CPU clock, counters and schedstat of the thread), one to two microseconds.
pub struct OwnLoop {
    recorder: AnyRecorder<'static>,
    account: LoopAccount,
    spec: LoopSpec,
    choice: Choice,
    counter: AnyCounter,
    first: Pair,
    timeline: Timeline,
    tested: Result<ClearRule, RseqUnusable>,
    memory: MemoryFacts,
    kernel: Option<KernelAccount>,
}

impl OwnLoop {
    /// Makes everything ready: allocates and touches the room for records, locks it if it may,
    /// calibrates the counter, tests what the thread can find out about its gaps. Takes some 25 ms.
    /// CPUs and policy are the caller's, and should be set before the first period begins.
    pub fn start(spec: LoopSpec, choice: Choice) -> Result<OwnLoop, LoopError> {
        spec.check()?;
        if !has_room(spec.bytes()) {
            return Err(LoopError::Memory { records: spec.records, jobs: spec.jobs });
        }
        let counter = AnyCounter::from(choice.kind);
        let first = counter.pair();
        let memory =
            Memory::new(usize::try_from(spec.records).unwrap_or(usize::MAX), spec.ring, false)
                .with_jobs(spec.jobs, spec.terms())
                .with_long_gaps(LONG_GAPS);
        let facts = locked(&memory);
        let tested = rseq::self_test_of_every_switch();
        let calibration = calibrate(counter, first).ok_or(LoopError::Counter(counter.name()))?;
        let realtime_ns = now_ns(ClockId::Realtime);
        let timeline = Timeline::starting(counter.pair(), realtime_ns, Span::ZERO, calibration);
        let settings = RecorderSettings {
            gap: spec.gap.map_or(u64::MAX, |gap| timeline.ticks_at_least(gap)),
            timeline,
            start: timeline.epoch.ticks,
            finish: u64::MAX,
            stop_gap: u64::MAX,
            stop_late: u64::MAX,
            live: None,
            charge: u64::MAX,
        };
        let source = ThreadEvidence::open(&tested).counting_waits();
        let kernel = account();
        // Of no size, so that nothing is leaked.
        let sleepless = Box::leak(Box::new(NoWakeUp));
        let mut recorder = with_counter!(counter, counter => {
            let recorder = Recorder::new(counter, settings, memory, sleepless, &NEVER);
            wrap(recorder.asking(source).within(&os::affinity().unwrap_or_default()))
        });
        with_recorder!(&mut recorder, r => r.await_marks());
        let account = LoopAccount::new(&spec, timeline);
        Ok(OwnLoop {
            recorder,
            account,
            spec,
            choice,
            counter,
            first,
            timeline,
            tested,
            memory: facts,
            kernel,
        })
    }

    pub fn spec(&self) -> &LoopSpec {
        &self.spec
    }

    /// A period begins, and was due now. One that has not ended, ends.
    #[inline]
    pub fn begin_period(&mut self) {
        let account = &mut self.account;
        with_recorder!(&mut self.recorder, r => begin(r, account, None));
    }

    /// Begins a period that was due at `due_ns` of `CLOCK_MONOTONIC`: its deadline counts from
    /// there, so that a late wake-up leaves less time. How late it begins is recorded, and what others took of that
    /// is a gap.
    #[inline]
    pub fn begin_period_due(&mut self, due_ns: u64) {
        let rate = self.timeline.calibration.rate;
        let ns = due_ns.saturating_sub(self.timeline.epoch.monotonic_ns);
        let due = self.timeline.epoch.ticks.saturating_add(rate.ticks_ceil(ns));
        let account = &mut self.account;
        with_recorder!(&mut self.recorder, r => begin(r, account, Some(due)));
    }

    /// Within a period: makes known that the thread runs. The closer the checks, the closer is it
    /// known where a gap was.
    #[inline]
    pub fn check(&mut self) {
        with_recorder!(&mut self.recorder, r => r.mark());
    }

    /// The period is done. The thread may wait now, by whatever means.
    #[inline]
    pub fn end_period(&mut self) {
        let account = &mut self.account;
        with_recorder!(&mut self.recorder, r => end(r, account));
    }

    /// What was counted so far. The period at hand is not among it.
    pub fn deadlines(&self) -> Deadlines {
        self.account.deadlines.counted
    }

    /// Ends measuring. A period that has begun and is not done counts as missed if its deadline has
    /// passed, else not at all.
    pub fn finish(self) -> LoopMeasurement {
        let OwnLoop { mut recorder, account, .. } = self;
        let LoopAccount { mut deadlines, begins } = account;
        with_recorder!(&mut recorder, r => {
            r.pause();
            deadlines.close(r.now());
            r.tally.deadlines = Some(deadlines.counted);
        });
        let kernel = self.kernel.zip(crate::thread::account());
        let mut recorded = with_recorder!(recorder, r => r.end());
        let conditions = begins.first.unwrap_or_else(LoopConditions::now);
        let changed = begins
            .changed()
            .map(|last| LoopChange { policy: last.policy(), cpus: cpus_in(&last.cpus) });
        (recorded.lateness, recorded.wakes) = begins.into_latencies();
        let outcome = ThreadOutcome {
            id: 0,
            tid: os::id(),
            policy: conditions.policy(),
            cpus: cpus_in(&conditions.cpus),
            cpus_at_end: Vec::new(),
            emulated: None,
            gap: self.spec.gap.map_or(0, |gap| self.timeline.ticks_at_least(gap)),
            typical_iteration: 0,
            start: self.timeline.epoch.ticks,
            finish: recorded.end,
            recorded,
            kernel: kernel.map(|(before, after)| difference(before, after)),
        };
        let Timeline { calibration, .. } = self.timeline;
        let measured = conclude(
            self.choice,
            self.counter,
            self.first,
            self.timeline,
            calibration,
            vec![outcome],
            self.tested,
            self.memory,
        );
        LoopMeasurement { measured: RunMeasurement { interrupted: None, ..measured }, changed }
    }
}

impl std::fmt::Debug for OwnLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnLoop")
            .field("spec", &self.spec)
            .field("counted", &self.deadlines())
            .finish_non_exhaustive()
    }
}

/// Long gaps that have room beside the trace; the length of the loop is not known beforehand.
const LONG_GAPS: usize = 16_384;

static NEVER: AtomicBool = AtomicBool::new(false);

/// Never asked: the loop waits by its own means.
struct NoWakeUp;

impl WakeUp for NoWakeUp {
    fn wait(&mut self, _alarm: WakeUpTime) {}
}

/// Locks the buffers, as far as the limit allows; the rest of the process is its owner's.
fn locked(memory: &Memory) -> MemoryFacts {
    let (bytes, locked) = memory.lock();
    let bytes = bytes as u64;
    match locked {
        Ok(()) => MemoryFacts { buffers_locked_bytes: bytes, ..MemoryFacts::default() },
        Err(_) => MemoryFacts { buffers_unlocked_bytes: bytes, ..MemoryFacts::default() },
    }
}

#[derive(Debug)]
struct LoopAccount {
    deadlines: DeadlineCounter,
    begins: LoopBegins,
}

impl LoopAccount {
    fn new(spec: &LoopSpec, timeline: Timeline) -> LoopAccount {
        let deadlines = DeadlineCounter::new(spec, &timeline);
        LoopAccount { deadlines, begins: LoopBegins::new(spec, timeline) }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct DeadlineCounter {
    /// In ticks, as are the other times.
    period: u64,
    deadline: u64,
    /// When the period at hand, or the last one, was due.
    due_at: u64,
    /// The point of the grid to which it belongs; `None` before the first.
    nominal: Option<u64>,
    running: bool,
    counted: Deadlines,
}

impl DeadlineCounter {
    fn new(spec: &LoopSpec, timeline: &Timeline) -> DeadlineCounter {
        let ticks = |span: Span| timeline.calibration.rate.ticks_ceil(span.nanos_or_zero()).max(1);
        let deadline = ticks(spec.deadline.unwrap_or(spec.period));
        DeadlineCounter { period: ticks(spec.period), deadline, ..DeadlineCounter::default() }
    }

    /// A period was due. Which one it is follows from the grid, to the nearest; those between it and
    /// the one before are lost. A loop that catches up comes more than once at a point of the grid: what
    /// seemed lost was only late.
    fn begin(&mut self, due: u64) {
        /// The grid follows the loop by this part of what it is off, so that a loop whose clock is not
        /// ours does not lose a period for every one that the clocks drift apart.
        const FOLLOWS: i64 = 16;
        let before = self.nominal.unwrap_or(due);
        let off = i64::try_from(i128::from(due) - i128::from(before)).unwrap_or(i64::MAX);
        let period = i64::try_from(self.period).unwrap_or(i64::MAX);
        let passed = off.saturating_add(period / 2).div_euclid(period).max(0);
        self.counted.lost = match (self.nominal, passed) {
            (None, _) => 0,
            (Some(_), 0) => self.counted.lost.saturating_sub(1),
            (Some(_), passed) => self.counted.lost.saturating_add(passed.unsigned_abs() - 1),
        };
        let whole = passed.saturating_mul(period);
        let follow = off.saturating_sub(whole) / FOLLOWS;
        self.nominal = Some(before.saturating_add_signed(whole).saturating_add_signed(follow));
        self.due_at = due;
        self.running = true;
    }

    fn end(&mut self, now: u64) {
        if std::mem::take(&mut self.running) {
            self.counted.completed += 1;
            if self.is_late(now) {
                self.counted.missed += 1;
            } else {
                self.counted.hit += 1;
            }
        }
    }

    fn close(&mut self, now: u64) {
        if std::mem::take(&mut self.running) && self.is_late(now) {
            self.counted.missed += 1;
        }
    }

    fn is_late(&self, now: u64) -> bool {
        now > self.due_at.saturating_add(self.deadline)
    }
}

#[inline]
fn begin<C: MeasuringCounter>(
    recorder: &mut Recorder<C>,
    account: &mut LoopAccount,
    due: Option<u64>,
) {
    end(recorder, account);
    if let Some(conditions) = account.begins.look(recorder.now()) {
        recorder.move_to(conditions.cpus);
    }
    let due = match due {
        Some(due) => {
            let late = recorder.resume_due(due);
            account.begins.record(late, recorder.now());
            due
        }
        None => {
            recorder.resume();
            recorder.now()
        }
    };
    account.deadlines.begin(due);
    recorder.begin_job(due);
}

#[inline]
fn end<C: MeasuringCounter>(recorder: &mut Recorder<C>, account: &mut LoopAccount) {
    if account.deadlines.running {
        recorder.pause();
        recorder.end_job();
        account.deadlines.end(recorder.now());
    }
}

mod begins;

#[cfg(test)]
mod tests;
