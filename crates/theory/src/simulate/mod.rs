//! Sets of tasks simulated: `hourglass simulate`.
//!
//! Owns: what a file means to the simulator (`system`), how long to go on (`horizon`), the
//! document, and the run folder that a simulation is kept in. Must not: simulate (`sim` does),
//! draw, parse arguments.
//!
//! # How a simulation goes
//!
//! `sim::run_to` checks the system and gives simple ones to `fast/` if no events are asked for, the rest to
//! `engine/`, which goes from event to event: the end of something on a CPU (each has one time at which that comes) or one
//! of the timers, a slot each in a tournament of fixed size. At an event the CPUs of its domain (CPUs that share threads)
//! are accounted, what ends ends, timers expire, and domains in which something changed are given out again. Who is more
//! urgent is one comparison of class, level and place (`choose.rs`). Ready threads stand in that order (`queue.rs`), but for
//! those in servers, with locks or with fair shares, whose urgency depends on others and is asked each time. Work is counted in fractions of a nanosecond that make every rate of interference whole,
//! so that rates may change at any time and nothing drifts. A monitor looks after CPUs have been
//! given out, may close CPUs, stop threads and set timers, and CPUs are given out again at the same instant.
//! `fast/` must agree with the engine in every number of the outcome and every slice; tests compare them.
//! A thread with steps has a script (`sim::script`): while it has a CPU it goes from act to act (`engine/script.rs`; what
//! threads wait for together is in `engine/sync.rs`), and its jobs begin where those of a run do. A test compares scripts with an
//! interpreter that goes on nanosecond by nanosecond.
//!
//! `theory::simulate` turns a checked set of tasks into a `sim::System` (`system.rs`, `job.rs`,
//! `script.rs`, `servers.rs`): every key of the file either means something there, or has a warning that says what it
//! means instead, or refuses the set. The engine tells a `Sink` what ran; the recorder (`record.rs`) joins
//! slices to intervals of one job on one CPU, with the onsets of a measured trace: `Wait` before each job,
//! `Gap` and `Migration` within it. `folder.rs` writes them with a manifest whose clock is `sim`, whose host is
//! empty and which carries the document, so that whatever reads run folders reads this one.
//!
//! The policies for hardware threads (`sim::smt`) are monitors of the engine. They give the real-time
//! threads of a core one CPU of it and close the others: while a real-time job runs there (disabling), or when
//! the slack of all jobs pending and to come is used up (monitoring). `smt/slack.rs` is equation 9 of the
//! paper with the arrivals to come, so that no deadline is lost that disabling keeps; `hourglass_measure::slack` has the
//! equations that `reserve` shares.

mod findings;
mod folder;
mod horizon;
mod job;
mod record;
mod script;
#[cfg(test)]
mod script_tests;
mod servers;
pub mod system;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use hourglass_documents::document::Warning;
use hourglass_documents::simulation::SimulationDocument;
use hourglass_runs::store::{CreateError, RunFolder, WriteError, merge_by_start};
use hourglass_sim::{self as sim, OverrunPolicy, SimError, SimSettings, Throttling, smt};
use hourglass_sys::signal;
use hourglass_tasks::{Task, TaskSet};
use hourglass_time::Span;
use hourglass_trace::Interval;
use thiserror::Error;

pub(crate) use horizon::horizon_of;
pub use horizon::{DEFAULT_JOBS, hyperperiod};
pub use system::{Choices, Model, model};

use record::{Recorder, ThreadRecord};

/// The reason why threads that are not tasks are not analysed.
pub(crate) const NO_TASK: &str = "no thread has a period that the file states, so there is no task to analyse; hourglass run FILE runs the threads";

/// When jobs are released, as far as a set leaves it open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Releases {
    /// The first job of each task suffers the longest jitter, and if no offsets are given, all of
    /// these are released together: what bounds of response times assume. Sporadic tasks come as
    /// often as they may.
    #[default]
    Critical,
    /// At the nominal arrival, without jitter. Sporadic tasks come as often as they may.
    Nominal,
    /// Anywhere within the jitter. Sporadic tasks come up to a period later than they may.
    Random,
}

