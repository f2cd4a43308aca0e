//! Policies and CPUs of threads, as Python writes them: the command's words.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hourglass_documents::{CpuSet, Policy};
use hourglass_time::Span;
use hourglass_timer::periodic::{
    Parameters, Scheduling, SchedulingChange, TakeError, ValidParameters,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString, PyTuple};

use crate::errors::{ErrorKind, PyFailure};
use crate::values::{class_of, is_overflow, shown};

/// CPUs that were given: `3`, `[0, 3]` or `"0-3,8"`.
#[derive(Clone, Debug)]
pub(crate) struct CpusArg(pub(crate) Vec<u32>);

impl<'a, 'py> FromPyObject<'a, 'py> for CpusArg {
    type Error = PyErr;

    fn extract(given: pyo3::Borrowed<'a, 'py, PyAny>) -> PyResult<CpusArg> {
        let given: &Bound<'py, PyAny> = &given;
        let cpu = |one: &Bound<'py, PyAny>| -> PyResult<u32> {
            if one.is_instance_of::<PyBool>() || !one.hasattr("__index__")? {
                let name = class_of(one)?;
                return Err(PyTypeError::new_err(format!(
                    "CPUs are a number, a list of numbers or a text such as '0-3', not {name}"
                )));
            }
            one.extract().map_err(|error: PyErr| {
                if !is_overflow(one.py(), &error) {
                    return error;
                }
                match shown(one) {
                    Ok(cpu) => {
                        PyFailure::argument("cpus", format_args!("CPU {cpu} does not exist")).into()
                    }
                    Err(other) => other,
                }
            })
        };
        let cpus = if let Ok(text) = given.cast::<PyString>() {
            let set: Result<CpuSet, _> = text.to_string_lossy().parse();
            set.map_err(|error| PyFailure::argument("cpus", error))?.iter().collect()
        } else if given.hasattr("__index__")? {
            vec![cpu(given)?]
        } else {
            given.try_iter()?.map(|one| cpu(&one?)).collect::<PyResult<Vec<u32>>>()?
        };
        if cpus.is_empty() {
            return Err(PyFailure::argument(
                "cpus",
                "none is given: leave it out to keep those of the thread",
            ))?;
        }
        Ok(CpusArg(cpus))
    }
}

/// A policy by the command's words: `FIFO:50`, `RR:10`, `OTHER:-5`, `DEADLINE`, and the paper's names
/// (`NORMAL`, `RTHIGH`).
pub(crate) fn policy(text: &str) -> Result<Scheduling, PyFailure> {
    let policy: Result<Policy, _> = text.parse();
    match policy.map_err(|error| PyFailure::argument("policy", error))? {
        Policy::Other(nice) => Ok(Scheduling::Other(nice)),
        Policy::Fifo(priority) => Ok(Scheduling::Fifo(priority)),
        Policy::RoundRobin(priority) => Ok(Scheduling::RoundRobin(priority)),
        Policy::Deadline => Ok(Scheduling::Deadline { reclaim: false }),
        other => Err(PyFailure::argument(
            "policy",
            format_args!("{other} is for no periodic thread: take OTHER:19"),
        )),
    }
}

/// The exception for a refusal of the kernel.
pub(crate) fn failure(error: TakeError) -> PyFailure {
    match &error {
        TakeError::Refused(refusal) => {
            PyFailure::new(ErrorKind::of_errno(refusal.errno), &error).with_errno(refusal.errno)
        }
        TakeError::Affinity { error: os, .. } | TakeError::Unknown(os) => {
            let errno = os.raw_os_error().unwrap_or(0);
            PyFailure::new(ErrorKind::of_errno(errno), &error).with_errno(errno)
        }
        _ => PyFailure::invalid(error),
    }
}

/// Guard of a thread's policy and CPUs; restores them when it is dropped, in any thread.
#[derive(Default)]
pub(crate) struct SchedulingGuard(Mutex<Option<SchedulingChange>>);

impl SchedulingGuard {
    fn cell(&self) -> MutexGuard<'_, Option<SchedulingChange>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the policy and CPUs of the calling thread, if given.
    ///
    /// # Errors
    /// `Busy` if this guard already serves a thread; a refusal of the kernel.
    pub(crate) fn take(
        &self,
        scheduling: Scheduling,
        cpus: Option<&[u32]>,
        parameters: &ValidParameters,
    ) -> Result<(), PyFailure> {
        let mut held = self.cell();
        if held.is_some() {
            return Err(PyFailure::new(
                ErrorKind::Busy,
                "a thread is scheduled so already: make another one",
            ));
        }
        if scheduling != Scheduling::Inherited || cpus.is_some() {
            *held = Some(
                SchedulingChange::by_this_thread(scheduling, cpus, parameters).map_err(failure)?,
            );
        }
        Ok(())
    }

    /// Restores the former policy and CPUs.
    pub(crate) fn restore(&self) -> Result<(), PyFailure> {
        let given = self.cell().take().map_or(Ok(()), SchedulingChange::restore);
        given.map_err(|error| PyFailure::os("the thread keeps its policy", &error))
    }
}

impl Drop for SchedulingGuard {
    fn drop(&mut self) {
        // A drop cannot report a refusal; `close` and the end of a `with` raise it.
        let _ = self.restore();
    }
}

/// The calling thread under another policy, on other CPUs; a context manager.
///
/// `policy` is `"FIFO:50"`, `"RR:10"`, `"OTHER:-5"` or one of the paper's names (`"RTHIGH"`); `cpus` is `3`,
/// `[0, 3]` or `"0-3"`. What the thread had before is put back at the end, from whatever thread.
#[pyclass(frozen, name = "Scheduled", module = "hourglass.reserve")]
struct PyScheduled {
    scheduling: Scheduling,
    cpus: Option<Vec<u32>>,
    held: SchedulingGuard,
}

#[pymethods]
impl PyScheduled {
    #[new]
    #[pyo3(signature = (policy = None, *, cpus = None))]
    fn new(policy: Option<&str>, cpus: Option<CpusArg>) -> PyResult<PyScheduled> {
        let scheduling = policy.map_or(Ok(Scheduling::Inherited), self::policy)?;
        if let Scheduling::Deadline { .. } = scheduling {
            return Err(PyFailure::argument("policy", "DEADLINE has a budget: take Reservation"))?;
        }
        Ok(PyScheduled {
            scheduling,
            cpus: cpus.map(|cpus| cpus.0),
            held: SchedulingGuard::default(),
        })
    }

    fn __enter__(slf: Py<PyScheduled>) -> PyResult<Py<PyScheduled>> {
        let this = slf.get();
        // Any period will do where no budget is.
        let parameters = Parameters::every(Span::SECOND).check().map_err(PyFailure::invalid)?;
        this.held.take(this.scheduling, this.cpus.as_deref(), &parameters)?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.held.restore()?;
        Ok(false)
    }
}

/// Adds it to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyScheduled>()
}
