//! How far a task may change before the set is no longer known to be feasible.
//!
//! Owns: which processors it is asked of, with how much effort, and what is said where that ends. Must not:
//! search (`sched::sensitivity` does).

use hourglass_documents::CpuSet;
use hourglass_documents::check::Verdict::Feasible;
use hourglass_documents::check::{BreakdownFacts, SensitivityFacts};
use hourglass_sched::admission::Fraction;
use hourglass_sched::bursts;
use hourglass_sched::catalogue::{Rule, Situation};
use hourglass_sched::edf::{self, qpa};
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::sensitivity::{FixedLimits, ScaleTest};

use hourglass_sched::servers::{self, Server};
use hourglass_sched::{
    Analysis, Refusal, ResponseBound, TaskSet as Numbers, Verdict, assign, thresholds,
};
use hourglass_tasks::TaskSet;

use super::chains::ChainedTasks;
use super::processor::{Member, Processor};
use super::solve::{ProcessorSolution, own_bound};
use super::variation::{Scope, Variation};
use super::{global, locks, time_sharing, upper_bounds};

/// Looks at a task for all questions: about a second of a processor of 2026.
const ALL_LOOKS: u64 = 200_000_000;

/// Looks that one analysis may take; where there is no quicker way, a task needs some 150 analyses.
pub(super) const LOOKS: u64 = 500_000;

/// The sentence for tasks without a result.
const ENDED: &str = "not searched: the search takes more steps than all searches may together";

/// The sentence where a deadline is late without a change.
pub(super) const LATE: &str = "not searched: a deadline is not known to hold as it is";

/// The sentence where `check` knows more than is asked again and again.
const WEAKER: &str = "not searched: the tests of the search, which are shorter and for any phases, do not show that all deadlines hold as it \
                      is";

/// The sentence where a search ended at a test that takes too long.
const GIVEN_UP: &str =
    "more may hold: the test of the next value takes more steps than one of a search may";

/// The sentence for those that no fixed priority orders.
const OF_NO_ORDER: &str = "not searched, nor its deadline asked for: it is of a time-sharing class";

/// The reason why a factor may be too small.
const INEXACT: &str = "bounds need not be reached";

/// What each task of the set may be while the others stay as they are; nothing where it is not known.
pub(super) fn sensitivity(
    set: &TaskSet,
    processors: &[Processor],
    chained: Option<&ChainedTasks>,
    solved: &[ProcessorSolution],
) -> Vec<SensitivityFacts> {
    let named = |task: &hourglass_tasks::Task| SensitivityFacts {
        name: task.name.clone(),
        ..SensitivityFacts::default()
    };
    let mut found: Vec<SensitivityFacts> = set.tasks.iter().map(named).collect();
    let mut effort = StepLimit::with_steps(ALL_LOOKS);
    if let Some(chained) = chained {
        let all = &chained.processors;
        vary(set, Scope::Chains(chained), all, solved, &mut found, &mut effort);
    }
    for processor in processors {
        if let Some(why) = unsearched(processor) {
            for position in processor.members.iter().filter_map(|member| member.position) {
                found[position].reason = Some(why.clone());
            }
        } else if !by_numbers(set, processor, &mut found, &mut effort) {
            let here = std::slice::from_ref(processor);
            vary(set, Scope::Processor(processor), here, solved, &mut found, &mut effort);
        }
    }
    found
}

/// Why nothing is searched on a processor.
fn unsearched(processor: &Processor) -> Option<String> {
    if let Some(why) = &processor.refused {
        Some(format!("not searched: {why}"))
    } else if processor.finds_priorities && !may_be_ordered(processor) {
        Some("not searched where priorities are to be found for several CPUs, in a reservation, or with bursts".to_owned())
    } else {
        None
    }
}

fn may_be_ordered(processor: &Processor) -> bool {
    processor.situation == Situation::Alone && !processor.has_bursts()
}

