//! A processor analysed: the analysis that fits is asked, its proof verified, its answer put into
//! the words of the document.
//!
//! Owns: verdicts of tasks from bounds. A bound is never below what the analysis says, and a miss is
//! only called one if everything that the numbers count can happen. Must not: bound anything itself.

use hourglass_documents::check::{DemandPoint, ProcessorFacts, TaskFacts, Verdict, WitnessFacts};
use hourglass_sched::bursts;
use hourglass_sched::catalogue::{AnalysisEntry, Bounds, Method, Question, Rule, Situation};
use hourglass_sched::edf::qpa::{self, Feasibility};
use hourglass_sched::fixed_priority::{Sections, TimeModel};
use hourglass_sched::servers::Server;
use hourglass_sched::supply::Supply;
use hourglass_sched::{Analysis, Refusal, ResponseBound, Task, TaskSet as Numbers};
use hourglass_sched::{ResponseTime, Verdict as Judged, Witness};
use hourglass_sched::{admission, assign, bounds, checker};

use super::global;
use super::parameters::NO_OFFSETS;
use super::processor::{Member, Processor};
use super::proof;
use super::servers::LEAST_SUPPLY;
use super::time_sharing;

/// Sections delay by their whole length, which is never quite reached.
const TIME: TimeModel = TimeModel::Continuous;

pub(super) const NO_PROOF: &str = "the proof of the bounds does not hold; please report this";
pub(super) const NO_ANALYSIS: &str = "no analysis of Hourglass gives bounds of this";
pub(super) const TOO_MUCH: &str = "more is demanded than there is";

/// The results of a processor.
pub(super) struct ProcessorSolution {
    pub(super) facts: ProcessorFacts,
    /// One for each member that is a task of the set, with its position in it.
    pub(super) tasks: Vec<(usize, TaskFacts)>,
    pub(super) witness: Option<WitnessFacts>,
    pub(super) reason: Option<String>,
}

/// The verdict on a processor where its tasks do not say it; or the reason why there is no answer.
pub(super) type Answer = Result<Option<Verdict>, String>;

/// Answers for a processor, by the analysis with this name if one is given.
pub(super) fn solve(processor: &Processor, asked: Option<&AnalysisEntry>) -> ProcessorSolution {
    let (mut ranked, mut nothing_found) = (None, None);
    let is_shared = matches!(processor.situation, Situation::Shared(_));
    if processor.finds_priorities && processor.refused.is_none() && !is_shared {
        let (found, why) = find_priorities(processor);
        (ranked, nothing_found) = (Some(found), why);
    }
    let processor = ranked.as_ref().unwrap_or(processor);
    let numbers = processor.in_any_phase();
    let name = asked.map_or_else(|| processor.analysis(), |entry| entry.name);
    let mut solved = ProcessorSolution::new(processor, name, &numbers);
    let is_edf = processor.rule == Rule::Edf;
    let method = asked.map(|entry| entry.method);
    let answer = match (&processor.refused, &processor.situation, method) {
        (Some(why), ..) => Err(why.clone()),
        (_, Situation::Shared(cpus), _) => {
            global::solve(processor, &numbers, *cpus, asked, &mut solved)
        }
        (_, Situation::Inside(server), _) if is_edf && !server.is_soft() => {
            by_supply(processor, &numbers, server, &mut solved)
        }
        (_, _, Some(Method::Demand)) => by_demand(processor, &numbers, &mut solved),
        _ if is_edf && processor.has_curves() => by_demand(processor, &numbers, &mut solved),
        (_, _, Some(Method::Utilisation(bound))) => {
            by_bound(processor, &numbers, bound, &mut solved)
        }
        _ => by_response(processor, &numbers, &mut solved),
    };
    solved.conclude(answer);
    if solved.facts.verdict == Verdict::Unknown {
        solved.reason = nothing_found.or(solved.reason);
    }
    solved
}

