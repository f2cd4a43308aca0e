//! How far a task may change before the set is no longer known to be feasible.
//!
//! Owns: which processors it is asked of, with how much effort, and what is said where that ends. Must not:
//! search (`sched::sensitivity` does).

use std::cell::Cell;

use hourglass_documents::CpuSet;
use hourglass_documents::check::{BreakdownFacts, SensitivityFacts};
use hourglass_sched::admission::Fraction;
use hourglass_sched::bursts;
use hourglass_sched::catalogue::{Rule, Situation};
use hourglass_sched::edf::{self, qpa};
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::sensitivity::{
    CostScale, FixedLimits, HoldUps, ScaleTest, largest_cost_by, largest_jitter, largest_scale,
    largest_scale_by, smallest_period,
};

use hourglass_sched::servers::{self, Server};
use hourglass_sched::{Analysis, Refusal, ResponseBound, TaskResult, TaskSet as Numbers, Verdict};
use hourglass_tasks::TaskSet;

use super::chains::ChainedTasks;
use super::parameters::{self, CostChange};
use super::processor::{Member, Processor};
use super::solve::own_bound;
use super::variation::{Scope, Variation};
use super::{global, locks, upper_bounds};

/// Looks at a task for all questions: about a second of a processor of 2026.
const ALL_LOOKS: u64 = 200_000_000;

/// Looks that one analysis may take; where there is no quicker way, a task needs some 150 analyses.
pub(super) const LOOKS: u64 = 500_000;

/// The sentence for tasks without a result.
const ENDED: &str = "not searched: the search takes more steps than all searches may together";

/// The sentence where a deadline is late without a change.
pub(super) const LATE: &str = "not searched: a deadline is not known to hold as it is";

/// The reason why a factor may be too small.
const INEXACT: &str = "bounds need not be reached";

/// What each task of the set may be while the others stay as they are; nothing where it is not known.
pub(super) fn sensitivity(
    set: &TaskSet,
    processors: &[Processor],
    chained: Option<&ChainedTasks>,
) -> Vec<SensitivityFacts> {
    let named = |task: &hourglass_tasks::Task| SensitivityFacts {
        name: task.name.clone(),
        ..SensitivityFacts::default()
    };
    let mut found: Vec<SensitivityFacts> = set.tasks.iter().map(named).collect();
    let mut effort = StepLimit::with_steps(ALL_LOOKS);
    if let Some(chained) = chained {
        let all = &chained.processors;
        vary(set, Scope::Chains(chained), all, &mut found, &mut effort);
    }
    for processor in processors {
        if let Some(why) = unsearched(processor) {
            for position in processor.members.iter().filter_map(|member| member.position) {
                found[position].reason = Some(why.clone());
            }
        } else if is_plain(set, processor) {
            by_numbers(set, processor, &mut found, &mut effort);
        } else {
            let here = std::slice::from_ref(processor);
            vary(set, Scope::Processor(processor), here, &mut found, &mut effort);
        }
    }
    found
}

/// Why nothing is searched on a processor.
fn unsearched(processor: &Processor) -> Option<String> {
    if let Some(why) = &processor.refused {
        Some(format!("not searched: {why}"))
    } else if processor.finds_priorities {
        Some("not searched where priorities are to be found".to_owned())
    } else if processor.has_thresholds() {
        Some("not searched where tasks have preemption thresholds".to_owned())
    } else {
        None
    }
}

fn by_numbers(
    set: &TaskSet,
    processor: &Processor,
    found: &mut [SensitivityFacts],
    effort: &mut StepLimit,
) {
    let mut limits = Limits::of(set, processor, effort);
    for (at, member) in processor.members.iter().enumerate() {
        let Some(position) = member.position else { continue };
        let facts = &mut found[position];
        let Some(limits) = &mut limits else {
            facts.reason = Some(LATE.to_owned());
            continue;
        };
        match limits.of_task(at, effort) {
            Ok((cost, period, jitter)) => {
                // Timers add the same to any jitter.
                let given = set.tasks[position].jitter.nanos_or_zero();
                let timers = member.jitter.saturating_sub(given);
                facts.largest_wcet_ns = cost;
                facts.smallest_period_ns = period;
                facts.largest_jitter_ns = jitter.and_then(|jitter| jitter.checked_sub(timers));
            }
            Err(_) => facts.reason = Some(ENDED.to_owned()),
        }
    }
}

