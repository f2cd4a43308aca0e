//! Reservations and progress of the program itself, for Python.

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hourglass_reserve::admission::{self, AdmissionFacts, Obstacle, Refusal};
use hourglass_reserve::backend::deadline::Deadline;
use hourglass_reserve::backend::{ActiveReservation, Backend, BackendRequest};
use hourglass_reserve::progress::Progress;
use hourglass_reserve::progress::page::PageError;
use hourglass_reserve::target::Target;
use hourglass_reserve::{Reservation, ReservationKind};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{ErrorKind, PyFailure};
use crate::spans::{DurationArg, TimeArg};
use crate::values::repr;

/// Processor time that a reservation delivered.
#[pyclass(frozen, get_all, eq, hash, name = "Supply", module = "hourglass.reserve")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PySupply {
    periods: u64,
    missed: u64,
    overruns: u64,
    delivered_min_ns: Option<u64>,
    delivered_p50_ns: Option<u64>,
    throttled_ns: Option<u64>,
}

#[pymethods]
impl PySupply {
    fn __repr__(slf: &Bound<'_, PySupply>) -> PyResult<String> {
        repr(slf, &["periods", "missed", "overruns", "delivered_min_ns", "delivered_p50_ns"])
    }
}

/// The exception for a refusal.
fn refused(refusal: &Refusal) -> PyFailure {
    let kind = match refusal.id {
        Obstacle::Capability | Obstacle::Owner | Obstacle::GroupBudget => ErrorKind::Permission,
        Obstacle::Bandwidth | Obstacle::Nested => ErrorKind::Busy,
        Obstacle::Times | Obstacle::Affinity | Obstacle::Cpu | Obstacle::Fork => ErrorKind::Invalid,
        Obstacle::Gone => ErrorKind::Closed,
        Obstacle::Missing => ErrorKind::Unsupported,
    };
    let failure = PyFailure::new(kind, &refusal.cause).with_remedy(&refusal.remedy);
    failure.with_errno(refusal.errno.unwrap_or(0))
}

/// A thread by its number; without one the calling thread's.
fn number(thread: Option<u32>) -> Result<u32, PyFailure> {
    if let Some(thread) = thread {
        return Ok(thread);
    }
    // It links to PID/task/TID.
    let own = fs::read_link("/proc/thread-self").ok();
    let own = own.as_deref().and_then(|path| path.file_name()?.to_str()?.parse().ok());
    let text = "/proc/thread-self does not tell this thread's number: give it, or mount /proc";
    own.ok_or_else(|| PyFailure::new(ErrorKind::Os, text))
}

/// Processor time for a thread: a budget in every period, by the kernel's deadline class.
///
/// A context manager that puts the calling thread (or the one of that number, `threading.get_native_id()`) under
/// the reservation and takes it out again. `soft` lets it use unreserved time, too. Threads that it
/// starts meanwhile are not under it. Threads of other users' processes only root may name.
#[pyclass(frozen, name = "Reservation", module = "hourglass.reserve")]
struct PyReservation {
    request: BackendRequest,
    thread: Option<u32>,
    reserved: Mutex<Option<Box<dyn ActiveReservation>>>,
}

impl PyReservation {
    fn reserved(&self) -> MutexGuard<'_, Option<Box<dyn ActiveReservation>>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyReservation {
    #[new]
    #[pyo3(signature = (budget, period, *, deadline = None, soft = false, cpu = None, thread = None))]
    fn new(
        budget: DurationArg,
        period: DurationArg,
        deadline: Option<DurationArg>,
        soft: bool,
        cpu: Option<u32>,
        thread: Option<u32>,
    ) -> PyResult<PyReservation> {
        let strength = if soft { ReservationKind::Soft } else { ReservationKind::Hard };
        let mut reservation =
            Reservation::new(budget.0, period.0, strength).map_err(PyFailure::invalid)?;
        if let Some(deadline) = deadline {
            reservation = reservation.with_deadline(deadline.0).map_err(PyFailure::invalid)?;
        }
        let request = BackendRequest { reservation, cpu };
        Ok(PyReservation { request, thread, reserved: Mutex::new(None) })
    }

    /// Raises an exception if the kernel would refuse the reservation. Changes nothing.
    fn check(&self) -> PyResult<()> {
        let thread = number(self.thread)?;
        admission::ownership(hourglass_reserve::backend::BackendKind::Deadline, thread)
            .map_err(|no| refused(&no))?;
        let facts = AdmissionFacts::here(Some(thread));
        match admission::deadline(&self.request, &facts).first() {
            Some(refusal) => Err(refused(refusal))?,
            None => Ok(()),
        }
    }

