//! A machine whose time is a number and whose interruptions are written down: runs the models
//! and the recorder through virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use hourglass_clock::{Calibration, Counter, CounterReading, Rate};
use hourglass_sys::rseq::SectionState;
use hourglass_sys::thread::Counters;
use hourglass_time::Span;
use hourglass_trace::{Interval, IntervalStart};

use crate::gap_evidence::EvidenceSource;
use crate::live::LiveCounters;
use crate::measuring_counter::MeasuringCounter;
use crate::memory::Memory;
use crate::models::Execution;
use crate::recorder::{Recorder, RecorderSettings, Recording};
use crate::timeline::{Epoch, Timeline};
use crate::wake::{WakeUp, WakeUpTime};

/// One tick is one nanosecond; the run begins here, so that times before it exist.
pub(crate) const EPOCH: u64 = 1_000_000;

/// Time that a read of the counter takes.
pub(crate) const STEP: u64 = 20;

/// GAP in the simulation.
pub(crate) const GAP: u64 = 50;

/// Another thread or an interrupt takes the CPU at `at` (ns from the run's start) for `length`; the
/// thread comes back on `cpu`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interruption {
    pub(crate) at: u64,
    pub(crate) length: u64,
    pub(crate) cpu: u32,
    pub(crate) by: PreemptionSource,
}

/// The cause that takes the CPU, as far as the thread can find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PreemptionSource {
    /// Another thread: the kernel clears the critical section and counts.
    Thread,
    /// An interrupt upon which the kernel thought of a switch: cleared, and nothing counted.
    Resched,
    /// A plain interrupt, or a cause below the kernel: neither.
    Below,
}

/// Where an interruption finds the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    User,
    SystemCall,
}

#[derive(Debug, Default)]
pub(crate) struct SimulatedMachine {
    now: AtomicU64,
    cpu: AtomicU32,
    next: AtomicU64,
    interruptions: Vec<Interruption>,
    /// Whether the critical section is armed and was not cleared.
    section_armed: AtomicBool,
    /// Whether a switch inside a system call keeps it (Linux 6.19 and later).
    pub(crate) keeps_in_system_calls: bool,
    voluntary: AtomicU64,
    involuntary: AtomicU64,
    /// Time for which another thread had the CPU, or the thread waited.
    away: AtomicU64,
    /// Time for which the thread was ready and another had the CPU.
    waited: AtomicU64,
    /// What each question to the source takes.
    pub(crate) asking: u64,
    pub(crate) wake_latency: u64,
    /// A longer gap ends the run.
    pub(crate) stop_gap: Option<u64>,
    /// A later wake-up ends the run.
    pub(crate) stop_late: Option<u64>,
    /// The CPUs that the thread was given; empty for all.
    pub(crate) allowed_cpus: Vec<u32>,
    pub(crate) charge: Option<u64>,
    pub(crate) live: Option<Arc<LiveCounters>>,
}

impl SimulatedMachine {
    /// A machine at the run's start. `interruptions` in order of time.
    pub(crate) fn new(interruptions: Vec<Interruption>) -> SimulatedMachine {
        SimulatedMachine {
            now: AtomicU64::new(EPOCH),
            interruptions,
            ..SimulatedMachine::default()
        }
    }

    /// Runs `execution`, which writes a trace, for `duration` from the run's start.
    pub(crate) fn run(&self, execution: &mut impl Execution, duration: Span) -> Recording {
        self.run_with(execution, duration, Memory::new(1_000, false, false))
    }

    /// Runs `execution` with the memory given.
    pub(crate) fn run_with(
        &self,
        execution: &mut impl Execution,
        duration: Span,
        memory: Memory,
    ) -> Recording {
        let stop = AtomicBool::new(false);
        let mut bed = SimThreadSleeper(self);
        let settings = RecorderSettings {
            gap: GAP,
            timeline: timeline(),
            start: EPOCH,
            finish: EPOCH + duration.nanos_or_zero(),
            stop_gap: self.stop_gap.unwrap_or(u64::MAX),
            stop_late: self.stop_late.unwrap_or(u64::MAX),
            live: self.live.clone(),
            charge: self.charge.unwrap_or(u64::MAX),
        };
        let mut recorder = Recorder::new(self, settings, memory, &mut bed, &stop)
            .asking(self)
            .within(&self.allowed_cpus);
        recorder.begin();
        execution.run(&mut recorder);
        recorder.end()
    }

    /// The thread computes for `ns`, looking at no counter.
    pub(crate) fn compute(&self, ns: u64) {
        self.now.fetch_add(ns, Ordering::Relaxed);
    }

    /// The thread waits for `ns`, by means of its own.
    pub(crate) fn wait(&self, ns: u64) {
        self.now.fetch_add(ns, Ordering::Relaxed);
        self.away.fetch_add(ns, Ordering::Relaxed);
        self.switch_in_system_call();
        self.voluntary.fetch_add(1, Ordering::Relaxed);
    }

    /// The same, and for the last `ready` of it another thread had the CPU.
    pub(crate) fn wait_and_be_ready(&self, ns: u64, ready: u64) {
        self.wait(ns);
        self.waited.fetch_add(ready, Ordering::Relaxed);
    }

    fn switch_in_system_call(&self) {
        self.section_armed.fetch_and(self.keeps_in_system_calls, Ordering::Relaxed);
    }

