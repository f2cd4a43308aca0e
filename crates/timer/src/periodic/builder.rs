//! How a periodic thread is asked for.

use std::fmt;
use std::ops::Deref;

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::Timebase;
use hourglass_time::{Instant, Monotonic, Span};

use crate::fault::{self, Fault, FaultVerdict};
use crate::sleep::{Interrupt, Mechanism, SleepPolicy, Sleeper, SleeperSettings};

use super::error::SpawnError;
use super::job::{CompletedJob, JobControl, RunningJob};
use super::job_watch::{FaultWatch, JobWatch, MakeWatch, OnStart, WatchError};
use super::parameters::{OverrunPolicy, Parameters};
use super::periodic_loop::JobErrorHandler;
use super::scheduling::Scheduling;
use super::thread::{PeriodicThread, ThreadPlan};

/// A periodic thread to be. Everything is checked when it is started.
pub struct Builder {
    pub(super) name: String,
    pub(super) parameters: Parameters,
    pub(super) scheduling: Scheduling,
    pub(super) cpus: Option<Vec<u32>>,
    pub(super) waiting: SleeperSettings,
    pub(super) idle_latency_us: Option<u32>,
    pub(super) stop_on: Option<&'static Interrupt>,
    pub(super) watch: Option<MakeWatch>,
    pub(super) on_start: Option<OnStart>,
    pub(super) on_miss: Option<JobErrorHandler>,
    pub(super) on_cost_overrun: Option<JobErrorHandler>,
}

impl Builder {
    pub(super) fn new(name: String) -> Builder {
        Builder {
            name,
            // No period is no period: to be given.
            parameters: Parameters::every(Span::ZERO),
            scheduling: Scheduling::Inherited,
            cpus: None,
            waiting: SleeperSettings::with_policy(SleepPolicy::KernelOnly),
            idle_latency_us: None,
            stop_on: None,
            watch: None,
            on_start: None,
            on_miss: None,
            on_cost_overrun: None,
        }
    }

    /// All parameters at once.
    #[must_use]
    pub fn parameters(self, parameters: Parameters) -> Builder {
        Builder { parameters, ..self }
    }

    /// A release every `period`. Needed, unless a rate is given.
    #[must_use]
    pub fn period(self, period: Span) -> Builder {
        let parameters = self.parameters.with_period(period);
        self.parameters(parameters)
    }

    /// Releases in a second; exact in the long run.
    #[must_use]
    pub fn hertz(self, hertz: u32) -> Builder {
        let parameters = self.parameters.with_hertz(hertz);
        self.parameters(parameters)
    }

    /// By when a job is to be complete, after its release. The period if not given.
    #[must_use]
    pub fn deadline(self, deadline: Span) -> Builder {
        let parameters = self.parameters.with_deadline(deadline);
        self.parameters(parameters)
    }

    /// How long after the epoch the first release is.
    #[must_use]
    pub fn phase(self, phase: Span) -> Builder {
        let parameters = self.parameters.with_phase(phase);
        self.parameters(parameters)
    }

    /// CPU time that a job may take. An overrun is reported when the job is complete, and counted;
    /// a body may ask before ([`super::RunningJob::check`]), [`Builder::deadline_and_budget_handler`]
    /// notifies a handler meanwhile, and [`Scheduling::Deadline`] enforces the budget.
    #[must_use]
    pub fn budget(self, budget: Span) -> Builder {
        let parameters = self.parameters.with_budget(budget);
        self.parameters(parameters)
    }

    /// Where the grid of releases begins; threads with the same one keep their phases to each other.
    #[must_use]
    pub fn epoch(self, epoch: impl Into<Instant<Monotonic>>) -> Builder {
        let parameters = self.parameters.with_epoch(epoch.into());
        self.parameters(parameters)
    }

    /// What becomes of releases that pass while a job is running.
    #[must_use]
    pub fn on_overrun(self, policy: OverrunPolicy) -> Builder {
        let parameters = self.parameters.with_overrun_policy(policy);
        self.parameters(parameters)
    }

    /// The scheduling policy.
    #[must_use]
    pub fn policy(self, scheduling: Scheduling) -> Builder {
        Builder { scheduling, ..self }
    }

    /// Keeps all CPUs out of idle states that take longer than `us` to leave while the thread lives:
    /// [`Sleeper::hold_idle_latency`].
    #[must_use]
    pub fn idle_latency_us(self, us: u32) -> Builder {
        Builder { idle_latency_us: Some(us), ..self }
    }

    /// The one CPU that it may use.
    #[must_use]
    pub fn cpu(self, cpu: u32) -> Builder {
        self.cpus([cpu])
    }

    /// The CPUs that it may use.
    #[must_use]
    pub fn cpus(self, cpus: impl IntoIterator<Item = u32>) -> Builder {
        Builder { cpus: Some(cpus.into_iter().collect()), ..self }
    }

    /// How it waits for a release. In the kernel only, if not given: late by the kernel's wake-up,
    /// and taking no CPU time from other threads and none from the thread's own budget.
    /// [`SleeperSettings::DEFAULT`] spins the last part of each wait, within a budget of CPU time and 5 us
    /// beyond it, so that bodies are entered less than a microsecond after their release.
    #[must_use]
    pub fn waiting(self, waiting: SleeperSettings) -> Builder {
        Builder { waiting, ..self }
    }

