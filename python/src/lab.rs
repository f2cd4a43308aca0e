//! Measuring and comparing, for Python.
//!
//! Owns: the border over which workloads go in. Must not: know a workload's keys (`measure::workload_file` does).

use std::ffi::CString;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use hourglass_documents::document::Warning;
use hourglass_machine::Refusal;
use hourglass_measure::compare::rounds::{
    MOST_ROUNDS, RoundsRequest, RoundsWatch, RunVariant, Side, rounds as run_rounds,
};
use hourglass_measure::{
    ExperimentObserver, Finished, RunFailure as NoRun, RunOptions, workload_file,
};
use hourglass_runs::compare::{Rules, folders};
use hourglass_time::Span;
use hourglass_workload::LiveThreads;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{ErrorKind, PyFailure};
use crate::interrupts::interruptible;
use crate::keyword_args::given;
use crate::runs::{RunData, json};
use crate::spans::DurationArg;

/// Ignores the progress of a run: to follow it would take time from what is measured.
pub(crate) struct NullObserver;

impl ExperimentObserver for NullObserver {
    fn warn(&mut self, _: &[Warning]) {}
    fn started(&mut self, _: Span, _: bool) {}
    fn tick(&mut self, _: Span) {}
    fn live_threads(&mut self, _: &LiveThreads) {}
    fn ended(&mut self) {}
}

impl RoundsWatch for NullObserver {
    fn planned(&mut self, _: &RoundsRequest) {}
    fn run_of(&mut self, _: u32, _: u32, _: Side) {}
}

given! {
    /// Options of a run; `None` stands for the value of the workload.
    struct Options {
        duration: Option<DurationArg>,
        warm_up: Option<DurationArg>,
        seed: Option<u64>,
        records: Option<u64>,
        ring: Option<bool>,
        trace: Option<bool>,
        best_effort: Option<bool>,
        dma_latency_us: Option<u32>,
        command_line: Vec<String>,
    }
}

/// A workload: the text of a workload file and its name, or the path of one.
#[derive(FromPyObject)]
enum Workload {
    Text(String, String),
    Path(PathBuf),
}

impl Workload {
    /// Reads it.
    fn request(&self, options: &Options) -> Result<RunOptions, PyFailure> {
        let file = match self {
            Workload::Path(path) => workload_file::read(path),
            Workload::Text(name, text) => {
                workload_file::parse(name, text, workload_file::online_cpus().as_ref())
            }
        };
        let file = file.map_err(|error| PyFailure::new(ErrorKind::Data, error))?;
        let mut request = file.request(options.seed.unwrap_or_else(seed_from_clock));
        options.put_into(&mut request)?;
        request.spec.check().map_err(|error| match file.place_of(&error) {
            "" => PyFailure::invalid(error),
            place => PyFailure::invalid(format_args!("{place}: {error}")),
        })?;
        Ok(request)
    }
}

impl Options {
    fn put_into(&self, request: &mut RunOptions) -> Result<(), PyFailure> {
        let spec = &mut request.spec;
        if let Some(DurationArg(duration)) = self.duration {
            if !duration.is_positive() {
                return Err(PyFailure::argument(
                    "duration",
                    format_args!("invalid duration {duration}: must be above zero"),
                ));
            }
            spec.duration = duration;
        }
        if let Some(DurationArg(warm_up)) = self.warm_up {
            if warm_up.is_negative() {
                return Err(PyFailure::argument("warm_up", format_args!("{warm_up} is negative")));
            }
            spec.warm_up = warm_up;
        }
        spec.seed = self.seed.unwrap_or(spec.seed);
        spec.records = self.records.unwrap_or(spec.records);
        spec.ring = self.ring.unwrap_or(spec.ring);
        spec.best_effort = self.best_effort.unwrap_or(spec.best_effort);
        request.trace = self.trace.unwrap_or(request.trace);
        request.dma_latency_us = self.dma_latency_us.or(request.dma_latency_us);
        request.command_line.clone_from(&self.command_line);
        Ok(())
    }
}

