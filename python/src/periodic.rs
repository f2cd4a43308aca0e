//! Loops at a rate, for Python: an iterator whose steps are the jobs of a periodic task.
//!
//! A job begins when the iterator hands out its tick and is complete when the next one is asked for. The
//! interpreter is let go while the loop waits; that it has to be taken again before the job begins is
//! part of the tick's latency.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use hourglass_time::{Instant, Monotonic};
use hourglass_timer::periodic::{
    ActiveJob, CompletedJob, DueRelease, OverrunPolicy, Parameters, PeriodicLoop, Scheduling,
    Snapshot, TaskStatistics, ValidParameters,
};
use hourglass_timer::sleep::{Interrupter, Sleeper, SleeperSettings};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::distribution::PyDistribution;
use crate::errors::{ErrorKind, PyFailure};
use crate::scheduling::{self, CpusArg, SchedulingGuard};
use crate::sleep::{come_near, settings_of};
use crate::spans::{DurationArg, TimeArg};
use crate::thread_owned::{ThreadBound, ThreadOwned};
use crate::values::repr;

/// A job that is complete.
#[pyclass(frozen, get_all, eq, hash, name = "Completed", module = "hourglass.loops")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PyCompleted {
    number: u64,
    expiry_ns: u64,
    started_ns: u64,
    deadline_ns: u64,
    completed_ns: u64,
    cpu_ns: u64,
    lost: u64,
    moved_ns: u64,
    missed: bool,
    late: bool,
    overrun: bool,
    cost_overrun: bool,
}

impl From<CompletedJob> for PyCompleted {
    fn from(job: CompletedJob) -> PyCompleted {
        PyCompleted {
            number: job.number,
            expiry_ns: job.release_ns,
            started_ns: job.started_ns,
            deadline_ns: job.deadline_ns,
            completed_ns: job.completed_ns,
            cpu_ns: job.cost_ns,
            lost: job.lost,
            moved_ns: job.moved_ns,
            missed: job.missed(),
            late: job.late,
            overrun: job.overrun,
            cost_overrun: job.is_cost_overrun(),
        }
    }
}

#[pymethods]
impl PyCompleted {
    /// From the expiry to the completion, ns.
    #[getter]
    fn response_ns(&self) -> u64 {
        self.completed_ns.saturating_sub(self.expiry_ns)
    }

    fn __repr__(slf: &Bound<'_, PyCompleted>) -> PyResult<String> {
        repr(slf, &["number", "expiry_ns", "response_ns", "cpu_ns", "missed", "lost"])
    }
}

/// A tick of a loop: its job is the loop's body.
#[pyclass(frozen, get_all, name = "Tick", module = "hourglass.loops")]
struct PyTick {
    number: u64,
    expiry_ns: u64,
    started_ns: u64,
    deadline_ns: u64,
    late: bool,
    previous: Option<PyCompleted>,
}

impl PyTick {
    fn of(job: &ActiveJob, previous: Option<CompletedJob>) -> PyTick {
        PyTick {
            number: job.number(),
            expiry_ns: job.release_ns(),
            started_ns: job.started_ns(),
            deadline_ns: job.deadline_ns(),
            late: job.is_late(),
            previous: previous.map(PyCompleted::from),
        }
    }
}

#[pymethods]
impl PyTick {
    /// Latency of the job's start, ns.
    #[getter]
    fn lateness_ns(&self) -> u64 {
        self.started_ns.saturating_sub(self.expiry_ns)
    }

    /// Whether the job before missed its deadline.
    #[getter]
    fn missed(&self) -> bool {
        self.previous.is_some_and(|job| job.missed)
    }

    /// Periods that were lost between the job before and this one.
    #[getter]
    fn lost(&self) -> u64 {
        self.previous.map_or(0, |job| job.lost)
    }

    fn __repr__(slf: &Bound<'_, PyTick>) -> PyResult<String> {
        repr(slf, &["number", "expiry_ns", "lateness_ns", "missed", "lost"])
    }
}

/// Counts of a loop so far.
#[pyclass(frozen, get_all, name = "Totals", module = "hourglass.loops")]
struct PyTotals {
    ticks: u64,
    completed: u64,
    hit: u64,
    missed: u64,
    lost: u64,
    overruns: u64,
    late: u64,
    drift_ns: u64,
    cost_overruns: u64,
    cpu_ns: u64,
    latency: Py<PyDistribution>,
    response: Py<PyDistribution>,
}

impl PyTotals {
    fn of(py: Python<'_>, counts: Snapshot) -> PyResult<PyTotals> {
        Ok(PyTotals {
            ticks: counts.releases,
            completed: counts.jobs,
            hit: counts.jobs - counts.misses,
            missed: counts.misses,
            lost: counts.lost,
            overruns: counts.overruns,
            late: counts.late,
            drift_ns: counts.drift_ns,
            cost_overruns: counts.cost_overruns,
            cpu_ns: counts.cpu_ns,
            latency: Py::new(py, PyDistribution(counts.latency))?,
            response: Py::new(py, PyDistribution(counts.response))?,
        })
    }
}

