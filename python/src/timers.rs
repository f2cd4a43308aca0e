//! Timers with call-backs, for Python.
//!
//! Call-backs are deferred actions: they run one after the other on a thread of the service that takes the
//! interpreter for each. What one raises goes to `sys.unraisablehook`, since no caller waits for it. A
//! timer holds its call-back, and the service only a weak handle on that, so that a timer without a
//! reference is terminated, also where it and its call-back hold each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hourglass_timer::engine::{Cause, ClockBase, ClockSetPolicy};
use hourglass_timer::service::{
    Action, ActionClass, CancelScope, ClassSettings, Expiration, Owner, ServiceError, Timer,
    TimerService, TimerSettings, TimerSpec,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};

use crate::errors::{ErrorKind, PyFailure};
use crate::spans::{DurationArg, TimeArg};
use crate::values::{class_of, repr};

/// The service of this process, started with the first timer.
struct ProcessTimers {
    process: u32,
    class: ActionClass,
    owner: Owner,
    /// The last field, so that it is dropped last: without a handle the service ends.
    _service: TimerService,
}

/// Number of timers that may wait for their functions at one moment, some 60 bytes each. They queue up with
/// many timers, since the interpreter is slower than an engine.
const ROOM: usize = 16_384;

static SERVICE: Mutex<Option<ProcessTimers>> = Mutex::new(None);

fn service() -> MutexGuard<'static, Option<ProcessTimers>> {
    SERVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProcessTimers {
    fn now() -> Result<ProcessTimers, ServiceError> {
        let service = TimerService::start()?;
        let settings = ClassSettings { capacity: ROOM, ..ClassSettings::default() };
        let class = service.class("python-timers", settings)?;
        let owner = service.owner("python");
        Ok(ProcessTimers { process: std::process::id(), class, owner, _service: service })
    }
}

/// Makes a timer on the service, and that if need be.
fn timer(
    base: ClockBase,
    on_set: ClockSetPolicy,
    callback: Weak<Callback>,
) -> Result<Timer, ServiceError> {
    let mut started = service();
    if started.as_ref().is_none_or(|started| started.process != std::process::id()) {
        // In a forked child what the parent had is not even to be dropped: its threads are not here.
        std::mem::forget(started.take());
        *started = Some(ProcessTimers::now()?);
    }
    let Some(ProcessTimers { class, owner, .. }) = &*started else {
        return Err(ServiceError::Terminated);
    };
    let action = Action::deferred(class, move |expiration| {
        if let Some(callback) = callback.upgrade() {
            callback.call(expiration);
        }
    });
    owner.timer_with(TimerSettings { base, on_set, action, engine: None })
}

/// A timer's function, which is called while the timer lives.
struct Callback {
    call: Mutex<Option<Py<PyAny>>>,
    raised: AtomicU64,
}

impl Callback {
    fn cell(&self) -> MutexGuard<'_, Option<Py<PyAny>>> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// On the service's thread; not at all if the interpreter is about to end.
    fn call(self: Arc<Callback>, expiration: &Expiration) {
        let event = PyExpiration::from(*expiration);
        Python::try_attach(|py| {
            let call = self.cell().as_ref().map(|call| call.clone_ref(py));
            let Some(call) = call else { return };
            if let Err(error) = call.call1(py, (event,)) {
                error.write_unraisable(py, Some(call.bind(py)));
                // The hook is Python code, in which another thread may have its turn: an exception is counted after the hook had it.
                self.raised.fetch_add(1, Ordering::Relaxed);
            }
            // What it holds may be the last of it, and needs the interpreter to go.
            drop(call);
            drop(self);
        });
    }
}

/// An expiry, as the call-back sees it.
#[pyclass(frozen, get_all, eq, hash, name = "Expiration", module = "hourglass.timers")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PyExpiration {
    expiry_ns: i64,
    now_ns: i64,
    lateness_ns: u64,
    overruns: u64,
    clock_set: bool,
}

impl From<Expiration> for PyExpiration {
    fn from(found: Expiration) -> PyExpiration {
        PyExpiration {
            expiry_ns: found.expiry_ns,
            now_ns: found.now_ns,
            lateness_ns: found.late_ns(),
            overruns: found.overruns,
            clock_set: found.cause == Cause::ClockSet,
        }
    }
}