/// Finds feasible priorities; without them, says so and goes on with deadline-monotonic ones.
fn find_priorities(processor: &Processor) -> (Processor, Option<String>) {
    let Some(numbers) = processor.with_bursts_as_jitter() else {
        return (processor.clone(), Some(super::parameters::TOO_LONG.to_owned()));
    };
    let monotonic = assign::deadline_monotonic(numbers.tasks());
    if let Some(found) = processor.question_of(numbers).priorities() {
        return (processor.with_priorities(&found, None), None);
    }
    let counts = "other priorities may do where these do not";
    let bounds_are_for = |order: &str| {
        format!("no order of priorities is known to be feasible; the bounds are for {order}")
    };
    // The analysis of bursts may accept an order that was found without them.
    let plain =
        || processor.members.iter().map(|member| member.task.plain()).collect::<Vec<Task>>();
    if processor.has_curves()
        && let Some(found) = processor.question_of(plain().into()).priorities()
    {
        let why = bounds_are_for("ones that would do without bursts");
        return (processor.with_priorities(&found, Some(counts)), Some(why));
    }
    let why = bounds_are_for("deadline-monotonic ones");
    (processor.with_priorities(&monotonic, Some(counts)), Some(why))
}

impl ProcessorSolution {
    pub(super) fn new(processor: &Processor, name: &str, numbers: &Numbers) -> ProcessorSolution {
        let utilisation = admission::utilisation(numbers);
        let parts = |u: admission::Fraction| {
            let parts = (u128::from(u.numerator) * 1_000_000).div_ceil(u.denominator.into());
            u64::try_from(parts).unwrap_or(u64::MAX)
        };
        let facts = ProcessorFacts {
            cpus: processor.cpus.clone(),
            server: processor.server.clone(),
            analysis: name.to_owned(),
            utilisation: utilisation
                .map(|u| format!("{}/{}", u.numerator, u.denominator))
                .unwrap_or_default(),
            utilisation_ppm: utilisation.map(parts),
            ..ProcessorFacts::default()
        };
        let tasks = processor.members.iter().filter_map(|member| {
            let priority = Some(member.task.priority()).filter(|_| processor.finds_priorities);
            Some((member.position?, TaskFacts { priority, ..TaskFacts::default() }))
        });
        ProcessorSolution { facts, tasks: tasks.collect(), witness: None, reason: None }
    }

    /// Gives all tasks this verdict.
    fn judge_all(&mut self, verdict: Verdict, reason: &str) {
        for (_, facts) in &mut self.tasks {
            (facts.verdict, facts.reason) = (verdict, reason.to_owned());
        }
    }

    /// The worst verdict of the tasks.
    pub(super) fn worst(&self) -> Verdict {
        let verdicts = self.tasks.iter().map(|(_, task)| task.verdict);
        verdicts.max().unwrap_or(Verdict::Feasible)
    }

    /// The verdict of the processor, from those of its tasks if the answer has none.
    pub(super) fn conclude(&mut self, answer: Answer) {
        match answer {
            Ok(whole) => {
                self.facts.verdict = whole.unwrap_or(self.worst());
                let is_unknown = |task: &&(usize, TaskFacts)| task.1.verdict == Verdict::Unknown;
                let unknown = self.tasks.iter().find(is_unknown);
                let unknown = unknown.filter(|_| self.facts.verdict == Verdict::Unknown);
                self.reason = unknown.map(|(_, task)| task.reason.clone());
            }
            Err(why) => {
                self.judge_all(Verdict::Unknown, &why);
                (self.facts.verdict, self.reason) = (Verdict::Unknown, Some(why));
            }
        }
    }
}

/// Notes the response time of a task, and what its deadline leaves.
pub(super) fn note_response(facts: &mut TaskFacts, bound: ResponseTime, deadline: u64) {
    facts.response_time_ns = Some(bound.from_arrival);
    facts.response_time_from_release_ns = Some(bound.from_release);
    facts.slack_ns = i64::try_from(i128::from(deadline) - i128::from(bound.from_arrival)).ok();
}