#[pymethods]
impl PyTotals {
    fn __repr__(slf: &Bound<'_, PyTotals>) -> PyResult<String> {
        repr(slf, &["ticks", "completed", "hit", "missed", "lost", "latency"])
    }
}

/// The loop while it runs, in its own thread.
struct ActiveLoop {
    task: PeriodicLoop,
    job: Option<ActiveJob>,
    previous: Option<CompletedJob>,
}

impl ActiveLoop {
    /// How many jobs are complete.
    fn completed(&self) -> u64 {
        self.previous.map_or(0, |job| job.number + 1)
    }

    /// Ends the job of the last tick.
    fn complete(&mut self) {
        if let Some(job) = self.job.take() {
            self.previous = Some(self.task.complete(job));
        }
    }

    /// Whether there is another job after those that are complete.
    fn has_next(&self, count: Option<u64>) -> bool {
        count.is_none_or(|count| self.completed() < count)
    }

    /// Waits for the next release; `None` if the loop was stopped.
    fn wait(&mut self, py: Python<'_>) -> PyResult<Option<DueRelease>> {
        let next_ns = self.task.next_release_ns();
        come_near(py, self.task.sleeper(), next_ns)?;
        let due = ThreadBound::detach(py, &mut self.task, PeriodicLoop::wait_for_release);
        py.check_signals()?;
        Ok(due)
    }

    fn tick(&mut self, due: DueRelease) -> PyTick {
        let job = self.task.start(due);
        let tick = PyTick::of(&job, self.previous);
        self.job = Some(job);
        tick
    }
}

/// A loop at a rate, in the thread that iterates over it. Made by `hourglass.periodic`.
#[pyclass(frozen, subclass, name = "Periodic", module = "hourglass._hourglass")]
struct PyPeriodic {
    parameters: ValidParameters,
    settings: SleeperSettings,
    scheduling: Scheduling,
    cpus: Option<Vec<u32>>,
    count: Option<u64>,
    interrupter: Interrupter,
    held: SchedulingGuard,
    /// Called before the first release.
    on_start: Mutex<Option<Py<PyAny>>>,
    live: OnceLock<ThreadOwned<ActiveLoop>>,
    statistics: OnceLock<TaskStatistics>,
    stopped: AtomicBool,
    closed: AtomicBool,
}

const LOOP: &str = "loop";

impl PyPeriodic {
    /// Begins, in this thread.
    fn live(&self, py: Python<'_>) -> PyResult<&ThreadOwned<ActiveLoop>> {
        if let Some(live) = self.live.get() {
            return Ok(live);
        }
        self.held.take(self.scheduling, self.cpus.as_deref(), &self.parameters)?;
        self.call_hook(py).or_else(|raised| {
            self.held.restore()?;
            Err(raised)
        })?;
        let sleeper = Sleeper::with(self.settings).interrupted_through(self.interrupter.clone());
        let task = PeriodicLoop::new(sleeper, &self.parameters);
        // The same loop begun by two threads at one moment is the first one's.
        let _ = self.statistics.set(task.statistics());
        let live = ActiveLoop { task, job: None, previous: None };
        Ok(self.live.get_or_init(|| ThreadOwned::for_this_thread(live)))
    }

    /// Calls what is to be called first; let go afterwards, since it may hold the loop.
    fn call_hook(&self, py: Python<'_>) -> PyResult<()> {
        let hook = || self.on_start.lock().unwrap_or_else(PoisonError::into_inner);
        let own = hook().as_ref().map(|hook| hook.clone_ref(py));
        if let Some(own) = own {
            own.call0(py)?;
            let done = hook().take();
            drop(done);
        }
        Ok(())
    }

    fn end(&self) -> Result<(), PyFailure> {
        let Some(live) = self.live.get() else { return Ok(()) };
        if let Some(mut live) = live.take(LOOP)? {
            live.complete();
        }
        self.held.restore()
    }
}

