//! From a set of tasks to the analysis that answers it, and the document that says so.
//!
//! Owns: the choice of analyses by what the set says, and the document `hourglass.check/1`. Every key of
//! a description counts in the numbers, or by a stated transformation that makes bounds larger, or
//! the verdict is unknown, with the reason. Whatever is called infeasible is shown by a simulation
//! (`replay`). Must not: bound anything itself, draw.
//!
//! Every search ends: an analysis takes at most [`effort::DEFAULT_LOOKS`](hourglass_sched::effort)
//! looks at a task for each processor or server, finding priorities n (n + 1) / 2 times as many for n tasks.
//!
//! # How a set of tasks is checked
//!
//! `measure::task_input` reads it: TOML, JSON, rt-app's file or a run folder. `theory::check` splits it into
//! processors (`placement.rs`): a CPU with its tasks, CPUs that share tasks, the inside of a server. Each key
//! becomes a number (`parameters.rs`, `locks.rs`, `servers.rs` translate; costs are charged by `sched::overheads`,
//! blocking, spinning and servers bounded by the modules of these names), or it refuses its processor with the
//! reason. A `Processor` is built once (`processor_builder.rs`) and not changed: it is a `sched::catalogue::Question` with names. `solve.rs`
//! asks the first analysis of the catalogue that fits, whose proof is verified, and calls a late task
//! infeasible only if all that the numbers count can happen; else the verdict is unknown. `document.rs` puts the answers
//! together, once, and then holds them against the cases that `replay.rs` simulates. Worked examples go another
//! way: `tasks::corpus` reads a case, the analysis of the catalogue that has its kind answers it, and
//! `theory::examples` compares.
//!
//! `sched::catalogue::ALL` is the one list of analyses, each with one name. An entry says for which questions it is,
//! which kinds of worked examples it answers, and its contenders: the ways of scheduling that `sweep` compares by it
//! (priorities assigned, tasks placed). One that assigns and places nothing has the name of its analysis; the word that
//! `sweep` once had for it (`edf`) is still understood, and then also a key of the document.
//!
//! `sched::Task` is the one description of a task, also with bursts, a phase, a preemption threshold or critical
//! sections. Few analyses know these: each that does not asks `TaskSet::is_plain` first and refuses
//! (`nothing_is_passed_over` in `crates/sched/tests/analyses/properties.rs` asks them all). What is no property of a task keeps a name of its
//! own: the protocol of a resource (`blocking::Usage`), a step of a chain, a node of a graph of event streams (`cpa::Node`).

mod chains;
mod design;
mod document;
mod global;
mod guard;
mod jobs;
mod locks;
mod needs;
mod parameters;
mod partition;
mod placement;
mod priorities;
mod processor;
mod processor_builder;
mod proof;
mod replay;
mod scenario;
mod sensitivity;
mod servers;
mod solve;
mod time_sharing;
mod upper_bounds;
mod variation;

use hourglass_documents::check::CheckDocument;
use hourglass_sched::catalogue;
use hourglass_tasks::TaskSet;
use hourglass_time::Span;
use thiserror::Error;

pub use hourglass_sched::catalogue::{AnalysisEntry, CHECKED as ANALYSES};
pub use hourglass_sched::partition::{FitHeuristic, PlacementOrder};
pub use partition::placing;

use crate::simulate::NO_TASK;
pub(crate) use guard::waits_for_others;
use processor::{NoteList, Processor};

/// The requests besides whether deadlines hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckRequest {
    /// The analysis by name; without it, the one that fits what the set says.
    pub analysis: Option<String>,
    /// Tasks are placed on the CPUs of the machine by this heuristic.
    pub partition: Option<(FitHeuristic, PlacementOrder)>,
    /// Periods among which the smallest reservation is searched; empty for no search.
    pub server: Vec<Span>,
    /// Whether to find how far each task may change.
    pub sensitivity: bool,
    /// Whether to find how far all execution times may grow together, of [`MOST_GROWN`] tasks at most; `sensitivity` has it of
    /// any number.
    pub growth: bool,
    /// Whether to explain in the document how the set was understood.
    pub explain: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// No such analysis.
    #[error(
        "unknown analysis '{0}'; {question}hourglass check --list-analyses lists them",
        question = needs::meant(.0)
    )]
    UnknownAnalysis(String),
    /// The set is not what the analysis is for.
    #[error("the analysis {name} does not answer this set: {reason}")]
    Unfit {
        name: String,
        /// The reason against it.
        reason: String,
    },
    /// More than are analysed at a time.
    #[error(
        "{0} tasks, and at most {MOST_TASKS} are analysed at a time, since the time that takes grows with the \
         square of their number; make a file of each processor's tasks, or leave some out"
    )]
    TooMany(usize),
    /// Tasks have their places already.
    #[error(
        "--partition places all tasks, but task '{0}' has CPUs or a server already; drop them or the option"
    )]
    Placed(String),
    /// A reservation with such a period cannot be.
    #[error("--server: a period of {0} is not above zero")]
    NoPeriod(Span),
}