/// The same by changed descriptions.
fn vary(
    set: &TaskSet,
    scope: Scope,
    processors: &[Processor],
    found: &mut [SensitivityFacts],
    effort: &mut StepLimit,
) {
    let variation = Variation::new(set, scope, *effort);
    for member in processors.iter().flat_map(|processor| &processor.members) {
        let Some(position) = member.position else { continue };
        let facts = &mut found[position];
        if let Some(why) = &member.unknown {
            facts.reason = Some(format!("not searched, and its deadline is not asked for: {why}"));
            continue;
        }
        let cost = variation.largest_wcet(position);
        let period = variation.smallest_period(position);
        let jitter = variation.largest_jitter(position);
        if variation.effort().left() < LOOKS {
            facts.reason = Some(ENDED.to_owned());
        } else if cost.is_none() {
            facts.reason = Some(LATE.to_owned());
        } else {
            facts.largest_wcet_ns = cost;
            facts.smallest_period_ns = period;
            facts.largest_jitter_ns = jitter;
        }
    }
    *effort = variation.effort();
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
    let is_own = |member: &Member| member.position.is_some();
    let may_overlap = |at: usize| locks::may_overlap(&set.tasks[at]);
    let is_asked = |processor: &&Processor| {
        unsearched(processor).is_none()
            && processor.members.iter().any(is_own)
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
    for processor in processors.iter().filter(is_asked) {
        let facts = match is_plain(set, processor) {
            true => scale(set, processor, &mut effort),
            false => vary_all(set, Scope::Processor(processor), &mut effort),
        };
        let (cpus, server) = (processor.cpus.clone(), processor.server.clone());
        found.extend(facts.map(|facts| BreakdownFacts { cpus, server, ..facts }));
    }
    found
}

fn scale(set: &TaskSet, processor: &Processor, effort: &mut StepLimit) -> Option<BreakdownFacts> {
    let numbers = processor.in_any_phase();
    let found = with_effort(effort, |test| {
        let test = |numbers: &Numbers| test(processor, numbers);
        if is_uncharged(set, processor) {
            return largest_scale(&numbers, PARTS, test);
        }
        largest_scale_by(&numbers, PARTS, |factor| scaled(set, processor, factor), test)
    });
    let CostScale { factor, utilisation, beyond } = found.ok()??;
    let is_exact = processor.inexact.is_empty();
    let of = |tested: ScaleTest| ScaleTest {
        failing: tested.failing.and_then(|at| processor.members.get(at)?.position),
        ..tested
    };
    let own = processor.members.iter().filter_map(|member| member.position);
    Some(facts(set, own, (factor, utilisation, beyond.map(of)), is_exact))
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
    Some(facts(set, variation.own(), (factor, utilisation, Some(beyond)), is_exact))
}

/// What is said of a factor of the execution times of these tasks, of which one is the first that is late one part further on.
fn facts(
    set: &TaskSet,
    own: impl IntoIterator<Item = usize>,
    (factor, utilisation, beyond): (Fraction, Option<Fraction>, Option<ScaleTest>),
    is_exact: bool,
) -> BreakdownFacts {
    let quotient = |of: Fraction| of.numerator as f64 / of.denominator as f64;
    let first = beyond.and_then(|tested| set.tasks.get(tested.failing?));
    let is_known = beyond
        .is_none_or(|tested| matches!(tested.verdict, Verdict::Infeasible(_) | Verdict::NoBound));
    let bounds = upper_bounds::named(own.into_iter().filter_map(|at| set.tasks.get(at)));
    let inexact = (!is_exact || !is_known).then(|| INEXACT.to_owned());
    let reasons: Vec<String> = bounds.into_iter().chain(inexact).collect();
    BreakdownFacts {
        factor: quotient(factor),
        utilisation: utilisation.map(quotient),
        first_to_miss: first.map(|task| task.name.clone()),
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
        ..BreakdownFacts::default()
    }
}

/// Whether a factor of all numbers is one of execution times: nothing is in them but these.
fn is_uncharged(set: &TaskSet, processor: &Processor) -> bool {
    let is_own = |member: &Member| {
        let task = member.position.map(|position| &set.tasks[position]);
        task.is_some_and(|task| task.wcet.nanos_or_zero() == member.task.cost())
    };
    processor.members.iter().all(is_own)
}

/// The numbers with all execution times and sections times `factor`, and all else, what the kernel takes too, times [`PARTS`];
/// `None` if they do not fit.
fn scaled(set: &TaskSet, processor: &Processor, factor: u64) -> Option<Numbers> {
    let of = |member: &Member| {
        let wcet = set.tasks[member.position?].wcet.nanos_or_zero().checked_mul(factor)?;
        let change = CostChange { wcet, sections: factor, parts: PARTS };
        parameters::recharged(set, processor.sections, member, &change)
    };
    processor.members.iter().map(of).collect::<Option<Vec<_>>>().map(Numbers::from)
}

/// The largest execution time, the smallest period and the largest jitter of a task.
type ParameterLimits = (Option<u64>, Option<u64>, Option<u64>);

struct Limits<'a> {
    set: &'a TaskSet,
    processor: &'a Processor,
    numbers: Numbers,
    /// A task at a time, where that can be; else by tests of the whole set.
    fixed: Option<Box<FixedLimits>>,
}

