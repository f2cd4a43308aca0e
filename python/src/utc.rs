//! UTC between two bounds, and waiting until a time of it has passed for certain.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hourglass_clock::process::clock;
use hourglass_clock::timekeeping::{Utc, UtcInterval};
use hourglass_clock::utc::{UtcKeeper, UtcKeeperStatus};
use hourglass_time::{Instant, Realtime, Span};
use hourglass_timer::sleep::{Sleeper, UtcWait, UtcWaitEnd};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::clock::wall_status;
use crate::sleep::{PyInterrupt, SLICE_NS, by_own_sleeper, come_near, hears_signals};
use crate::spans::DurationArg;
use crate::values::repr;

/// From when to when UTC is, ns since 1970.
#[pyclass(frozen, get_all, eq, hash, name = "Utc", module = "hourglass.clock")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PyUtc {
    earliest_ns: i64,
    latest_ns: i64,
    status: &'static str,
    error_ns: u64,
}

impl From<UtcInterval> for PyUtc {
    fn from(found: UtcInterval) -> PyUtc {
        PyUtc {
            earliest_ns: found.earliest_ns,
            latest_ns: found.latest_ns,
            status: wall_status(found.status),
            error_ns: found.error_ns(),
        }
    }
}

#[pymethods]
impl PyUtc {
    /// Whether this moment was before the other one; None if they overlap.
    fn is_before(&self, other: PyRef<'_, PyUtc>) -> Option<bool> {
        if self.latest_ns < other.earliest_ns {
            return Some(true);
        }
        (self.earliest_ns >= other.latest_ns).then_some(false)
    }

    fn __repr__(slf: &Bound<'_, PyUtc>) -> PyResult<String> {
        repr(slf, &["earliest_ns", "latest_ns", "status"])
    }
}

/// Result of a wait until a time of UTC has passed, and what it was for.
#[pyclass(frozen, get_all, eq, hash, name = "UtcWait", module = "hourglass.sleep")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PyUtcWait {
    end: &'static str,
    waited_ns: u64,
    ahead_ns: u64,
    error_ns: u64,
    last: Option<PyUtc>,
}

impl From<UtcWait> for PyUtcWait {
    fn from(wait: UtcWait) -> PyUtcWait {
        PyUtcWait {
            end: match wait.end {
                UtcWaitEnd::AlreadyPast => "already_past",
                UtcWaitEnd::Past => "past",
                UtcWaitEnd::Interrupted => "interrupted",
                UtcWaitEnd::Unvouched => "unvouched",
                UtcWaitEnd::OutOfReach => "out_of_reach",
            },
            waited_ns: wait.waited_ns,
            ahead_ns: wait.ahead_ns,
            error_ns: wait.error_ns,
            last: wait.last.interval().map(PyUtc::from),
        }
    }
}

#[pymethods]
impl PyUtcWait {
    /// Whether the time has passed for certain.
    #[getter]
    fn is_past(&self) -> bool {
        matches!(self.end, "already_past" | "past")
    }

    fn __repr__(slf: &Bound<'_, PyUtcWait>) -> PyResult<String> {
        repr(slf, &["end", "waited_ns", "ahead_ns", "error_ns", "last"])
    }
}

/// UTC between two bounds; None if no source vouches for the wall clock.
#[pyfunction]
fn utc_bounded() -> Option<PyUtc> {
    clock().utc_bounded().interval().map(PyUtc::from)
}

/// A thread that has `utc_bounded` and `wait_until_past` answer by chronyd, ClockBound or ptp4l, too, until `close`.
#[pyclass(frozen, name = "UtcKeeper", module = "hourglass.clock")]
struct PyUtcKeeper(Mutex<Option<UtcKeeper>>);

#[pymethods]
impl PyUtcKeeper {
    #[new]
    fn new(py: Python<'_>) -> PyResult<PyUtcKeeper> {
        Ok(PyUtcKeeper(Mutex::new(Some(py.detach(UtcKeeper::start)?))))
    }

