//! What a run is asked to do.

use std::fs::File;
use std::sync::{Arc, Weak};

use hourglass_documents::{CpuSet, Policy, Reservation};
use hourglass_time::Span;
use thiserror::Error;

use crate::buckets::Steps;
use crate::buffer::Record;
use crate::guard::Guard;
use crate::jobs::JobTiming;
use crate::long_gaps::LongGaps;
use crate::models::{self, Model};
use crate::wake::{self, WakeUpMethod};

/// Most threads in one run; the trace could hold more, but no machine shows anything with them.
pub const MOST_THREADS: usize = 4096;

/// What a thread needs beside its records: histograms of gaps and of lateness, and a stack.
const BYTES_PER_THREAD: u64 = 640 << 10;

/// The paper's default duration of a run.
pub const DEFAULT_DURATION: Span = Span::from_secs(10);

/// The paper's default size of the trace, in records.
pub const DEFAULT_RECORDS: u64 = 300_000;

#[derive(Clone, Debug)]
pub struct RunSpec {
    /// How long to measure (`-d`).
    pub duration: Span,
    /// Records of all threads together (`-e`).
    pub records: u64,
    /// Whether a full buffer keeps the newest records (`--ring`).
    pub ring: bool,
    /// How long each thread runs its loop before the run begins (`--warm-up`).
    pub warm_up: Span,
    /// Start of the random sequences (`--seed`).
    pub seed: u64,
    /// Whether to go on, degraded, where the machine refuses something (`--best-effort`).
    pub best_effort: bool,
    /// What ends the run early from within, and what it counts beyond limits.
    pub guard: Guard,
    /// Where the calling thread watches; if `None`, on the CPUs that no thread uses, or not at
    /// all (`--mainaffinity` of `latency`).
    pub watch_on: Option<CpuSet>,
    /// Whether SIGUSR1 asks how the run goes.
    pub snapshots: bool,
    /// Whether the run's zero lies on a whole second of `CLOCK_REALTIME`.
    pub whole_second: bool,
    /// Whether models that measure lateness also keep when each wake-up took place.
    pub wake_times: bool,
    /// Where models that measure lateness mark the latest wake-ups: the kernel's trace.
    pub marker: Option<Weak<File>>,
    /// The threads, in the order of their numbers.
    pub threads: Vec<ThreadSpec>,
}

#[derive(Clone, Debug)]
pub struct ThreadSpec {
    pub name: Option<String>,
    /// What it does (`-w`).
    pub model: Arc<dyn Model>,
    /// What wakes it (`-i`).
    pub wake: Arc<dyn WakeUpMethod>,
    /// Its scheduling policy (`-p`).
    pub policy: Policy,
    /// Whether `policy` came from one of the paper's names or by default. The nice values of
    /// names mean something only relative to each other, so they may be shifted together.
    pub policy_is_named: bool,
    /// Its reservation (`-rh`, `-rs`).
    pub reservation: Option<Reservation>,
    /// CPUs on which it may run; all that the process may use if `None` (`--cpu`).
    pub cpus: Option<CpuSet>,
    /// When it starts, counted from the run's start (`-s`).
    pub start: Span,
    /// When it ends; with the run if `None` (`-f`).
    pub finish: Option<Span>,
    /// Gaps longer than this are recorded; measured if `None` (`--gap`).
    pub gap: Option<Span>,
    /// How many jobs are kept one by one, for models that have jobs.
    pub jobs: usize,
    /// Steps in which its wake-ups, or where it measures none, its gaps are counted, too.
    pub steps: Option<Steps>,
}

impl ThreadSpec {
    /// When the thread ends, counted from the run's start.
    pub fn finish_in(&self, run: Span) -> Span {
        self.finish.map_or(run, |finish| finish.min(run))
    }
}

/// The paper's defaults: cpu-bound, native timers, normal priority.
impl Default for ThreadSpec {
    fn default() -> ThreadSpec {
        ThreadSpec {
            name: None,
            model: models::default_model(),
            wake: wake::default_method(),
            policy: Policy::Other(0),
            policy_is_named: true,
            reservation: None,
            cpus: None,
            start: Span::ZERO,
            finish: None,
            gap: None,
            jobs: 0,
            steps: None,
        }
    }
}

/// A run that contradicts itself. Each variant names the option at fault.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SpecError {
    #[error("-n must be from 1 to {MOST_THREADS}, not {0}")]
    Threads(usize),
    #[error("-d must be above zero")]
    NoDuration,
    #[error("-e {records} leaves no record for each of {threads} threads")]
    Records { records: u64, threads: usize },
    #[error("thread {thread}: {option} must not be negative")]
    Negative { thread: usize, option: &'static str },
    #[error("thread {thread}: it finishes ({finish}) before it starts ({start})")]
    NeverRuns { thread: usize, start: Span, finish: Span },
    #[error("thread {0}: --gap must be above zero")]
    Gap(usize),
    /// A policy beside a reservation, which is a policy itself.
    #[error(
        "thread {thread}: -p {policy} contradicts its reservation, which runs in the deadline \
         class; drop one of them"
    )]
    PolicyAndReservation { thread: usize, policy: Policy },
    #[error("{0} must not be negative")]
    Limit(&'static str),
    #[error("timer {timer} can be used by {most} thread of a run, not by {users}")]
    TimerShared { timer: String, most: usize, users: usize },
    #[error(
        "thread {0}: -p DEADLINE needs times; give -rh AMOUNT PERIOD, or a workload with a fixed \
         amount and period"
    )]
    DeadlineWithoutTimes(usize),
}