impl Limits<'_> {
    /// The limits of a feasible processor.
    fn of<'a>(
        set: &'a TaskSet,
        processor: &'a Processor,
        effort: &mut StepLimit,
    ) -> Option<Limits<'a>> {
        let numbers = processor.in_any_phase();
        if processor.rule != Rule::Edf && processor.sections == Sections::Preemptive {
            let (sections, time) = (Sections::Preemptive, TimeModel::Continuous);
            let analysis = fixed_priority::analyse_by(&numbers, sections, time, effort);
            if let Some(limits) = FixedLimits::new(&numbers, &analysis) {
                let fixed = Some(Box::new(limits));
                return Some(Limits { set, processor, numbers, fixed });
            }
        }
        let feasible = tested(processor, &numbers, effort).verdict == Verdict::Feasible;
        feasible.then_some(Limits { set, processor, numbers, fixed: None })
    }

    /// Refuses where the effort does not suffice.
    fn of_task(&mut self, at: usize, effort: &mut StepLimit) -> Result<ParameterLimits, Refusal> {
        let Some(limits) = &mut self.fixed else { return self.by_tests(at, effort) };
        let member = &self.processor.members[at];
        let wcet = member.position.map_or(0, |at| self.set.tasks[at].wcet.nanos_or_zero());
        // Where all is preempted, overheads add the same to any execution time.
        let added = member.task.cost().saturating_sub(wcet);
        Ok((
            limits.largest_cost(at, effort)?.and_then(|cost| cost.checked_sub(added)),
            limits.smallest_period(at, effort)?,
            limits.largest_jitter(at, effort)?,
        ))
    }

    fn by_tests(&self, at: usize, effort: &mut StepLimit) -> Result<ParameterLimits, Refusal> {
        let Limits { set, processor, numbers, .. } = self;
        let member = &processor.members[at];
        let wcet = member.position.map_or(0, |at| set.tasks[at].wcet.nanos_or_zero());
        let of = |wcet: u64| {
            let change = CostChange { wcet, sections: 1, parts: 1 };
            parameters::recharged(set, processor.sections, member, &change)
        };
        let has_locks = processor.members.iter().any(|member| !member.locks.held.is_empty());
        let hold_ups = match processor.rule {
            Rule::Edf if has_locks || processor.sections != Sections::Preemptive => {
                HoldUps::ByDeadlines
            }
            _ => HoldUps::Fixed,
        };
        with_effort(effort, |test| {
            let by_numbers = |numbers: &Numbers| test(processor, numbers);
            let test = |changed: &Numbers| match blocked_again(set, processor, numbers, changed) {
                Some(changed) => by_numbers(&changed),
                None => ScaleTest { verdict: Verdict::Unknown(Refusal::Overflow), failing: None },
            };
            (
                largest_cost_by(numbers, at, wcet, of, by_numbers),
                smallest_period(numbers, at, hold_ups, test),
                largest_jitter(numbers, at, hold_ups, test),
            )
        })
    }
}

