//! The recorder for a loop of the user's own, for Python.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use hourglass_measure::Finished;
use hourglass_measure::own_loop::{LoopFailure, MeasuredLoop};
use hourglass_workload::LoopSpec;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{ErrorKind, PyFailure};
use crate::spans::{DurationArg, TimeArg};
use crate::thread_owned::{ThreadBound, ThreadOwned};
use crate::values::repr;

/// Maximum number of records, 24 bytes each.
const MOST_RECORDS: u64 = 1 << 32;

const LOOP: &str = "recorder";

/// Periods of a loop.
#[pyclass(frozen, get_all, eq, hash, name = "Deadlines", module = "hourglass.recording")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PyDeadlines {
    hit: u64,
    missed: u64,
    lost: u64,
    completed: u64,
}

#[pymethods]
impl PyDeadlines {
    fn __repr__(slf: &Bound<'_, PyDeadlines>) -> PyResult<String> {
        repr(slf, &["hit", "missed", "lost", "completed"])
    }
}

/// The document of a run, and its folder if it was stored.
struct RunOutput {
    document: String,
    folder: Option<PathBuf>,
}

/// Measures a loop of the program's own, in the thread that begins it.
#[pyclass(frozen, subclass, name = "Recorder", module = "hourglass._hourglass")]
struct PyRecorder {
    spec: LoopSpec,
    folder: Mutex<Option<PathBuf>>,
    own: OnceLock<ThreadOwned<MeasuredLoop>>,
    found: OnceLock<RunOutput>,
}

fn failure(error: LoopFailure) -> PyFailure {
    let kind = match &error {
        LoopFailure::Memory { .. } => ErrorKind::Exhausted,
        _ => ErrorKind::Invalid,
    };
    PyFailure::new(kind, error)
}

impl PyRecorder {
    fn own(&self) -> Result<&ThreadOwned<MeasuredLoop>, PyFailure> {
        let text = "the recorder has not begun: call begin(), or use it in a with statement";
        let own = self.own.get().ok_or_else(|| PyFailure::new(ErrorKind::Closed, text))?;
        // Its records and counters are the parent's alone, and not mapped in a child.
        own.not_inherited(LOOP)?;
        Ok(own)
    }

    fn mark(&self, mark: impl FnOnce(&mut MeasuredLoop)) -> PyResult<()> {
        mark(&mut *self.own()?.get(LOOP)?);
        Ok(())
    }
}

#[pymethods]
impl PyRecorder {
    #[new]
    #[pyo3(signature = (period, *, folder = None, name = "loop", deadline = None, gap = None, records = None, jobs = 0, ring = false))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        period: DurationArg,
        folder: Option<PathBuf>,
        name: &str,
        deadline: Option<DurationArg>,
        gap: Option<DurationArg>,
        records: Option<u64>,
        jobs: u64,
        ring: bool,
    ) -> PyResult<PyRecorder> {
        let default = LoopSpec::every(name, period.0);
        let spec = LoopSpec {
            deadline: deadline.map(|deadline| deadline.0),
            gap: gap.map(|gap| gap.0),
            records: records.unwrap_or(default.records),
            jobs: usize::try_from(jobs).unwrap_or(usize::MAX),
            ring,
            ..default
        };
        spec.check().map_err(PyFailure::invalid)?;
        if spec.records > MOST_RECORDS || jobs > MOST_RECORDS {
            let text = format!("room for more than {MOST_RECORDS} records: give less, or a ring");
            return Err(PyFailure::invalid(text))?;
        }
        let folder = Mutex::new(folder);
        Ok(PyRecorder { spec, folder, own: OnceLock::new(), found: OnceLock::new() })
    }

    /// Makes everything ready and begins, in the thread that runs the loop; some 30 ms.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        let begun =
            || PyFailure::new(ErrorKind::Busy, "the recorder has begun before: make another one");
        if self.own.get().is_some() {
            return Err(begun())?;
        }
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner).take();
        let again = folder.clone();
        let spec = self.spec.clone();
        let started = ThreadBound::detach(py, (spec, folder), |(spec, folder)| {
            MeasuredLoop::start(spec, folder)
        });
        let started = started.map_err(|error| {
            *self.folder.lock().unwrap_or_else(PoisonError::into_inner) = again;
            failure(error)
        })?;
        Ok(self.own.set(ThreadOwned::for_this_thread(started)).map_err(|_| begun())?)
    }

    /// A period begins, that was due at `due_ns` of `clock.now_ns()`'s scale; now if that is left out.
    #[pyo3(signature = (due_ns = None))]
    fn begin(&self, due_ns: Option<TimeArg>) -> PyResult<()> {
        match due_ns {
            Some(due) => self.mark(|own| own.begin_period_due(due.0)),
            None => self.mark(MeasuredLoop::begin_period),
        }
    }

    /// Within a period: the thread runs.
    fn check(&self) -> PyResult<()> {
        self.mark(MeasuredLoop::check)
    }

    /// The period is done; the thread may wait now.
    fn end(&self) -> PyResult<()> {
        self.mark(MeasuredLoop::end_period)
    }

    /// Periods so far, without the one at hand; in the loop's own thread.
    #[getter]
    fn deadlines(&self) -> PyResult<PyDeadlines> {
        let counted = self.own()?.get(LOOP)?.deadlines();
        Ok(PyDeadlines {
            hit: counted.hit,
            missed: counted.missed,
            lost: counted.lost,
            completed: counted.completed,
        })
    }

    /// Ends measuring and writes the folder, if there is to be one. Finishing twice does no harm.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let Some(own) = self.own()?.take(LOOP)? else { return Ok(()) };
        let finished = ThreadBound::detach(py, own, MeasuredLoop::finish);
        let Finished { document, folder, .. } = finished;
        let document = serde_json::to_string(&document).map_err(|error| {
            PyFailure::new(ErrorKind::Data, format_args!("the document: {error}"))
        })?;
        let (folder, refused) = match folder {
            Some(Ok(folder)) => (Some(folder), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        // The recorder was taken above, so the cell is still empty.
        let _ = self.found.set(RunOutput { document, folder });
        match refused {
            Some(error) => Err(PyFailure::new(ErrorKind::Os, error))?,
            None => Ok(()),
        }
    }

    /// The document of the run (`hourglass.run/1`), as text; None before the end.
    #[getter]
    fn json(&self) -> Option<&str> {
        self.found.get().map(|found| found.document.as_str())
    }

    /// Folder of the run; None before the end, or if the run was not stored.
    #[getter]
    fn kept(&self) -> Option<&PathBuf> {
        self.found.get()?.folder.as_ref()
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.finish(py)?;
        Ok(false)
    }
}

/// Adds it to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDeadlines>()?;
    module.add_class::<PyRecorder>()
}