#[pymethods]
impl PyExpiration {
    fn __repr__(slf: &Bound<'_, PyExpiration>) -> PyResult<String> {
        repr(slf, &["expiry_ns", "now_ns", "lateness_ns", "overruns", "clock_set"])
    }
}

/// State of a timer.
#[pyclass(frozen, get_all, eq, hash, name = "TimerStatus", module = "hourglass.timers")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PyStatus {
    armed: bool,
    next_ns: Option<i64>,
    fired: u64,
    overruns: u64,
    raised: u64,
    busy: bool,
    closed: bool,
}

#[pymethods]
impl PyStatus {
    fn __repr__(slf: &Bound<'_, PyStatus>) -> PyResult<String> {
        repr(slf, &["armed", "next_ns", "fired", "overruns", "raised", "busy", "closed"])
    }
}

fn failure(error: ServiceError) -> PyFailure {
    let (kind, errno) = match &error {
        ServiceError::Terminated => (ErrorKind::Closed, 0),
        ServiceError::Cancelled | ServiceError::ClockSet => (ErrorKind::Cancelled, 0),
        ServiceError::Contended | ServiceError::AnotherSleeps => (ErrorKind::Busy, 0),
        ServiceError::Forked => (ErrorKind::Forked, 0),
        ServiceError::TooManyTimers { .. } | ServiceError::TooManyClasses { .. } => {
            (ErrorKind::Exhausted, 0)
        }
        ServiceError::Thread { errno, .. } => (ErrorKind::of_errno(*errno), *errno),
        ServiceError::Panicked { .. } | ServiceError::Engine(_) => (ErrorKind::Os, 0),
        _ => (ErrorKind::Invalid, 0),
    };
    PyFailure::new(kind, error).with_errno(errno)
}

/// A timer that calls a function when it expires.
///
/// `clock` is `"monotonic"`, `"boottime"`, `"realtime"` or `"tai"`; with `expire_on_set` it expires at once
/// when that clock is set. The function is called with an `Expiration`, on a thread of the timer service,
/// which takes the interpreter for it; functions of all timers run one after the other. What it raises goes to
/// `sys.unraisablehook`, is counted in `status().raised`, and ends nothing. A timer without a reference
/// is closed.
#[pyclass(frozen, weakref, name = "Timer", module = "hourglass.timers")]
struct PyTimer {
    timer: Mutex<Option<Timer>>,
    callback: Arc<Callback>,
}

impl PyTimer {
    /// A handle of its own, so that nothing is locked while it is used.
    fn timer(&self) -> Result<Timer, PyFailure> {
        let timer = self.timer.lock().unwrap_or_else(PoisonError::into_inner);
        timer.clone().ok_or_else(|| {
            PyFailure::new(ErrorKind::Closed, "the timer is closed: make another one")
        })
    }

    fn arm(
        &self,
        arm: TimerSpec,
        every: Option<DurationArg>,
        slack: Option<DurationArg>,
    ) -> PyResult<()> {
        let arm = every.map_or(arm, |every| arm.every(every.0));
        let arm = slack.map_or(arm, |slack| arm.slack(slack.0));
        Ok(self.timer()?.arm(arm).map_err(failure)?)
    }
}

#[pymethods]
impl PyTimer {
    #[new]
    #[pyo3(signature = (call, *, clock = "monotonic", expire_on_set = false))]
    fn new(
        py: Python<'_>,
        call: Bound<'_, PyAny>,
        clock: &str,
        expire_on_set: bool,
    ) -> PyResult<PyTimer> {
        if !call.is_callable() {
            let name = class_of(&call)?;
            return Err(PyTypeError::new_err(format!(
                "call: a timer calls a function, not {name}"
            )));
        }
        let base =
            ClockBase::ALL.into_iter().find(|base| base.name() == clock).ok_or_else(|| {
                let known = "monotonic, boottime, realtime or tai";
                PyFailure::argument(
                    "clock",
                    format_args!("unknown '{clock}'; expected one of {known}"),
                )
            })?;
        let on_set = if expire_on_set { ClockSetPolicy::Expire } else { ClockSetPolicy::Follow };
        let call = Mutex::new(Some(call.unbind()));
        let callback = Arc::new(Callback { call, raised: AtomicU64::new(0) });
        let weak = Arc::downgrade(&callback);
        let made = py.detach(|| timer(base, on_set, weak)).map_err(failure)?;
        Ok(PyTimer { timer: Mutex::new(Some(made)), callback })
    }

