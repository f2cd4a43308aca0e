//! The clock of the process, for Python. `hourglass/clock.py` explains each function.

use std::fs::File;
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};

use hourglass_clock::process::clock;
use hourglass_clock::timekeeping::{
    Bounds, EventKind, OpenPageError, PageReader, ReferenceClock, SourceId, Status, Ticks,
    WallReference, WallStatus,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{ErrorKind, PyFailure};
use crate::values::repr;

/// Name of a status for Python.
fn status_word(status: Status) -> &'static str {
    match status {
        Status::OsClock => "os_clock",
        Status::Settling => "settling",
        Status::Steady => "steady",
        Status::FailedOver => "failed_over",
        Status::Assumed => "assumed",
    }
}

/// The kinds of events, in the order of [`EventKind::ALL`].
const EVENTS: [&str; EventKind::ALL.len()] = [
    "adopted",
    "by_hand",
    "kernel_changed_source",
    "residual",
    "negative_step",
    "stuck",
    "unsupported",
    "prior_contradicted",
    "untrusted",
    "suspended",
    "cpus_changed",
    "vm_changed",
    "reference_slewed",
    "rate_corrected",
    "wall_set",
];

fn event_word(kind: EventKind) -> &'static str {
    let at = EventKind::ALL.iter().position(|known| *known == kind);
    at.map_or("other", |at| EVENTS[at])
}

/// Bounds of a time.
#[pyclass(frozen, get_all, eq, hash, name = "Bounds", module = "hourglass.clock")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PyBounds {
    earliest_ns: u64,
    latest_ns: u64,
    status: &'static str,
}

impl From<Bounds> for PyBounds {
    fn from(found: Bounds) -> PyBounds {
        PyBounds {
            earliest_ns: found.earliest,
            latest_ns: found.latest,
            status: status_word(found.status),
        }
    }
}

#[pymethods]
impl PyBounds {
    /// Half the distance between the two, ns rounded up.
    #[getter]
    fn error_ns(&self) -> u64 {
        self.latest_ns.saturating_sub(self.earliest_ns).div_ceil(2)
    }

    /// The middle, ns rounded down.
    #[getter]
    fn middle_ns(&self) -> u64 {
        self.earliest_ns + self.latest_ns.saturating_sub(self.earliest_ns) / 2
    }

    /// Whether `ns` has passed for certain.
    fn is_after(&self, ns: u64) -> bool {
        self.earliest_ns > ns
    }

    /// Whether `ns` is still to come for certain.
    fn is_before(&self, ns: u64) -> bool {
        self.latest_ns < ns
    }

    fn __repr__(slf: &Bound<'_, PyBounds>) -> PyResult<String> {
        repr(slf, &["earliest_ns", "latest_ns", "status"])
    }
}

/// A reading of the counter.
#[pyclass(frozen, get_all, eq, hash, name = "Ticks", module = "hourglass.clock", from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PyTicks {
    count: u64,
    epoch: u32,
}

#[pymethods]
impl PyTicks {
    #[new]
    fn new(count: u64, epoch: u32) -> PyTicks {
        PyTicks { count, epoch }
    }

    fn __repr__(slf: &Bound<'_, PyTicks>) -> PyResult<String> {
        repr(slf, &["count", "epoch"])
    }
}

/// A length of time by the counter.
#[pyclass(frozen, get_all, eq, hash, module = "hourglass.clock")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Elapsed {
    ns: i64,
    error_ns: u64,
}

#[pymethods]
impl Elapsed {
    fn __repr__(slf: &Bound<'_, Elapsed>) -> PyResult<String> {
        repr(slf, &["ns", "error_ns"])
    }
}

/// Time on another scale, or wall-clock time.
#[pyclass(frozen, get_all, eq, hash, module = "hourglass.clock")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Reading {
    ns: i64,
    error_ns: Option<u64>,
    status: &'static str,
}

#[pymethods]
impl Reading {
    fn __repr__(slf: &Bound<'_, Reading>) -> PyResult<String> {
        repr(slf, &["ns", "error_ns", "status"])
    }
}

