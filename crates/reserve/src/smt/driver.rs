//! The monitor on this machine: a real-time thread that sleeps until slack must be looked at.
//!
//! Owns: the thread, the proof that it runs before anything is promised, how late its timers are, what
//! it costs. Must not: decide (that is [`super::monitor`]'s); spin beside the work that it protects.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hourglass_documents::reserve::SmtReport;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::sched::{self, Attributes, MayFork};
use hourglass_sys::thread;
use hourglass_time::{Instant, Monotonic};
use hourglass_timer::Sleeper;
use hourglass_timer::sleep::{
    Interrupter, SleepPolicy as Sleeping, SleeperSettings as SleepSettings,
};

use crate::progress::ProgressErrors;

use super::enforcer::{CoRunnerEnforcer, MonitoredReservation};
use super::jobs::JobReservation;
use super::monitor::{
    JobCounts, MonitorError, MonitorSettings, MonitorStatistics, SiblingPolicy, SlackCheck,
};
use super::stopper::Stopper;

/// How the monitor's thread runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorConfig {
    /// How slack is watched. The margin is what stopping takes (p99.9, ns); the lateness of timers is
    /// added by [`MonitorConfig::timer_samples`], which must be 0 where it is in the margin already
    /// ([`super::stopper::StopLatency::margin_ns`]). The smallest interval is made longer where timers are
    /// too late for it.
    pub settings: MonitorSettings,
    /// CPUs for the monitor: those of the co-runners, or any but the reserved one. Empty leaves it
    /// where the caller may run.
    pub cpus: Vec<u32>,
    /// `SCHED_FIFO` priority, 1 to 99: above the co-runners, and above reserved work that is not in the
    /// deadline class. `None` keeps the caller's policy, which promises nothing.
    pub priority: Option<u8>,
    /// Sleeps by which the lateness of timers is measured at start; its p99.9 is added to the margin.
    /// 1,000 take about 0.2 s; 0 leaves the margin as it is.
    pub timer_samples: u32,
}

impl Default for MonitorConfig {
    /// FIFO 90, anywhere, timers measured.
    fn default() -> MonitorConfig {
        MonitorConfig {
            settings: MonitorSettings::default(),
            cpus: Vec::new(),
            priority: Some(90),
            timer_samples: 1_000,
        }
    }
}

/// Why the monitor does not watch. Nothing was stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The reservations cannot be watched.
    #[error(transparent)]
    Unwatchable(#[from] MonitorError),
    /// The kernel refuses the priority.
    #[error(
        "the monitor cannot have SCHED_FIFO priority {priority} (error {errno}); run with CAP_SYS_NICE, or: ulimit -r {priority}"
    )]
    Priority {
        /// The refused priority.
        priority: u8,
        /// As `errno(3)`.
        errno: i32,
    },
    /// The kernel refuses the CPUs.
    #[error("the monitor cannot run on CPUs {cpus:?} (error {errno}); name CPUs that are online")]
    Cpus {
        /// The refused CPUs.
        cpus: Vec<u32>,
        /// As `errno(3)`.
        errno: i32,
    },
    /// It was started and did not run.
    #[error(
        "the monitor got no processor time within {0:?}; something of a higher priority holds its CPU"
    )]
    Starved(Duration),
    /// No thread could be made.
    #[error("no thread for the monitor (error {0})")]
    Thread(i32),
}

/// How late the kernel wakes the monitor's thread, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorLatency {
    /// Sleeps measured.
    pub samples: u32,
    /// Median.
    pub p50_ns: u64,
    /// The value that 99.9 % do not exceed; the largest of fewer than 1,000.
    pub p999_ns: u64,
}