fn seed_from_clock() -> u64 {
    // Any number will do that is not the same each time; the low bits change fastest.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// What is not sure of a folder that is whole.
pub(crate) fn warn(py: Python<'_>, doubts: impl IntoIterator<Item = String>) -> PyResult<()> {
    for doubt in doubts {
        let text = CString::new(doubt)?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(())
}

/// Why there was no run, without the names of the command's options.
pub(crate) fn refused(failure: NoRun) -> PyFailure {
    match failure {
        NoRun::Folder(error) => PyFailure::argument("output", error),
        NoRun::Refused(refusals) => {
            let line = |r: &Refusal| {
                let what = r.what.trim_start_matches('-');
                format!("{what}: {}; {}", r.reason, r.remedy)
            };
            let lines: Vec<String> = refusals.iter().map(line).collect();
            PyFailure::new(ErrorKind::Permission, lines.join("; "))
        }
        NoRun::Other(text) => PyFailure::new(ErrorKind::Os, text),
        other => PyFailure::invalid(other),
    }
}

/// Measures. The second value says why the run could not be stored.
#[pyfunction]
fn run(
    py: Python<'_>,
    workload: Workload,
    options: &Bound<'_, PyDict>,
    output: Option<PathBuf>,
) -> PyResult<(RunData, Option<String>)> {
    let options = Options::of(options)?;
    let mut doubt = None;
    let measure = || -> Result<(RunData, Option<String>), PyFailure> {
        let mut request = RunOptions { folder: output, ..workload.request(&options)? };
        request.keep_records();
        let finished = hourglass_measure::run(request, &mut NullObserver).map_err(refused)?;
        let Finished { folder, .. } = &finished;
        match folder {
            None => Ok((RunData::held(&finished), None)),
            Some(Ok(folder)) => Ok((RunData::open(folder)?, None)),
            Some(Err(error)) if error.whole().is_some() => {
                doubt = Some(error.to_string());
                let kept = error.whole().and_then(|folder| RunData::open(folder).ok());
                Ok((kept.unwrap_or_else(|| RunData::held(&finished)), None))
            }
            Some(Err(error)) => Ok((RunData::held(&finished), Some(error.to_string()))),
        }
    };
    let measured = interruptible(py, measure)??;
    warn(py, doubt)?;
    Ok(measured)
}

/// Runs two ways in turn; the document `hourglass.diff/1` as JSON, and why not everything was kept.
#[pyfunction]
fn rounds(
    py: Python<'_>,
    a: Workload,
    b: Workload,
    options: &Bound<'_, PyDict>,
    count: u32,
    output: Option<PathBuf>,
) -> PyResult<(String, Option<String>)> {
    if !(1..=MOST_ROUNDS).contains(&count) {
        return Err(PyFailure::argument(
            "rounds",
            format_args!("{count}: give 1 to {MOST_ROUNDS}"),
        )
        .into());
    }
    let options = Options::of(options)?;
    let mut doubts = Vec::new();
    let compare = || -> PyResult<(String, Option<String>)> {
        let (base, mut other) = (a.request(&options)?, b.request(&options)?);
        let seed = base.spec.seed;
        // Both draw the same execution times.
        other.spec.seed = seed;
        let way = |request: RunOptions| RunVariant {
            spec: request.spec,
            command_line: request.command_line,
            dma_latency_us: request.dma_latency_us,
            gates: request.gates,
        };
        let request = RoundsRequest {
            a: way(base),
            b: way(other),
            rounds: count,
            folder: output,
            rules: Rules { seed, ..Rules::default() },
            a_is_control: false,
        };
        let compared = run_rounds(request, &mut NullObserver).map_err(refused)?;
        doubts.extend(compared.doubts.iter().map(ToString::to_string));
        Ok((json(&compared.document)?, compared.not_kept.map(|error| error.to_string())))
    };
    let compared = interruptible(py, compare)??;
    warn(py, doubts)?;
    Ok(compared)
}

/// Compares kept runs, or with no `b` the rounds in the folder `a`: `hourglass.diff/1` as JSON.
#[pyfunction]
fn diff(
    py: Python<'_>,
    a: Vec<PathBuf>,
    b: Vec<PathBuf>,
    margin_percent: f64,
    gap: DurationArg,
    seed: u64,
) -> PyResult<String> {
    if !(0.0..=1_000.0).contains(&margin_percent) {
        return Err(
            PyFailure::argument("margin", "give per cent from 0 to 1000, for example 5").into()
        );
    }
    if gap.0.is_negative() {
        return Err(PyFailure::argument("gap", "a length is not negative").into());
    }
    let (rules, gap_ns) = (Rules { margin_percent, seed }, gap.0.nanos_or_zero());
    let compared = py.detach(|| match (&a[..], &b[..]) {
        ([of_rounds], []) => folders::compare_rounds(of_rounds, &rules, gap_ns),
        _ => folders::compare(&a, &b, &rules, gap_ns),
    });
    json(&compared.map_err(|error| PyFailure::new(ErrorKind::Data, error))?)
}

/// Adds them to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(rounds, module)?)?;
    module.add_function(wrap_pyfunction!(diff, module)?)
}
