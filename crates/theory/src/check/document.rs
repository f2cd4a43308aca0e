//! The document of a check: put together from the answers for each processor, then held against what simulations
//! show.
//!
//! Owns: the verdict on the set, what becomes of a verdict whose case shows nothing, the miss and the file of the
//! witness. Must not: analyse, simulate.

use std::cmp::Ordering;

use hourglass_documents::check::{
    CHECK_SCHEMA, CheckDocument, MissFacts, ProcessorFacts, TaskFacts, Verdict, WitnessFacts,
};
use hourglass_sched::admission::{self, Fraction};
use hourglass_sched::catalogue::{self, AnalysisEntry};
use hourglass_sched::{self as sched, TaskSet as Numbers};
use hourglass_tasks::{Scheduler, Task, TaskSet};
use hourglass_time::Span;

use super::guard;
use super::partition;
use super::proof::{self, time};
use super::replay::{NOT_SHOWN, Replay, WitnessedMiss};
use super::solve::ProcessorSolution;

/// Why nothing is known of a task that no processor has.
const NOWHERE: &str = "on no CPU of the file an analysis has it beside its server";

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

/// The document of these answers, or of the reason why there are none.
pub(super) fn put_together(
    set: &TaskSet,
    notes: Vec<String>,
    answers: Result<Vec<ProcessorSolution>, String>,
) -> CheckDocument {
    let mut document = empty(set, notes);
    match answers {
        Ok(solved) => fill(&mut document, solved),
        Err(why) => refuse(&mut document, &why),
    }
    certainly_late(set, &mut document);
    overloaded(set, &mut document);
    document
}