    /// The source that vouches; None if none does, or it is closed.
    #[getter]
    fn source(&self, py: Python<'_>) -> Option<&'static str> {
        self.status(py).source
    }

    /// The bound on the error of the wall clock that the source stated, ns.
    #[getter]
    fn error_ns(&self, py: Python<'_>) -> Option<u64> {
        self.status(py).said.map(|said| said.error_ns)
    }

    /// Why the other sources do not vouch, by their name.
    #[getter]
    fn refused(&self, py: Python<'_>) -> HashMap<&'static str, String> {
        self.status(py).refused.into_iter().collect()
    }

    /// Ends the thread: the kernel's bound answers again.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.keeper().take()));
    }

    fn __enter__(slf: Py<PyUtcKeeper>) -> Py<PyUtcKeeper> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> bool {
        self.close(py);
        false
    }
}

impl PyUtcKeeper {
    fn keeper(&self) -> MutexGuard<'_, Option<UtcKeeper>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another thread may be ending it.
    fn status(&self, py: Python<'_>) -> UtcKeeperStatus {
        py.detach(|| self.keeper().as_ref().map(UtcKeeper::status)).unwrap_or_default()
    }
}

/// Waits until `time_ns`, ns since 1970, has passed for certain. Not at all where that would take longer than `at_most`
/// by the bound as it is.
#[pyfunction]
#[pyo3(signature = (time_ns, *, at_most = None, interrupt = None))]
fn wait_until_past(
    py: Python<'_>,
    time_ns: i64,
    at_most: Option<DurationArg>,
    interrupt: Option<&Bound<'_, PyInterrupt>>,
) -> PyResult<PyUtcWait> {
    let at_most_ns = at_most.map(|span| span.not_negative("at_most")).transpose()?;
    by_own_sleeper(interrupt, |sleeper| wait(py, sleeper, time_ns, at_most_ns)).map(PyUtcWait::from)
}

fn wait(
    py: Python<'_>,
    sleeper: &mut Sleeper,
    time_ns: i64,
    at_most_ns: Option<u64>,
) -> PyResult<UtcWait> {
    let (begun_ns, first) = (sleeper.now_ns(), clock().utc_bounded());
    let passed_ns = |sleeper: &Sleeper| sleeper.now_ns().saturating_sub(begun_ns);
    let mut was_ahead = false;
    // The main thread hears signals on the way; the rest, or a refusal, is the sleeper's.
    while let Utc::Bounded(found) = clock().utc_bounded()
        && time_ns != i64::MAX
    {
        let left_ns = u64::try_from(time_ns.saturating_sub(found.earliest_ns)).unwrap_or(0);
        let all_ns = passed_ns(sleeper).saturating_add(left_ns);
        let ends = left_ns <= 3 * SLICE_NS || sleeper.interrupter().is_set();
        if ends || at_most_ns.is_some_and(|most| all_ns > most) || !hears_signals(py)? {
            break;
        }
        let ahead_ns = left_ns.min(3 * SLICE_NS);
        come_near(py, sleeper, sleeper.now_ns().saturating_add(ahead_ns))?;
        was_ahead = true;
    }
    let before_ns = passed_ns(sleeper);
    let left = |most: u64| Span::saturating_from_nanos(most.saturating_sub(before_ns));
    let at_most = at_most_ns.map_or(Span::MAX, left);
    let time = Instant::<Realtime>::from_nanos(time_ns);
    let mut wait = py.detach(|| sleeper.wait_until_past(time, at_most));
    py.check_signals()?;
    if was_ahead {
        wait.waited_ns = wait.waited_ns.saturating_add(before_ns);
        wait.end = if wait.is_past() { UtcWaitEnd::Past } else { wait.end };
        if let Utc::Bounded(first) = first {
            let middle_ns = first.earliest_ns.saturating_add_unsigned(first.error_ns());
            wait.ahead_ns = u64::try_from(time_ns.saturating_sub(middle_ns)).unwrap_or(0);
            wait.error_ns = first.error_ns();
        }
    }
    Ok(wait)
}

/// Adds it to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(utc_bounded, module)?)?;
    module.add_function(wrap_pyfunction!(wait_until_past, module)?)?;
    module.add_class::<PyUtc>()?;
    module.add_class::<PyUtcKeeper>()?;
    module.add_class::<PyUtcWait>()
}