/// The changed numbers with the blocking by locks that they make: under EDF, deadlines and jitter decide who waits for whom.
fn blocked_again(
    set: &TaskSet,
    processor: &Processor,
    given: &Numbers,
    changed: &Numbers,
) -> Option<Numbers> {
    let held: Vec<_> = processor.members.iter().map(|member| member.locks.held.clone()).collect();
    if processor.rule != Rule::Edf || held.iter().all(Vec::is_empty) {
        return Some(changed.clone());
    }
    let by_locks = |numbers: &Numbers| locks::blocking(set, Rule::Edf, &held, numbers.tasks()).ok();
    let (before, now) = (by_locks(given)?, by_locks(changed)?);
    let again = changed.tasks().iter().zip(before.iter().zip(now)).map(|(task, (before, now))| {
        Some(task.with_blocking(task.blocking().checked_sub(*before)?.checked_add(now)?))
    });
    again.collect::<Option<Vec<_>>>().map(Numbers::from)
}

/// What `search` finds by tests that share the effort. Refuses where it does not suffice.
fn with_effort<T>(
    effort: &mut StepLimit,
    search: impl FnOnce(&dyn Fn(&Processor, &Numbers) -> ScaleTest) -> T,
) -> Result<T, Refusal> {
    let left = Cell::new(*effort);
    let found = search(&|processor, numbers| {
        let mut now = left.get();
        let found = tested(processor, numbers, &mut now);
        left.set(now);
        found
    });
    *effort = left.get();
    // The last tests may have been cut short, and then a limit is not the largest.
    if effort.left() < LOOKS { Err(Refusal::TooLong) } else { Ok(found) }
}

/// The verdict on a set of this processor. No test takes more than [`LOOKS`].
pub(super) fn tested(
    processor: &Processor,
    numbers: &Numbers,
    effort: &mut StepLimit,
) -> ScaleTest {
    effort.at_most(LOOKS, |effort| match &processor.situation {
        Situation::Shared(cpus) => global::tested(processor, numbers, *cpus, effort),
        Situation::Inside(server) => in_server(processor, server, numbers, effort),
        Situation::Alone => alone(processor, numbers, effort),
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
                    by_responses(processor, numbers, effort).unwrap_or(by_demand)
                }
                _ => by_demand,
            }
        }
        Rule::FixedPriority | Rule::Fifo => {
            let found = match processor.has_curves() {
                true => bursts::fixed_priority_by(numbers, sections, time, effort),
                false => fixed_priority::analyse_by(numbers, sections, time, effort),
            };
            judged(processor, numbers, &found)
        }
    }
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

/// That all responses of tasks are in time, where the demand test is not exact: it has ticks due too, and knows no last sections.
fn by_responses(
    processor: &Processor,
    numbers: &Numbers,
    effort: &mut StepLimit,
) -> Option<ScaleTest> {
    let mut members = processor.members.iter();
    if processor.sections != Sections::Limited && members.all(|member| member.position.is_some()) {
        return None;
    }
    let (sections, time) = (processor.sections, TimeModel::Continuous);
    let found = edf::response_times_by(numbers, sections, time, effort);
    let mut own = processor.members.iter().zip(&found.tasks);
    let is_late = |(member, task): (&Member, &TaskResult)| {
        member.position.is_some() && task.verdict != Verdict::Feasible
    };
    (!own.any(is_late)).then_some(ScaleTest { verdict: Verdict::Feasible, failing: None })
}

/// Whether the numbers of its tasks, changed one by one, are all that there is.
fn is_plain(set: &TaskSet, processor: &Processor) -> bool {
    processor.situation == Situation::Alone
        && !processor.has_bursts()
        && set.interference.is_empty()
        && processor
            .members
            .iter()
            .all(|member| member.unknown.is_none() && member.position.is_some())
}