/// The report of a monitor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorReport {
    /// Jobs, stops, looks.
    pub statistics: MonitorStatistics,
    /// Errors of progress.
    pub progress_errors: ProgressErrors,
    /// The policy towards co-runners.
    pub policy: SiblingPolicy,
    /// The interval at which slack is looked at, ns; `None` if it is looked at when it can be used up.
    pub interval_ns: Option<u64>,
    /// Whether the reservations leave the margin, so that the promises hold.
    pub covered: bool,
    /// The margin in use, ns: what was asked for and the lateness of timers, and what stopping took longer
    /// than was known.
    pub margin_ns: u64,
    /// The margin at start, ns.
    pub first_margin_ns: u64,
    /// How late timers were at start.
    pub lateness: MonitorLatency,
    /// Where progress is read.
    pub progress: &'static str,
    /// How co-runners are stopped.
    pub stopper: &'static str,
    /// The kernel's answer to the first order that could not be carried out.
    pub errno: Option<i32>,
    /// Processor time of the monitor's thread since it began to watch, ns.
    pub cpu_ns: u64,
    /// Time since then, ns.
    pub elapsed_ns: u64,
}

impl MonitorReport {
    /// The part of the document, with the CPUs that share with the reserved one; none means that no protection is
    /// claimed. The caller adds the co-runners and the state of the guardian.
    #[must_use]
    pub fn to_document(&self, shares: &[u32]) -> SmtReport {
        let MonitorStatistics { skipped, failed, .. } = self.statistics;
        SmtReport {
            policy: self.policy.name().to_owned(),
            interval_ns: self.interval_ns,
            protected: self.covered && !shares.is_empty() && failed == 0 && skipped == 0,
            shares: shares.to_vec(),
            progress: self.progress.to_owned(),
            stopper: (self.policy != SiblingPolicy::Ignore).then(|| self.stopper.to_owned()),
            margin_ns: self.margin_ns,
            margin_first_ns: self.first_margin_ns,
            stop_max_ns: self.statistics.stop_max_ns,
            jobs: self.statistics.jobs,
            missed: self.statistics.missed,
            idle: self.statistics.idle,
            stops: self.statistics.stops,
            stopped_ns: self.statistics.stopped_ns,
            checks: self.statistics.checks,
            backwards: self.progress_errors.backwards,
            unmoved: self.progress_errors.unmoved,
            ..SmtReport::default()
        }
    }
}

/// How long the thread has to prove that it runs, beside what it measures.
const PATIENCE: Duration = Duration::from_secs(2);
const PROOFS: u32 = 5;
/// How long each of them, and each that measures lateness, is to take, ns.
const SAMPLE_NS: u64 = 100_000;

/// A monitor at work. Ends, and resumes all co-runners, when dropped.
#[derive(Debug)]
pub struct Driver {
    thread: Option<JoinHandle<()>>,
    interrupter: Interrupter,
    latest: Arc<Mutex<Latest>>,
    reservations: Vec<JobReservation>,
}

/// `each` comes at the end.
#[derive(Debug, Default)]
struct Latest {
    report: MonitorReport,
    each: Vec<JobCounts>,
}

type Started = (Interrupter, Arc<Mutex<Latest>>, Vec<JobReservation>);

impl Driver {
    /// Starts watching. The thread takes its priority before its CPUs, and has slept and woken by
    /// itself when this returns: only then reserve, and let work begin. Periods that have begun by then
    /// are left out: [`Driver::promised`] tells where the first ones begin.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left behind.
    pub fn start(
        plan: MonitorConfig,
        watched: Vec<MonitoredReservation>,
        stopper: Box<dyn Stopper>,
    ) -> Result<Driver, StartError> {
        let (tell, receiver) = mpsc::sync_channel(0);
        // Where this is refused, the start is refused and reported too.
        let _may_fork = MayFork::enter();
        let patience = PATIENCE + Duration::from_micros(300) * plan.timer_samples;
        let body = move || watch(plan, watched, stopper, &tell);
        let thread = std::thread::Builder::new().name("hourglass-smt".to_owned()).spawn(body);
        let thread = thread.map_err(|error| StartError::Thread(errno(&error)))?;
        match receiver.recv_timeout(patience) {
            Ok(Ok((interrupter, latest, reservations))) => {
                Ok(Driver { thread: Some(thread), interrupter, latest, reservations })
            }
            Ok(Err(error)) => Err(error),
            // When the thread gets to run, it finds its channel closed, and ends.
            Err(RecvTimeoutError::Timeout) => Err(StartError::Starved(patience)),
            Err(RecvTimeoutError::Disconnected) => Err(StartError::Thread(0)),
        }
    }

