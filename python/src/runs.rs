//! Runs and their records, from memory or from a run folder.
//!
//! Owns: the border over which a run's document and records go. Must not: read files itself, compute.

use std::path::{Path, PathBuf};

use hourglass_documents::document::RunDocument;
use hourglass_measure::Finished;
use hourglass_runs::store::StoredWakeUp;
use hourglass_runs::{OpenRun, open_run as open_folder};
use hourglass_trace::cause::AttributedGap;
use hourglass_trace::{Interval, JobRecord, KernelEvent};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use crate::errors::{ErrorKind, PyFailure};
use crate::records::{self, GAPS, INTERVALS, JOBS, KERNEL_EVENTS, WAKE_UPS, WakeUp};
use crate::tables::Table;

/// A run and its records.
#[pyclass(frozen, module = "hourglass._hourglass")]
pub(crate) struct RunData {
    document: RunDocument,
    records: Records,
}

/// Where the records are.
enum Records {
    /// In a folder, read as they are asked for.
    Kept(Box<OpenRun>, PathBuf),
    /// In memory.
    Held(Box<InMemoryRun>),
}

/// The records of a run that was not stored.
struct InMemoryRun {
    intervals: Vec<Interval>,
    gaps: Vec<AttributedGap>,
    events: Vec<KernelEvent>,
    wake_ups: Vec<WakeUp>,
    jobs: Vec<JobRecord>,
}

/// The exception for an error of the folder's reader.
fn damaged(error: impl std::fmt::Display) -> PyFailure {
    PyFailure::new(ErrorKind::Data, error)
}

fn of_kept(thread: u32, one: StoredWakeUp) -> WakeUp {
    WakeUp { thread, woke_ns: one.woke_ns, late_ps: one.lateness_ps }
}

impl RunData {
    /// Opens a run folder; what its document lacks is inferred, as `hourglass show` does.
    pub(crate) fn open(path: &Path) -> Result<RunData, PyFailure> {
        let mut recalled = open_folder(path).map_err(damaged)?;
        recalled.find_causes();
        recalled.infer();
        let document = recalled.document.clone();
        Ok(RunData { document, records: Records::Kept(Box::new(recalled), path.to_path_buf()) })
    }

    /// A run that has just ended and is nowhere else.
    pub(crate) fn held(finished: &Finished) -> RunData {
        let threads = finished.document.result.threads.iter();
        let tested = threads.filter(|thread| thread.latency.is_some()).map(|thread| thread.id);
        let of_thread = |thread| finished.wake_ups(thread).map(move |one| of_kept(thread, one));
        let held = InMemoryRun {
            intervals: finished.intervals().collect(),
            gaps: finished.gaps(),
            events: finished.kernel_events().collect(),
            wake_ups: tested.flat_map(of_thread).collect(),
            jobs: finished.job_records().collect(),
        };
        RunData { document: finished.document.clone(), records: Records::Held(Box::new(held)) }
    }

    fn read_intervals(&self) -> Result<Table, PyFailure> {
        match &self.records {
            Records::Held(held) => Ok(Table::of(&held.intervals, INTERVALS)),
            Records::Kept(recalled, _) => {
                let read = recalled.intervals().and_then(Iterator::collect::<Result<Vec<_>, _>>);
                Ok(Table::of(&read.map_err(damaged)?, INTERVALS))
            }
        }
    }

    fn read_gaps(&self) -> Result<Table, PyFailure> {
        match &self.records {
            Records::Held(held) => Ok(Table::of(&held.gaps, GAPS)),
            Records::Kept(recalled, _) => Ok(Table::of(&recalled.gaps().map_err(damaged)?, GAPS)),
        }
    }

    fn read_kernel_events(&self) -> Result<Table, PyFailure> {
        match &self.records {
            Records::Held(held) => Ok(Table::of(&held.events, KERNEL_EVENTS)),
            Records::Kept(recalled, _) => {
                let read = recalled.kernel_events();
                let read = read.and_then(Iterator::collect::<Result<Vec<_>, _>>);
                Ok(Table::of(&read.map_err(damaged)?, KERNEL_EVENTS))
            }
        }
    }

    fn read_jobs(&self) -> Result<Table, PyFailure> {
        match &self.records {
            Records::Held(held) => Ok(Table::of(&held.jobs, JOBS)),
            Records::Kept(recalled, _) => {
                let read = recalled.jobs().and_then(Iterator::collect::<Result<Vec<_>, _>>);
                Ok(Table::of(&read.map_err(damaged)?, JOBS))
            }
        }
    }

    fn read_wake_ups(&self) -> Result<Table, PyFailure> {
        let recalled = match &self.records {
            Records::Held(held) => return Ok(Table::of(&held.wake_ups, WAKE_UPS)),
            Records::Kept(recalled, _) => recalled,
        };
        let mut wake_ups = Vec::new();
        for thread in self.document.result.threads.iter().filter(|t| t.latency.is_some()) {
            for one in recalled.wake_ups(thread.id).map_err(damaged)? {
                wake_ups.push(of_kept(thread.id, one.map_err(damaged)?));
            }
        }
        Ok(Table::of(&wake_ups, WAKE_UPS))
    }
}

#[pymethods]
impl RunData {
    /// The document `hourglass.run/1`, as JSON.
    fn document(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| json(&self.document))
    }

    /// The folder, if it is in one.
    fn folder(&self) -> Option<PathBuf> {
        match &self.records {
            Records::Kept(_, path) => Some(path.clone()),
            Records::Held(_) => None,
        }
    }

    /// Threads of which only a histogram of wake-ups was kept, which is read instead.
    fn rounded(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let Records::Kept(recalled, _) = &self.records else { return Ok(Vec::new()) };
        py.detach(|| {
            let mut rounded = Vec::new();
            for thread in self.document.result.threads.iter().filter(|t| t.latency.is_some()) {
                if !recalled.has_single_latencies(thread.id).map_err(damaged)? {
                    rounded.push(thread.id);
                }
            }
            Ok(rounded)
        })
    }

    /// The execution trace, in order of start.
    fn intervals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        py.detach(|| self.read_intervals())?.into_python(py)
    }

    /// The gaps with their causes, in order of thread and then of end.
    fn gaps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        py.detach(|| self.read_gaps())?.into_python(py)
    }

    /// The kernel's trace events, in order of time.
    fn kernel_events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        py.detach(|| self.read_kernel_events())?.into_python(py)
    }

    /// The jobs of periodic threads, thread by thread.
    fn jobs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        py.detach(|| self.read_jobs())?.into_python(py)
    }

    /// How late wake-ups were, thread by thread.
    fn wake_ups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        py.detach(|| self.read_wake_ups())?.into_python(py)
    }
}

/// A document as the command prints it.
pub(crate) fn json(document: &impl Serialize) -> PyResult<String> {
    let text = serde_json::to_string(document);
    Ok(text.map_err(|error| PyFailure::new(ErrorKind::Data, format!("no JSON: {error}")))?)
}

/// Opens a run folder.
#[pyfunction]
fn open_run(py: Python<'_>, path: PathBuf) -> PyResult<RunData> {
    Ok(py.detach(|| RunData::open(&path))?)
}

/// Adds them to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    records::register(module)?;
    module.add_class::<RunData>()?;
    module.add_function(wrap_pyfunction!(open_run, module)?)
}