/// The same of tasks that are preempted by priority on a CPU of their own, one at a time by their numbers; `false` where that
/// cannot be, or a deadline is not known to hold.
fn by_numbers(
    set: &TaskSet,
    processor: &Processor,
    found: &mut [SensitivityFacts],
    effort: &mut StepLimit,
) -> bool {
    if !is_plain(set, processor) {
        return false;
    }
    let numbers = processor.in_any_phase();
    let (sections, time) = (Sections::Preemptive, TimeModel::Continuous);
    let analysis = fixed_priority::analyse_by(&numbers, sections, time, effort);
    let Some(mut limits) = FixedLimits::new(&numbers, &analysis) else { return false };
    for (at, member) in processor.members.iter().enumerate() {
        let Some(position) = member.position else { continue };
        let facts = &mut found[position];
        // Where all is preempted, overheads add the same to any execution time, and timers to any jitter.
        let (wcet, jitter) = (set.tasks[position].wcet, set.tasks[position].jitter);
        let added = member.task.cost().saturating_sub(wcet.nanos_or_zero());
        let timers = member.jitter.saturating_sub(jitter.nanos_or_zero());
        let cost = limits.largest_cost(at, effort);
        let period = limits.smallest_period(at, effort);
        let jitter = limits.largest_jitter(at, effort);
        let (Ok(cost), Ok(period), Ok(jitter)) = (cost, period, jitter) else {
            facts.reason = Some(ENDED.to_owned());
            continue;
        };
        facts.largest_wcet_ns = cost.and_then(|cost| cost.checked_sub(added));
        facts.smallest_period_ns = period;
        facts.largest_jitter_ns = jitter.and_then(|jitter| jitter.checked_sub(timers));
    }
    true
}

/// The same by changed descriptions.
fn vary(
    set: &TaskSet,
    scope: Scope,
    processors: &[Processor],
    solved: &[ProcessorSolution],
    found: &mut [SensitivityFacts],
    effort: &mut StepLimit,
) {
    let variation = Variation::new(set, scope, *effort);
    let asked = |processor: &Processor| {
        let each = processor.members.iter().enumerate();
        let each =
            each.filter_map(|(at, member)| Some((member.position?, is_asked(processor, at))));
        each.collect::<Vec<_>>()
    };
    let members: Vec<(usize, bool)> = processors.iter().flat_map(asked).collect();
    let is_late = |(position, is_asked): &(usize, bool)| {
        let mut all = solved.iter().flat_map(|solution| &solution.tasks);
        let own = all.find(|(of, _)| of == position);
        *is_asked && own.is_some_and(|(_, task)| task.verdict != Feasible)
    };
    let without = if members.iter().any(is_late) { LATE } else { WEAKER };
    for (position, is_asked) in members {
        let facts = &mut found[position];
        if !is_asked {
            facts.reason = Some(OF_NO_ORDER.to_owned());
            continue;
        }
        let mut is_given_up = false;
        let mut searched = |limit| {
            is_given_up |= variation.was_given_up();
            limit
        };
        let cost = searched(variation.largest_wcet(position));
        let period = searched(variation.smallest_period(position));
        let jitter = searched(variation.largest_jitter(position));
        if variation.effort().left() < LOOKS {
            facts.reason = Some(ENDED.to_owned());
        } else if cost.is_none() {
            facts.reason = Some(without.to_owned());
        } else {
            facts.largest_wcet_ns = cost;
            facts.smallest_period_ns = period;
            facts.largest_jitter_ns = jitter;
            facts.reason = is_given_up.then(|| GIVEN_UP.to_owned());
        }
    }
    *effort = variation.effort();
}

/// Whether the deadline of a member is asked for.
fn is_asked(processor: &Processor, at: usize) -> bool {
    let shared = processor.time_sharing.as_ref();
    processor.members[at].unknown.is_none() || shared.is_some_and(|of| of.bounds(processor, at))
}

/// Factors of execution times are found in this number of parts of 1.
pub(super) const PARTS: u64 = 1_000;

/// How far all execution times of each processor, or of all where they are in chains, may grow together; nothing where it is not
/// known.
pub(super) fn breakdown(
    set: &TaskSet,
    processors: &[Processor],
    chained: Option<&ChainedTasks>,
) -> Vec<BreakdownFacts> {
    let mut effort = StepLimit::with_steps(ALL_LOOKS);
    // Budgets of servers are not execution times.
    let any_asked = |processor: &Processor| {
        let mut members = processor.members.iter().enumerate();
        members.any(|(at, member)| member.position.is_some() && is_asked(processor, at))
    };
    let may_overlap = |at: usize| locks::may_overlap(&set.tasks[at]);
    let is_searched = |processor: &&Processor| {
        unsearched(processor).is_none()
            && any_asked(processor)
            && !processor.members.iter().filter_map(|m| m.position).any(may_overlap)
    };
    let mut found: Vec<BreakdownFacts> = Vec::new();
    if let Some(chained) = chained {
        let mut cpus = CpuSet::default();
        let here = set.tasks.iter().map(|task| task.cpus.clone().unwrap_or_else(|| set.cpus()));
        here.for_each(|own| own.iter().for_each(|cpu| cpus.insert(cpu)));
        let facts = vary_all(set, Scope::Chains(chained), &mut effort);
        found.extend(facts.map(|facts| BreakdownFacts { cpus: cpus.to_string(), ..facts }));
    }
    for processor in processors.iter().filter(is_searched) {
        let facts = vary_all(set, Scope::Processor(processor), &mut effort);
        let (cpus, server) = (processor.cpus.clone(), processor.server.clone());
        found.extend(facts.map(|facts| BreakdownFacts { cpus, server, ..facts }));
    }
    found
}

