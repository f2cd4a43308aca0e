//! How far a task may change before the set is no longer known to be feasible.
//!
//! Owns: which processors it is asked of, with how much effort, and what is said where that ends. Must not:
//! search (`sched::sensitivity` does).

use std::cell::Cell;

use hourglass_documents::check::{BreakdownFacts, SensitivityFacts};
use hourglass_sched::catalogue::{Rule, Situation};
use hourglass_sched::edf::qpa;
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::sensitivity::{
    CostScale, FixedLimits, ScaleTest, largest_cost, largest_jitter, largest_scale, smallest_period,
};
use hourglass_sched::{Refusal, TaskSet as Numbers, Verdict};
use hourglass_tasks::TaskSet;

use super::processor::{Member, Processor};
use super::upper_bounds;

/// Looks at a task for all questions: about a second of a processor of 2026.
const ALL_LOOKS: u64 = 200_000_000;

/// Looks that one analysis may take; where there is no quicker way, a task needs some 150 analyses.
const LOOKS: u64 = 500_000;

/// The sentence for tasks without a result.
const ENDED: &str = "not searched: the search takes more steps than all searches may together";

/// What each task of the set may be while the others stay as they are; nothing where it is not known.
pub(super) fn sensitivity(set: &TaskSet, processors: &[Processor]) -> Vec<SensitivityFacts> {
    let named = |task: &hourglass_tasks::Task| SensitivityFacts {
        name: task.name.clone(),
        ..SensitivityFacts::default()
    };
    let mut found: Vec<SensitivityFacts> = set.tasks.iter().map(named).collect();
    let mut effort = StepLimit::with_steps(ALL_LOOKS);
    for processor in processors.iter().filter(|processor| is_plain(set, processor)) {
        let Some(mut limits) = Limits::of(processor, &mut effort) else { continue };
        for (at, member) in processor.members.iter().enumerate() {
            let Some(position) = member.position else { continue };
            let facts = &mut found[position];
            match limits.of_task(at, &mut effort) {
                Ok(limits) => fill_in(facts, &set.tasks[position], member, limits),
                Err(_) => facts.reason = Some(ENDED.to_owned()),
            }
        }
    }
    found
}

/// Factors of execution times are found in this number of parts of 1.
const PARTS: u64 = 1_000;

/// How far all execution times of each processor may grow together; nothing of a processor where it is not
/// known.
pub(super) fn breakdown(set: &TaskSet, processors: &[Processor]) -> Vec<BreakdownFacts> {
    let mut effort = StepLimit::with_steps(ALL_LOOKS);
    let plain = processors.iter().filter(|processor| is_plain(set, processor));
    let facts = plain.filter_map(|processor| {
        let numbers = processor.in_any_phase();
        let found =
            with_effort(&mut effort, |test| largest_scale(&numbers, PARTS, |n| test(processor, n)));
        let CostScale { factor, utilisation, beyond } = found.ok()??;
        let quotient = |numerator: u64, denominator: u64| numerator as f64 / denominator as f64;
        let first = beyond.and_then(|tested| processor.members.get(tested.failing?)?.position);
        Some(BreakdownFacts {
            cpus: processor.cpus.clone(),
            server: processor.server.clone(),
            factor: quotient(factor.numerator, factor.denominator),
            utilisation: utilisation.map(|u| quotient(u.numerator, u.denominator)),
            first_to_miss: first.and_then(|at| Some(set.tasks.get(at)?.name.clone())),
            reason: {
                let members = processor.members.iter();
                upper_bounds::named(members.filter_map(|member| set.tasks.get(member.position?)))
            },
            factor_at_most: None,
        })
    });
    facts.collect()
}

/// The largest cost, the smallest period and the largest jitter of a task.
type ParameterLimits = (Option<u64>, Option<u64>, Option<u64>);

fn fill_in(
    facts: &mut SensitivityFacts,
    task: &hourglass_tasks::Task,
    member: &Member,
    (cost, period, jitter): ParameterLimits,
) {
    // Time that overheads and timers add does not change.
    let added = member.task.cost().saturating_sub(task.wcet.nanos_or_zero());
    let timers = member.jitter.saturating_sub(task.jitter.nanos_or_zero());
    facts.largest_wcet_ns = cost.and_then(|cost| cost.checked_sub(added));
    facts.smallest_period_ns = period;
    facts.largest_jitter_ns = jitter.and_then(|jitter| jitter.checked_sub(timers));
}

enum Limits<'a> {
    /// A task at a time.
    Fixed(Box<FixedLimits>),
    /// Limits by tests of the whole set.
    Tests(&'a Processor, Numbers),
}

impl Limits<'_> {
    /// The limits of a feasible processor.
    fn of<'a>(processor: &'a Processor, effort: &mut StepLimit) -> Option<Limits<'a>> {
        let numbers = processor.in_any_phase();
        if processor.rule != Rule::Edf && processor.sections == Sections::Preemptive {
            let (sections, time) = (Sections::Preemptive, TimeModel::Continuous);
            let analysis = fixed_priority::analyse_by(&numbers, sections, time, effort);
            if let Some(limits) = FixedLimits::new(&numbers, &analysis) {
                return Some(Limits::Fixed(Box::new(limits)));
            }
        }
        let feasible = tested(processor, &numbers, effort).verdict == Verdict::Feasible;
        feasible.then_some(Limits::Tests(processor, numbers))
    }

    /// Refuses where the effort does not suffice.
    fn of_task(&mut self, at: usize, effort: &mut StepLimit) -> Result<ParameterLimits, Refusal> {
        match self {
            Limits::Fixed(limits) => Ok((
                limits.largest_cost(at, effort)?,
                limits.smallest_period(at, effort)?,
                limits.largest_jitter(at, effort)?,
            )),
            Limits::Tests(processor, numbers) => by_tests(processor, numbers, at, effort),
        }
    }
}

fn by_tests(
    processor: &Processor,
    numbers: &Numbers,
    at: usize,
    effort: &mut StepLimit,
) -> Result<ParameterLimits, Refusal> {
    with_effort(effort, |test| {
        let test = |numbers: &Numbers| test(processor, numbers);
        (
            largest_cost(numbers, at, test),
            smallest_period(numbers, at, test),
            largest_jitter(numbers, at, test),
        )
    })
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
fn tested(processor: &Processor, numbers: &Numbers, effort: &mut StepLimit) -> ScaleTest {
    let (sections, time) = (processor.sections, TimeModel::Continuous);
    let given = effort.left().min(LOOKS);
    let mut left = StepLimit::with_steps(given);
    let found = match processor.rule {
        Rule::Edf => ScaleTest::from(&qpa::feasible_by(numbers, sections, time, &mut left)),
        Rule::FixedPriority | Rule::Fifo => {
            ScaleTest::from(&fixed_priority::analyse_by(numbers, sections, time, &mut left))
        }
    };
    *effort = StepLimit::with_steps(effort.left() - (given - left.left()));
    found
}

fn is_plain(set: &TaskSet, processor: &Processor) -> bool {
    processor.refused.is_none()
        && processor.situation == Situation::Alone
        && !processor.has_thresholds()
        && !processor.has_bursts()
        && !processor.finds_priorities
        && set.interference.is_empty()
        && processor.members.iter().all(|member| member.unknown.is_none())
}
