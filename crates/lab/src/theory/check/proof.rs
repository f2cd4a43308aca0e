//! What proves an answer, in the words of the document.
//!
//! Owns: which fixed points are shown, what adds up to the one that decides, witnesses. Must not:
//! judge.

use hourglass_model::check::{FixedPoint, MOST_POINTS, TaskFacts, Term, WitnessFacts};
use hourglass_model::tasks::Task;
use hourglass_sched::curve::Curve;
use hourglass_sched::fixed_priority::Sections;
use hourglass_sched::{Analysis, Point};
use hourglass_time::Span;

use super::processor::{Member, Processor, Rule};

/// Adds the fixed points of the member at `at`, the one that decides with its sum.
pub(super) fn add_points(
    processor: &Processor,
    analysis: &Analysis,
    at: usize,
    facts: &mut TaskFacts,
) {
    let member = &processor.members[at];
    let points = analysis.points(at);
    facts.fixed_point_count = points.len() as u64;
    let response = |point: &Point| response(processor, member, point);
    let worst = points.iter().enumerate().rev().max_by_key(|(_, point)| response(point));
    let Some((worst, _)) = worst else { return };
    let shown = |(position, point): (usize, &Point)| FixedPoint {
        job: point.jobs,
        offset_ns: point.offset,
        finish_ns: point.finish,
        response_time_ns: response(point),
        terms: if position == worst { terms(processor, at, point) } else { Vec::new() },
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

/// The response time from nominal arrival that follows from a point.
fn response(processor: &Processor, member: &Member, point: &Point) -> u64 {
    let task = &member.task;
    if task.jitter() > member.jitter {
        return point.finish.saturating_sub(point.offset).saturating_add(member.jitter);
    }
    let nominal = match processor.rule {
        Rule::Edf => point.offset,
        // Nothing jitters, and jobs count from the beginning of a window of known phase.
        _ if processor.has_phases => point.offset,
        _ if !member.arrivals.is_empty() => Curve::bursts(&member.arrivals, task.period())
            .ok()
            .and_then(|curve| curve.distance(point.jobs))
            .unwrap_or(0)
            .max(point.offset),
        Rule::FixedPriority | Rule::Fifo => {
            point.jobs.saturating_sub(1).saturating_mul(task.period()).max(point.offset)
        }
    };
    point.finish.saturating_add(task.jitter()).saturating_sub(nominal)
}

/// What adds up to the completion of a point; nothing where it does not add up, as inside a server,
/// whose supply comes between.
fn terms(processor: &Processor, at: usize, point: &Point) -> Vec<Term> {
    let counted =
        processor.has_bursts() || processor.has_thresholds || processor.shared_by.is_some();
    if processor.supply.is_some() || counted || processor.has_phases {
        return Vec::new();
    }
    let own = &processor.members[at].task;
    let tail = match processor.sections {
        Sections::Preemptive | Sections::Floating => 0,
        Sections::NonPreemptive => own.cost(),
        Sections::Limited => own.last_segment(),
    };
    let rest = tail.saturating_sub(1);
    let Some(begin) = point.finish.checked_sub(rest) else { return Vec::new() };
    let mut found = vec![Term {
        of: processor.members[at].name.clone(),
        jobs: point.jobs,
        each_ns: own.cost().saturating_add(own.suspension()),
    }];
    for (_, member) in processor.members.iter().enumerate().filter(|(other, _)| *other != at) {
        let task = &member.task;
        let released = u128::from(begin) + u128::from(task.jitter());
        let before = released.div_ceil(task.period().into());
        let by =
            (u128::from(point.offset) + u128::from(task.jitter())) / u128::from(task.period()) + 1;
        let jobs = match processor.rule {
            Rule::Edf => {
                let ends = i128::from(point.offset) + i128::from(own.deadline())
                    - i128::from(own.jitter());
                let theirs = i128::from(task.deadline()) - i128::from(task.jitter());
                u128::try_from(ends - theirs)
                    .map_or(0, |after| before.min(after / u128::from(task.period()) + 1))
            }
            _ if task.priority() > own.priority() => before,
            _ if task.priority() == own.priority() => by,
            _ => 0,
        };
        if let (1.., Ok(jobs)) = (jobs, u64::try_from(jobs)) {
            let cost = task.cost();
            let each_ns = if processor.rule == Rule::Edf { cost + task.suspension() } else { cost };
            found.push(Term { of: member.name.clone(), jobs, each_ns });
        }
    }
    let sum: u128 = found.iter().map(|t| u128::from(t.jobs) * u128::from(t.each_ns)).sum();
    match u128::from(point.finish).checked_sub(sum).map(u64::try_from) {
        Some(Ok(0)) => found,
        // What is left over is the blocking, if there can be any.
        Some(Ok(left)) if own.blocking() > 0 || processor.sections != Sections::Preemptive => {
            found.push(Term { of: "blocking".to_owned(), jobs: 1, each_ns: left });
            found
        }
        _ => Vec::new(),
    }
}

/// The witness of a job that is late.
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

/// The witness of a job that is late in a schedule.
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