fn by_response(processor: &Processor, numbers: &Numbers, solved: &mut ProcessorSolution) -> Answer {
    let question = processor.question();
    let found = question.analysis().and_then(|entry| entry.bounds(&question));
    let Bounds { analysis, is_proven, suspended, by_conditions } = found.ok_or(NO_ANALYSIS)??;
    if !is_proven {
        return Err(NO_PROOF.to_owned());
    }
    let points = (0..numbers.len()).map(|member| analysis.points(member).len() as u64);
    solved.facts.verified_points = points.sum();
    let has_points = solved.facts.verified_points > 0;
    let by = if by_conditions { Some("conditions") } else { has_points.then_some("substitution") };
    solved.facts.verified_by = by.map(str::to_owned);
    by_each(processor, &question, &analysis, solved);
    // The demand test counts suspension as execution.
    if processor.rule != Rule::Edf || processor.server.is_some() || suspended {
        time_sharing::solve(processor, solved);
        return Ok(None);
    }
    let found = add_demand(processor, numbers, solved);
    if found == Some(Judged::Feasible) {
        deadlines_are_bounds(processor, solved);
    }
    // Where no response time is known, the demand may still show that some deadline is missed.
    let is_missed = matches!(found, Some(Judged::Infeasible(_))) && processor.inexact.is_empty();
    Ok(is_missed.then_some(Verdict::Infeasible))
}

/// Bounds and points of each task.
pub(super) fn by_each(
    processor: &Processor,
    question: &Question,
    analysis: &Analysis,
    solved: &mut ProcessorSolution,
) {
    let members = processor.members.iter().enumerate().filter(|(_, m)| m.position.is_some());
    for ((at, member), (_, facts)) in members.zip(&mut solved.tasks) {
        let witness = task(processor, member, at, analysis, facts);
        proof::add_points(processor, question, analysis, at, facts);
        solved.witness = solved.witness.take().or(witness);
    }
}

/// The facts about one task, and a witness if it is late.
pub(super) fn task(
    processor: &Processor,
    member: &Member,
    at: usize,
    analysis: &Analysis,
    facts: &mut TaskFacts,
) -> Option<WitnessFacts> {
    if let Some(why) = &member.unknown {
        (facts.verdict, facts.reason) = (Verdict::Unknown, why.clone());
        return None;
    }
    let result = &analysis.tasks[at];
    let deadline = member.task.deadline();
    let because = |what: &str| match processor.inexact.as_slice() {
        [] => what.to_owned(),
        reasons => format!("{what}, but {}", reasons.join(", ")),
    };
    match result.outcome {
        ResponseBound::Unknown(why) => {
            (facts.verdict, facts.reason) = (Verdict::Unknown, refused(processor, why));
        }
        ResponseBound::Unbounded if grows(processor) => {
            facts.verdict = Verdict::NoBound;
            facts.reason = TOO_MUCH.to_owned();
        }
        ResponseBound::Unbounded => {
            (facts.verdict, facts.reason) = (Verdict::Unknown, because(TOO_MUCH));
        }
        ResponseBound::Bounded(bound) => {
            let Some(bound) = own_bound(processor, member, bound) else {
                facts.verdict = Verdict::Unknown;
                facts.reason = Refusal::Overflow.to_string();
                return None;
            };
            if bound.from_arrival > deadline && processor.holds_to_deadline {
                facts.verdict = Verdict::Unknown;
                facts.reason = because("the bound is over the deadline");
                return None;
            }
            note_response(facts, bound, deadline);
            facts.verdict = match result.verdict {
                _ if bound.from_arrival <= deadline => Verdict::Feasible,
                Judged::Infeasible(_) if processor.inexact.is_empty() => Verdict::Infeasible,
                Judged::Unknown(why) => {
                    facts.reason = refused(processor, why);
                    Verdict::Unknown
                }
                _ => {
                    facts.reason = because("the bound is over the deadline");
                    Verdict::Unknown
                }
            };
            if facts.verdict == Verdict::Infeasible
                && let Judged::Infeasible(Witness::Response { job, .. }) = result.verdict
            {
                return Some(proof::late(member, job, bound.from_arrival));
            }
        }
    }
    None
}

