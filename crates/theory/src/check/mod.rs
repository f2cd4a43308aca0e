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
//! processors (`processor_builder.rs`): a CPU with its tasks, CPUs that share tasks, the inside of a server. Each key
//! becomes a number (`parameters.rs`, `locks.rs`, `servers.rs` translate; costs are charged by `sched::overheads`,
//! blocking, spinning and servers bounded by the modules of these names), or it refuses its processor with the
//! reason. A `Processor` is built once and not changed: it is a `sched::catalogue::Question` with names. `solve.rs`
//! asks the first analysis of the catalogue that fits, whose proof is verified, and calls a late task
//! infeasible only if all that the numbers count can happen; else the verdict is unknown. Worked examples go another
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
//! (`nothing_is_passed_over` in `crates/sched/tests/properties.rs` asks them all). What is no property of a task keeps a name of its
//! own: the protocol of a resource (`blocking::Usage`), a step of a chain, a node of a graph of event streams (`cpa::Node`).

mod chains;
mod design;
mod global;
mod guard;
mod jobs;
mod locks;
mod parameters;
mod partition;
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

use std::cmp::Ordering;

use hourglass_documents::check::{CHECK_SCHEMA, CheckDocument, TaskFacts, Verdict, WitnessFacts};
use hourglass_documents::spelling;
use hourglass_sched::admission::{self, Fraction};
use hourglass_sched::catalogue::{self, Rule};
use hourglass_sched::{self as sched, TaskSet as Numbers};
use hourglass_tasks::{Scheduler, Task, TaskSet};
use hourglass_time::Span;
use thiserror::Error;

pub use hourglass_sched::catalogue::{AnalysisEntry, CHECKED as ANALYSES};
pub use hourglass_sched::partition::{FitHeuristic, PlacementOrder};
pub use partition::placing;

pub(crate) use guard::waits_for_others;
use processor::{NoteList, Processor};
use solve::ProcessorSolution;

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
    /// Whether to explain in the document how the set was understood.
    pub explain: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// No such analysis.
    #[error(
        "unknown analysis '{0}'; {question}hourglass check --list-analyses lists them",
        question = meant(.0)
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

/// The question which analysis a name may have meant, with a space behind it; empty if none is near.
fn meant(name: &str) -> String {
    let question = spelling::did_you_mean(name, ANALYSES.iter().map(|entry| entry.name));
    question.map_or_else(String::new, |question| format!("{question} "))
}

/// Tasks of a set that are analysed at a time, at most.
pub const MOST_TASKS: usize = 10_000;

/// Tasks of one processor that are analysed together, at most: each is compared with all others.
/// This number takes about a second of a processor of 2026.
pub const MOST_TOGETHER: usize = 2_000;

/// Says whether the deadlines of a set hold.
///
/// # Errors
/// The request does not fit the set. A set that cannot be analysed is no error: its verdict is
/// unknown.
pub fn check(set: &TaskSet, request: &CheckRequest) -> Result<CheckDocument, RequestError> {
    let known = |name: &String| {
        let entry = catalogue::checked_by(name).map(|entry| entry.name);
        entry.ok_or_else(|| RequestError::UnknownAnalysis(name.clone()))
    };
    let asked = request.analysis.as_ref().map(known).transpose()?;
    if set.tasks.len() > MOST_TASKS {
        return Err(RequestError::TooMany(set.tasks.len()));
    }
    if set.tasks.is_empty() {
        let mut document = empty(set, Vec::new());
        refuse(&mut document, NO_TASK);
        document.understood = request.explain.then(|| set.explain());
        return Ok(document);
    }
    let mut notes = NoteList::default();
    let is_chained = set.tasks.iter().any(|task| !task.after.is_empty());
    let placing = request.partition.filter(|_| !is_chained);
    let placed = placing.map(|(fit, order)| partition::place(set, fit, order, &mut notes));
    let placed = placed.transpose()?.transpose();
    let (set, is_placed) = match &placed {
        Ok(placed) => (placed.as_ref().unwrap_or(set), Ok(())),
        Err(why) => (set, Err(why.clone())),
    };
    // The name selects the analysis for any phases.
    let phases = asked != Some("fp-preemptive");
    let mut processors = Vec::new();
    let answers = match is_placed {
        Err(why) => Err(why),
        Ok(()) if is_chained => chains::solve(set, asked),
        Ok(()) => match processor_builder::processors(set, phases, &mut notes) {
            Err(why) => Err(why),
            Ok(found) => {
                asked.map_or(Ok(()), |name| fit(&found, name))?;
                processors = found;
                Ok(solve_each(set, &processors, asked, &mut notes))
            }
        },
    };
    let mut document = empty(set, notes.0);
    match answers {
        Ok((solved, assumed)) => {
            put_together(&mut document, solved);
            document.assumptions.extend(assumed);
            if request.sensitivity && !is_chained {
                document.breakdown = Some(sensitivity::breakdown(set, &processors));
                document.sensitivity = Some(sensitivity::sensitivity(set, &processors));
            }
        }
        Err(why) => refuse(&mut document, &why),
    }
    certainly_late(set, &mut document);
    overloaded(set, &mut document);
    replay::confirm(set, &mut document, asked.is_none());
    guard::confirm(set, &mut document);
    document.server = design::design(set, &request.server)?;
    document.understood = request.explain.then(|| set.explain());
    Ok(document)
}

