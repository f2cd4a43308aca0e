//! How far a task may change before the set is no longer known to be feasible.
//!
//! Owns: which processors it is asked of, with how much effort, and what is said where that ends. Must not:
//! search (`sched::sensitivity` does).

use std::cell::Cell;

use hourglass_documents::check::{BreakdownFacts, SensitivityFacts};
use hourglass_sched::catalogue::{Rule, Situation};
use hourglass_sched::edf::{self, qpa};
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::sensitivity::{
    CostScale, FixedLimits, HoldUps, ScaleTest, largest_cost_by, largest_jitter, largest_scale,
    largest_scale_by, smallest_period,
};

use hourglass_sched::{Refusal, Task, TaskResult, TaskSet as Numbers, Verdict};
use hourglass_tasks::TaskSet;

use super::parameters::{self, CostChange};
use super::processor::{Member, Processor};
use super::{locks, upper_bounds};

/// Looks at a task for all questions: about a second of a processor of 2026.
const ALL_LOOKS: u64 = 200_000_000;

/// Looks that one analysis may take; where there is no quicker way, a task needs some 150 analyses.
const LOOKS: u64 = 500_000;

/// The sentence for tasks without a result.
const ENDED: &str = "not searched: the search takes more steps than all searches may together";

const SHARED: &str = "not searched on CPUs that tasks share";

/// What each task of the set may be while the others stay as they are; nothing where it is not known.
pub(super) fn sensitivity(set: &TaskSet, processors: &[Processor]) -> Vec<SensitivityFacts> {
    let named = |task: &hourglass_tasks::Task| SensitivityFacts {
        name: task.name.clone(),
        ..SensitivityFacts::default()
    };
    let mut found: Vec<SensitivityFacts> = set.tasks.iter().map(named).collect();
    let is_shared = |of: &&Processor| matches!(of.situation, Situation::Shared(_));
    let shared = processors.iter().filter(is_shared).flat_map(|processor| &processor.members);
    for position in shared.filter_map(|member| member.position) {
        found[position].reason = Some(SHARED.to_owned());
    }
    let mut effort = StepLimit::with_steps(ALL_LOOKS);
    for processor in processors.iter().filter(|processor| is_plain(set, processor)) {
        let Some(mut limits) = Limits::of(set, processor, &mut effort) else { continue };
        for (at, member) in processor.members.iter().enumerate() {
            let Some(position) = member.position else { continue };
            let facts = &mut found[position];
            match limits.of_task(at, &mut effort) {
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
    found
}

/// Factors of execution times are found in this number of parts of 1.
const PARTS: u64 = 1_000;

/// How far all execution times of each processor may grow together; nothing of a processor where it is not
/// known.
pub(super) fn breakdown(set: &TaskSet, processors: &[Processor]) -> Vec<BreakdownFacts> {
    let mut effort = StepLimit::with_steps(ALL_LOOKS);
    let plain = processors.iter().filter(|processor| is_plain(set, processor));
    // Budgets of servers are not execution times.
    let is_own = |member: &Member| member.position.is_some();
    let plain = plain.filter(|processor| processor.members.iter().any(is_own));
    let may_overlap = |at: usize| locks::may_overlap(&set.tasks[at]);
    let plain = plain
        .filter(|processor| !processor.members.iter().filter_map(|m| m.position).any(may_overlap));
    let facts = plain.filter_map(|processor| {
        let numbers = processor.in_any_phase();
        let found = with_effort(&mut effort, |test| {
            let test = |numbers: &Numbers| test(processor, numbers);
            if is_uncharged(set, processor) {
                return largest_scale(&numbers, PARTS, test);
            }
            largest_scale_by(&numbers, PARTS, |factor| scaled(set, processor, factor), test)
        });
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

/// Whether a factor of all numbers is one of execution times: nothing is in them but these.
fn is_uncharged(set: &TaskSet, processor: &Processor) -> bool {
    let is_own = |member: &Member| {
        let task = member.position.map(|position| &set.tasks[position]);
        task.is_some_and(|task| task.wcet.nanos_or_zero() == member.task.cost())
    };
    processor.members.iter().all(is_own)
}

/// The numbers with all execution times and sections times `factor`, and all else, what the kernel and servers take too,
/// times [`PARTS`]; `None` if they do not fit.
fn scaled(set: &TaskSet, processor: &Processor, factor: u64) -> Option<Numbers> {
    let whole = |time: u64| time.checked_mul(PARTS);
    let of = |member: &Member| {
        let Some(position) = member.position else {
            let (cost, period) = (whole(member.task.cost())?, whole(member.task.period())?);
            let made = Task::new(cost, period, whole(member.task.deadline())?).ok()?;
            let made = made.with_blocking(whole(member.task.blocking())?);
            let made = made.with_jitter(whole(member.task.jitter())?);
            return Some(made.with_priority(member.task.priority()));
        };
        let wcet = set.tasks[position].wcet.nanos_or_zero().checked_mul(factor)?;
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
fn tested(processor: &Processor, numbers: &Numbers, effort: &mut StepLimit) -> ScaleTest {
    let (sections, time) = (processor.sections, TimeModel::Continuous);
    let given = effort.left().min(LOOKS);
    let mut left = StepLimit::with_steps(given);
    let found = match processor.rule {
        Rule::Edf => {
            let by_demand = ScaleTest::from(&qpa::feasible_by(numbers, sections, time, &mut left));
            match by_demand.verdict {
                Verdict::Unknown(Refusal::NotExact) | Verdict::Infeasible(_) => {
                    by_responses(processor, numbers, &mut left).unwrap_or(by_demand)
                }
                _ => by_demand,
            }
        }
        Rule::FixedPriority | Rule::Fifo => {
            ScaleTest::from(&fixed_priority::analyse_by(numbers, sections, time, &mut left))
        }
    };
    *effort = StepLimit::with_steps(effort.left() - (given - left.left()));
    found
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

fn is_plain(set: &TaskSet, processor: &Processor) -> bool {
    processor.refused.is_none()
        && processor.situation == Situation::Alone
        && !processor.has_thresholds()
        && !processor.has_bursts()
        && !processor.finds_priorities
        && set.interference.is_empty()
        && processor.members.iter().all(|member| member.unknown.is_none())
}