    /// Whether a monitor may have its priority and its CPUs: a thread takes them and ends.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn check(plan: &MonitorConfig) -> Result<(), StartError> {
        let plan = plan.clone();
        let thread = std::thread::Builder::new().name("hourglass-smt".to_owned());
        let thread = thread.spawn(move || take_place(&plan));
        let thread = thread.map_err(|error| StartError::Thread(errno(&error)))?;
        thread.join().unwrap_or(Err(StartError::Thread(0)))
    }

    /// The watched reservations, with the begin of the first period of each on `CLOCK_MONOTONIC`.
    #[must_use]
    pub fn promised(&self) -> &[JobReservation] {
        &self.reservations
    }

    /// The counts at the end of the latest check during which no reader held the report.
    #[must_use]
    pub fn report(&self) -> MonitorReport {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).report
    }

    /// Ends watching; all co-runners run again. Returns the report.
    #[must_use]
    pub fn stop(mut self) -> MonitorReport {
        self.end();
        self.report()
    }

    /// As [`Driver::stop`], with the counts of the jobs of each reservation, in the order in which they were given.
    #[must_use]
    pub fn stop_each(mut self) -> (MonitorReport, Vec<JobCounts>) {
        self.end();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        (latest.report, std::mem::take(&mut latest.each))
    }

    fn end(&mut self) {
        self.interrupter.interrupt();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has dropped what it held, and so resumed all.
            let _ = thread.join();
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.end();
    }
}

fn watch(
    plan: MonitorConfig,
    watched: Vec<MonitoredReservation>,
    stopper: Box<dyn Stopper>,
    tell: &SyncSender<Result<Started, StartError>>,
) {
    let (mut watch, promised) = match Watch::prepare(plan, watched, stopper) {
        Ok(ready) => ready,
        Err(error) => {
            // If the receiver is gone, the error is not needed any more.
            let _ = tell.send(Err(error));
            return;
        }
    };
    let started = (watch.sleeper.interrupter(), Arc::clone(&watch.latest), promised);
    if tell.send(Ok(started)).is_ok() {
        watch.run();
    }
}

struct Watch {
    enforcer: CoRunnerEnforcer,
    sleeper: Sleeper,
    lateness: MonitorLatency,
    covered: bool,
    /// The margin at start, and the one with which `covered` is true.
    margins: (u64, u64),
    latest: Arc<Mutex<Latest>>,
    /// Time and processor time when watching began.
    begun: (u64, u64),
}

impl Watch {
    fn prepare(
        plan: MonitorConfig,
        mut watched: Vec<MonitoredReservation>,
        stopper: Box<dyn Stopper>,
    ) -> Result<(Watch, Vec<JobReservation>), StartError> {
        take_place(&plan)?;
        let mut sleeper = Sleeper::with(SleepSettings::with_policy(Sleeping::KernelOnly));
        let lateness = lateness(&mut sleeper, plan.timer_samples.max(PROOFS));
        let mut settings = plan.settings;
        if plan.timer_samples > 0 {
            settings.margin_ns = settings.margin_ns.saturating_add(lateness.p999_ns);
        }
        settings.smallest_ns = smallest_ns(settings.smallest_ns, lateness);
        if let SlackCheck::Fixed(interval) = &mut settings.checks {
            // Shorter ones the monitor would mostly spend on itself; 0 is refused.
            if *interval > 0 {
                *interval = (*interval).max(settings.smallest_ns);
            }
        }
        let now = sleeper.now_ns();
        for each in &mut watched {
            each.reservation = each.reservation.after(now);
        }
        let promised = watched.iter().map(|each| each.reservation).collect();
        let enforcer = CoRunnerEnforcer::new(settings, watched, stopper)?;
        let begun = (now, now_ns(ClockId::ThreadCpu));
        let covered = enforcer.monitor.is_covered();
        let margins = (enforcer.monitor.settings.margin_ns, enforcer.monitor.settings.margin_ns);
        let latest = Arc::default();
        let watch = Watch { enforcer, sleeper, lateness, covered, margins, latest, begun };
        watch.tell_all();
        Ok((watch, promised))
    }