/// An event of the clock, such as a change of source.
#[pyclass(frozen, get_all, eq, hash, module = "hourglass.clock")]
#[derive(Clone, PartialEq, Eq, Hash)]
struct Event {
    at_ns: u64,
    kind: &'static str,
    text: String,
}

#[pymethods]
impl Event {
    fn __repr__(slf: &Bound<'_, Event>) -> PyResult<String> {
        repr(slf, &["at_ns", "kind", "text"])
    }
}

/// One piece of evidence about a source.
#[pyclass(frozen, get_all, eq, hash, module = "hourglass.clock")]
#[derive(Clone, PartialEq, Eq, Hash)]
struct Evidence {
    id: &'static str,
    found: String,
    verdict: &'static str,
}

#[pymethods]
impl Evidence {
    fn __repr__(slf: &Bound<'_, Evidence>) -> PyResult<String> {
        repr(slf, &["id", "found", "verdict"])
    }
}

/// Whether the source in use can be trusted.
#[pyclass(frozen, get_all, eq, module = "hourglass.clock")]
#[derive(Clone, PartialEq, Eq)]
struct Trust {
    source: &'static str,
    trusted: bool,
    reason: String,
    evidence: Vec<Evidence>,
}

#[pymethods]
impl Trust {
    fn __repr__(slf: &Bound<'_, Trust>) -> PyResult<String> {
        repr(slf, &["source", "trusted", "reason"])
    }
}

impl From<hourglass_clock::TrustReport> for Trust {
    fn from(found: hourglass_clock::TrustReport) -> Trust {
        let evidence = found.evidence.into_iter().map(|item| Evidence {
            id: item.id,
            found: item.found,
            verdict: item.verdict.name(),
        });
        let evidence = evidence.collect();
        let source = clock().source().name();
        Trust { source, trusted: found.trusted, reason: found.reason, evidence }
    }
}

/// The time, ns on `CLOCK_MONOTONIC`'s scale. Unordered: it may be read some nanoseconds before earlier
/// instructions are done.
#[pyfunction]
fn now_ns() -> u64 {
    clock().now()
}

/// The time after everything before the call, ns on `CLOCK_MONOTONIC`'s scale.
#[pyfunction]
fn now_ordered_ns() -> u64 {
    clock().now_ordered()
}

/// Certain bounds of the time, also while a daemon slews the kernel's clock; some
/// nanoseconds more than `now_ns`.
#[pyfunction]
#[pyo3(signature = (*, ordered = true))]
fn now_bounded(ordered: bool) -> PyBounds {
    let found = if ordered { clock().now_bounded_ordered() } else { clock().now_bounded() };
    found.into()
}

/// A sample of the counter in use.
#[pyfunction]
fn ticks() -> PyTicks {
    let Ticks { count, epoch } = clock().ticks();
    PyTicks { count, epoch }
}

/// The time between two readings of the counter; `InvalidError` if the source changed meanwhile.
#[pyfunction]
fn elapsed(first: PyTicks, second: PyTicks) -> PyResult<Elapsed> {
    let ticks = |ticks: PyTicks| Ticks { count: ticks.count, epoch: ticks.epoch };
    let found = clock().elapsed(ticks(first), ticks(second)).map_err(PyFailure::invalid)?;
    Ok(Elapsed { ns: found.ns, error_ns: found.error_ns })
}

/// The time on another scale of the kernel: `"monotonic"`, `"monotonic_raw"`, `"realtime"`, `"tai"`, `"boottime"`.
#[pyfunction]
fn now_on(scale: &str) -> PyResult<Reading> {
    let scale = match scale {
        "monotonic" => ReferenceClock::Monotonic,
        "monotonic_raw" => ReferenceClock::Raw,
        "realtime" => ReferenceClock::Realtime,
        "tai" => ReferenceClock::Tai,
        "boottime" => ReferenceClock::Boottime,
        other => {
            let known = "monotonic, monotonic_raw, realtime, tai or boottime";
            return Err(PyFailure::argument(
                "scale",
                format_args!("unknown '{other}'; expected one of {known}"),
            ))?;
        }
    };
    let found = clock().now_on(scale);
    let status = status_word(found.status);
    Ok(Reading { ns: found.ns, error_ns: Some(found.error_ns), status })
}