impl RunSpec {
    pub fn new(threads: Vec<ThreadSpec>) -> RunSpec {
        RunSpec {
            duration: DEFAULT_DURATION,
            records: DEFAULT_RECORDS,
            ring: false,
            warm_up: Span::ZERO,
            seed: 0,
            best_effort: false,
            guard: Guard::default(),
            watch_on: None,
            snapshots: false,
            whole_second: false,
            wake_times: false,
            marker: None,
            threads,
        }
    }

    /// Memory that the run allocates and locks before it begins, in bytes, saturating.
    pub fn memory_bytes(&self) -> u64 {
        // Times of wake-ups take the same room as their lateness.
        let times = if self.wake_times { 2 } else { 1 };
        let records = self.records.saturating_mul(times * size_of::<Record>() as u64);
        let gaps = LongGaps::bytes(LongGaps::room_for(self.duration));
        let threads =
            (self.threads.len() as u64).saturating_mul(gaps.saturating_add(BYTES_PER_THREAD));
        let records = records.saturating_add(threads);
        let jobs = |thread: &ThreadSpec| thread.jobs.saturating_mul(size_of::<JobTiming>());
        let steps = |thread: &ThreadSpec| {
            thread.steps.map_or(0, |steps| steps.count.saturating_mul(2 * size_of::<u64>()))
        };
        let own = |thread: &ThreadSpec| {
            let bytes = thread.model.demand().bytes.saturating_add(jobs(thread));
            bytes.saturating_add(steps(thread))
        };
        self.threads.iter().map(|thread| own(thread) as u64).fold(records, u64::saturating_add)
    }

    /// Checks the run for contradictions. [`crate::run()`] takes only what passes here.
    ///
    /// # Errors
    /// The first contradiction found.
    pub fn check(&self) -> Result<(), SpecError> {
        let threads = self.threads.len();
        if !(1..=MOST_THREADS).contains(&threads) {
            return Err(SpecError::Threads(threads));
        }
        if self.duration <= Span::ZERO {
            return Err(SpecError::NoDuration);
        }
        if self.warm_up.is_negative() {
            return Err(SpecError::Negative { thread: 0, option: "--warm-up" });
        }
        if self.records < threads as u64 {
            return Err(SpecError::Records { records: self.records, threads });
        }
        for (option, limit) in [
            ("--stop-on-gap", self.guard.stop_on_gap),
            ("--stop-on-latency", self.guard.stop_on_latency),
        ] {
            if limit.is_some_and(Span::is_negative) {
                return Err(SpecError::Limit(option));
            }
        }
        self.check_timers()?;
        self.threads.iter().enumerate().try_for_each(|(i, thread)| self.check_thread(i, thread))
    }

    fn check_timers(&self) -> Result<(), SpecError> {
        for thread in &self.threads {
            let Some(most) = thread.wake.most_users() else { continue };
            let timer = thread.wake.to_string();
            let users = self.threads.iter().filter(|t| t.wake.to_string() == timer).count();
            if users > most {
                return Err(SpecError::TimerShared { timer, most, users });
            }
        }
        Ok(())
    }

    fn check_thread(&self, number: usize, thread: &ThreadSpec) -> Result<(), SpecError> {
        for (option, span) in [("-s", Some(thread.start)), ("-f", thread.finish)] {
            if span.is_some_and(Span::is_negative) {
                return Err(SpecError::Negative { thread: number, option });
            }
        }
        let (start, finish) = (thread.start, thread.finish_in(self.duration));
        if finish <= start {
            return Err(SpecError::NeverRuns { thread: number, start, finish });
        }
        if thread.gap.is_some_and(|gap| gap <= Span::ZERO) {
            return Err(SpecError::Gap(number));
        }
        match (thread.policy, thread.reservation) {
            (Policy::Deadline, None) if thread.deadline_reservation().is_none() => {
                Err(SpecError::DeadlineWithoutTimes(number))
            }
            (Policy::Deadline, _) | (_, None) => Ok(()),
            // The paper's time-sharing priorities may stand beside a reservation, as what the
            // thread is without it.
            (Policy::Other(_) | Policy::Idle, Some(_)) if thread.policy_is_named => Ok(()),
            (policy, Some(_)) => Err(SpecError::PolicyAndReservation { thread: number, policy }),
        }
    }
}

impl ThreadSpec {
    /// The reservation to ask for: the one given, or for `-p DEADLINE` the workload's own amount
    /// and period.
    pub fn deadline_reservation(&self) -> Option<Reservation> {
        if self.reservation.is_some() || self.policy != Policy::Deadline {
            return self.reservation;
        }
        let demand = self.model.demand();
        let (amount, period) = (demand.longest?, demand.period?);
        Reservation::new(amount, period, hourglass_documents::ReservationKind::Hard).ok()
    }
}
