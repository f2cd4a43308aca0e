//! Theory for Python: sets of tasks, analyses, simulation, prediction, experiments.
//!
//! Owns: the border over which sets of tasks and questions go in, and documents come out. Must not: judge.

use std::path::{Path, PathBuf};

use hourglass_documents::CpuSet;
use hourglass_measure::task_input::{self as input, Input, InputError, Source};
use hourglass_measure::workload_file;
use hourglass_sim::{OverrunPolicy, Throttling, smt};
use hourglass_tasks::Fraction;
use hourglass_theory::check::{self as checking, ANALYSES, FitHeuristic, PlacementOrder};
use hourglass_theory::predict::{self as predicting, PredictError, RunRequest};
use hourglass_theory::simulate::{self as simulation, Releases};
use hourglass_theory::sweep::{
    self as sweeping, ExperimentBuilder, SweepError, SweepFile, Template,
};
use hourglass_time::Span;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{ErrorKind, PyFailure};
use crate::interrupts::interruptible;
use crate::keyword_args::given;
use crate::lab::{NullObserver, refused, warn};
use crate::records::INTERVALS;
use crate::runs::json;
use crate::spans::DurationArg;
use crate::tables::Table;

/// A set of tasks that was read and checked.
#[pyclass(frozen, module = "hourglass._hourglass")]
struct TaskData {
    input: Input,
    name: String,
}

fn source(name: Option<&str>) -> Result<Option<Source>, PyFailure> {
    let Some(name) = name else { return Ok(None) };
    let found = Source::ALL.iter().find(|(known, _)| *known == name);
    let (_, source) = found.ok_or_else(|| {
        PyFailure::argument(
            "format",
            "use toml, json, rt-app, schedcat, simso, mast, amalthea, sag or run",
        )
    })?;
    Ok(Some(*source))
}

#[pymethods]
impl TaskData {
    /// From a file of tasks, rt-app's JSON, or a run folder.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf, format: Option<&str>) -> PyResult<TaskData> {
        let source = source(format)?;
        let input = py.detach(|| input::read(&path, source));
        let input = input.map_err(|error| PyFailure::new(ErrorKind::Data, error))?;
        Ok(TaskData { input, name: path.display().to_string() })
    }

    /// From the text of such a file; `name` stands in messages.
    #[staticmethod]
    fn parse(name: String, text: &str, format: Option<&str>) -> PyResult<TaskData> {
        let input = input::parse(Path::new(&name), text, source(format)?);
        let input = input.map_err(|error| PyFailure::new(ErrorKind::Data, error))?;
        Ok(TaskData { input, name })
    }

    /// What it is called: its own name, or that of the file.
    fn name(&self) -> &str {
        if self.input.set.name.is_empty() { &self.name } else { &self.input.set.name }
    }

    /// The tasks' names, in the order of the set.
    fn tasks(&self) -> Vec<&str> {
        self.input.set.tasks.iter().map(|task| task.name.as_str()).collect()
    }

    /// What was left out or means something else, and what is odd, one sentence each.
    fn notes(&self) -> Vec<String> {
        let warnings = self.input.set.warnings();
        self.input.notes.iter().cloned().chain(warnings.iter().map(ToString::to_string)).collect()
    }

    /// As a file of tasks, TOML.
    fn to_toml(&self) -> String {
        self.input.set.to_toml()
    }

    /// As a file of tasks, JSON.
    fn to_json(&self) -> String {
        self.input.set.to_json()
    }
}

given! {
    /// What [`check`] is asked.
    struct Question {
        analysis: Option<String>,
        partition: Option<String>,
        server: Option<DurationArg>,
        sensitivity: bool,
        explain: bool,
    }
}

fn partition(text: &str) -> Result<(FitHeuristic, PlacementOrder), PyFailure> {
    checking::placing(text).map_err(|why| PyFailure::argument("partition", why))
}

/// The document `hourglass.check/1` as JSON.
#[pyfunction]
fn check(py: Python<'_>, tasks: &TaskData, question: &Bound<'_, PyDict>) -> PyResult<String> {
    let question = Question::of(question)?;
    let request = checking::CheckRequest {
        growth: question.analysis.is_none(),
        analysis: question.analysis,
        partition: question.partition.as_deref().map(partition).transpose()?,
        server: question.server.map(|period| period.0).into_iter().collect(),
        sensitivity: question.sensitivity,
        explain: question.explain,
    };
    let document = py.detach(|| checking::check(&tasks.input.set, &request));
    json(&document.map_err(PyFailure::invalid)?)
}

/// The analyses by name, with what they answer and their sources, as JSON.
#[pyfunction]
fn analyses() -> PyResult<String> {
    json(&ANALYSES.iter().map(checking::AnalysisEntry::facts).collect::<Vec<_>>())
}