/// Wall-clock time, ns since 1970, with its error against UTC where that is known.
#[pyfunction]
fn wall() -> Reading {
    let found = clock().wall();
    Reading { ns: found.ns, error_ns: found.error_ns, status: wall_status(found.status) }
}

/// The word for who vouches for wall-clock time.
pub(crate) fn wall_status(status: WallStatus) -> &'static str {
    match status {
        WallStatus::Unknown => "unknown",
        WallStatus::Synchronised => "synchronised",
        WallStatus::ByHand => "by_hand",
        WallStatus::Steered => "steered",
    }
}

/// Sets wall-clock time of this process' clock: at `monotonic_ns` it was `wall_ns`, to within `error_ns`.
#[pyfunction]
fn set_wall(monotonic_ns: u64, wall_ns: i64, error_ns: u64) {
    clock().set_wall(WallReference { monotonic_ns, wall_ns, error_ns });
}

/// Steers wall-clock time of this process' clock towards a sample of a reference.
#[pyfunction]
fn steer_wall(monotonic_ns: u64, wall_ns: i64, error_ns: u64) {
    clock().steer_wall(WallReference { monotonic_ns, wall_ns, error_ns });
}

/// Takes wall-clock time from the kernel again.
#[pyfunction]
fn release_wall() {
    clock().release_wall();
}

/// The name of the source in use: `"tsc"`, `"cntvct"`, `"hpet"` or `"monotonic"`.
#[pyfunction]
fn source() -> &'static str {
    clock().source().name()
}

/// Changes the source by hand, without a step. `UnsupportedError` if it cannot be read here.
#[pyfunction]
fn set_source(py: Python<'_>, name: &str) -> PyResult<()> {
    let known = [SourceId::OS, SourceId::TSC, SourceId::CNTVCT, SourceId::HPET];
    let source = known.into_iter().find(|source| source.name() == name).ok_or_else(|| {
        PyFailure::argument(
            "name",
            format_args!("unknown '{name}'; expected one of monotonic, tsc, cntvct, hpet"),
        )
    })?;
    let set = py.detach(|| clock().set_source(source));
    Ok(set.map_err(|error| PyFailure::new(ErrorKind::Unsupported, error))?)
}

/// Does the maintenance that is due; returns when to call again, ns from now. Reads of the clock do it when needed.
#[pyfunction]
fn maintain(py: Python<'_>) -> u64 {
    py.detach(|| clock().maintain()).next_ns
}

/// Whether the source in use can be trusted, and why.
#[pyfunction]
fn trust(py: Python<'_>) -> Trust {
    py.detach(|| clock().trust()).into()
}

/// Like `trust`, after an examination with all evidence, offsets between CPUs included; takes about 0.1 s.
#[pyfunction]
fn examine(py: Python<'_>) -> Trust {
    py.detach(|| clock().examine()).into()
}

/// The latest events of the clock, oldest first.
#[pyfunction]
fn events() -> Vec<Event> {
    let events = clock().events().into_iter().map(|event| Event {
        at_ns: event.at_ns,
        kind: event_word(event.what.kind()),
        text: event.what.to_string(),
    });
    events.collect()
}

/// Number of events of the clock by kind.
#[pyfunction]
fn counts(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let counted = PyDict::new(py);
    for (kind, word) in EventKind::ALL.into_iter().zip(EVENTS) {
        counted.set_item(word, clock().count(kind))?;
    }
    Ok(counted)
}

/// A descriptor of the clock's page, for `Page` in another process; the caller closes it.
#[pyfunction]
fn share() -> PyResult<RawFd> {
    let descriptor = clock().share();
    let descriptor =
        descriptor.map_err(|error| PyFailure::os("the page cannot be shared", &error))?;
    Ok(descriptor.into_raw_fd())
}