    /// Puts the thread under it.
    fn begin(&self) -> PyResult<()> {
        let mut reserved = self.reserved();
        if reserved.is_some() {
            return Err(PyFailure::new(
                ErrorKind::Busy,
                "the reservation is in force: end it first",
            ))?;
        }
        let target = Target::Thread(number(self.thread)?);
        *reserved = Some(Deadline.reserve(&target, &self.request).map_err(|no| refused(&no))?);
        Ok(())
    }

    /// Processor time that it delivered until now.
    fn supply(&self) -> PyResult<PySupply> {
        let mut reserved = self.reserved();
        let text = "the reservation is not in force: begin it first";
        let held = reserved.as_mut().ok_or_else(|| PyFailure::new(ErrorKind::Closed, text))?;
        let found = held.supply();
        Ok(PySupply {
            periods: found.periods,
            missed: found.missed,
            overruns: found.overruns,
            delivered_min_ns: found.delivered_min_ns(),
            delivered_p50_ns: found.delivered_p50_ns(),
            throttled_ns: found.throttled_ns,
        })
    }

    /// Ends it, from any thread; everything is as it was. Ending twice does no harm.
    fn end(&self) -> PyResult<()> {
        let held = self.reserved().take();
        let released = held.map_or(Ok(()), |mut held| held.release());
        Ok(released.map_err(|error| PyFailure::os("the thread keeps its policy", &error))?)
    }

    fn __enter__(slf: Py<PyReservation>) -> PyResult<Py<PyReservation>> {
        slf.get().begin()?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.end()?;
        Ok(false)
    }
}

/// Reports the progress of a job to a monitor (`hourglass reserve --smt`), by two stores to shared memory.
#[pyclass(frozen, name = "Progress", module = "hourglass.reserve")]
struct PyProgress(Mutex<Option<Progress>>);

impl PyProgress {
    fn with<T>(&self, work: impl FnOnce(&mut Progress) -> T) -> PyResult<T> {
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = "the page of progress is closed: open another one";
        Ok(progress.as_mut().map(work).ok_or_else(|| PyFailure::new(ErrorKind::Closed, text))?)
    }
}

fn no_page(error: PageError) -> PyFailure {
    let kind = match &error {
        PageError::Version { .. } | PageError::Foreign(_) => ErrorKind::Data,
        PageError::Make(_) => ErrorKind::Exhausted,
        _ => ErrorKind::Os,
    };
    PyFailure::new(kind, error)
}

#[pymethods]
impl PyProgress {
    #[new]
    fn new() -> PyResult<PyProgress> {
        Ok(PyProgress(Mutex::new(Some(Progress::open().map_err(no_page)?))))
    }

    /// A job begins: nothing of it is done.
    fn begin(&self) -> PyResult<()> {
        self.with(Progress::begin)
    }

    /// `done` of `total` is done, in any unit in which equal steps take equal times; all of it ends the job.
    fn report(&self, done: u64, total: u64) -> PyResult<()> {
        self.with(|progress| progress.report(done, total))
    }

    /// The number of the last job, 0 before the first.
    #[getter]
    fn job(&self) -> PyResult<u64> {
        self.with(|progress| progress.job())
    }

    /// Start of the first period after `now_ns` on the monitor's grid; None if the monitor gave no grid.
    fn next_release_ns(&self, now_ns: TimeArg) -> PyResult<Option<u64>> {
        self.with(|progress| progress.next_release_ns(now_ns.0))
    }

    /// Closes the page. Closing twice does no harm.
    fn close(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn __enter__(slf: Py<PyProgress>) -> Py<PyProgress> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) -> bool {
        self.close();
        false
    }
}

/// The page of the process, opened by the first report.
static OWN: Mutex<Option<Progress>> = Mutex::new(None);

/// `done` of `total` is done: reports it to the monitor by the page of the process.
#[pyfunction]
fn progress(done: u64, total: u64) -> PyResult<()> {
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if own.is_none() {
        *own = Some(Progress::open().map_err(no_page)?);
    }
    if let Some(own) = own.as_mut() {
        own.report(done, total);
    }
    Ok(())
}

/// Adds it to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(progress, module)?)?;
    module.add_class::<PySupply>()?;
    module.add_class::<PyReservation>()?;
    module.add_class::<PyProgress>()
}