fn fill(document: &mut CheckDocument, solved: Vec<ProcessorSolution>) {
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
    let is_left_out =
        |task: &&mut TaskFacts| task.verdict == Verdict::Unknown && task.reason.is_empty();
    for task in document.tasks.iter_mut().filter(is_left_out) {
        task.reason = NOWHERE.to_owned();
        document.reason.get_or_insert(NOWHERE.to_owned());
    }
    if names.is_empty() {
        names.push("none".to_owned());
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
    // Without tasks nothing is shown to hold.
    document.verdict = all.max().unwrap_or(Verdict::Unknown);
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
        if needs > task.deadline() && matches!(facts.verdict, Verdict::Unknown | Verdict::NoBound) {
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

/// Holds the document against simulated cases. A task whose miss no case shows is not known to miss its deadline; the
/// witness gets the miss that was seen, and the file that shows it.
pub(super) fn settle(set: &TaskSet, document: &mut CheckDocument, replay: Replay) {
    if replay.is_unknown {
        promote(document, &replay);
        say_covered(document, &replay);
    } else {
        retract_unwitnessed(document, &replay);
        // What the retracted verdict stood before.
        overloaded(set, document);
    }
    show(document, replay);
}

/// Takes back what no scenario shows.
fn retract_unwitnessed(document: &mut CheckDocument, replay: &Replay) {
    let shown = |at: usize, document: &CheckDocument| {
        let (cpus, server) = (&document.tasks[at].cpus, &document.tasks[at].server);
        let same = |other: &usize| {
            let other = &document.tasks[*other];
            other.cpus == *cpus && other.server == *server
        };
        // Where no response time is known, the demand says that some deadline is missed, but not whose.
        let whose = document.tasks[at].response_time_ns.is_none();
        replay.seen.contains_key(&at) || (whose && replay.seen.keys().any(same))
    };
    let kept: Vec<bool> = replay.wanted.iter().map(|at| shown(*at, document)).collect();
    for (at, _) in replay.wanted.iter().zip(kept).filter(|(_, kept)| !kept) {
        let facts = &mut document.tasks[*at];
        (facts.verdict, facts.reason) = (Verdict::Unknown, replay.why.clone());
    }
    for at in 0..document.processors.len() {
        let processor = &document.processors[at];
        let here =
            |task: &TaskFacts| task.cpus == processor.cpus && task.server == processor.server;
        let mut members = document.tasks.iter().enumerate().filter(|(_, task)| here(task));
        let stands = processor.verdict != Verdict::Infeasible
            || members.any(|(at, task)| {
                task.verdict == Verdict::Infeasible || replay.seen.contains_key(&at)
            });
        if !stands {
            document.processors[at].verdict = Verdict::Unknown;
            document.reason = Some(replay.why.clone());
        }
    }
    let before = document.verdict;
    conclude(document);
    if before == Verdict::NoBound && !replay.seen.is_empty() {
        document.verdict = document.verdict.max(before);
        document.reason = None;
    }
    if document.verdict == Verdict::Unknown && before != Verdict::Unknown {
        document.reason = Some(replay.why.clone());
        document.witness = None;
    }
}

/// Marks tasks as late if a scenario shows it, whatever the analysis found.
fn promote(document: &mut CheckDocument, replay: &Replay) {
    for at in replay.seen.keys() {
        let facts = &mut document.tasks[*at];
        if facts.verdict == Verdict::Unknown {
            facts.verdict = Verdict::Infeasible;
            facts.reason = "a simulation of an allowed case shows that it is late".to_owned();
        }
        let facts = &document.tasks[*at];
        let here = |on: &&mut ProcessorFacts| on.cpus == facts.cpus && on.server == facts.server;
        if let Some(processor) = document.processors.iter_mut().find(here) {
            processor.verdict = processor.verdict.max(facts.verdict);
        }
    }
    conclude(document);
}

/// Reports the time simulated without a miss, where a bound is over a deadline.
fn say_covered(document: &mut CheckDocument, replay: &Replay) {
    if !replay.seen.is_empty() || replay.covered == 0 {
        return;
    }
    let tasks = document.tasks.iter_mut().map(|task| &mut task.reason);
    for reason in document.reason.iter_mut().chain(tasks) {
        if reason.starts_with("the bound is over the deadline") {
            let covered = time(replay.covered);
            reason.push_str(&format!(
                "; with open phases together, no job misses its deadline in a simulation of {covered}"
            ));
        }
    }
}

/// Gives the witness the miss that was seen, of its own task if that is among them.
fn show(document: &mut CheckDocument, mut replay: Replay) {
    let named = document.witness.as_ref().and_then(|witness| witness.task.clone());
    let own = replay.seen.iter().find(|(_, seen)| Some(&seen.miss.task) == named.as_ref());
    let late = || replay.seen.keys().find(|at| document.tasks[**at].verdict == Verdict::Infeasible);
    let at = own.map(|(at, _)| *at).or_else(|| late().copied());
    let Some(at) = at.or_else(|| replay.seen.keys().next().copied()) else { return };
    let Some(WitnessedMiss { miss, scenario, horizon }) = replay.seen.remove(&at) else { return };
    if document.verdict < Verdict::NoBound {
        return;
    }
    let witness = match document.witness.take() {
        Some(witness) if witness.task.is_none() || named.as_ref() == Some(&miss.task) => witness,
        _ => of_miss(&miss),
    };
    let horizon = i64::try_from(horizon).ok().map(Span::from_nanos);
    let scenario = TaskSet { horizon, ..scenario.as_ref().clone() };
    let scenario = format!("{}{}", header(&miss), scenario.to_toml());
    let witness = WitnessFacts { miss: Some(miss), scenario: Some(scenario), ..witness };
    guard::admit(document, witness, NOT_SHOWN);
}

/// A witness of nothing but a miss.
fn of_miss(miss: &MissFacts) -> WitnessFacts {
    let (response, late) = match miss.done_ns {
        Some(done) => {
            let response = done.saturating_sub(miss.arrival_ns);
            (Some(response), format!("responds in {}", time(response)))
        }
        None => (None, "is not done".to_owned()),
    };
    let deadline = miss.due_ns.saturating_sub(miss.arrival_ns);
    WitnessFacts {
        kind: "response".to_owned(),
        task: Some(miss.task.clone()),
        job: Some(miss.job.saturating_add(1)),
        found_ns: response,
        limit_ns: Some(deadline),
        text: format!(
            "job {} of '{}' {late}, after its deadline of {}",
            miss.job.saturating_add(1),
            miss.task,
            time(deadline)
        ),
        ..WitnessFacts::default()
    }
}

/// The header comment in the file of a scenario.
fn header(miss: &MissFacts) -> String {
    let done = match miss.done_ns {
        Some(done) => format!("is done at {}", time(done)),
        None => "is not done by then".to_owned(),
    };
    format!(
        "# A case in which a deadline is missed, found by hourglass check. In hourglass simulate:\n\
         # job {} of {:?}, counted from 0, arrives at {}, is due at {} and {done}.\n",
        miss.job,
        miss.task,
        time(miss.arrival_ns),
        time(miss.due_ns)
    )
}
