//! Watched deadlines for Python: a handler is called when one passes.
//!
//! The thread that is late runs on: one that stood or was demoted might hold the interpreter, for which its
//! handler would wait. What the handler's function raises goes to `sys.unraisablehook`, as with timers.
//! Must not: wait for the handler's thread while it holds the interpreter.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use hourglass_timer::fault::{
    Attributes, Deadline, DeadlineHandler, DeadlineWatch, EndedJob, Fault, FaultAction, FaultError,
    FaultVerdict, WatchSettings, WatchedHandle, deadline_handler,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::errors::{ErrorKind, PyFailure};
use crate::spans::{DurationArg, TimeArg};
use crate::thread_owned::{ThreadBound, ThreadOwned};
use crate::values::{class_of, repr};

const WATCH: &str = "watch";

/// A deadline that was passed, or a budget that was used up.
#[pyclass(frozen, get_all, eq, hash, name = "Fault", module = "hourglass.deadlines")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PyFault {
    thread: u32,
    count: u64,
    untold: u64,
    deadline_ns: Option<u64>,
    passed_ns: u64,
    handled_ns: u64,
}

impl From<&Fault> for PyFault {
    fn from(fault: &Fault) -> PyFault {
        PyFault {
            thread: fault.thread,
            count: fault.count,
            untold: fault.undelivered,
            deadline_ns: (!fault.is_over_budget()).then_some(fault.deadline_ns),
            passed_ns: fault.stopped_ns,
            handled_ns: fault.handled_ns,
        }
    }
}

#[pymethods]
impl PyFault {
    /// Whether it is a budget of CPU time that was used up, and no deadline.
    #[getter]
    fn over_budget(&self) -> bool {
        self.deadline_ns.is_none()
    }

    fn __repr__(slf: &Bound<'_, PyFault>) -> PyResult<String> {
        repr(slf, &["count", "deadline_ns", "passed_ns", "handled_ns"])
    }
}

/// A piece of work that is over.
#[pyclass(frozen, get_all, eq, hash, name = "Done", module = "hourglass.deadlines")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PyDone {
    deadline_ns: u64,
    finished_ns: u64,
    missed: bool,
}

impl From<EndedJob> for PyDone {
    fn from(ending: EndedJob) -> PyDone {
        PyDone {
            deadline_ns: ending.deadline_ns,
            finished_ns: ending.finished_ns,
            missed: ending.has_missed(),
        }
    }
}

#[pymethods]
impl PyDone {
    fn __repr__(slf: &Bound<'_, PyDone>) -> PyResult<String> {
        repr(slf, &["deadline_ns", "finished_ns", "missed"])
    }
}

/// A handler's function, which is called while its watch lives.
struct CallbackEntry {
    call: Mutex<Option<Py<PyAny>>>,
    raised: AtomicU64,
}

impl CallbackEntry {
    fn cell(&self) -> MutexGuard<'_, Option<Py<PyAny>>> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs on the handler's thread. After an error the watched thread goes on, since it was never stopped.
    fn call(self: Arc<CallbackEntry>, fault: &Fault) -> FaultVerdict {
        let event = PyFault::from(fault);
        let asked = Python::try_attach(|py| {
            let call = self.cell().as_ref().map(|call| call.clone_ref(py))?;
            let answer = call.call1(py, (event,));
            let verdict = answer.and_then(|answer| verdict(answer.bind(py)));
            let verdict = verdict.unwrap_or_else(|error| {
                error.write_unraisable(py, Some(call.bind(py)));
                // The hook is Python code, in which another thread may have its turn: an exception is counted after the hook had it.
                self.raised.fetch_add(1, Ordering::Relaxed);
                FaultVerdict::Resume
            });
            // What it holds may be the last of it, and needs the interpreter to go.
            drop(call);
            drop(self);
            Some(verdict)
        });
        asked.flatten().unwrap_or(FaultVerdict::Resume)
    }
}

/// Converts the result of a handler's function.
fn verdict(answer: &Bound<'_, PyAny>) -> PyResult<FaultVerdict> {
    if answer.is_none() {
        return Ok(FaultVerdict::Resume);
    }
    if let Ok(word) = answer.cast::<PyString>()
        && word.to_string_lossy() == "end"
    {
        return Ok(FaultVerdict::End);
    }
    let more: DurationArg = answer.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyTypeError>(answer.py()) {
            let name = class_of(answer).unwrap_or_default();
            let text = format!("a handler answers None, a time or 'end', not {name}");
            return PyTypeError::new_err(text);
        }
        error
    })?;
    if !more.0.is_positive() {
        Err(PyFailure::invalid("a handler gives a time above 0, None or 'end'"))?;
    }
    Ok(FaultVerdict::ResumeBy(Deadline::In(more.0)))
}