impl Releases {
    /// All of them by name.
    pub const ALL: [(&'static str, Releases); 3] = [
        ("critical", Releases::Critical),
        ("nominal", Releases::Nominal),
        ("random", Releases::Random),
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        Releases::ALL.iter().find(|(_, releases)| *releases == self).map_or("", |(name, _)| name)
    }
}

#[derive(Clone, Debug)]
pub struct SimulationRequest {
    pub set: TaskSet,
    /// The parts of the file that were left out, one sentence each.
    pub notes: Vec<String>,
    /// How long; without it, what the file says, else the hyperperiod if it has at most [`DEFAULT_JOBS`] and nothing is
    /// drawn, else as long as that many jobs take.
    pub horizon: Option<Span>,
    /// The seed of all random numbers.
    pub seed: u64,
    pub releases: Releases,
    /// The treatment of jobs that are released while an earlier one runs.
    pub late: OverrunPolicy,
    /// The kernel's limit on fixed priorities.
    pub throttling: Option<Throttling>,
    /// The policy towards siblings beside real-time tasks; without it siblings are ignored, and not
    /// reported.
    pub smt: Option<smt::SmtPolicy>,
    /// Keep the simulation in this folder, which must not exist.
    pub folder: Option<PathBuf>,
    /// Whether the schedule comes back, too.
    pub wants_schedule: bool,
    /// Intervals that folder and schedule have room for; the oldest are kept.
    pub records: u64,
    /// The command line, word by word, for the manifest.
    pub command_line: Vec<String>,
}

impl SimulationRequest {
    /// A request with defaults.
    #[must_use]
    pub fn new(set: TaskSet) -> SimulationRequest {
        SimulationRequest {
            set,
            notes: Vec::new(),
            horizon: None,
            seed: 0,
            releases: Releases::default(),
            late: OverrunPolicy::default(),
            throttling: None,
            smt: None,
            folder: None,
            wants_schedule: false,
            records: DEFAULT_RECORDS,
            command_line: Vec::new(),
        }
    }
}

/// The default number of intervals for which a folder has room; 48 MB of memory.
pub const DEFAULT_RECORDS: u64 = 1_000_000;

/// Tasks of a set that is simulated, at most: as many as are analysed.
pub const MOST_TASKS: usize = 10_000;

/// Hears how far a simulation is, on the thread that called [`simulate`].
pub trait SimulationObserver {
    /// Reports the simulated part of the horizon from time to time, both in ns; a comparison of two
    /// policies begins again at 0.
    fn reached(&mut self, simulated: u64, horizon: u64);
}

impl SimulationObserver for () {
    fn reached(&mut self, _: u64, _: u64) {}
}

/// Why there was no simulation. The text is one line that names the culprit and the remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimulationFailure {
    /// Priorities that an analysis would have to find.
    #[error(
        "priorities = \"optimal\" are found by analysis, not by simulation; give each task the \
         priority that hourglass check finds"
    )]
    NoPriorities,
    /// Critical sections that do not fit into a job.
    #[error(
        "task '{task}': its critical sections take longer than its wcet of {wcet}; make them shorter or fewer"
    )]
    SectionsOverWcet { task: String, wcet: Span },
    /// More critical sections than a simulation takes.
    #[error(
        "task '{task}': more than {} critical sections in a job; lower the counts",
        job::MOST_SECTIONS
    )]
    TooManySections { task: String },
    /// More tasks than a simulation takes.
    #[error(
        "{0} tasks, and at most {MOST_TASKS} are simulated; simulate the \
         tasks of one processor at a time, each in a file of its own, or leave some out"
    )]
    TooMany(usize),
    /// A horizon of no time.
    #[error("--horizon: invalid time {0}: must be above zero")]
    Horizon(Span),
    /// The simulator refuses the system, or gave up.
    #[error("{0}")]
    Refused(String),
    /// The folder cannot be made.
    #[error("-o: {0}")]
    Folder(#[from] CreateError),
}