given! {
    /// What [`simulate`] is asked.
    struct Scenario {
        horizon: Option<DurationArg>,
        seed: u64,
        releases: String,
        late: String,
        rt_throttling: Option<(DurationArg, DurationArg)>,
        smt: Option<String>,
        alpha: Option<String>,
        margin: Option<DurationArg>,
        stop_latency: Option<DurationArg>,
        interval: Option<DurationArg>,
        progress: Option<u32>,
        schedule: bool,
        records: Option<u64>,
        output: Option<PathBuf>,
        command_line: Vec<String>,
    }
}

impl Scenario {
    fn request(self, input: &Input) -> Result<simulation::SimulationRequest, PyFailure> {
        let releases = Releases::ALL.iter().find(|(name, _)| *name == self.releases);
        let (_, releases) = releases
            .ok_or_else(|| PyFailure::argument("releases", "use critical, nominal or random"))?;
        let late = match self.late.as_str() {
            "queue" => OverrunPolicy::Queue,
            "skip" => OverrunPolicy::Skip,
            _ => return Err(PyFailure::argument("late", "use queue or skip")),
        };
        let plain = simulation::SimulationRequest::new(input.set.clone());
        Ok(simulation::SimulationRequest {
            notes: input.notes.clone(),
            horizon: self.horizon.map(|horizon| horizon.0),
            seed: self.seed,
            releases: *releases,
            late,
            throttling: self.throttling()?,
            smt: self.policy()?,
            wants_schedule: self.schedule,
            records: self.records.unwrap_or(plain.records),
            folder: self.output,
            command_line: self.command_line,
            ..plain
        })
    }

    fn throttling(&self) -> Result<Option<Throttling>, PyFailure> {
        let Some((runtime, period)) = self.rt_throttling else { return Ok(None) };
        let runtime = not_negative("rt_throttling", runtime)?;
        Ok(Some(Throttling { runtime, period: above_zero("rt_throttling", period)? }))
    }

    /// The policy of shared cores. What belongs to one of them is not taken for another.
    fn policy(&self) -> Result<Option<smt::SmtPolicy>, PyFailure> {
        let given = [
            ("alpha", self.alpha.is_some()),
            ("margin", self.margin.is_some()),
            ("stop_latency", self.stop_latency.is_some()),
            ("interval", self.interval.is_some()),
            ("progress", self.progress.is_some()),
        ];
        let given = given.into_iter().find(|(_, given)| *given);
        if let Some((name, _)) = given.filter(|_| self.smt.as_deref() != Some("slack")) {
            return Err(PyFailure::argument(
                name,
                "it belongs to smt=\"slack\"; add that, or drop it",
            ));
        }
        let Some(policy) = self.smt.as_deref() else { return Ok(None) };
        Ok(Some(match policy {
            "unaware" => smt::SmtPolicy::Ignore,
            "disabling" => smt::SmtPolicy::Disable,
            "slack" => smt::SmtPolicy::Monitor(self.monitoring()?),
            _ => return Err(PyFailure::argument("smt", "use unaware, disabling or slack")),
        }))
    }

    fn monitoring(&self) -> Result<smt::Monitoring, PyFailure> {
        let usual = smt::Monitoring::default();
        let or = |name, given: Option<DurationArg>, usual| {
            given.map_or(Ok(usual), |given| not_negative(name, given))
        };
        Ok(smt::Monitoring {
            alpha: self.alpha.as_deref().map_or(Ok(usual.alpha), alpha)?,
            margin: or("margin", self.margin, usual.margin)?,
            latency: or("stop_latency", self.stop_latency, usual.latency)?,
            check: match self.interval {
                Some(interval) => smt::SlackCheck::Fixed(above_zero("interval", interval)?),
                None => usual.check,
            },
            progress: match self.progress {
                Some(0) => {
                    return Err(PyFailure::argument("progress", "a job has at least one step"));
                }
                Some(steps) => smt::ProgressModel::Reported(steps),
                None => usual.progress,
            },
        })
    }
}

fn alpha(text: &str) -> Result<smt::ProgressRate, PyFailure> {
    let wrong = |why: &dyn std::fmt::Display| PyFailure::argument("alpha", why);
    let fraction: Fraction = text.parse().map_err(|error| wrong(&error))?;
    smt::ProgressRate::new(fraction.numerator(), fraction.denominator())
        .ok_or_else(|| wrong(&"it must be below 1: neighbours that cost nothing need no policy"))
}

fn not_negative(name: &str, given: DurationArg) -> Result<u64, PyFailure> {
    u64::try_from(given.0.nanos()).map_err(|_| PyFailure::argument(name, "it must not be negative"))
}