/// Whether demand above the supply grows for ever: neither phases nor a supply that is sometimes more than its least
/// change what is demanded and supplied in the long run.
fn grows(processor: &Processor) -> bool {
    processor.inexact.iter().all(|what| what == LEAST_SUPPLY || what == NO_OFFSETS)
}

/// The reason why an analysis does not know whether a deadline below its bound holds.
fn refused(processor: &Processor, why: Refusal) -> String {
    match why {
        Refusal::NotExact if processor.has_phases() => {
            "the bound is over the deadline, but blocking, tasks of equal priority, or phases among \
             which the search was given up may never come so"
                .to_owned()
        }
        Refusal::NotExact if matches!(processor.situation, Situation::Shared(_)) => {
            let rule = if processor.rule == Rule::Edf { "edf" } else { "fixed priorities" };
            format!("the bound is over the deadline, but bounds of global {rule} need not be reached")
        }
        Refusal::NotExact
            if processor.sections == Sections::Preemptive
                && processor.members.iter().all(|m| m.task.suspension() + m.task.blocking() == 0) =>
        {
            "the bound is over the deadline, but need not be reached".to_owned()
        }
        why => why.to_string(),
    }
}

/// The bounds of the task itself, where its numbers have a burst as jitter.
pub(super) fn own_bound(
    processor: &Processor,
    member: &Member,
    bound: ResponseTime,
) -> Option<ResponseTime> {
    let has_burst = member.task.jitter() > member.jitter;
    if !has_burst {
        return Some(bound);
    }
    let is_soft = matches!(processor.situation, Situation::Inside(server) if server.is_soft());
    if processor.rule == Rule::Edf && !is_soft {
        // The task's deadlines are later than those by which the analysis orders.
        return None;
    }
    let from_arrival = bound.from_release.checked_add(member.jitter)?;
    Some(ResponseTime { from_arrival, from_release: bound.from_release })
}

/// The demand test of EDF, whose points join the proof.
fn add_demand(
    processor: &Processor,
    numbers: &Numbers,
    solved: &mut ProcessorSolution,
) -> Option<Judged> {
    let sections = processor.sections;
    let (found, is_proven) = if processor.has_curves() {
        let found = bursts::edf(numbers, sections, TIME);
        let proof = checker::bursty_demand(numbers, sections, TIME, &found);
        (found, proof.is_ok())
    } else {
        let found = qpa::feasible(numbers, sections, TIME);
        let proof = checker::demand(numbers, sections, TIME, &found);
        (found, proof.is_ok())
    };
    if !is_proven {
        return None;
    }
    show_demand(&found, solved);
    if let Judged::Infeasible(Witness::Demand { interval, demand }) = found.verdict
        && processor.inexact.is_empty()
        && solved.witness.is_none()
    {
        solved.witness = Some(proof::too_much(interval, demand));
    }
    Some(found.verdict)
}

fn show_demand(found: &qpa::Feasibility, solved: &mut ProcessorSolution) {
    let point = |(interval, demand): &(u64, u64)| DemandPoint {
        interval_ns: *interval,
        demand_ns: *demand,
    };
    let shown = found.visited.iter().take(hourglass_documents::check::MOST_POINTS);
    solved.facts.demand_points = shown.map(point).collect();
    solved.facts.demand_length_ns = Some(found.length);
    solved.facts.verified_points += found.visited.len() as u64;
    solved.facts.verified_by = Some("substitution".to_owned());
}

