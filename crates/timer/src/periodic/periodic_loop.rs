//! The loop of a periodic task: waits for releases and runs jobs, on any clock and machine.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::Timebase;
use hourglass_time::Span;

use crate::sleep::{
    Delay, Interrupter, KernelSleep, Mechanism, SleepOutcome, SleepPolicy, Sleeper, SleeperSettings,
};

use super::job::{CompletedJob, JobControl, JobCpuTime, JobStart, RunningJob};
use super::job_watch::{JobWatch, ReleasedJob, WatchGuard};
use super::parameters::ValidParameters;
use super::releases::Releases;
use super::statistics::{JobRecord, Recorder, TaskStatistics};

/// How long before a release the CPU clock is read, where the end of the wait is spun, ns.
const LEAD_NS: u64 = 5_000;

/// The CPU clock shortly before a job, in a thread that spins since.
#[derive(Clone, Copy, Debug)]
struct CpuRead {
    cpu_ns: u64,
    at_ns: u64,
}

impl CpuRead {
    /// The CPU time at that time if no other thread took the CPU meanwhile. If one did, and was
    /// gone by the release, up to [`LEAD_NS`] too much.
    fn at(self, now_ns: u64) -> u64 {
        self.cpu_ns.saturating_add(now_ns.saturating_sub(self.at_ns))
    }
}

/// Is called with a job that did something wrong, in the task's thread, after it.
pub(super) type JobErrorHandler = Box<dyn FnMut(&CompletedJob) + Send>;

/// A handle that stops a periodic task; may be cloned, sent and kept beyond its life.
///
/// [`Stop::stop`] is lock-free and async-signal-safe (dropping and cloning a handle is not).
#[derive(Clone, Debug)]
pub struct Stop {
    requested: Arc<AtomicBool>,
    interrupter: Interrupter,
}

impl Stop {
    pub(super) fn new(interrupter: Interrupter) -> Stop {
        Stop { requested: Arc::new(AtomicBool::new(false)), interrupter }
    }

    /// Ends the wait in progress at once, whatever it waits by; a job that is running is finished
    /// first. Does not wait for any of that.
    pub fn stop(&self) {
        self.requested.store(true, Ordering::Release);
        self.interrupter.interrupt();
    }

    /// Whether a stop was requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire) || self.interrupter.is_set()
    }
}

/// Why a task is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopEnd {
    /// A stop was requested.
    Stopped,
    /// Its body said that this was the last job.
    ByItself,
    /// Its [`JobWatch`] said so when a job was complete.
    ByWatch,
}

/// What [`PeriodicLoop::step`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopStep {
    /// A job was run.
    Ran {
        /// The completed job.
        job: CompletedJob,
        /// Why there is to be no other, if there is not.
        ended: Option<LoopEnd>,
    },
    /// It was stopped before the next release; that one is still to come.
    Stopped,
}

/// A release that has come, and whose job is still to be started: [`PeriodicLoop::start`].
#[derive(Debug)]
#[must_use = "its job is not started yet"]
pub struct DueRelease {
    release_ns: u64,
}

/// A job that runs in the caller's own code until [`PeriodicLoop::complete`] is called.
#[derive(Debug)]
#[must_use = "the loop waits for no other release before this job is complete"]
pub struct ActiveJob {
    facts: JobStart,
    cpu_begun_ns: u64,
}

impl ActiveJob {
    /// How many jobs there were before.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.facts.number
    }

    /// When it was released, ns.
    #[must_use]
    pub const fn release_ns(&self) -> u64 {
        self.facts.release_ns
    }

    /// When it was started, ns.
    #[must_use]
    pub const fn started_ns(&self) -> u64 {
        self.facts.started_ns
    }

    /// By when it is to be complete, ns.
    #[must_use]
    pub const fn deadline_ns(&self) -> u64 {
        self.facts.deadline_ns
    }

    /// Whether its release had passed when the job before was complete.
    #[must_use]
    pub const fn is_late(&self) -> bool {
        self.facts.late
    }
}