    /// Expires `length` from now, and then once in every `every`.
    #[pyo3(signature = (length, *, every = None, slack = None))]
    fn after(
        &self,
        length: DurationArg,
        every: Option<DurationArg>,
        slack: Option<DurationArg>,
    ) -> PyResult<()> {
        self.arm(TimerSpec::after(length.0), every, slack)
    }

    /// Expires at a time of its clock, ns, and then `every` so often; at once if that is past.
    #[pyo3(signature = (expiry_ns, *, every = None, slack = None))]
    fn at(
        &self,
        expiry_ns: TimeArg,
        every: Option<DurationArg>,
        slack: Option<DurationArg>,
    ) -> PyResult<()> {
        let expiry_ns = i64::try_from(expiry_ns.0).map_err(|_| {
            PyFailure::argument("expiry_ns", format_args!("give 0 to {}", i64::MAX))
        })?;
        self.arm(TimerSpec::at(expiry_ns), every, slack)
    }

    /// Cancels the timer. Returns whether there was an expiry to cancel. With `next_only` a periodic timer stays armed
    /// for the expiry after the next one.
    #[pyo3(signature = (*, next_only = false))]
    fn cancel(&self, next_only: bool) -> PyResult<bool> {
        let which = if next_only { CancelScope::Current } else { CancelScope::All };
        Ok(self.timer()?.cancel(which).map_err(failure)?)
    }

    /// State of the timer.
    fn status(&self) -> PyResult<PyStatus> {
        let found = self.timer()?.status().map_err(failure)?;
        Ok(PyStatus {
            armed: found.armed,
            next_ns: found.next_ns,
            fired: found.fired,
            overruns: found.overruns,
            raised: self.callback.raised.load(Ordering::Relaxed),
            busy: found.busy,
            closed: found.terminated,
        })
    }

    /// Ends it. When this returns, its function does not run and never will; from within the function that
    /// run is the last. Closing twice does no harm. A signal is heard when the function has returned.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let timer = self.timer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = match timer {
            // Its function may be waiting for the interpreter.
            Some(timer) => py.detach(move || timer.terminate()),
            None => Ok(()),
        };
        // Out of the lock before anything of Python is dropped.
        let call = self.callback.cell().take();
        drop(call);
        Ok(ended.map_err(failure)?)
    }

    fn __enter__(slf: Py<PyTimer>) -> Py<PyTimer> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.close(py)?;
        Ok(false)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The holder of the lock makes a reference; nothing is lost if this round does not see it.
        match self.callback.call.try_lock() {
            Ok(call) => call.as_ref().map_or(Ok(()), |call| visit.call(call)),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let call = self.callback.cell().take();
        drop(call);
    }
}

impl Drop for PyTimer {
    fn drop(&mut self) {
        let timer = self.timer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // The last handle waits for a function that runs, and that may wait for the interpreter.
        let mut timer = Some(timer);
        Python::try_attach(|py| {
            let timer = timer.take();
            py.detach(move || drop(timer));
        });
        // The interpreter is about to end: no function runs any more.
    }
}

/// Ends all timers; called before the interpreter goes.
#[pyfunction]
fn _end_timers(py: Python<'_>) {
    py.detach(|| {
        let started = service().take();
        match started {
            Some(started) if started.process == std::process::id() => {
                // It can only be that the process was forked, and it was not.
                let _ = started.owner.terminate();
            }
            started => std::mem::forget(started),
        }
    });
}

/// Adds it to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let end = wrap_pyfunction!(_end_timers, module)?;
    module.py().import("atexit")?.call_method1("register", (&end,))?;
    module.add_function(end)?;
    module.add_class::<PyExpiration>()?;
    module.add_class::<PyStatus>()?;
    module.add_class::<PyTimer>()
}