fn vary_all(set: &TaskSet, scope: Scope, effort: &mut StepLimit) -> Option<BreakdownFacts> {
    let variation = Variation::new(set, scope, *effort);
    let found = variation.largest_factor();
    *effort = variation.effort();
    let (factor, utilisation, beyond) = found.filter(|_| effort.left() >= LOOKS)?;
    let factor = Fraction { numerator: factor, denominator: PARTS };
    let is_exact = match scope {
        Scope::Processor(processor) => processor.inexact.is_empty(),
        Scope::Chains(_) => false,
    };
    let quotient = |of: Fraction| of.numerator as f64 / of.denominator as f64;
    let is_exact = is_exact && matches!(beyond.verdict, Verdict::Infeasible(_) | Verdict::NoBound);
    let own = variation.own();
    let bounds = upper_bounds::named(own.iter().filter_map(|at| set.tasks.get(*at)));
    let is_given_up = beyond.verdict == Verdict::Unknown(Refusal::TooLong);
    let inexact = (!is_exact).then(|| if is_given_up { GIVEN_UP } else { INEXACT }.to_owned());
    let reasons: Vec<String> = bounds.into_iter().chain(inexact).chain(unasked(scope)).collect();
    Some(BreakdownFacts {
        factor: quotient(factor),
        utilisation: utilisation.map(quotient),
        first_to_miss: beyond.failing.and_then(|at| Some(set.tasks.get(at)?.name.clone())),
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
        ..BreakdownFacts::default()
    })
}

/// Which deadlines a factor says nothing of.
fn unasked(scope: Scope) -> Option<String> {
    let processors = match scope {
        Scope::Processor(processor) => std::slice::from_ref(processor),
        Scope::Chains(chained) => &chained.processors,
    };
    let of = |processor: &Processor| {
        let members = processor.members.iter().enumerate();
        let left = members.filter(|(at, one)| one.position.is_some() && !is_asked(processor, *at));
        left.map(|(_, one)| format!("'{}'", one.name)).collect::<Vec<_>>()
    };
    let names: Vec<String> = processors.iter().flat_map(of).collect();
    (!names.is_empty()).then(|| format!("nothing is said of the deadline of {}", names.join(", ")))
}

/// The verdict on a set of this processor. No test takes more than [`LOOKS`].
pub(super) fn tested(
    processor: &Processor,
    numbers: &Numbers,
    effort: &mut StepLimit,
) -> ScaleTest {
    effort.at_most(LOOKS, |effort| {
        let found = match &processor.situation {
            Situation::Shared(cpus) => global::tested(processor, numbers, *cpus, effort),
            Situation::Inside(server) => in_server(processor, server, numbers, effort),
            Situation::Alone => alone(processor, numbers, effort),
        };
        match found.verdict {
            Verdict::Feasible => time_sharing::tested(processor, effort),
            _ => found,
        }
    })
}

fn alone(processor: &Processor, numbers: &Numbers, effort: &mut StepLimit) -> ScaleTest {
    let (sections, time) = (processor.sections, TimeModel::Continuous);
    match processor.rule {
        Rule::Edf if processor.has_curves() => {
            ScaleTest::from(&bursts::edf_by(numbers, sections, time, effort))
        }
        Rule::Edf => {
            let by_demand = ScaleTest::from(&qpa::feasible_by(numbers, sections, time, effort));
            match by_demand.verdict {
                Verdict::Unknown(Refusal::NotExact) | Verdict::Infeasible(_) => {
                    let all_asked = by_responses(processor, numbers, effort);
                    all_asked.map_or(by_demand, |verdict| ScaleTest { verdict, ..by_demand })
                }
                _ => by_demand,
            }
        }
        Rule::FixedPriority | Rule::Fifo if processor.finds_priorities => {
            ordered(processor, numbers, effort)
        }
        Rule::FixedPriority | Rule::Fifo => {
            let found = if processor.has_curves() {
                bursts::fixed_priority_by(numbers, sections, time, effort)
            } else if processor.has_thresholds() {
                thresholds::analyse_by(numbers, time, effort).analysis
            } else {
                fixed_priority::analyse_by(numbers, sections, time, effort)
            };
            judged(processor, numbers, &found)
        }
    }
}