/// A periodic task without a thread: the calling thread runs it. On a simulated machine, hours of
/// it take moments.
///
/// It is made and run in one thread. Nothing is allocated, locked or written to a file in
/// [`PeriodicLoop::step`], but for what body, handlers and watch do.
///
/// ```
/// use hourglass_time::Span;
/// use hourglass_timer::Sleeper;
/// use hourglass_timer::periodic::{Parameters, PeriodicLoop, LoopStep};
///
/// let parameters = Parameters::every(Span::from_millis(1)).check()?;
/// let mut task = PeriodicLoop::new(Sleeper::new(), &parameters);
/// for _ in 0..3 {
///     let LoopStep::Ran { job, .. } = task.step(&mut |_job: &mut _| ()) else { break };
///     assert!(job.started_ns >= job.release_ns);
/// }
/// assert_eq!(task.statistics().read().jobs, 3);
/// # Ok::<(), hourglass_timer::periodic::ParameterError>(())
/// ```
pub struct PeriodicLoop<C = &'static Clock, M = KernelSleep> {
    sleeper: Sleeper<C, M>,
    releases: Releases,
    deadline_ns: u64,
    budget_ns: Option<u64>,
    jobs: u64,
    previous: Option<CompletedJob>,
    recorder: Arc<Recorder>,
    stop: Stop,
    watch: Option<Box<dyn JobWatch>>,
    on_miss: Option<JobErrorHandler>,
    on_cost_overrun: Option<JobErrorHandler>,
}

impl<C, M> PeriodicLoop<C, M> {
    /// A handle that stops it.
    #[must_use]
    pub fn stopper(&self) -> Stop {
        self.stop.clone()
    }

    /// A handle on what it counts.
    #[must_use]
    pub fn statistics(&self) -> TaskStatistics {
        TaskStatistics::of(Arc::clone(&self.recorder))
    }

    /// The sleeper; simulated machines take orders through it.
    pub fn sleeper(&mut self) -> &mut Sleeper<C, M> {
        &mut self.sleeper
    }

    /// Sets the watch of the jobs from now on, or removes it; returns the previous one.
    pub fn set_watch(&mut self, watch: Option<Box<dyn JobWatch>>) -> Option<Box<dyn JobWatch>> {
        std::mem::replace(&mut self.watch, watch)
    }

    /// Calls `handler` after each job that missed its deadline.
    pub fn on_miss(&mut self, handler: impl FnMut(&CompletedJob) + Send + 'static) {
        self.on_miss = Some(Box::new(handler));
    }

    /// Calls `handler` after each job that took more CPU time than its budget.
    pub fn on_cost_overrun(&mut self, handler: impl FnMut(&CompletedJob) + Send + 'static) {
        self.on_cost_overrun = Some(Box::new(handler));
    }

    pub(super) fn set_handlers(
        &mut self,
        on_miss: Option<JobErrorHandler>,
        on_cost_overrun: Option<JobErrorHandler>,
    ) {
        (self.on_miss, self.on_cost_overrun) = (on_miss, on_cost_overrun);
    }

    fn tell(&mut self, job: &CompletedJob) {
        if let (true, Some(handler)) = (job.missed(), &mut self.on_miss) {
            handler(job);
        }
        if let (true, Some(handler)) = (job.is_cost_overrun(), &mut self.on_cost_overrun) {
            handler(job);
        }
    }
}

impl<B: Timebase, C: Deref<Target = Clock<B>>, M: Mechanism> PeriodicLoop<C, M> {
    /// A task that begins now, waiting by `sleeper`, whose interrupter stops it. Allocates what it
    /// needs (some 20 KB); nothing is allocated later.
    #[must_use]
    pub fn new(sleeper: Sleeper<C, M>, parameters: &ValidParameters) -> PeriodicLoop<C, M> {
        let stop = Stop::new(sleeper.interrupter());
        PeriodicLoop::with(sleeper, parameters, stop, Arc::new(Recorder::default()))
    }