/// A watch and its handler, in the thread that is watched.
struct ActiveWatch {
    /// The first field, so that it is dropped first: the watch reports to it.
    _handler: Option<DeadlineHandler>,
    watch: DeadlineWatch,
}

impl ActiveWatch {
    fn begin(
        settings: WatchSettings,
        entry: Option<Weak<CallbackEntry>>,
    ) -> Result<ActiveWatch, FaultError> {
        let watch = DeadlineWatch::new(settings)?;
        let install = |entry: Weak<CallbackEntry>| {
            let ask = move |fault: &Fault, (): &mut ()| match entry.upgrade() {
                Some(entry) => entry.call(fault),
                None => FaultVerdict::Resume,
            };
            deadline_handler(&watch.thread(), Attributes::DEFAULT, ask, ())
        };
        let handler = entry.map(install).transpose()?;
        Ok(ActiveWatch { _handler: handler, watch })
    }
}

fn failure(error: FaultError) -> PyFailure {
    let (kind, errno) = match &error {
        FaultError::SignalsExhausted => (ErrorKind::Exhausted, 0),
        FaultError::Watched | FaultError::Handled | FaultError::SignalTaken(_) => {
            (ErrorKind::Busy, 0)
        }
        FaultError::Gone => (ErrorKind::Closed, 0),
        FaultError::Forked => (ErrorKind::Forked, 0),
        FaultError::Ended(_) => return ended(),
        FaultError::CannotRestore { errno }
        | FaultError::Scheduling { errno }
        | FaultError::Os { errno } => (ErrorKind::of_errno(*errno), *errno),
        _ => (ErrorKind::Invalid, 0),
    };
    PyFailure::new(kind, error).with_errno(errno)
}

fn ended() -> PyFailure {
    PyFailure::new(ErrorKind::Ended, "the deadline's handler ended this work")
}

/// Watches the deadlines of the thread that begins it. Made by `hourglass.deadlines.Watch`.
#[pyclass(frozen, subclass, weakref, name = "Watch", module = "hourglass._hourglass")]
struct PyWatch {
    settings: WatchSettings,
    entry: Option<Arc<CallbackEntry>>,
    live: OnceLock<ThreadOwned<ActiveWatch>>,
    watched: OnceLock<WatchedHandle>,
}

impl PyWatch {
    fn own(&self) -> Result<&ThreadOwned<ActiveWatch>, PyFailure> {
        let text = "the watch has not begun: use it in a with statement";
        self.live.get().ok_or_else(|| PyFailure::new(ErrorKind::Closed, text))
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut DeadlineWatch) -> Result<T, FaultError>,
    ) -> PyResult<T> {
        let mut live = self.own()?.get(WATCH)?;
        Ok(work(&mut live.watch).map_err(failure)?)
    }
}

/// A deadline by one of its two forms.
fn deadline(length: Option<DurationArg>, at_ns: Option<TimeArg>) -> Result<Deadline, PyFailure> {
    match (length, at_ns) {
        (Some(length), None) => {
            length.not_negative("length")?;
            Ok(Deadline::In(length.0))
        }
        (None, Some(at)) => Ok(Deadline::At(at.0)),
        _ => Err(PyFailure::invalid("give a length of time or at_ns, and not both")),
    }
}

