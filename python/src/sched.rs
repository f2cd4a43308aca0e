//! Theory for Python: sets of tasks, analyses, simulation, prediction, experiments.
//!
//! Owns: the border over which sets of tasks and questions go in, and documents come out. Must not: judge.

use std::path::{Path, PathBuf};

use hourglass_lab::model::CpuSet;
use hourglass_lab::sched::sim::{OverrunPolicy, Throttling, smt};
use hourglass_lab::task_input::{self as input, Input, InputError, Source};
use hourglass_lab::workload_file;
use hourglass_tasks::Fraction;
use hourglass_theory::check::{self as checking, ANALYSES, FitHeuristic, PlacementOrder};
use hourglass_theory::predict::{self as predicting, PredictError, RunRequest};
use hourglass_theory::simulate::{self as simulation, Releases};
use hourglass_theory::sweep::{self as sweeping, Described, Draft, SweepError, Template};
use hourglass_time::Span;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Failure, Kind};
use crate::given::given;
use crate::interrupts::interruptible;
use crate::lab::{Unwatched, refused};
use crate::records::INTERVALS;
use crate::runs::json;
use crate::spans::GivenSpan;
use crate::tables::Table;

/// A set of tasks that was read and checked.
#[pyclass(frozen, module = "hourglass._hourglass")]
struct TaskData {
    input: Input,
    name: String,
}

