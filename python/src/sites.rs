//! Spans by call site, recorded into a run folder, for Python.
//!
//! Owns: the recording, and spans of it as Python holds them.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hourglass_measure::spans::{
    DumpTarget, Dumper, Site, SiteSettings, SiteSpan, Sites, SpanRecording,
};
use hourglass_time::Span;
use pyo3::prelude::*;

use crate::errors::{ErrorKind, PyFailure};
use crate::spans::DurationArg;
use crate::thread_owned::ThreadOwned;
use crate::witness::PyLoss;

const SPAN: &str = "span";
const RECORDING: &str = "recording";

/// Spans of a program, recorded into a run folder.
#[pyclass(frozen, subclass, name = "Recording", module = "hourglass._hourglass")]
struct PyRecording {
    sites: Sites,
    /// A forked child must not undo the parent's folder, nor wait for its thread.
    recording: ThreadOwned<SpanRecording>,
    dumper: ThreadOwned<Option<Dumper>>,
}

/// A span of a call site.
#[pyclass(frozen, name = "SiteSpan", module = "hourglass.witness")]
struct PySiteSpan {
    sites: Sites,
    site: Site,
    open: Mutex<Option<ThreadOwned<SiteSpan>>>,
    loss: Mutex<Option<Py<PyLoss>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ends(error: impl std::fmt::Display) -> PyFailure {
    PyFailure::new(ErrorKind::Closed, error)
}

#[pymethods]
impl PyRecording {
    #[new]
    #[pyo3(signature = (folder, *, sites = 32, spans = 65_536, dump_from = None, switch_times = false))]
    fn new(
        py: Python<'_>,
        folder: PathBuf,
        sites: u16,
        spans: u32,
        dump_from: Option<DurationArg>,
        switch_times: bool,
    ) -> PyResult<PyRecording> {
        let ask_from: Option<Span> = dump_from.map(|given| given.0);
        let settings =
            SiteSettings { sites, spans, ask_from, switch_times, ..SpanRecording::SETTINGS };
        let recording = py.detach(move || SpanRecording::start(folder, settings));
        let recording = recording.map_err(PyFailure::invalid)?;
        Ok(PyRecording {
            sites: recording.sites().clone(),
            recording: ThreadOwned::for_this_thread(recording),
            dumper: ThreadOwned::for_this_thread(None),
        })
    }

    /// A span of the call site of this name; `place` is where the program named it first.
    fn span_at(&self, name: &str, place: &str) -> PySiteSpan {
        let site = self.sites.site_at(name, place);
        let (open, loss) = Default::default();
        PySiteSpan { sites: self.sites.clone(), site, open, loss }
    }

    /// The worst spans so far, one a line.
    fn worst(&self) -> Vec<String> {
        self.sites.worst().iter().map(ToString::to_string).collect()
    }

    /// Starts a thread that writes the worst spans to the end of `file` when `signal` comes, or a span loses too much.
    fn dump_to(&self, file: PathBuf, signal: Option<i32>) -> PyResult<()> {
        self.dumper.not_inherited(RECORDING)?;
        let mut dumper = self.dumper.get(RECORDING)?;
        let started = Dumper::start(&self.sites, DumpTarget::File(file), signal);
        let started =
            started.map_err(|error| PyFailure::os("cannot dump the worst spans", &error))?;
        *dumper = Some(started);
        Ok(())
    }

    /// Ends the recording and writes the folder; once, in the thread that made it.
    fn finish(&self, py: Python<'_>) -> PyResult<PathBuf> {
        self.recording.not_inherited(RECORDING)?;
        let text = "the recording is over: make another one";
        let taken = self.recording.take(RECORDING)?;
        let recording = taken.ok_or_else(|| PyFailure::new(ErrorKind::Closed, text))?;
        *self.dumper.get(RECORDING)? = None;
        let kept = py.detach(move || recording.finish());
        let kept = kept.map_err(|error| PyFailure::new(ErrorKind::Os, error))?;
        Ok(kept.path().to_path_buf())
    }
}

#[pymethods]
impl PySiteSpan {
    fn __enter__(slf: Bound<'_, PySiteSpan>) -> PyResult<Bound<'_, PySiteSpan>> {
        let own = slf.get();
        let here = own.sites.current_thread().map_err(ends)?;
        let mut open = locked(&own.open);
        if open.is_some() {
            return Err(PyFailure::new(
                ErrorKind::Busy,
                "the span goes on already: make another one",
            )
            .into());
        }
        *open = Some(ThreadOwned::for_this_thread(here.begin(own.site)));
        drop(open);
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<bool> {
        let mut open = locked(&self.open);
        let over = || PyFailure::new(ErrorKind::Closed, "the span does not go on: enter it first");
        let owned = open.as_ref().ok_or_else(over)?;
        owned.not_inherited(SPAN)?;
        let span = owned.take(SPAN)?.ok_or_else(over)?;
        *open = None;
        drop(open);
        let loss = self.sites.current_thread().map_err(ends)?.end(span);
        *locked(&self.loss) = loss.map(|loss| Py::new(py, PyLoss::from(loss))).transpose()?;
        Ok(false)
    }

    /// What was taken from it; None if nothing was, or before its end.
    #[getter]
    fn loss(&self, py: Python<'_>) -> Option<Py<PyLoss>> {
        locked(&self.loss).as_ref().map(|loss| loss.clone_ref(py))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRecording>()?;
    module.add_class::<PySiteSpan>()
}