    /// The thread does something that takes `ns`. An interruption whose time has come takes its length
    /// first.
    fn pass(&self, ns: u64) -> u64 {
        self.pass_in(Mode::User, ns)
    }

    fn pass_in(&self, mode: Mode, ns: u64) -> u64 {
        let mut now = self.now.load(Ordering::Relaxed) + ns;
        let next = self.next.load(Ordering::Relaxed);
        if let Some(interruption) = self.interruptions.get(next as usize)
            && now >= EPOCH + interruption.at
        {
            now += interruption.length;
            self.cpu.store(interruption.cpu, Ordering::Relaxed);
            self.next.store(next + 1, Ordering::Relaxed);
            match (interruption.by, mode) {
                (PreemptionSource::Below, _) => {}
                (PreemptionSource::Thread | PreemptionSource::Resched, Mode::User) => {
                    self.section_armed.store(false, Ordering::Relaxed)
                }
                (PreemptionSource::Thread | PreemptionSource::Resched, Mode::SystemCall) => {
                    self.switch_in_system_call()
                }
            }
            if interruption.by == PreemptionSource::Thread {
                self.involuntary.fetch_add(1, Ordering::Relaxed);
                self.away.fetch_add(interruption.length, Ordering::Relaxed);
                self.waited.fetch_add(interruption.length, Ordering::Relaxed);
            }
        }
        self.now.store(now, Ordering::Relaxed);
        now
    }

    fn ask(&self, mode: Mode) {
        if self.asking > 0 {
            self.pass_in(mode, self.asking);
        }
    }

    /// Time passes to `ticks`, unless it has.
    fn advance_to(&self, ticks: u64) {
        self.now.fetch_max(ticks, Ordering::Relaxed);
    }
}

/// Zero error and one nanosecond a tick.
pub(crate) fn timeline() -> Timeline {
    Timeline {
        epoch: Epoch { ticks: EPOCH, monotonic_ns: EPOCH, realtime_ns: 0 },
        calibration: Calibration {
            rate: Rate::NANOSECONDS,
            window_ns: 0,
            rate_error_ppb: 0,
            bracket_ns: 0,
        },
    }
}

impl Counter for &SimulatedMachine {
    const NAME: &'static str = "sim";

    /// Each read takes [`STEP`]; an interruption whose time has come takes its length first.
    fn read(&self) -> CounterReading {
        let ticks = self.pass(STEP);
        CounterReading { ticks, cpu: self.cpu.load(Ordering::Relaxed) }
    }
}

impl MeasuringCounter for &SimulatedMachine {
    type EvidenceSource = Self;
}

impl EvidenceSource for &SimulatedMachine {
    fn arm(&mut self) {
        self.ask(Mode::User);
        self.section_armed.store(true, Ordering::Relaxed);
    }

    fn section_state(&self) -> Option<SectionState> {
        self.ask(Mode::User);
        Some(if self.section_armed.load(Ordering::Relaxed) {
            SectionState::Kept
        } else {
            SectionState::Cleared
        })
    }

    fn sees_system_calls(&self) -> bool {
        !self.keeps_in_system_calls
    }

    /// Counted in the midst of the system call.
    fn counters(&self) -> Counters {
        self.ask(Mode::SystemCall);
        let counters = Counters {
            voluntary: self.voluntary.load(Ordering::Relaxed),
            involuntary: self.involuntary.load(Ordering::Relaxed),
            ..Counters::default()
        };
        self.ask(Mode::SystemCall);
        counters
    }

    fn cpu_ns(&self) -> u64 {
        self.now.load(Ordering::Relaxed) - self.away.load(Ordering::Relaxed)
    }

    fn waited_ns(&self) -> Option<u64> {
        Some(self.waited.load(Ordering::Relaxed))
    }
}

/// Where threads of the machine sleep. `now_ns` of the alarm is the real machine's clock, so only
/// the difference counts.
pub(crate) struct SimThreadSleeper<'a>(pub(crate) &'a SimulatedMachine);

impl WakeUp for SimThreadSleeper<'_> {
    fn wait(&mut self, alarm: WakeUpTime) {
        let ahead = alarm.due_ns - alarm.now_ns;
        let now = self.0.now.load(Ordering::Relaxed);
        self.0.advance_to(now + ahead + self.0.wake_latency);
        self.0.switch_in_system_call();
        self.0.voluntary.fetch_add(1, Ordering::Relaxed);
    }
}

/// The intervals of a recording, ns from the run's start.
pub(crate) fn intervals(recorded: &Recording) -> Vec<Interval> {
    let timeline = timeline();
    recorded
        .trace
        .iter()
        .map(|record| Interval {
            thread: 0,
            cpu: record.cpu,
            start_ns: timeline.ns_at(record.start),
            end_ns: timeline.ns_at(record.end),
            start_ticks: record.start,
            end_ticks: record.end,
            onset: record.onset(),
            evidence: record.evidence(),
        })
        .collect()
}

/// Lengths of forced gaps, ns, in order.
pub(crate) fn gaps(recorded: &Recording) -> Vec<i64> {
    let intervals = intervals(recorded);
    intervals
        .windows(2)
        .filter(|pair| pair[1].onset.is_gap())
        .map(|pair| pair[1].start_ns - pair[0].end_ns)
        .collect()
}

pub(crate) fn ms(ms: u64) -> u64 {
    ms * 1_000_000
}

mod evidence;
mod limits;
mod shown;
mod tests;