fn above_zero(name: &str, given: DurationArg) -> Result<u64, PyFailure> {
    match not_negative(name, given)? {
        0 => Err(PyFailure::argument(name, "it must be above zero")),
        ns => Ok(ns),
    }
}

/// A simulation: the document `hourglass.simulate/1` as JSON, the schedule, intervals without room, where
/// it was kept, and why it was not.
type Simulation<'py> = (String, Option<Bound<'py, PyDict>>, u64, Option<PathBuf>, Option<String>);

/// Simulates.
#[pyfunction]
fn simulate<'py>(
    py: Python<'py>,
    tasks: &TaskData,
    scenario: &Bound<'_, PyDict>,
) -> PyResult<Simulation<'py>> {
    let request = Scenario::of(scenario)?.request(&tasks.input)?;
    let simulated = interruptible(py, || simulation::simulate(&request, &mut ()))?;
    let simulated = simulated.map_err(|failure| match failure {
        simulation::SimulationFailure::Folder(error) => PyFailure::argument("output", error),
        simulation::SimulationFailure::Horizon(horizon) => PyFailure::argument(
            "horizon",
            format_args!("invalid horizon {horizon}: must be above zero"),
        ),
        other => PyFailure::invalid(other),
    })?;
    let schedule = request.wants_schedule;
    let schedule = schedule.then(|| py.detach(|| Table::of(&simulated.schedule, INTERVALS)));
    let schedule = schedule.map(|table| table.into_python(py)).transpose()?;
    let (folder, not_kept) = match simulated.folder {
        Some(Ok(folder)) => (Some(folder), None),
        Some(Err(error)) if error.whole().is_some() => {
            warn(py, [error.to_string()])?;
            (error.whole().map(Path::to_path_buf), None)
        }
        Some(Err(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    Ok((json(&simulated.document)?, schedule, simulated.dropped, folder, not_kept))
}

given! {
    /// What [`predict`] is asked.
    struct PredictOptions {
        run: bool,
        duration: DurationArg,
        cpus: Option<String>,
        jitter: bool,
        best_effort: bool,
        horizon: Option<DurationArg>,
        seed: u64,
        output: Option<PathBuf>,
        command_line: Vec<String>,
    }
}

impl PredictOptions {
    fn request(self, tasks: &TaskData) -> Result<predicting::PredictRequest, PyFailure> {
        let positive = |name: &str, given: DurationArg| -> Result<Span, PyFailure> {
            let positive = given.0.is_positive();
            positive
                .then_some(given.0)
                .ok_or_else(|| PyFailure::argument(name, "give a time above zero"))
        };
        let duration = positive("duration", self.duration)?;
        let cpus = self.cpus.as_deref().map(cpus).transpose()?;
        let input = tasks.input.clone().on(cpus.as_ref());
        let run = self.run.then(|| -> Result<RunRequest, PyFailure> {
            Ok(RunRequest {
                cpus,
                draws_jitter: self.jitter,
                best_effort: self.best_effort,
                folder: self.output,
                command_line: self.command_line,
                ..RunRequest::with_duration(duration)
            })
        });
        Ok(predicting::PredictRequest {
            set: input.set,
            name: tasks.name.clone(),
            notes: input.notes,
            run: run.transpose()?,
            seed: self.seed,
            horizon: self.horizon.map(|horizon| positive("horizon", horizon)).transpose()?,
        })
    }
}

fn cpus(text: &str) -> Result<CpuSet, PyFailure> {
    let wanted: CpuSet = text.parse().map_err(|error| PyFailure::argument("cpus", error))?;
    let online = workload_file::online_cpus();
    workload_file::check_cpus(&wanted, online.as_ref())
        .map_err(|error| PyFailure::argument("cpus", error))?;
    Ok(wanted)
}

/// Puts bounds, simulation and a real run side by side: `hourglass.predict/1` as JSON, and why the run
/// was not kept.
#[pyfunction]
fn predict(
    py: Python<'_>,
    tasks: &TaskData,
    wish: &Bound<'_, PyDict>,
) -> PyResult<(String, Option<String>)> {
    let request = PredictOptions::of(wish)?.request(tasks)?;
    let predicted = interruptible(py, || predicting::predict(request, &mut NullObserver))?;
    let predicted = predicted.map_err(|error| match error {
        PredictError::Plan(error) => PyFailure::invalid(error),
        PredictError::Run(failure) => refused(failure),
    })?;
    Ok((json(&predicted.document)?, predicted.not_kept))
}

given! {
    /// What [`sweep`] is asked.
    struct Sweep {
        /// Path of an experiment or of tasks.
        path: Option<PathBuf>,
        /// The text of such a file.
        text: Option<String>,
        /// Keys of an experiment, each with its value as on the command line.
        keys: Vec<(String, String)>,
        threads: Option<usize>,
        output: Option<PathBuf>,
        /// Which part of it, from 0, and how many there are; all of it without.
        shard: Option<(u64, u64)>,
    }
}

impl Sweep {
    /// What is described, the keys last.
    fn experiment(&self, tasks: Option<&TaskData>) -> Result<sweeping::Experiment, PyFailure> {
        let template = tasks.map(|tasks| Template::new(&tasks.input.set));
        let mut template = template.transpose().map_err(PyFailure::invalid)?;
        let mut draft = ExperimentBuilder::default();
        let text = match &self.path {
            Some(path) => match input::text(path) {
                // All defaults.
                Err(InputError::Empty(_)) => None,
                text => Some(text.map_err(|error| PyFailure::new(ErrorKind::Data, error))?),
            },
            None => self.text.clone(),
        };
        if let Some(text) = text {
            match SweepFile::read(&text).map_err(|error| PyFailure::new(ErrorKind::Data, error))? {
                SweepFile::Experiment(found) => draft = *found,
                SweepFile::Tasks(found) => template = Some(*found),
            }
        }
        for (key, value) in &self.keys {
            draft.set(key, value).map_err(PyFailure::invalid)?;
        }
        let mut experiment = draft.finish(template).map_err(PyFailure::invalid)?;
        experiment.shard = match self.shard {
            Some((index, of)) if index >= of => {
                let text = format!("{index} of {of} is no part; count them from 0");
                return Err(PyFailure::argument("shard", text));
            }
            shard => shard,
        };
        Ok(experiment)
    }
}

impl sweeping::SweepObserver for NullObserver {
    fn started(&mut self, _: u64, _: u64) {}
    fn moved(&mut self, _: u64) {}
    fn ended(&mut self) {}
}

/// Compares analyses on random sets: the document `hourglass.sweep/1` as JSON.
#[pyfunction]
fn sweep(py: Python<'_>, tasks: Option<&TaskData>, asked: &Bound<'_, PyDict>) -> PyResult<String> {
    let asked = Sweep::of(asked)?;
    let experiment = asked.experiment(tasks)?;
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = asked.threads.unwrap_or_else(all);
    let folder = asked.output.as_deref();
    let swept =
        interruptible(py, || sweeping::run(&experiment, folder, threads, &mut NullObserver))?;
    json(&swept.map_err(not_swept)?.document)
}

fn not_swept(error: SweepError) -> PyFailure {
    match error {
        SweepError::InUse(_) => PyFailure::new(ErrorKind::Busy, error),
        SweepError::NoThread(_) => PyFailure::new(ErrorKind::Exhausted, error),
        SweepError::Folder(_) => PyFailure::argument("output", error),
        _ => PyFailure::invalid(error),
    }
}

/// What an experiment (or a part of one) is, as JSON: what its folder says of it.
#[pyfunction]
fn sweep_facts(tasks: Option<&TaskData>, asked: &Bound<'_, PyDict>) -> PyResult<String> {
    json(&Sweep::of(asked)?.experiment(tasks)?.facts())
}

/// The text of a file that describes an experiment or a set of tasks; `None` if it is empty.
#[pyfunction]
fn sweep_text(path: PathBuf) -> PyResult<Option<String>> {
    match input::text(&path) {
        Err(InputError::Empty(_)) => Ok(None),
        text => Ok(Some(text.map_err(|error| PyFailure::new(ErrorKind::Data, error))?)),
    }
}

/// The folder of a part below `folder`.
#[pyfunction]
fn sweep_part_folder(folder: PathBuf, index: u64, of: u64) -> PathBuf {
    sweeping::part_folder(&folder, (index, of))
}

/// Puts the parts in `folders` together in `out`: the document `hourglass.sweep/1` as JSON.
#[pyfunction]
fn sweep_merge(py: Python<'_>, folders: Vec<PathBuf>, out: PathBuf) -> PyResult<String> {
    let merged = py.detach(|| sweeping::merge(&folders, &out));
    json(&merged.map_err(not_swept)?.document)
}

/// Adds them to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TaskData>()?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(analyses, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(predict, module)?)?;
    module.add_function(wrap_pyfunction!(sweep, module)?)?;
    module.add_function(wrap_pyfunction!(sweep_facts, module)?)?;
    module.add_function(wrap_pyfunction!(sweep_text, module)?)?;
    module.add_function(wrap_pyfunction!(sweep_part_folder, module)?)?;
    module.add_function(wrap_pyfunction!(sweep_merge, module)?)
}