    pub(super) fn with(
        sleeper: Sleeper<C, M>,
        parameters: &ValidParameters,
        stop: Stop,
        recorder: Arc<Recorder>,
    ) -> PeriodicLoop<C, M> {
        PeriodicLoop {
            releases: Releases::starting(parameters, sleeper.now_ns()),
            deadline_ns: parameters.deadline_ns,
            budget_ns: parameters.budget_ns,
            jobs: 0,
            previous: None,
            recorder,
            stop,
            watch: None,
            on_miss: None,
            on_cost_overrun: None,
            sleeper,
        }
    }

    /// Moves the grid by `by`, less than a period either way (more is held there): the releases that are still to come,
    /// so that the loop may follow the clock of a device. Within a body that is [`RunningJob::shift`].
    pub fn shift(&mut self, by: Span) {
        self.releases.shift(by);
    }

    /// When the next job is released, ns.
    #[must_use]
    pub fn next_release_ns(&self) -> u64 {
        self.releases.next_ns()
    }

    /// Waits for the next release and runs its job.
    pub fn step<R: JobControl>(
        &mut self,
        body: &mut impl FnMut(&mut RunningJob<'_, C, M>) -> R,
    ) -> LoopStep {
        // A body that cleared the sleeper's interrupt has not cancelled the stop.
        if self.stop.is_requested() {
            return LoopStep::Stopped;
        }
        let release_ns = self.releases.next_ns();
        let (slept, read) = self.wait(release_ns);
        if slept.interrupted || self.stop.is_requested() {
            return LoopStep::Stopped;
        }
        let mut facts = self.facts(release_ns, slept.woke_ns);
        self.recorder.begin();
        let (ended, completed_ns, took_ns) = self.run_job(&mut facts, read, body);
        LoopStep::Ran { job: self.account(facts, completed_ns, took_ns), ended }
    }

    fn facts(&self, release_ns: u64, started_ns: u64) -> JobStart {
        JobStart {
            number: self.jobs,
            release_ns,
            started_ns,
            deadline_ns: release_ns.saturating_add(self.deadline_ns),
            late: self.previous.is_some_and(|previous| previous.completed_ns > release_ns),
        }
    }

    fn account(&mut self, facts: JobStart, completed_ns: u64, took_ns: u64) -> CompletedJob {
        let passed = self.releases.completed(completed_ns);
        let cost = JobCpuTime { took_ns, budget_ns: self.budget_ns };
        let job = CompletedJob::of(facts, completed_ns, cost, passed);
        self.recorder.complete(JobRecord {
            late: job.late,
            latency_ns: job.latency_ns(),
            response_ns: job.response_ns(),
            cost_ns: took_ns,
            missed: job.missed(),
            cost_overrun: job.is_cost_overrun(),
            passed,
        });
        self.jobs += 1;
        self.previous = Some(job);
        self.tell(&job);
        job
    }

    /// Waits for the next release, for a caller whose job is no closure: an iterator, another
    /// language's loop. `None` if the loop was stopped; the release is still to come then.
    ///
    /// No [`JobWatch`] is notified of such jobs. Between this and [`PeriodicLoop::start`] the caller may do
    /// what it must before it can run, such as take a lock: that delays the job, and counts as latency.
    pub fn wait_for_release(&mut self) -> Option<DueRelease> {
        if self.stop.is_requested() {
            return None;
        }
        let release_ns = self.releases.next_ns();
        let slept = self.sleeper.sleep_until_ns(release_ns);
        (!slept.interrupted && !self.stop.is_requested()).then_some(DueRelease { release_ns })
    }

    /// Starts the job of a release.
    pub fn start(&mut self, due: DueRelease) -> ActiveJob {
        self.recorder.begin();
        let cpu_begun_ns = self.sleeper.mechanism().cpu_time_ns();
        // Last, so that the reported latency is what the caller sees.
        let started_ns = self.sleeper.now_ns();
        ActiveJob { facts: self.facts(due.release_ns, started_ns), cpu_begun_ns }
    }

    /// The job is complete.
    pub fn complete(&mut self, running: ActiveJob) -> CompletedJob {
        let completed_ns = self.sleeper.now_ns();
        let cpu_ns = self.sleeper.mechanism().cpu_time_ns();
        self.account(running.facts, completed_ns, cpu_ns.saturating_sub(running.cpu_begun_ns))
    }

    /// Waits for a release.
    ///
    /// Reading the CPU clock takes half a microsecond and more when the thread has just been woken.
    /// If the end of the wait is spun anyway, that is done shortly before the release.
    fn wait(&mut self, release_ns: u64) -> (SleepOutcome, Option<CpuRead>) {
        let settings = *self.sleeper.settings();
        if settings.policy == SleepPolicy::KernelOnly {
            return (self.sleeper.sleep_until_ns(release_ns), None);
        }
        let early = self.sleeper.sleep_until_ns(release_ns.saturating_sub(LEAD_NS));
        // A release that is near or past is met at once, and a stop as well.
        if early.interrupted || early.woke_ns >= release_ns {
            return (SleepOutcome { deadline_ns: release_ns, ..early }, None);
        }
        let cpu_ns = self.sleeper.mechanism().cpu_time_ns();
        let read = CpuRead { cpu_ns, at_ns: self.sleeper.now_ns() };
        // Spun in any case, and nothing to learn from.
        self.sleeper.set(SleeperSettings { policy: SleepPolicy::SpinOnly, ..settings });
        let slept = self.sleeper.sleep_until_ns(release_ns);
        self.sleeper.set(settings);
        (slept, (slept.delay == Delay::None).then_some(read))
    }

    /// Why it was the last, if it was; when it was complete; what it took of the CPU.
    fn run_job<R: JobControl>(
        &mut self,
        facts: &mut JobStart,
        read: Option<CpuRead>,
        body: &mut impl FnMut(&mut RunningJob<'_, C, M>) -> R,
    ) -> (Option<LoopEnd>, u64, u64) {
        let JobStart { number, release_ns, deadline_ns, .. } = *facts;
        let budget_ns = self.budget_ns;
        let released = ReleasedJob { number, release_ns, deadline_ns, budget_ns };
        let watched = WatchGuard::begin(self.watch.as_mut(), released);
        let late_read = read.is_none().then(|| self.sleeper.mechanism().cpu_time_ns());
        // Last, so that the reported latency is what the body sees.
        facts.started_ns = self.sleeper.now_ns();
        let cpu_begun_ns = read.map_or(late_read.unwrap_or(0), |read| read.at(facts.started_ns));
        let mut job = RunningJob {
            sleeper: &mut self.sleeper,
            stop: &self.stop,
            facts: *facts,
            budget_ns: self.budget_ns,
            cpu_begun_ns,
            previous: self.previous,
            shift: Span::ZERO,
        };
        let last = body(&mut job).is_last().then_some(LoopEnd::ByItself);
        let completed_ns = job.now_ns();
        let took_ns = job.cost_ns();
        self.releases.shift(job.shift);
        let ended = last.or(watched.complete().then_some(LoopEnd::ByWatch));
        (ended, completed_ns, took_ns)
    }

    /// Runs jobs until it is stopped or its body ends it.
    pub fn run<R: JobControl>(
        &mut self,
        mut body: impl FnMut(&mut RunningJob<'_, C, M>) -> R,
    ) -> LoopEnd {
        loop {
            match self.step(&mut body) {
                LoopStep::Stopped => return LoopEnd::Stopped,
                LoopStep::Ran { ended: Some(ended), .. } => return ended,
                LoopStep::Ran { ended: None, .. } => {}
            }
        }
    }
}

impl<C, M> fmt::Debug for PeriodicLoop<C, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeriodicLoop")
            .field("releases", &self.releases)
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}