#[pymethods]
impl PyPeriodic {
    #[new]
    #[pyo3(signature = (period = None, *, hertz = None, deadline = None, phase = None, budget = None, epoch_ns = None, on_overrun = "skip", policy = None, cpus = None, waiting = "kernel", count = None, on_start = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        period: Option<DurationArg>,
        hertz: Option<u32>,
        deadline: Option<DurationArg>,
        phase: Option<DurationArg>,
        budget: Option<DurationArg>,
        epoch_ns: Option<TimeArg>,
        on_overrun: &str,
        policy: Option<&str>,
        cpus: Option<CpusArg>,
        waiting: &str,
        count: Option<u64>,
        on_start: Option<Py<PyAny>>,
    ) -> PyResult<PyPeriodic> {
        let mut parameters = match (period, hertz) {
            (Some(period), None) => Parameters::every(period.0),
            (None, Some(hertz)) => Parameters::hertz(hertz),
            _ => return Err(PyFailure::invalid("give a period or hertz, and not both"))?,
        };
        if let Some(deadline) = deadline {
            parameters = parameters.with_deadline(deadline.0);
        }
        if let Some(phase) = phase {
            parameters = parameters.with_phase(phase.0);
        }
        if let Some(budget) = budget {
            parameters = parameters.with_budget(budget.0);
        }
        if let Some(epoch) = epoch_ns {
            let epoch = i64::try_from(epoch.0).unwrap_or(i64::MAX);
            parameters = parameters.with_epoch(Instant::<Monotonic>::from_nanos(epoch));
        }
        let parameters = parameters.with_overrun_policy(overrun_policy(on_overrun)?);
        let parameters = parameters.check().map_err(PyFailure::invalid)?;
        let scheduling = policy.map_or(Ok(Scheduling::Inherited), scheduling::policy)?;
        scheduling.check(&parameters).map_err(|error| PyFailure::argument("policy", error))?;
        Ok(PyPeriodic {
            parameters,
            settings: settings_of(waiting, None)?,
            scheduling,
            cpus: cpus.map(|cpus| cpus.0),
            count,
            interrupter: Interrupter::new(),
            held: SchedulingGuard::default(),
            on_start: Mutex::new(on_start),
            live: OnceLock::new(),
            statistics: OnceLock::new(),
            stopped: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        })
    }

    fn __iter__(slf: Py<PyPeriodic>) -> Py<PyPeriodic> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyTick>> {
        if self.complete(py)?.is_none() { Ok(None) } else { self.begin(py) }
    }

    /// Ends the job of the last tick. When the next one is released, ns; None if there is none.
    #[pyo3(name = "_complete")]
    fn complete(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(PyFailure::new(ErrorKind::Closed, "the loop is closed: make another one"))?;
        }
        if self.stopped.load(Ordering::Acquire) {
            self.end()?;
            return Ok(None);
        }
        let mut live = self.live(py)?.get(LOOP)?;
        live.complete();
        if live.has_next(self.count) {
            return Ok(Some(live.task.next_release_ns()));
        }
        drop(live);
        self.stopped.store(true, Ordering::Release);
        self.end()?;
        Ok(None)
    }

    /// Waits for the next release and begins its job; None if the loop was stopped.
    #[pyo3(name = "_begin")]
    fn begin(&self, py: Python<'_>) -> PyResult<Option<PyTick>> {
        let mut live = self.live(py)?.get(LOOP)?;
        if let Some(due) = live.wait(py)? {
            return Ok(Some(live.tick(due)));
        }
        drop(live);
        self.stopped.store(true, Ordering::Release);
        self.end()?;
        Ok(None)
    }

    /// Moves all ticks that are still to come, later or earlier, by less than a period (more is held there). In the
    /// loop's own thread.
    fn shift(&self, by: DurationArg) -> PyResult<()> {
        let text = "the loop has not begun: move its grid within its body, or give it an epoch";
        let live = self.live.get().ok_or_else(|| PyFailure::new(ErrorKind::Closed, text))?;
        live.get(LOOP)?.task.shift(by.0);
        Ok(())
    }

    /// Ends the loop, from any thread: the wait in progress at once, a body that runs after it.
    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.interrupter.interrupt();
    }

    /// Ends the loop and puts back policy and CPUs, in its own thread. What it counted stays.
    fn close(&self) -> PyResult<()> {
        // A signal's handler cannot close what it interrupted: it gets an error, and the task stays open.
        self.end()?;
        self.closed.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn __enter__(slf: Py<PyPeriodic>, py: Python<'_>) -> PyResult<Py<PyPeriodic>> {
        slf.get().live(py)?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.close()?;
        Ok(false)
    }

    /// Counts of the loop so far; any thread may read them, also after its end.
    #[getter]
    fn totals(&self, py: Python<'_>) -> PyResult<PyTotals> {
        let counts = self.statistics.get().map(TaskStatistics::read).unwrap_or_default();
        PyTotals::of(py, counts)
    }

    /// Jobs that were complete in time.
    #[getter]
    fn hit(&self) -> u64 {
        self.statistics
            .get()
            .map(TaskStatistics::read)
            .map_or(0, |counts| counts.jobs - counts.misses)
    }

    /// Jobs that were complete after their deadline.
    #[getter]
    fn missed(&self) -> u64 {
        self.statistics.get().map(TaskStatistics::read).map_or(0, |counts| counts.misses)
    }

    /// Periods that had no job, since an earlier one was still running.
    #[getter]
    fn lost(&self) -> u64 {
        self.statistics.get().map(TaskStatistics::read).map_or(0, |counts| counts.lost)
    }
}

fn overrun_policy(word: &str) -> Result<OverrunPolicy, PyFailure> {
    match word {
        "skip" => Ok(OverrunPolicy::Skip),
        "catch_up" => Ok(OverrunPolicy::CatchUp),
        "delay" => Ok(OverrunPolicy::Delay),
        other => Err(PyFailure::argument(
            "on_overrun",
            format_args!("unknown '{other}'; expected one of skip, catch_up, delay"),
        )),
    }
}

/// Adds it to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCompleted>()?;
    module.add_class::<PyTick>()?;
    module.add_class::<PyTotals>()?;
    module.add_class::<PyPeriodic>()
}
