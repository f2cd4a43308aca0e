//! Several CPUs that share tasks.
//!
//! Owns: which of the global tests answers, also where a changed set is asked. Must not: bound anything itself.

use std::borrow::Cow;

use hourglass_documents::check::Verdict;
use hourglass_sched::catalogue::{self, AnalysisEntry, Method, Rule};
use hourglass_sched::effort::StepLimit;
use hourglass_sched::global::{self, edf, edf_response};
use hourglass_sched::sensitivity::ScaleTest;
use hourglass_sched::{Analysis, Refusal, TaskSet as Numbers, Verdict as Judged, Witness, checker};

use super::processor::{Member, Processor};
use super::proof;
use super::sensitivity;
use super::solve::{self, Answer, NO_ANALYSIS, NO_PROOF, ProcessorSolution};

/// Answers for CPUs that share tasks, by the analysis with this name if one is given.
pub(super) fn solve(
    processor: &Processor,
    numbers: &Numbers,
    cpus: u64,
    asked: Option<&AnalysisEntry>,
    solved: &mut ProcessorSolution,
) -> Answer {
    let (mut processor, mut numbers) = (Cow::Borrowed(processor), Cow::Borrowed(numbers));
    if processor.finds_priorities {
        let found = processor.question_of(numbers.into_owned()).priorities();
        let found = found.ok_or("no order of priorities is known to be feasible")?;
        processor = Cow::Owned(processor.with_priorities(&found, None));
        for ((_, facts), task) in solved.tasks.iter_mut().zip(found.tasks()) {
            facts.priority = Some(task.priority());
        }
        numbers = Cow::Owned(found);
    }
    let found = match processor.rule {
        Rule::Edf => by_deadlines(&processor, &numbers, cpus, solved),
        Rule::FixedPriority | Rule::Fifo => {
            by_priorities(&processor, &numbers, cpus, asked, solved)
        }
    };
    if processor.holds_to_deadline && solved.worst() != Verdict::Feasible {
        for (_, facts) in &mut solved.tasks {
            (facts.response_time_ns, facts.response_time_from_release_ns) = (None, None);
            facts.slack_ns = None;
            if facts.verdict == Verdict::Feasible {
                facts.verdict = Verdict::Unknown;
                facts.reason = LATE_OTHERS.to_owned();
            }
        }
    }
    found
}

/// Why nothing is known of a task beside one that may miss a deadline.
const LATE_OTHERS: &str =
    "how often jobs that are late lose their CPU, and what that costs, is not known";

/// Whether all deadlines are known to hold.
pub(super) fn tested(
    processor: &Processor,
    numbers: &Numbers,
    cpus: u64,
    effort: &mut StepLimit,
) -> ScaleTest {
    if processor.rule == Rule::Edf {
        let verdict = edf::decide_by(numbers, cpus, effort).verdict;
        return ScaleTest { verdict, failing: None };
    }
    let bounds = catalogue::ALL.iter().filter_map(|entry| match entry.method {
        Method::Global(bound) => Some(bound),
        _ => None,
    });
    let mut tests = bounds.map(|bound| {
        let found = global::fixed_priority::analyse_by(numbers, cpus, bound, effort);
        sensitivity::judged(processor, numbers, &found)
    });
    let unknown = ScaleTest { verdict: Judged::Unknown(Refusal::OutsideModel), failing: None };
    let first = tests.next().unwrap_or(unknown);
    let is_feasible = |test: &ScaleTest| test.verdict == Judged::Feasible;
    if is_feasible(&first) { first } else { tests.find(is_feasible).unwrap_or(first) }
}

fn by_priorities(
    processor: &Processor,
    numbers: &Numbers,
    cpus: u64,
    asked: Option<&AnalysisEntry>,
    solved: &mut ProcessorSolution,
) -> Answer {
    let mut chosen = None;
    for entry in catalogue::ALL {
        let Method::Global(bound) = entry.method else { continue };
        if asked.is_some_and(|asked| asked.name != entry.name) {
            continue;
        }
        let found = global::fixed_priority::analyse(numbers, cpus, bound);
        let asks = |member: &Member| member.position.is_some() && member.unknown.is_none();
        let mut all = processor.members.iter().zip(&found.tasks);
        let feasible = all.all(|(member, task)| !asks(member) || task.verdict == Judged::Feasible);
        if feasible || chosen.is_none() {
            chosen = Some((entry.name, bound, found));
        }
        if feasible {
            break;
        }
    }
    let (name, bound, analysis) = chosen.ok_or(NO_ANALYSIS)?;
    checker::global_fixed_priority(numbers, cpus, bound, &analysis).map_err(|_| NO_PROOF)?;
    solved.facts.analysis = name.to_owned();
    each(processor, &analysis, solved);
    if solved.worst() == Verdict::Unknown {
        missed(processor, global::fixed_priority::verdict(numbers, cpus, bound), solved);
    }
    Ok(None)
}

fn by_deadlines(
    processor: &Processor,
    numbers: &Numbers,
    cpus: u64,
    solved: &mut ProcessorSolution,
) -> Answer {
    let analysis = edf_response::analyse(numbers, cpus);
    checker::global_edf(numbers, cpus, &analysis).map_err(|_| NO_PROOF)?;
    each(processor, &analysis, solved);
    if solved.worst() != Verdict::Unknown {
        return Ok(None);
    }
    let decided = edf::analyse(numbers, cpus);
    if decided.verdict == Judged::Feasible {
        // A test of the whole set has proved what the response times could not.
        for (_, facts) in &mut solved.tasks {
            facts.response_time_ns = None;
        }
        solve::deadlines_are_bounds(processor, solved);
        let by = decided.by.map_or("enough CPUs", edf::Test::name);
        for (_, facts) in &mut solved.tasks {
            facts.fixed_points.clear();
            facts.fixed_point_count = 0;
            facts.reason = format!("the test {by} accepts, so that the deadline is a bound");
        }
        (solved.facts.verified_by, solved.facts.verified_points) = (None, 0);
    } else {
        missed(processor, decided.verdict, solved);
    }
    Ok(None)
}

/// Bounds and points of each task.
fn each(processor: &Processor, analysis: &Analysis, solved: &mut ProcessorSolution) {
    solve::by_each(processor, &processor.question(), analysis, solved);
    solved.facts.verified_points = solved.tasks.iter().map(|(_, f)| f.fixed_point_count).sum();
    solved.facts.verified_by = Some("substitution".to_owned());
}

/// A miss that a schedule has shown, if everything in the numbers can happen.
fn missed(processor: &Processor, found: Judged, solved: &mut ProcessorSolution) {
    let Judged::Infeasible(Witness::Response { task, job, response, .. }) = found else { return };
    let member = processor.members.get(task).filter(|member| member.unknown.is_none());
    let Some(member) = member.filter(|_| processor.inexact.is_empty()) else { return };
    let is_delayed = |member: &Member| member.task.jitter().max(member.task.suspension()) > 0;
    if let Some((_, facts)) = solved.tasks.get_mut(task) {
        let and = match processor.members.iter().any(is_delayed) {
            true => ", also where none is released late or suspends itself",
            false => "",
        };
        facts.verdict = Verdict::Infeasible;
        facts.reason = format!("it is late when all tasks begin together{and}");
    }
    solved.witness.get_or_insert(proof::late_in_schedule(member, job, response));
}