/// The clock of another process.
#[pyclass(frozen, name = "Page", module = "hourglass.clock")]
struct PyPage(PageReader);

#[pymethods]
impl PyPage {
    #[new]
    fn new(fd: RawFd) -> PyResult<PyPage> {
        Ok(PyPage(PageReader::open(&file_of(fd)?).map_err(page_failure)?))
    }

    fn now_ns(&self) -> u64 {
        self.0.now()
    }

    fn now_ordered_ns(&self) -> u64 {
        self.0.now_ordered()
    }

    #[pyo3(signature = (*, ordered = true))]
    fn now_bounded(&self, ordered: bool) -> PyBounds {
        let found = if ordered { self.0.now_bounded_ordered() } else { self.0.now_bounded() };
        found.into()
    }

    /// The counter by which it is read; None if by the operating system's clock.
    #[getter]
    fn counter(&self) -> Option<&'static str> {
        self.0.counter().map(SourceId::name)
    }

    /// The writer's process number, in its own namespace.
    #[getter]
    fn writer_pid(&self) -> u64 {
        self.0.writer().pid
    }

    /// When it last wrote, ns on `CLOCK_MONOTONIC`.
    #[getter]
    fn heartbeat_ns(&self) -> u64 {
        self.0.writer().heartbeat_ns
    }

    /// Whether the page is past its validity; it then gives the operating system's clock.
    #[getter]
    fn expired(&self) -> bool {
        self.0.writer().expired
    }

    fn __repr__(slf: &Bound<'_, PyPage>) -> PyResult<String> {
        repr(slf, &["counter", "writer_pid", "expired"])
    }
}

/// A descriptor of its own for a file that Python holds.
fn file_of(fd: RawFd) -> PyResult<File> {
    if fd < 0 {
        return Err(PyFailure::argument("fd", format_args!("{fd} is not a file descriptor")).into());
    }
    // SAFETY: not -1; the descriptor is only duplicated, which fails with an error if it is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let own = borrowed.try_clone_to_owned();
    Ok(File::from(own.map_err(|error| PyFailure::os(format_args!("descriptor {fd}"), &error))?))
}

fn page_failure(error: OpenPageError) -> PyFailure {
    match &error {
        OpenPageError::NotMapped(os) => PyFailure::os("the page cannot be mapped", os),
        OpenPageError::OtherCounter { .. } | OpenPageError::OtherArchitecture { .. } => {
            PyFailure::new(ErrorKind::Unsupported, error)
        }
        _ => PyFailure::new(ErrorKind::Data, error),
    }
}

/// Adds it to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for function in [
        wrap_pyfunction!(now_ns, module)?,
        wrap_pyfunction!(now_ordered_ns, module)?,
        wrap_pyfunction!(now_bounded, module)?,
        wrap_pyfunction!(ticks, module)?,
        wrap_pyfunction!(elapsed, module)?,
        wrap_pyfunction!(now_on, module)?,
        wrap_pyfunction!(wall, module)?,
        wrap_pyfunction!(set_wall, module)?,
        wrap_pyfunction!(steer_wall, module)?,
        wrap_pyfunction!(release_wall, module)?,
        wrap_pyfunction!(source, module)?,
        wrap_pyfunction!(set_source, module)?,
        wrap_pyfunction!(maintain, module)?,
        wrap_pyfunction!(trust, module)?,
        wrap_pyfunction!(examine, module)?,
        wrap_pyfunction!(events, module)?,
        wrap_pyfunction!(counts, module)?,
        wrap_pyfunction!(share, module)?,
    ] {
        module.add_function(function)?;
    }
    module.add_class::<PyBounds>()?;
    module.add_class::<PyTicks>()?;
    module.add_class::<Elapsed>()?;
    module.add_class::<Reading>()?;
    module.add_class::<Event>()?;
    module.add_class::<Evidence>()?;
    module.add_class::<Trust>()?;
    module.add_class::<PyPage>()
}