/// The answer for each processor, and what is assumed besides the notes: where offsets are given, that they count.
fn solve_each(
    set: &TaskSet,
    processors: &[Processor],
    asked: Option<&str>,
    notes: &mut NoteList,
) -> (Vec<ProcessorSolution>, Vec<String>) {
    let explores = asked.is_none_or(|name| name == jobs::NAME);
    let (mut explored, mut passed_over) = (false, false);
    let solved = processors.iter().map(|processor| {
        let mut solved = solve::solve(processor, asked);
        let refined = explores && jobs::refine(set, processor, &mut solved, asked.is_some());
        explored |= refined;
        passed_over |= !refined && processor.inexact.iter().any(|w| w == parameters::NO_OFFSETS);
        solved
    });
    let solved = solved.collect();
    let counted = explored && !passed_over;
    if counted {
        notes.0.retain(|note| note != parameters::NO_OFFSETS);
    }
    (solved, counted.then(|| jobs::EXPLORED.to_owned()).into_iter().collect())
}

/// The reason why threads that are not tasks are not analysed.
pub(crate) const NO_TASK: &str = "no thread has a period that the file states, so there is no task to analyse; hourglass run FILE runs the threads";

/// Checks that an analysis requested by name is for processors like these.
fn fit(processors: &[Processor], name: &str) -> Result<(), RequestError> {
    let rule = |rule: Rule| match rule {
        Rule::FixedPriority => "fp-",
        Rule::Edf => "edf-",
        Rule::Fifo => "fifo",
    };
    for processor in processors {
        let fitting = processor.analysis();
        let fits = match name {
            "edf-demand" => processor.rule == Rule::Edf && processor.server.is_none(),
            "liu-layland" | "hyperbolic" => processor.rule == Rule::FixedPriority,
            // Without suspension both give one verdict.
            "global-fp-bc" => fitting == "global-fp-lc",
            "fp-suspension" => fitting == "fp-preemptive" || fitting == name,
            jobs::NAME => ["fp-nonpreemptive", "edf-nonpreemptive"].contains(&fitting),
            _ => fitting == name,
        };
        if !fits {
            let rule = rule(processor.rule);
            let reason = format!(
                "it asks for {fitting}{}",
                if name.starts_with(rule) { "" } else { "; its scheduler is another" }
            );
            return Err(RequestError::Unfit { name: name.to_owned(), reason });
        }
    }
    Ok(())
}

/// The document before anything is known.
fn empty(set: &TaskSet, assumptions: Vec<String>) -> CheckDocument {
    let all = set.cpus();
    let facts = |(task, priority): (&Task, Option<u32>)| TaskFacts {
        name: task.name.clone(),
        deadline_ns: task.deadline().nanos_or_zero(),
        verdict: Verdict::Unknown,
        wcet_ns: task.wcet.nanos_or_zero(),
        period_ns: task.period.nanos_or_zero(),
        // Under EDF and FIFO, priorities play no part.
        priority: priority.filter(|_| set.scheduler == Scheduler::FixedPriority),
        cpus: task.cpus.as_ref().unwrap_or(&all).to_string(),
        server: set.server_of(&task.name).map(|server| server.name.clone()),
        utilisation: TaskSet::utilisation(task).map(|u| u.to_string()).unwrap_or_default(),
        ..TaskFacts::default()
    };
    CheckDocument {
        schema: CHECK_SCHEMA.to_owned(),
        set: set.name.clone(),
        analysis: String::new(),
        sources: Vec::new(),
        verdict: Verdict::Unknown,
        witness: None,
        reason: None,
        tasks: set.tasks.iter().zip(set.priorities()).map(facts).collect(),
        processors: Vec::new(),
        assumptions,
        server: None,
        sensitivity: None,
        breakdown: None,
        understood: None,
    }
}