#[derive(Debug)]
pub struct SimulationResult {
    pub document: SimulationDocument,
    /// The slices of all threads, in order of start, if requested.
    pub schedule: Vec<Interval>,
    /// Intervals for which the schedule, or the folder, had no room.
    pub dropped: u64,
    /// The folder in which the run was stored, or the error.
    pub folder: Option<Result<PathBuf, WriteError>>,
    /// The signal that ended it early, if one did.
    pub signal: Option<i32>,
    /// Whether deadlines are missed only because a `wcet` is an upper bound alone.
    pub undecided: bool,
}

/// One pass through the simulator.
struct Pass {
    outcome: sim::SimOutcome,
    threads: Vec<ThreadRecord>,
    watched: smt::MonitorCounts,
    best_effort: u64,
}

/// Simulates, and keeps the simulation if a folder is given.
///
/// From here on SIGINT, SIGTERM and SIGHUP end the simulation and not the process: what was
/// simulated by then is returned.
///
/// # Errors
/// See [`SimulationFailure`]. A folder that cannot be written afterwards is no failure: the findings come
/// back with the reason.
pub fn simulate(
    request: &SimulationRequest,
    watch: &mut dyn SimulationObserver,
) -> Result<SimulationResult, SimulationFailure> {
    if request.set.tasks.is_empty() && request.set.background.is_empty() {
        return Err(SimulationFailure::Refused(NO_TASK.replace("analyse", "simulate")));
    }
    if request.set.tasks.len() > MOST_TASKS {
        return Err(SimulationFailure::TooMany(request.set.tasks.len()));
    }
    let choices = Choices {
        releases: request.releases,
        late: request.late,
        throttling: request.throttling,
        // A policy for shared cores has to know what jobs are to come.
        follows_steps: request.smt.is_none(),
    };
    let mut model = model(&request.set, choices)?;
    for note in &request.notes {
        system::warn(&mut model.warnings, "input", note.clone(), "");
    }
    let asked = match request.horizon {
        Some(horizon) if !horizon.is_positive() => return Err(SimulationFailure::Horizon(horizon)),
        horizon => horizon.map(system::ns),
    };
    let throttling = request.throttling.map(|limit| limit.period);
    let horizon = horizon::horizon(&request.set, asked, model.is_drawn, throttling);
    smt_warnings(request, &mut model);
    // Without the handlers a signal ends the process, as it does anywhere else.
    let _ = signal::catch_stop();
    let folder = request.folder.clone().map(RunFolder::create).transpose()?;
    let settings = SimSettings::until(horizon.ns).with_seed(request.seed);
    let stored = folder.is_some() || request.wants_schedule;
    let capacity = (stored.then_some(request.records), folder.is_some());
    let pass = pass(&model, request.smt, settings, capacity, watch)?;
    let compared = match request.smt {
        Some(smt::SmtPolicy::Monitor(_) | smt::SmtPolicy::Ignore)
            if signal::stop_asked().is_none() =>
        {
            // A set that cannot be simulated with siblings disabled has nothing to be compared with.
            self::pass(&model, Some(smt::SmtPolicy::Disable), settings, (None, false), watch).ok()
        }
        _ => None,
    };
    // An interrupted comparison is dropped.
    let compared = compared.filter(|_| signal::stop_asked().is_none());
    let mut document = findings::document(request, &model, horizon, &pass, compared.as_ref());
    document.interrupted = signal::stop_asked().is_some();
    let undecided = document.failed() > 0 && may_hold(request, watch);
    if undecided {
        let text = "a wcet is an upper bound alone: with wcet_at_least no deadline is missed, so that nothing is known";
        system::warn(&mut document.warnings, "wcet-upper-bound", text.to_owned(), "record again");
    }
    let kept = folder.map(|folder| folder::keep(folder, request, &model, &document, &pass));
    let dropped = pass.threads.iter().map(|thread| thread.dropped).fold(0, u64::saturating_add);
    let schedule = if request.wants_schedule { pass.schedule() } else { Vec::new() };
    Ok(SimulationResult {
        document,
        schedule,
        dropped,
        folder: kept,
        signal: signal::stop_asked(),
        undecided,
    })
}