    fn run(&mut self) {
        let mut next = self.enforcer.monitor.next_ns;
        while !self.sleeper.sleep_until(instant(next)).interrupted {
            next = self.enforcer.enforce(self.sleeper.now_ns());
            let margin_ns = self.enforcer.monitor.settings.margin_ns;
            if margin_ns != self.margins.1 {
                self.margins.1 = margin_ns;
                self.covered &= self.enforcer.monitor.is_covered();
            }
            let report = self.report();
            // A concurrent reader gets this with the next check.
            if let Ok(mut latest) = self.latest.try_lock() {
                latest.report = report;
            }
        }
        // The guardian resumes those that cannot be resumed here; the report says so.
        let _ = self.enforcer.end(self.sleeper.now_ns());
        self.tell_all();
    }

    fn tell_all(&self) {
        let each = self.enforcer.monitor.job_counts().collect();
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) =
            Latest { report: self.report(), each };
    }

    fn report(&self) -> MonitorReport {
        let (monitor, settings) = (&self.enforcer.monitor, &self.enforcer.monitor.settings);
        let (time, cpu) = self.begun;
        MonitorReport {
            statistics: monitor.statistics,
            progress_errors: monitor.doubts(),
            policy: settings.policy,
            interval_ns: match settings.checks {
                SlackCheck::Fixed(interval) => Some(interval),
                SlackCheck::Variable => None,
            },
            covered: self.covered,
            margin_ns: settings.margin_ns,
            first_margin_ns: self.margins.0,
            lateness: self.lateness,
            progress: monitor.progress_name(),
            stopper: self.enforcer.stopper.name(),
            errno: self.enforcer.errno,
            cpu_ns: now_ns(ClockId::ThreadCpu).saturating_sub(cpu),
            elapsed_ns: self.sleeper.now_ns().saturating_sub(time),
        }
    }
}

/// Priority first: on a CPU that co-runners fill, a thread without it would wait for them.
fn take_place(plan: &MonitorConfig) -> Result<(), StartError> {
    if let Some(priority) = plan.priority {
        sched::set(Attributes::Fifo(priority))
            .map_err(|error| StartError::Priority { priority, errno: errno(&error) })?;
    }
    if plan.cpus.is_empty() {
        return Ok(());
    }
    thread::set_affinity(plan.cpus.iter().copied())
        .map_err(|error| StartError::Cpus { cpus: plan.cpus.clone(), errno: errno(&error) })
}

fn lateness(sleeper: &mut Sleeper, samples: u32) -> MonitorLatency {
    let mut late: Vec<u64> = (0..samples).map(|_| sleeper.sleep_ns(SAMPLE_NS).miss_ns()).collect();
    late.sort_unstable();
    let rank = |permille: usize| {
        let place = (permille * late.len()).div_ceil(1_000).saturating_sub(1);
        late.get(place).copied().unwrap_or(0)
    };
    MonitorLatency { samples, p50_ns: rank(500), p999_ns: rank(999) }
}

/// The smallest interval worth waiting for: no less than was asked for, and more than timers are usually
/// late. After shorter ones co-runners would stand for longer, while the monitor is on their CPU, than they
/// would run; and slack, which is not used up meanwhile, would be looked at again and again.
fn smallest_ns(wanted_ns: u64, lateness: MonitorLatency) -> u64 {
    wanted_ns.max(lateness.p50_ns.saturating_mul(2))
}

fn instant(ns: u64) -> Instant<Monotonic> {
    Instant::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's 10 us (section 4.2) stand where timers are in time.
    #[test]
    fn intervals_are_longer_than_timers_are_late() {
        let late = |p50_ns| MonitorLatency { p50_ns, ..MonitorLatency::default() };
        assert_eq!(smallest_ns(MonitorSettings::SMALLEST_NS, late(1_000)), 10_000);
        assert_eq!(smallest_ns(MonitorSettings::SMALLEST_NS, late(25_000)), 50_000);
        assert_eq!(smallest_ns(1, late(u64::MAX)), u64::MAX);
    }
}
