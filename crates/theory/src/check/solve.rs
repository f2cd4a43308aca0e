//! A processor analysed: the analysis that fits is asked, its proof verified, its answer put into
//! the words of the document.
//!
//! Owns: verdicts of tasks from bounds. A bound is never below what the analysis says, and a miss is
//! only called one if everything that the numbers count can happen. Must not: bound anything itself.

use hourglass_documents::check::{DemandPoint, ProcessorFacts, TaskFacts, Verdict, WitnessFacts};
use hourglass_sched::bursts;
use hourglass_sched::catalogue::{Bounds, Rule, Situation};
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

/// The results of a processor.
pub(super) struct ProcessorSolution {
    pub(super) facts: ProcessorFacts,
    /// One for each member that is a task of the set, with its position in it.
    pub(super) tasks: Vec<(usize, TaskFacts)>,
    pub(super) witness: Option<WitnessFacts>,
    pub(super) reason: Option<String>,
}

/// Answers for a processor, by the analysis with this name if one is given.
pub(super) fn solve(processor: &Processor, asked: Option<&str>) -> ProcessorSolution {
    let (mut ranked, mut nothing_found) = (None, None);
    let is_shared = matches!(processor.situation, Situation::Shared(_));
    if processor.finds_priorities && processor.refused.is_none() && !is_shared {
        let (found, why) = find_priorities(processor);
        (ranked, nothing_found) = (Some(found), why);
    }
    let processor = ranked.as_ref().unwrap_or(processor);
    let numbers = processor.in_any_phase();
    let mut solved =
        ProcessorSolution::new(processor, asked.unwrap_or(processor.analysis()), &numbers);
    match (&processor.refused, &processor.situation, processor.rule, asked) {
        (Some(why), ..) => solved.refuse(why),
        (None, Situation::Shared(_), ..) => {
            global::solve(processor, &numbers, asked, &mut solved);
        }
        (None, Situation::Inside(server), Rule::Edf, _) if !server.is_soft() => {
            by_supply(processor, &numbers, server, &mut solved);
        }
        (None, _, _, Some("edf-demand")) => by_demand(processor, &numbers, &mut solved),
        (None, _, Rule::Edf, _) if processor.has_curves() => {
            by_demand(processor, &numbers, &mut solved);
        }
        (None, _, _, Some("liu-layland")) => {
            by_bound(processor, &numbers, bounds::liu_layland, &mut solved)
        }
        (None, _, _, Some("hyperbolic")) => {
            by_bound(processor, &numbers, bounds::hyperbolic, &mut solved)
        }
        _ => by_response(processor, &numbers, &mut solved),
    }
    if let Some(why) = nothing_found
        && solved.facts.verdict == Verdict::Unknown
    {
        solved.reason = Some(why);
    }
    solved
}

/// Finds feasible priorities; without them, says so and goes on with deadline-monotonic ones.
fn find_priorities(processor: &Processor) -> (Processor, Option<String>) {
    let Some(numbers) = processor.with_bursts_as_jitter() else {
        return (processor.clone(), Some(super::parameters::TOO_LONG.to_owned()));
    };
    if let Some(found) = assign::audsley(numbers.tasks(), processor.sections, TIME) {
        return (processor.with_priorities(&found, None), None);
    }
    let counts = "other priorities may do where these do not";
    let bounds_are_for = |order: &str| {
        format!("no order of priorities is known to be feasible; the bounds are for {order}")
    };
    // The analysis of bursts may accept an order that was found without them.
    let plain: Vec<Task> = processor.members.iter().map(|member| member.task.plain()).collect();
    if processor.has_curves()
        && let Some(found) = assign::audsley(&plain, processor.sections, TIME)
    {
        let why = bounds_are_for("ones that would do without bursts");
        return (processor.with_priorities(&found, Some(counts)), Some(why));
    }
    let monotonic = assign::deadline_monotonic(numbers.tasks());
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

    pub(super) fn refuse(&mut self, why: &str) {
        for (_, task) in &mut self.tasks {
            task.verdict = Verdict::Unknown;
            task.reason = why.to_owned();
        }
        self.facts.verdict = Verdict::Unknown;
        self.reason = Some(why.to_owned());
    }

    /// The verdict of the processor from those of its tasks.
    pub(super) fn conclude(&mut self) {
        let worst = self.tasks.iter().map(|(_, task)| task).max_by_key(|task| task.verdict);
        self.facts.verdict = worst.map_or(Verdict::Feasible, |task| task.verdict);
        let unknown = self.tasks.iter().find(|(_, task)| task.verdict == Verdict::Unknown);
        self.reason = unknown
            .filter(|_| self.facts.verdict == Verdict::Unknown)
            .map(|(_, task)| task.reason.clone());
    }
}