/// Whether there are priorities with which all is in time.
fn ordered(processor: &Processor, numbers: &Numbers, effort: &mut StepLimit) -> ScaleTest {
    let (sections, time) = (processor.sections, TimeModel::Continuous);
    let verdict = match assign::audsley_by(numbers.tasks(), sections, time, effort) {
        Ok(Some(_)) => Verdict::Feasible,
        Err(Refusal::Suspension) => {
            let monotonic = assign::deadline_monotonic(numbers.tasks());
            let found = fixed_priority::analyse_by(&monotonic, sections, time, effort);
            return judged(processor, &monotonic, &found);
        }
        Ok(None) => Verdict::Unknown(Refusal::NotExact),
        Err(why) => Verdict::Unknown(why),
    };
    ScaleTest { verdict, failing: None }
}

fn in_server(
    processor: &Processor,
    server: &Server,
    numbers: &Numbers,
    effort: &mut StepLimit,
) -> ScaleTest {
    let unknown = ScaleTest { verdict: Verdict::Unknown(Refusal::OutsideModel), failing: None };
    if processor.rule == Rule::Edf && !server.is_soft() {
        return server.demand_by(numbers, effort).map_or(unknown, |found| ScaleTest::from(&found));
    }
    let whole = server.whole_budgets_by(numbers, effort);
    let found = whole.or_else(|| server.response_times_by(numbers, effort));
    found.map_or(unknown, |found| judged(processor, numbers, &found))
}

/// Whether all that is bounded is in time, and each server gets its budget. Of budgets above what several CPUs share nothing is
/// asked, nor of a task of which nothing is known.
pub(super) fn judged(processor: &Processor, numbers: &Numbers, analysis: &Analysis) -> ScaleTest {
    let is_shared = matches!(processor.situation, Situation::Shared(_));
    let is_asked =
        |member: &Member| member.unknown.is_none() && (member.position.is_some() || !is_shared);
    let is_late = |at: usize, member: &Member| {
        if member.position.is_none() {
            return !servers::is_delivered(numbers, processor.sections, at);
        }
        let ResponseBound::Bounded(bound) = analysis.tasks[at].outcome else { return true };
        let bound = own_bound(processor, member, bound);
        bound.is_none_or(|bound| bound.from_arrival > numbers.tasks()[at].deadline())
    };
    let mut all = processor.members.iter().enumerate();
    let Some((at, _)) = all.find(|(at, member)| is_asked(member) && is_late(*at, member)) else {
        return ScaleTest { verdict: Verdict::Feasible, failing: None };
    };
    let verdict = match analysis.tasks[at].verdict {
        Verdict::Feasible => Verdict::Unknown(Refusal::NotExact),
        verdict => verdict,
    };
    ScaleTest { verdict, failing: Some(at) }
}

/// The verdict by responses where the demand test is not exact: it has ticks due too, and knows no last sections.
fn by_responses(
    processor: &Processor,
    numbers: &Numbers,
    effort: &mut StepLimit,
) -> Option<Verdict> {
    let mut members = processor.members.iter();
    if processor.sections != Sections::Limited && members.all(|member| member.position.is_some()) {
        return None;
    }
    let (sections, time) = (processor.sections, TimeModel::Continuous);
    let found = edf::response_times_by(numbers, sections, time, effort);
    let own = processor.members.iter().zip(&found.tasks);
    let own = own.filter(|(member, _)| member.position.is_some());
    let late = own.map(|(_, task)| task.verdict).filter(|verdict| *verdict != Verdict::Feasible);
    let late: Vec<Verdict> = late.collect();
    let too_long = Verdict::Unknown(Refusal::TooLong);
    match late.iter().all(|verdict| *verdict == too_long) {
        true => Some(late.first().copied().unwrap_or(Verdict::Feasible)),
        false => None,
    }
}

fn is_plain(set: &TaskSet, processor: &Processor) -> bool {
    let is_known = |member: &Member| member.unknown.is_none() && member.position.is_some();
    processor.rule != Rule::Edf
        && !processor.finds_priorities
        && !processor.has_thresholds()
        && processor.sections == Sections::Preemptive
        && processor.situation == Situation::Alone
        && !processor.has_bursts()
        && set.interference.is_empty()
        && processor.members.iter().all(is_known)
}
