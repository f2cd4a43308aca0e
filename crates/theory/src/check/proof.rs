//! What proves an answer, in the words of the document.
//!
//! Owns: which fixed points are shown, what adds up to the one that decides, witnesses. Must not:
//! judge.

use hourglass_documents::check::{FixedPoint, MOST_POINTS, TaskFacts, Term, WitnessFacts};
use hourglass_sched::catalogue::{self, Question};
use hourglass_sched::{Analysis, Point};
use hourglass_tasks::Task;
use hourglass_time::Span;

use super::processor::{Member, Processor};

/// Adds the fixed points of the member at `at`, the one that decides with its sum.
pub(super) fn add_points(
    processor: &Processor,
    question: &Question,
    analysis: &Analysis,
    at: usize,
    facts: &mut TaskFacts,
) {
    let jitter = processor.members[at].jitter;
    let points = analysis.points(at);
    facts.fixed_point_count = points.len() as u64;
    let response = |point: &Point| question.response(at, point, jitter);
    let worst = points.iter().enumerate().rev().max_by_key(|(_, point)| response(point));
    let Some((worst, _)) = worst else { return };
    let shown = |(position, point): (usize, &Point)| FixedPoint {
        job: point.jobs,
        offset_ns: point.offset,
        finish_ns: point.finish,
        response_time_ns: response(point),
        terms: if position == worst { terms(processor, question, at, point) } else { Vec::new() },
    };
    // The first ones, and the one that decides.
    let all = points.iter().enumerate();
    facts.fixed_points =
        all.filter(|(p, _)| *p < MOST_POINTS - 1 || *p == worst).map(shown).collect();
}

/// Adds the fixed points of a step of a chain; response times in them count from its release.
pub(super) fn add_steps(analysis: &Analysis, at: usize, facts: &mut TaskFacts) {
    let points = analysis.points(at);
    facts.fixed_point_count = points.len() as u64;
    let shown = |point: &Point| FixedPoint {
        job: point.jobs,
        offset_ns: point.offset,
        finish_ns: point.finish,
        response_time_ns: point.finish.saturating_sub(point.offset),
        terms: Vec::new(),
    };
    facts.fixed_points = points.iter().take(MOST_POINTS).map(shown).collect();
}

/// The named terms that add up to the completion of a point.
fn terms(processor: &Processor, question: &Question, at: usize, point: &Point) -> Vec<Term> {
    let name = |of: usize| processor.members[of].name.clone();
    let named = |term: catalogue::Term| Term {
        of: term.of.map_or_else(|| "blocking".to_owned(), name),
        jobs: term.jobs,
        each_ns: term.each,
    };
    question.terms(at, point).into_iter().map(named).collect()
}

pub(super) fn late(member: &Member, job: u64, response: u64) -> WitnessFacts {
    let deadline = member.task.deadline();
    let text = format!(
        "job {job} of the busy window of '{}' responds in {}, {} after its deadline of {}",
        member.name,
        time(response),
        time(response.saturating_sub(deadline)),
        time(deadline)
    );
    witness("response", Some(member), Some(job), response, deadline, text)
}

pub(super) fn late_in_schedule(member: &Member, job: u64, response: u64) -> WitnessFacts {
    let deadline = member.task.deadline();
    let text = format!(
        "when all tasks begin together, job {job} of '{}' responds in {}, after its deadline of {}",
        member.name,
        time(response),
        time(deadline)
    );
    witness("response", Some(member), Some(job), response, deadline, text)
}

/// The witness of a job that needs more than its deadline leaves.
pub(super) fn too_long(task: &Task, needs: u64) -> WitnessFacts {
    let deadline = task.deadline();
    WitnessFacts {
        kind: "cost".to_owned(),
        task: Some(task.name.clone()),
        job: None,
        found_ns: Some(needs),
        limit_ns: Some(deadline.nanos_or_zero()),
        text: format!(
            "'{}' takes {} from its arrival even when it is alone, and its deadline is {deadline}",
            task.name,
            time(needs)
        ),
        ..WitnessFacts::default()
    }
}

/// The witness of an interval in which too much is due.
pub(super) fn too_much(interval: u64, demand: u64) -> WitnessFacts {
    let (long, due) = (time(interval), time(demand));
    let text = format!("within {long}, jobs are released and due that need {due}");
    witness("demand", None, None, demand, interval, text)
}

/// The witness of more than a whole processor.
pub(super) fn overloaded(cpus: &str, utilisation: Option<&str>) -> WitnessFacts {
    let text = match utilisation {
        Some(utilisation) => format!("the tasks on CPU {cpus} need {utilisation} of a processor"),
        None => format!("the tasks on CPU {cpus} need more than there is"),
    };
    WitnessFacts { kind: "utilisation".to_owned(), text, ..WitnessFacts::default() }
}

fn witness(
    kind: &str,
    member: Option<&Member>,
    job: Option<u64>,
    found: u64,
    limit: u64,
    text: String,
) -> WitnessFacts {
    WitnessFacts {
        kind: kind.to_owned(),
        task: member.map(|member| member.name.clone()),
        job,
        found_ns: Some(found),
        limit_ns: Some(limit),
        text,
        ..WitnessFacts::default()
    }
}

/// A time with its unit.
pub(super) fn time(ns: u64) -> String {
    i64::try_from(ns).map_or_else(|_| format!("{ns}ns"), |ns| Span::from_nanos(ns).to_string())
}