/// Tasks of a set that are analysed at a time, at most.
pub const MOST_TASKS: usize = 10_000;

/// Tasks of one processor that are analysed together, at most: each is compared with all others.
/// This number takes about a second of a processor of 2026.
pub const MOST_TOGETHER: usize = 2_000;

/// Tasks of which is found without being asked how far they may grow, at most: some tens of analyses of them.
pub const MOST_GROWN: usize = 32;

/// Says whether the deadlines of a set hold.
///
/// # Errors
/// The request does not fit the set. A set that cannot be analysed is no error: its verdict is
/// unknown.
pub fn check(set: &TaskSet, request: &CheckRequest) -> Result<CheckDocument, RequestError> {
    let mut document = answer(set, request)?;
    upper_bounds::settle(set, request, &mut document);
    Ok(document)
}

/// How the tasks are to be placed; a chain is not, nor is nothing.
fn placing_of(set: &TaskSet, request: &CheckRequest) -> Option<(FitHeuristic, PlacementOrder)> {
    request.partition.filter(|_| !is_chained(set) && !set.tasks.is_empty())
}

fn is_chained(set: &TaskSet) -> bool {
    set.tasks.iter().any(|task| !task.after.is_empty())
}

fn answer(set: &TaskSet, request: &CheckRequest) -> Result<CheckDocument, RequestError> {
    let known = |name: &String| {
        catalogue::checked_by(name).ok_or_else(|| RequestError::UnknownAnalysis(name.clone()))
    };
    let asked: Option<&AnalysisEntry> = request.analysis.as_ref().map(known).transpose()?;
    if set.tasks.len() > MOST_TASKS {
        return Err(RequestError::TooMany(set.tasks.len()));
    }
    let mut notes = NoteList::default();
    let is_chained = is_chained(set);
    let placed =
        placing_of(set, request).map(|(fit, order)| partition::place(set, fit, order, &mut notes));
    let placed = placed.transpose()?.transpose();
    // Tasks without a place share all CPUs in a simulation, which is not what was asked.
    let is_simulated = asked.is_none() && placed.is_ok();
    let (set, is_placed) = match &placed {
        Ok(placed) => (placed.as_ref().unwrap_or(set), Ok(())),
        Err(why) => (set, Err(why.clone())),
    };
    // The name selects the analysis for any phases.
    let phases = asked.is_none_or(|entry| entry.name != "fp-preemptive");
    let mut processors = Vec::new();
    let answers = match is_placed {
        Err(why) => Err(why),
        Ok(()) if set.tasks.is_empty() => Err(NO_TASK.to_owned()),
        Ok(()) if is_chained => chains::solve(set, asked, &mut notes),
        Ok(()) => match placement::processors(set, phases, &mut notes) {
            Err(why) => Err(why),
            Ok(found) => {
                asked.map_or(Ok(()), |entry| fit(&found, entry))?;
                processors = found;
                Ok(jobs::solve(set, &processors, asked, &mut notes))
            }
        },
    };
    let is_varied = request.sensitivity && answers.is_ok();
    let is_grown = request.growth && set.tasks.len() <= MOST_GROWN && answers.is_ok();
    let is_grown = is_varied || is_grown;
    let chained = is_grown && is_chained;
    let chained = chained.then(|| chains::ChainedTasks::of(set, &mut NoteList::default()).ok());
    let chained = chained.flatten();
    let vary = || sensitivity::breakdown(set, &processors, chained.as_ref());
    let breakdown = is_grown.then(vary);
    let solved = answers.as_deref().unwrap_or_default();
    let vary = || sensitivity::sensitivity(set, &processors, chained.as_ref(), solved);
    let sensitivity = is_varied.then(vary);
    let mut document = document::put_together(set, notes.0, answers);
    (document.breakdown, document.sensitivity) = (breakdown, sensitivity);
    if let Some(replay) = replay::replay(set, &document, is_simulated) {
        document::settle(set, &mut document, replay);
    }
    guard::confirm(set, &mut document);
    time_sharing::say_premise(set, &mut document);
    servers::say_premise(&mut document);
    if !set.tasks.is_empty() {
        document.server = design::design(set, &request.server)?;
    }
    document.understood = request.explain.then(|| set.explain());
    Ok(document)
}

/// Checks that an analysis requested by name is for processors like these.
fn fit(processors: &[Processor], asked: &AnalysisEntry) -> Result<(), RequestError> {
    for processor in processors {
        if !asked.answers(&processor.question()) {
            let reason = needs::refusal_among(asked, processor, processors);
            return Err(RequestError::Unfit { name: asked.name.to_owned(), reason });
        }
    }
    Ok(())
}