/// EDF inside a server: the demand against its least supply.
fn by_supply(
    processor: &Processor,
    numbers: &Numbers,
    server: &Server,
    solved: &mut ProcessorSolution,
) -> Answer {
    let found = server.demand(numbers).zip(server.supply());
    let holds = |(found, supply): &(Feasibility, Supply)| {
        checker::supplied_demand(numbers, supply, found).is_ok()
    };
    let (found, _) = found.filter(holds).ok_or(NO_PROOF)?;
    show_demand(&found, solved);
    let rest = || {
        let reasons = processor.inexact.join(", ");
        format!("more is demanded than is certain to come, but {reasons}")
    };
    match found.verdict {
        Judged::Feasible => deadlines_are_bounds(processor, solved),
        Judged::NoBound if grows(processor) => solved.judge_all(Verdict::NoBound, TOO_MUCH),
        Judged::Unknown(why) if why != Refusal::NotExact => {
            solved.judge_all(Verdict::Unknown, &why.to_string());
        }
        _ => solved.judge_all(Verdict::Unknown, &rest()),
    }
    Ok(None)
}

/// Where the demand test holds, every deadline is a bound, also where no better one is known.
pub(super) fn deadlines_are_bounds(processor: &Processor, solved: &mut ProcessorSolution) {
    let members = processor.members.iter().filter(|member| member.position.is_some());
    for (member, (_, facts)) in members.zip(&mut solved.tasks) {
        if member.unknown.is_some() || facts.response_time_ns.is_some() {
            continue;
        }
        note_response(facts, deadline_as_bound(member), member.task.deadline());
        facts.verdict = Verdict::Feasible;
        facts.reason = "the demand test holds, so that the deadline is a bound".to_owned();
    }
}

fn deadline_as_bound(member: &Member) -> ResponseTime {
    let deadline = member.task.deadline();
    ResponseTime { from_arrival: deadline, from_release: deadline }
}

fn by_demand(processor: &Processor, numbers: &Numbers, solved: &mut ProcessorSolution) -> Answer {
    let found = add_demand(processor, numbers, solved);
    let exact = processor.inexact.is_empty();
    let (verdict, reason) = match found {
        None => (Verdict::Unknown, "the proof does not hold; please report this".to_owned()),
        Some(Judged::Feasible) => (Verdict::Feasible, String::new()),
        Some(Judged::NoBound) if grows(processor) => (Verdict::NoBound, TOO_MUCH.to_owned()),
        Some(Judged::Infeasible(_)) if exact => {
            (Verdict::Infeasible, "some deadline is missed; the demand says not whose".to_owned())
        }
        Some(Judged::Unknown(why)) => (Verdict::Unknown, refused(processor, why)),
        Some(_) => (Verdict::Unknown, processor.inexact.join(", ")),
    };
    solved.judge_all(verdict, &reason);
    if verdict == Verdict::Feasible {
        deadlines_are_bounds(processor, solved);
    }
    Ok(Some(verdict))
}

fn by_bound(
    processor: &Processor,
    numbers: &Numbers,
    bound: fn(&Numbers) -> Judged,
    solved: &mut ProcessorSolution,
) -> Answer {
    let monotonic = bounds::is_rate_monotonic(numbers);
    let plain = processor.sections == Sections::Preemptive && processor.server.is_none();
    let all_known = processor.members.iter().all(|m| m.unknown.is_none() && m.position.is_some());
    if processor.rule != Rule::FixedPriority || !monotonic || !plain || !all_known {
        return Err("the bound is for preemptive rate-monotonic priorities".to_owned());
    }
    match bound(numbers) {
        Judged::Feasible => {
            solved.judge_all(Verdict::Feasible, "the deadline is the bound");
            for (member, (_, facts)) in processor.members.iter().zip(&mut solved.tasks) {
                note_response(facts, deadline_as_bound(member), member.task.deadline());
            }
        }
        Judged::NoBound if grows(processor) => solved.judge_all(Verdict::NoBound, TOO_MUCH),
        _ => solved.judge_all(
            Verdict::Unknown,
            "the utilisation is over the bound, or a task has a shorter deadline, jitter, \
             blocking or suspension; ask for fp-preemptive",
        ),
    }
    Ok(None)
}