fn by_response(processor: &Processor, numbers: &Numbers, solved: &mut ProcessorSolution) {
    let question = processor.question();
    let found = question.analysis().and_then(|entry| entry.bounds(&question));
    let Bounds { analysis, is_proven, suspended, by_conditions } = match found {
        Some(Ok(found)) => found,
        Some(Err(why)) => return solved.refuse(&why),
        None => return solved.refuse("no analysis here gives bounds of this"),
    };
    if !is_proven {
        solved.refuse("the proof of the bounds does not hold; please report this");
        return;
    }
    let points = (0..numbers.len()).map(|member| analysis.points(member).len() as u64);
    solved.facts.verified_points = points.sum();
    let has_points = solved.facts.verified_points > 0;
    let by = if by_conditions { Some("conditions") } else { has_points.then_some("substitution") };
    solved.facts.verified_by = by.map(str::to_owned);
    let members = processor.members.iter().enumerate().filter(|(_, m)| m.position.is_some());
    for ((at, member), (_, facts)) in members.zip(&mut solved.tasks) {
        let witness = task(processor, member, at, &analysis, facts);
        proof::add_points(processor, &question, &analysis, at, facts);
        if solved.witness.is_none() {
            solved.witness = witness;
        }
    }
    // The demand test counts suspension as execution.
    if processor.rule == Rule::Edf && processor.server.is_none() && !suspended {
        let found = add_demand(processor, numbers, solved);
        if found == Some(Judged::Feasible) {
            deadlines_are_bounds(processor, solved);
        }
        solved.conclude();
        // Where no response time is known, the demand may still show that some deadline is missed.
        if matches!(found, Some(Judged::Infeasible(_))) && processor.inexact.is_empty() {
            solved.facts.verdict = Verdict::Infeasible;
            solved.reason = None;
        }
        return;
    }
    time_sharing::solve(processor, solved);
    solved.conclude();
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
            facts.reason = "more is demanded than there is".to_owned();
        }
        ResponseBound::Unbounded => {
            facts.verdict = Verdict::Unknown;
            facts.reason = because("more is demanded than there is");
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
            facts.response_time_ns = Some(bound.from_arrival);
            facts.response_time_from_release_ns = Some(bound.from_release);
            facts.slack_ns =
                i64::try_from(i128::from(deadline) - i128::from(bound.from_arrival)).ok();
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
fn own_bound(processor: &Processor, member: &Member, bound: ResponseTime) -> Option<ResponseTime> {
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
    let found = if processor.has_curves() {
        let found = bursts::edf(numbers, processor.sections, TIME);
        checker::bursty_demand(numbers, processor.sections, TIME, &found).ok()?;
        found
    } else {
        let found = qpa::feasible(numbers, processor.sections, TIME);
        checker::demand(numbers, processor.sections, TIME, &found).ok()?;
        found
    };
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
) {
    let found = server.demand(numbers).zip(server.supply());
    let holds = |(found, supply): &(Feasibility, Supply)| {
        checker::supplied_demand(numbers, supply, found).is_ok()
    };
    let Some((found, _)) = found.filter(holds) else {
        solved.refuse("the proof of the bounds does not hold; please report this");
        return;
    };
    show_demand(&found, solved);
    let (verdict, reason) = match found.verdict {
        Judged::Feasible => {
            deadlines_are_bounds(processor, solved);
            return solved.conclude();
        }
        Judged::NoBound if grows(processor) => {
            (Verdict::NoBound, "more is demanded than there is".to_owned())
        }
        Judged::Unknown(why) => (Verdict::Unknown, why.to_string()),
        _ => (
            Verdict::Unknown,
            format!(
                "more is demanded than is certain to come, but {}",
                processor.inexact.join(", ")
            ),
        ),
    };
    for (_, facts) in &mut solved.tasks {
        (facts.verdict, facts.reason) = (verdict, reason.clone());
    }
    solved.conclude();
}

/// Where the demand test holds, every deadline is a bound, also where no better one is known.
pub(super) fn deadlines_are_bounds(processor: &Processor, solved: &mut ProcessorSolution) {
    let members = processor.members.iter().filter(|member| member.position.is_some());
    for (member, (_, facts)) in members.zip(&mut solved.tasks) {
        if member.unknown.is_some() || facts.response_time_ns.is_some() {
            continue;
        }
        let deadline = member.task.deadline();
        facts.response_time_ns = Some(deadline);
        facts.response_time_from_release_ns = Some(deadline);
        (facts.slack_ns, facts.verdict) = (Some(0), Verdict::Feasible);
        facts.reason = "the demand test holds, so that the deadline is a bound".to_owned();
    }
}

fn by_demand(processor: &Processor, numbers: &Numbers, solved: &mut ProcessorSolution) {
    let found = add_demand(processor, numbers, solved);
    let exact = processor.inexact.is_empty();
    let (verdict, reason) = match found {
        None => (Verdict::Unknown, "the proof does not hold; please report this".to_owned()),
        Some(Judged::Feasible) => (Verdict::Feasible, String::new()),
        Some(Judged::NoBound) if grows(processor) => {
            (Verdict::NoBound, "more is demanded than there is".to_owned())
        }
        Some(Judged::Infeasible(_)) if exact => {
            (Verdict::Infeasible, "some deadline is missed; the demand says not whose".to_owned())
        }
        Some(Judged::Unknown(why)) => (Verdict::Unknown, why.to_string()),
        Some(_) => (Verdict::Unknown, processor.inexact.join(", ")),
    };
    for (_, facts) in &mut solved.tasks {
        (facts.verdict, facts.reason) = (verdict, reason.clone());
    }
    if verdict == Verdict::Feasible {
        deadlines_are_bounds(processor, solved);
    }
    solved.conclude();
    solved.facts.verdict = verdict;
}

fn by_bound(
    processor: &Processor,
    numbers: &Numbers,
    bound: fn(&Numbers) -> Judged,
    solved: &mut ProcessorSolution,
) {
    let monotonic = bounds::is_rate_monotonic(numbers);
    let plain = processor.sections == Sections::Preemptive && processor.server.is_none();
    let all_known = processor.members.iter().all(|m| m.unknown.is_none() && m.position.is_some());
    if processor.rule != Rule::FixedPriority || !monotonic || !plain || !all_known {
        solved.refuse("the bound is for preemptive rate-monotonic priorities");
        return;
    }
    let (verdict, reason) = match bound(numbers) {
        Judged::Feasible => (Verdict::Feasible, "the deadline is the bound".to_owned()),
        Judged::NoBound if grows(processor) => {
            (Verdict::NoBound, "more is demanded than there is".to_owned())
        }
        _ => (
            Verdict::Unknown,
            "the utilisation is over the bound, or a task has a shorter deadline, jitter, \
             blocking or suspension; ask for fp-preemptive"
                .to_owned(),
        ),
    };
    for (member, (_, facts)) in processor.members.iter().zip(&mut solved.tasks) {
        (facts.verdict, facts.reason) = (verdict, reason.clone());
        if verdict == Verdict::Feasible {
            facts.response_time_ns = Some(member.task.deadline());
            facts.response_time_from_release_ns = Some(member.task.deadline());
            facts.slack_ns = Some(0);
        }
    }
    solved.conclude();
}