/// Nothing can be said about any task.
fn refuse(document: &mut CheckDocument, why: &str) {
    document.analysis = "none".to_owned();
    document.reason = Some(why.to_owned());
    for task in &mut document.tasks {
        task.reason = why.to_owned();
    }
}

fn put_together(document: &mut CheckDocument, solved: Vec<ProcessorSolution>) {
    let mut names: Vec<String> = Vec::new();
    for found in solved {
        for (position, facts) in found.tasks {
            let known = &mut document.tasks[position];
            *known = TaskFacts {
                name: std::mem::take(&mut known.name),
                deadline_ns: known.deadline_ns,
                wcet_ns: known.wcet_ns,
                period_ns: known.period_ns,
                priority: facts.priority.or(known.priority),
                cpus: found.facts.cpus.clone(),
                server: known.server.take(),
                utilisation: std::mem::take(&mut known.utilisation),
                ..facts
            };
        }
        if !names.contains(&found.facts.analysis) {
            names.push(found.facts.analysis.clone());
        }
        document.witness = document.witness.take().or(found.witness);
        document.reason = document.reason.take().or(found.reason);
        document.processors.push(found.facts);
    }
    let entries = names.iter().filter_map(|name| catalogue::checked_by(name));
    document.sources = entries.map(AnalysisEntry::facts).collect();
    document.analysis = names.join("+");
    conclude(document);
}

/// The verdict on the set: the worst of its tasks and processors.
fn conclude(document: &mut CheckDocument) {
    let tasks = document.tasks.iter().map(|task| task.verdict);
    let all = tasks.chain(document.processors.iter().map(|processor| processor.verdict));
    document.verdict = all.max().unwrap_or_default();
    if document.verdict != Verdict::Unknown {
        document.reason = None;
    }
}

/// A job that needs more time than its deadline allows misses it, whatever the analysis finds.
fn certainly_late(set: &TaskSet, document: &mut CheckDocument) {
    let mut found: Option<WitnessFacts> = None;
    for (task, facts) in set.tasks.iter().zip(&mut document.tasks) {
        // In a chain, the deadline counts from the arrival of another task.
        let jitter = if task.after.is_empty() { task.jitter } else { Span::ZERO };
        let needs = task.wcet.saturating_add(task.suspension).saturating_add(jitter);
        if needs > task.deadline() && facts.verdict == Verdict::Unknown {
            facts.verdict = Verdict::Infeasible;
            facts.reason = "it needs more than its deadline leaves".to_owned();
            found.get_or_insert(proof::too_long(task, needs.nanos_or_zero()));
        }
    }
    if found.is_some() {
        document.witness = document.witness.take().or(found);
        conclude(document);
    }
}

/// If the demand exceeds the CPUs, some task has no bound, whatever the analysis finds.
fn overloaded(set: &TaskSet, document: &mut CheckDocument) {
    let all = set.cpus();
    let each = all.iter().map(partition::single_cpu);
    for place in std::iter::once(all.clone()).chain(each) {
        let bound_to = |task: &&Task| {
            task.has_fixed_priority()
                && task.cpus.as_ref().unwrap_or(&all).difference(&place).is_empty()
        };
        let numbers: Vec<sched::Task> =
            set.tasks.iter().filter(bound_to).filter_map(plain).collect();
        let numbers = Numbers::new(numbers);
        let whole = Fraction { numerator: 1, denominator: 1 };
        let cpus = place.len() as u64;
        if admission::admits(&numbers, whole, cpus) != Some(false) {
            continue;
        }
        if document.witness.is_none() {
            let sum = admission::utilisation(&numbers);
            let sum = sum.map(|u| format!("{}/{}", u.numerator, u.denominator));
            document.witness = Some(proof::overloaded(&place.to_string(), sum.as_deref()));
        }
        if document.verdict.cmp(&Verdict::NoBound) == Ordering::Less {
            document.verdict = Verdict::NoBound;
            document.reason = None;
        }
        return;
    }
}

/// Cost and period alone.
fn plain(task: &Task) -> Option<sched::Task> {
    let (cost, period) = (task.wcet.nanos_or_zero(), task.period.nanos_or_zero());
    sched::Task::new(cost, period, period).ok()
}