    /// Has `interrupt` stop it: shared by several threads, or set by a signal handler. Stopping one
    /// of them stops all that share it.
    #[must_use]
    pub fn stopped_by(self, interrupt: &'static Interrupt) -> Builder {
        Builder { stop_on: Some(interrupt), ..self }
    }

    /// Has `hook` called once in the new thread, when that has its CPUs and its policy and before the
    /// first release: to open a device, to touch memory on the right node, to name or lock things. The grid
    /// of releases begins after it, unless an epoch was given, and the starter waits for it. If it
    /// fails there is no thread ([`SpawnError::OnStart`]).
    #[must_use]
    pub fn on_start<E>(self, hook: impl FnOnce() -> Result<(), E> + Send + 'static) -> Builder
    where
        E: Into<WatchError>,
    {
        Builder { on_start: Some(Box::new(|| hook().map_err(Into::into))), ..self }
    }

    /// Has a watch watch its deadlines while jobs run. `make` makes it, in the new thread and before
    /// the first release; if that fails there is no thread.
    #[must_use]
    pub fn on_deadline<W, E>(self, make: impl FnOnce() -> Result<W, E> + Send + 'static) -> Builder
    where
        W: JobWatch + 'static,
        E: Into<WatchError>,
    {
        let make = || match make() {
            Ok(watch) => Ok(Box::new(watch) as Box<dyn JobWatch>),
            Err(error) => Err(error.into()),
        };
        Builder { watch: Some(Box::new(make)), ..self }
    }

    /// Notifies a handler of each deadline that a job passes, when it passes and not when the job is
    /// complete: RT-Mach's `thread_deadline_handler` (section 4). The handler's thread calls `entry`
    /// with the fault and `argument`, and carries out its verdict; what it can do to the thread while it
    /// runs is `settings.strength`. [`FaultVerdict::End`] ends the thread when the job is complete
    /// ([`super::LoopEnd::ByWatch`]), or earlier at a [`crate::fault::safepoint`] of its body.
    #[must_use]
    pub fn deadline_handler<A: Send + 'static>(
        self,
        settings: fault::WatchSettings,
        attributes: fault::Attributes,
        entry: impl FnMut(&Fault, &mut A) -> FaultVerdict + Send + 'static,
        argument: A,
    ) -> Builder {
        self.on_deadline(move || FaultWatch::install(settings, attributes, entry, argument, false))
    }

    /// As [`Builder::deadline_handler`]; also notifies the handler when a running job has used its budget: a
    /// fault that [`Fault::is_over_budget`]. A timer on the thread's CPU clock does that, which the kernel
    /// checks at its ticks only: late by up to one tick (1 to 10 ms), so for budgets of some ms and more.
    #[must_use]
    pub fn deadline_and_budget_handler<A: Send + 'static>(
        self,
        settings: fault::WatchSettings,
        attributes: fault::Attributes,
        entry: impl FnMut(&Fault, &mut A) -> FaultVerdict + Send + 'static,
        argument: A,
    ) -> Builder {
        self.on_deadline(move || FaultWatch::install(settings, attributes, entry, argument, true))
    }

    /// Has `handler` called after each job that missed its deadline, in the thread itself: it counts as
    /// time between jobs, and must not block.
    #[must_use]
    pub fn on_miss(self, handler: impl FnMut(&CompletedJob) + Send + 'static) -> Builder {
        Builder { on_miss: Some(Box::new(handler)), ..self }
    }

    /// Calls `handler` after each job that took more CPU time than its budget.
    #[must_use]
    pub fn on_cost_overrun(self, handler: impl FnMut(&CompletedJob) + Send + 'static) -> Builder {
        Builder { on_cost_overrun: Some(Box::new(handler)), ..self }
    }

    /// Starts it, on the clock of the process. When this returns it has its CPUs and its policy, its start
    /// hook is done, and it is waiting for its first release.
    ///
    /// # Errors
    /// [`SpawnError`]; then there is no thread.
    pub fn spawn<F, R>(self, body: F) -> Result<PeriodicThread, SpawnError>
    where
        F: FnMut(&mut RunningJob<'_>) -> R + Send + 'static,
        R: JobControl,
    {
        let sleeper = Sleeper::with(self.waiting);
        self.spawn_on(sleeper, body)
    }

    /// As [`Builder::spawn`], on any sleeper, which keeps its own settings.
    ///
    /// # Errors
    /// [`SpawnError`]; then there is no thread.
    pub fn spawn_on<B, C, M, F, R>(
        self,
        sleeper: Sleeper<C, M>,
        body: F,
    ) -> Result<PeriodicThread, SpawnError>
    where
        B: Timebase,
        C: Deref<Target = Clock<B>> + Send + 'static,
        M: Mechanism + Send + 'static,
        F: FnMut(&mut RunningJob<'_, C, M>) -> R + Send + 'static,
        R: JobControl,
    {
        ThreadPlan::check(self)?.start(sleeper, body)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("parameters", &self.parameters)
            .field("scheduling", &self.scheduling)
            .field("cpus", &self.cpus)
            .finish_non_exhaustive()
    }
}
