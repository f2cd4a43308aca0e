//! What stays of an answer where a `wcet` is an upper bound alone.
//!
//! Owns: the same question with the lower figures, and what it takes back. Tasks that were placed by the upper figures stay where
//! they are: a placement by the lower ones may be another, and says nothing about this one. Must not: analyse.

use hourglass_documents::check::{CheckDocument, ProcessorFacts, Verdict};
use hourglass_tasks::{Task, TaskSet};

use super::processor::NoteList;
use super::sensitivity::LATE;
use super::{CheckRequest, answer, design, partition, placing_of};

/// Leaves late what also is with the execution times that are known to be needed, and says where these find what the upper ones
/// do not.
pub(super) fn settle(set: &TaskSet, request: &CheckRequest, document: &mut CheckDocument) {
    let Some(bounds) = named(set.tasks.iter()) else { return };
    let why = format!("{bounds}, and with wcet_at_least");
    let least = set.at_least();
    let is_late = document.verdict > Verdict::Unknown;
    let asked = least.as_ref().filter(|_| is_late || document.breakdown.is_some());
    let known = asked.and_then(|least| known(set, least, request));
    if document.breakdown.is_some() {
        vary(document, &bounds, known.as_ref());
    }
    if is_late {
        known_late(document, &format!("{why} no deadline is known to be missed"), known);
    } else if let Some(least) = &least
        && placed(set, request).is_some_and(|found| found.is_err())
        && placed(least, request).is_some_and(|found| found.is_ok())
    {
        let tasks = document.tasks.iter_mut().map(|task| &mut task.reason);
        document.reason.iter_mut().chain(tasks).for_each(|reason| {
            reason.push_str(&format!("; {why} it finds one"));
        });
    }
    let none = document.server.as_mut().filter(|server| server.budget_ns.is_none());
    if let Some((server, least)) = none.zip(least.as_ref()) {
        let found = design::design(least, &request.server).ok().flatten();
        if found.is_some_and(|found| found.budget_ns.is_some()) {
            server.reason.push_str(&format!("; {why} there is one"));
        }
    }
}

/// Which of these tasks have an upper bound alone; `None` if none has.
pub(super) fn named<'a>(tasks: impl Iterator<Item = &'a Task>) -> Option<String> {
    let bounded = tasks.filter(|task| task.has_upper_bound());
    let names: Vec<String> = bounded.map(|task| format!("'{}'", task.name)).collect();
    (!names.is_empty()).then(|| format!("the wcet of {} is an upper bound alone", names.join(", ")))
}

/// Says that upper figures are what the tasks' changes are found by, and how far all may at most by the lower ones (`least`).
fn vary(document: &mut CheckDocument, bounds: &str, least: Option<&CheckDocument>) {
    if document.sensitivity.is_some() {
        let text =
            format!("how far each task may change is found by upper figures, since {bounds}");
        document.assumptions.push(text);
    }
    let rows = document.sensitivity.iter_mut().flatten();
    let known = least.iter().flat_map(|least| least.sensitivity.iter().flatten());
    for (row, known) in rows.zip(known) {
        let is_late = row.reason.as_deref().is_none_or(|why| why == LATE);
        if row.largest_wcet_ns.is_none() && is_late && known.largest_wcet_ns.is_some() {
            row.reason = Some(format!("{bounds}, and only with wcet_at_least the deadlines hold"));
        }
    }
    for facts in document.breakdown.iter_mut().flatten().filter(|facts| facts.reason.is_some()) {
        let mut known = least.iter().flat_map(|least| least.breakdown.iter().flatten());
        let known =
            known.find(|known| (&known.cpus, &known.server) == (&facts.cpus, &facts.server));
        let known = known.filter(|known| known.reason.is_none());
        facts.factor_at_most = known.map(|known| known.factor);
    }
}

/// The answer with the lower figures, with each task on the CPU on which the upper ones place it.
fn known(set: &TaskSet, least: &TaskSet, request: &CheckRequest) -> Option<CheckDocument> {
    let mut plain = CheckRequest {
        analysis: request.analysis.clone(),
        partition: request.partition,
        sensitivity: request.sensitivity,
        growth: request.growth,
        ..CheckRequest::default()
    };
    let mut least = least.clone();
    if let Some(Ok(placed)) = placed(set, request) {
        plain.partition = None;
        for (task, placed) in least.tasks.iter_mut().zip(&placed.tasks) {
            task.cpus.clone_from(&placed.cpus);
        }
        least.machine.cpus = placed.machine.cpus;
    }
    answer(&least, &plain).ok()
}

/// Where the heuristic places the tasks; `None` if none is asked for.
fn placed(set: &TaskSet, request: &CheckRequest) -> Option<Result<TaskSet, String>> {
    let (fit, order) = placing_of(set, request)?;
    partition::place(set, fit, order, &mut NoteList::default()).ok()
}

fn known_late(document: &mut CheckDocument, why: &str, least: Option<CheckDocument>) {
    let known = |name: &str| {
        let task = least.as_ref()?.tasks.iter().find(|task| task.name == name)?;
        Some(task.verdict)
    };
    for task in &mut document.tasks {
        let is_known = known(&task.name).is_some_and(|known| known > Verdict::Unknown);
        if task.verdict > Verdict::Unknown && !is_known {
            (task.verdict, task.reason) = (Verdict::Unknown, why.to_owned());
        }
    }
    for processor in &mut document.processors {
        let same = |other: &&ProcessorFacts| {
            (&other.cpus, &other.server) == (&processor.cpus, &processor.server)
        };
        let known = least.as_ref().and_then(|least| least.processors.iter().find(same));
        let most = known.map_or(Verdict::Unknown, |known| known.verdict.max(Verdict::Unknown));
        processor.verdict = processor.verdict.min(most);
    }
    document.witness = None;
    document.reason = Some(why.to_owned());
    document.verdict = Verdict::Unknown;
    if let Some(least) = least.filter(|least| least.verdict > Verdict::Unknown) {
        (document.verdict, document.reason) = (least.verdict, least.reason);
        document.witness = least.witness;
    }
}