/// Whether no deadline is missed with the execution times that are known to be needed, where some `wcet` is no more than a bound.
fn may_hold(request: &SimulationRequest, watch: &mut dyn SimulationObserver) -> bool {
    if !request.set.tasks.iter().any(Task::has_upper_bound) {
        return false;
    }
    // Without sensible figures nothing is known to be missed.
    let Some(set) = request.set.at_least() else { return true };
    let least = SimulationRequest { set, folder: None, wants_schedule: false, ..request.clone() };
    simulate(&least, watch).is_ok_and(|least| least.document.failed() == 0)
}

impl Pass {
    /// The slices of all threads, in order of start.
    fn schedule(self) -> Vec<Interval> {
        let streams = self.threads.into_iter().map(|thread| thread.trace.into_iter()).collect();
        merge_by_start(streams).collect()
    }
}

fn pass(
    model: &Model,
    policy: Option<smt::SmtPolicy>,
    settings: SimSettings,
    capacity: (Option<u64>, bool),
    watch: &mut dyn SimulationObserver,
) -> Result<Pass, SimulationFailure> {
    let system = &model.system;
    let mut recorder = Recorder::new(system, &model.cpus, settings.horizon, capacity, watch);
    let (outcome, watched, best_effort) = match policy {
        None => {
            let outcome = sim::run_to(system, settings, &mut recorder)
                .map_err(|error| named(&error, model))?;
            let best_effort = smt::best_effort(system, &outcome);
            (outcome, smt::MonitorCounts::default(), best_effort)
        }
        Some(policy) => {
            let found = smt::run(system, policy, settings, &mut recorder);
            let found = found.map_err(|error| named_smt(&error, model))?;
            (found.outcome, found.watched, found.best_effort)
        }
    };
    Ok(Pass { outcome, threads: recorder.close(), watched, best_effort })
}

/// A refusal in the words of the file: tasks and servers by their names.
fn named(error: &SimError, model: &Model) -> SimulationFailure {
    SimulationFailure::Refused(with_names(error.to_string(), model))
}

fn named_smt(error: &smt::SmtError, model: &Model) -> SimulationFailure {
    SimulationFailure::Refused(format!("--smt: {}", with_names(error.to_string(), model)))
}

/// The simulator says `thread 3`; what is meant is known by its name.
fn with_names(text: String, model: &Model) -> String {
    let Some((before, after)) = text.split_once("thread ") else { return text };
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    let (number, rest) = after.split_at(digits);
    let name = number.parse::<usize>().ok().and_then(|number| model.names.get(number));
    match name {
        Some(name) => format!("{before}task '{name}'{rest}"),
        None => text,
    }
}

/// Warns about assumptions of a policy for shared cores that do not hold.
fn smt_warnings(request: &SimulationRequest, model: &mut Model) {
    let Some(smt::SmtPolicy::Monitor(monitoring)) = request.smt else { return };
    let (part, whole) = monitoring.alpha.parts();
    let is_above = |(least, of): (u128, u128)| {
        let left = u128::from(part).checked_mul(of)?;
        Some(left > u128::from(whole).checked_mul(least)?)
    };
    if findings::least_rate(&model.system).and_then(is_above) == Some(true) {
        let warning = Warning {
            id: "alpha".to_owned(),
            text: "alpha is above the least rate of interference, so that deadlines may be missed"
                .to_owned(),
            remedy: "lower --alpha, or leave it out".to_owned(),
        };
        model.warnings.push(warning);
    }
    let costs = model.system.overheads;
    if costs.context_switch + costs.tick_cost + costs.cache_delay > 0 {
        system::warn(
            &mut model.warnings,
            "slack-overheads",
            "slack does not count what switches, ticks and caches cost".to_owned(),
            "count them in each wcet",
        );
    }
}