fn source(name: Option<&str>) -> Result<Option<Source>, Failure> {
    let Some(name) = name else { return Ok(None) };
    let found = Source::ALL.iter().find(|(known, _)| *known == name);
    let (_, source) = found.ok_or_else(|| {
        Failure::argument(
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
        let input = input.map_err(|error| Failure::new(Kind::Data, error))?;
        Ok(TaskData { input, name: path.display().to_string() })
    }

    /// From the text of such a file; `name` stands in messages.
    #[staticmethod]
    fn parse(name: String, text: &str, format: Option<&str>) -> PyResult<TaskData> {
        let input = input::parse(Path::new(&name), text, source(format)?);
        let input = input.map_err(|error| Failure::new(Kind::Data, error))?;
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
        server: Option<GivenSpan>,
        sensitivity: bool,
        explain: bool,
    }
}

fn partition(text: &str) -> Result<(FitHeuristic, PlacementOrder), Failure> {
    checking::placing(text).map_err(|why| Failure::argument("partition", why))
}

/// The document `hourglass.check/1` as JSON.
#[pyfunction]
fn check(py: Python<'_>, tasks: &TaskData, question: &Bound<'_, PyDict>) -> PyResult<String> {
    let question = Question::of(question)?;
    let request = checking::Request {
        analysis: question.analysis,
        partition: question.partition.as_deref().map(partition).transpose()?,
        server: question.server.map(|period| period.0).into_iter().collect(),
        sensitivity: question.sensitivity,
        explain: question.explain,
    };
    let document = py.detach(|| checking::check(&tasks.input.set, &request));
    json(&document.map_err(Failure::invalid)?)
}

/// The analyses by name, with what they answer and their sources, as JSON.
#[pyfunction]
fn analyses() -> PyResult<String> {
    json(&ANALYSES.iter().map(checking::AnalysisEntry::facts).collect::<Vec<_>>())
}

given! {
    /// What [`simulate`] is asked.
    struct Scenario {
        horizon: Option<GivenSpan>,
        seed: u64,
        releases: String,
        late: String,
        rt_throttling: Option<(GivenSpan, GivenSpan)>,
        smt: Option<String>,
        alpha: Option<String>,
        margin: Option<GivenSpan>,
        stop_latency: Option<GivenSpan>,
        interval: Option<GivenSpan>,
        progress: Option<u32>,
        schedule: bool,
        records: Option<u64>,
        output: Option<PathBuf>,
        command_line: Vec<String>,
    }
}

impl Scenario {
    fn request(self, input: &Input) -> Result<simulation::Request, Failure> {
        let releases = Releases::ALL.iter().find(|(name, _)| *name == self.releases);
        let (_, releases) = releases
            .ok_or_else(|| Failure::argument("releases", "use critical, nominal or random"))?;
        let late = match self.late.as_str() {
            "queue" => OverrunPolicy::Queue,
            "skip" => OverrunPolicy::Skip,
            _ => return Err(Failure::argument("late", "use queue or skip")),
        };
        let plain = simulation::Request::new(input.set.clone());
        Ok(simulation::Request {
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

    fn throttling(&self) -> Result<Option<Throttling>, Failure> {
        let Some((runtime, period)) = self.rt_throttling else { return Ok(None) };
        let runtime = not_negative("rt_throttling", runtime)?;
        Ok(Some(Throttling { runtime, period: above_zero("rt_throttling", period)? }))
    }

    /// The policy of shared cores. What belongs to one of them is not taken for another.
    fn policy(&self) -> Result<Option<smt::SmtPolicy>, Failure> {
        let given = [
            ("alpha", self.alpha.is_some()),
            ("margin", self.margin.is_some()),
            ("stop_latency", self.stop_latency.is_some()),
            ("interval", self.interval.is_some()),
            ("progress", self.progress.is_some()),
        ];
        let given = given.into_iter().find(|(_, given)| *given);
        if let Some((name, _)) = given.filter(|_| self.smt.as_deref() != Some("slack")) {
            return Err(Failure::argument(
                name,
                "it belongs to smt=\"slack\"; add that, or drop it",
            ));
        }
        let Some(policy) = self.smt.as_deref() else { return Ok(None) };
        Ok(Some(match policy {
            "unaware" => smt::SmtPolicy::Ignore,
            "disabling" => smt::SmtPolicy::Disable,
            "slack" => smt::SmtPolicy::Monitor(self.monitoring()?),
            _ => return Err(Failure::argument("smt", "use unaware, disabling or slack")),
        }))
    }

    fn monitoring(&self) -> Result<smt::Monitoring, Failure> {
        let usual = smt::Monitoring::default();
        let or = |name, given: Option<GivenSpan>, usual| {
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
                    return Err(Failure::argument("progress", "a job has at least one step"));
                }
                Some(steps) => smt::ProgressModel::Reported(steps),
                None => usual.progress,
            },
        })
    }
}

fn alpha(text: &str) -> Result<smt::ProgressRate, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::argument("alpha", why);
    let fraction: Fraction = text.parse().map_err(|error| wrong(&error))?;
    smt::ProgressRate::new(fraction.numerator(), fraction.denominator())
        .ok_or_else(|| wrong(&"it must be below 1: neighbours that cost nothing need no policy"))
}

fn not_negative(name: &str, given: GivenSpan) -> Result<u64, Failure> {
    u64::try_from(given.0.nanos()).map_err(|_| Failure::argument(name, "it must not be negative"))
}

fn above_zero(name: &str, given: GivenSpan) -> Result<u64, Failure> {
    match not_negative(name, given)? {
        0 => Err(Failure::argument(name, "it must be above zero")),
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
        simulation::Failure::Folder(error) => Failure::argument("output", error),
        simulation::Failure::Horizon(horizon) => Failure::argument(
            "horizon",
            format_args!("invalid horizon {horizon}: must be above zero"),
        ),
        other => Failure::invalid(other),
    })?;
    let schedule = request.wants_schedule;
    let schedule = schedule.then(|| py.detach(|| Table::of(&simulated.schedule, INTERVALS)));
    let schedule = schedule.map(|table| table.into_python(py)).transpose()?;
    let (folder, not_kept) = match simulated.kept {
        Some(Ok(folder)) => (Some(folder), None),
        Some(Err(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    Ok((json(&simulated.document)?, schedule, simulated.dropped, folder, not_kept))
}

given! {
    /// What [`predict`] is asked.
    struct Wish {
        run: bool,
        duration: GivenSpan,
        cpus: Option<String>,
        jitter: bool,
        best_effort: bool,
        horizon: Option<GivenSpan>,
        seed: u64,
        output: Option<PathBuf>,
        command_line: Vec<String>,
    }
}

impl Wish {
    fn request(self, tasks: &TaskData) -> Result<predicting::Request, Failure> {
        let positive = |name: &str, given: GivenSpan| -> Result<Span, Failure> {
            let positive = given.0.is_positive();
            positive
                .then_some(given.0)
                .ok_or_else(|| Failure::argument(name, "give a time above zero"))
        };
        let duration = positive("duration", self.duration)?;
        let cpus = self.cpus.as_deref().map(cpus).transpose()?;
        let input = tasks.input.clone().on(cpus.as_ref());
        let run = self.run.then(|| -> Result<RunRequest, Failure> {
            Ok(RunRequest {
                cpus,
                draws_jitter: self.jitter,
                best_effort: self.best_effort,
                folder: self.output,
                command_line: self.command_line,
                ..RunRequest::with_duration(duration)
            })
        });
        Ok(predicting::Request {
            set: input.set,
            name: tasks.name.clone(),
            notes: input.notes,
            run: run.transpose()?,
            seed: self.seed,
            horizon: self.horizon.map(|horizon| positive("horizon", horizon)).transpose()?,
        })
    }
}

fn cpus(text: &str) -> Result<CpuSet, Failure> {
    let wanted: CpuSet = text.parse().map_err(|error| Failure::argument("cpus", error))?;
    let online = workload_file::online_cpus();
    workload_file::check_cpus(&wanted, online.as_ref())
        .map_err(|error| Failure::argument("cpus", error))?;
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
    let request = Wish::of(wish)?.request(tasks)?;
    let predicted = interruptible(py, || predicting::predict(request, &mut Unwatched))?;
    let predicted = predicted.map_err(|error| match error {
        PredictError::Plan(error) => Failure::invalid(error),
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
    fn experiment(&self, tasks: Option<&TaskData>) -> Result<sweeping::Experiment, Failure> {
        let template = tasks.map(|tasks| Template::new(&tasks.input.set));
        let mut template = template.transpose().map_err(Failure::invalid)?;
        let mut draft = Draft::default();
        let text = match &self.path {
            Some(path) => match input::text(path) {
                // All defaults.
                Err(InputError::Empty(_)) => None,
                text => Some(text.map_err(|error| Failure::new(Kind::Data, error))?),
            },
            None => self.text.clone(),
        };
        if let Some(text) = text {
            match Described::read(&text).map_err(|error| Failure::new(Kind::Data, error))? {
                Described::Experiment(found) => draft = *found,
                Described::Tasks(found) => template = Some(*found),
            }
        }
        for (key, value) in &self.keys {
            draft.set(key, value).map_err(Failure::invalid)?;
        }
        let mut experiment = draft.finish(template).map_err(Failure::invalid)?;
        experiment.shard = match self.shard {
            Some((index, of)) if index >= of => {
                let text = format!("{index} of {of} is no part; count them from 0");
                return Err(Failure::argument("shard", text));
            }
            shard => shard,
        };
        Ok(experiment)
    }
}

impl sweeping::Watch for Unwatched {
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
    let swept = interruptible(py, || sweeping::run(&experiment, folder, threads, &mut Unwatched))?;
    json(&swept.map_err(not_swept)?.document)
}

fn not_swept(error: SweepError) -> Failure {
    match error {
        SweepError::InUse(_) => Failure::new(Kind::Busy, error),
        SweepError::NoThread(_) => Failure::new(Kind::Exhausted, error),
        SweepError::Folder(_) => Failure::argument("output", error),
        _ => Failure::invalid(error),
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
        text => Ok(Some(text.map_err(|error| Failure::new(Kind::Data, error))?)),
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