#[pymethods]
impl PyWatch {
    #[new]
    #[pyo3(signature = (call = None, *, signal = None))]
    fn new(call: Option<Bound<'_, PyAny>>, signal: Option<i32>) -> PyResult<PyWatch> {
        if let Some(call) = call.as_ref().filter(|call| !call.is_callable()) {
            let name = class_of(call)?;
            return Err(PyTypeError::new_err(format!(
                "call: a watch calls a function, not {name}"
            )));
        }
        let entry = |call: Bound<'_, PyAny>| {
            let call = Mutex::new(Some(call.unbind()));
            Arc::new(CallbackEntry { call, raised: AtomicU64::new(0) })
        };
        let settings =
            WatchSettings { signal, ..WatchSettings::with_strength(FaultAction::Notify) };
        let (live, watched) = (OnceLock::new(), OnceLock::new());
        Ok(PyWatch { settings, entry: call.map(entry), live, watched })
    }

    /// Watches this thread from here on. A thread has one watch at a time.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        let begun =
            || PyFailure::new(ErrorKind::Busy, "the watch has begun before: make another one");
        if self.live.get().is_some() {
            return Err(begun())?;
        }
        let entry = self.entry.as_ref().map(Arc::downgrade);
        let live = ThreadBound::detach(py, (self.settings, entry), |(settings, entry)| {
            ActiveWatch::begin(settings, entry)
        });
        let live = live.map_err(failure)?;
        let _ = self.watched.set(live.watch.thread());
        Ok(self.live.set(ThreadOwned::for_this_thread(live)).map_err(|_| begun())?)
    }

    /// Begins a piece of work with a deadline `length` from now, or at a time of `clock.now_ns()`'s scale.
    #[pyo3(signature = (length = None, *, at_ns = None))]
    fn begin(&self, length: Option<DurationArg>, at_ns: Option<TimeArg>) -> PyResult<()> {
        let deadline = deadline(length, at_ns)?;
        self.with(|watch| watch.begin_job(deadline))
    }

    /// Ends the piece of work; None without one.
    fn end(&self) -> PyResult<Option<PyDone>> {
        Ok(self.with(DeadlineWatch::end_job)?.map(PyDone::from))
    }

    /// Arms a deadline without a piece of work; replaces the one in force.
    #[pyo3(signature = (length = None, *, at_ns = None))]
    fn arm(&self, length: Option<DurationArg>, at_ns: Option<TimeArg>) -> PyResult<()> {
        let deadline = deadline(length, at_ns)?;
        self.with(|watch| watch.arm(deadline))
    }

    /// Disarms the deadline. Returns whether it was still ahead.
    fn disarm(&self) -> PyResult<bool> {
        self.with(|watch| Ok(watch.disarm()?))
    }

    /// Raises a fault when the thread has used `budget` of CPU time from now on, late by up to one tick of the kernel.
    fn arm_budget(&self, budget: DurationArg) -> PyResult<()> {
        self.with(|watch| watch.arm_budget(budget.0))
    }

    /// Disarms the budget.
    fn disarm_budget(&self) -> PyResult<()> {
        self.with(|watch| {
            watch.disarm_budget();
            Ok(())
        })
    }

    /// Raises `EndedError` if the handler has answered "end".
    fn check(&self) -> PyResult<()> {
        self.with(|watch| Ok(watch.safepoint()?))
    }

    /// Deadlines passed and budgets used up so far; from any thread.
    #[getter]
    fn faults(&self) -> u64 {
        self.watched.get().map_or(0, WatchedHandle::faults)
    }

    /// Number of faults that the handler did not receive: it was busy, or there is no handler.
    #[getter]
    fn untold(&self) -> u64 {
        self.watched.get().map_or(0, WatchedHandle::undelivered)
    }

    /// How often the handler's function raised something, or answered nonsense.
    #[getter]
    fn raised(&self) -> u64 {
        self.entry.as_ref().map_or(0, |entry| entry.raised.load(Ordering::Relaxed))
    }

    /// Ends the watch, in its own thread, and waits for a function that runs. Closing twice does no harm.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(own) = self.live.get() else { return Ok(()) };
        own.not_inherited(WATCH)?;
        // The handler's thread may be waiting for the interpreter.
        ThreadBound::detach(py, own.take(WATCH)?, drop);
        Ok(())
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.close(py)?;
        Ok(false)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The holder of the lock makes a reference; nothing is lost if this round does not see it.
        let Some(call) = self.entry.as_ref().and_then(|entry| entry.call.try_lock().ok()) else {
            return Ok(());
        };
        call.as_ref().map_or(Ok(()), |call| visit.call(call))
    }

    fn __clear__(&self) {
        let call = self.entry.as_ref().and_then(|entry| entry.cell().take());
        drop(call);
    }
}

impl Drop for PyWatch {
    fn drop(&mut self) {
        // In another thread it is left alone.
        let own = self.live.get().filter(|own| own.not_inherited(WATCH).is_ok());
        let live = own.and_then(|own| own.take(WATCH).ok()).flatten();
        let mut live = Some(live);
        Python::try_attach(|py| {
            if let Some(live) = live.take() {
                ThreadBound::detach(py, live, drop);
            }
        });
        // The interpreter is about to end: the handler's thread may never come back from it.
        std::mem::forget(live);
    }
}

/// Adds it to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFault>()?;
    module.add_class::<PyDone>()?;
    module.add_class::<PyWatch>()
}
