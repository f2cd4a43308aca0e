//! Priorities for a set of tasks.
//!
//! Owns: rate monotonic, deadline monotonic, and Audsley's optimal assignment. Must not: look into an
//! analysis; it only asks for verdicts.

use crate::effort::StepLimit;
use crate::fixed_priority::{self, Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, Verdict};

/// Shorter periods are more urgent (Liu and Layland, 1973). Equal ones in the order given.
#[must_use]
pub fn rate_monotonic(tasks: &[Task]) -> TaskSet {
    by_key(tasks, Task::period)
}

/// Shorter deadlines, less the jitter, are more urgent (Leung and Whitehead, 1982; Zuhily and Burns,
/// IPL 2007): optimal for deadlines of at most the period.
#[must_use]
pub fn deadline_monotonic(tasks: &[Task]) -> TaskSet {
    by_key(tasks, |task| i128::from(task.deadline) - i128::from(task.jitter))
}

fn by_key<K: Ord>(tasks: &[Task], key: impl Fn(&Task) -> K) -> TaskSet {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|position| key(&tasks[*position]));
    with_ranks(tasks, &order)
}

/// The tasks as given, the first in `order` being the most urgent.
fn with_ranks(tasks: &[Task], order: &[usize]) -> TaskSet {
    let mut ranked = tasks.to_vec();
    for (rank, position) in order.iter().rev().enumerate() {
        ranked[*position].priority = u32::try_from(rank).unwrap_or(u32::MAX);
    }
    TaskSet::new(ranked)
}

/// Audsley's assignment (University of York YCS-164, 1991): from the lowest priority up, any task
/// that is feasible there stays there. If any assignment is feasible by the analysis, this one is;
/// `None` if no assignment is. Needs at most n (n + 1) / 2 analyses of a task.
///
/// Not for sets with suspension, whose analysis needs to know the order of all higher priorities.
#[must_use]
pub fn audsley(tasks: &[Task], sections: Sections, time: TimeModel) -> Option<TaskSet> {
    let looks = StepLimit::default().left().saturating_mul(tasks.len() as u64);
    audsley_by(tasks, sections, time, &mut StepLimit::with_steps(looks)).ok().flatten()
}

/// The same, which takes what it needs from an effort for several searches. `None`: no assignment is feasible.
///
/// # Errors
/// None was found, but the analysis of a task was given up for this reason, so that there may be one.
pub fn audsley_by(
    tasks: &[Task],
    sections: Sections,
    time: TimeModel,
    effort: &mut StepLimit,
) -> Result<Option<TaskSet>, Refusal> {
    if tasks.iter().any(|task| task.suspension > 0) {
        return Err(Refusal::Suspension);
    }
    let mut unassigned: Vec<usize> = (0..tasks.len()).collect();
    // The order is from the least urgent.
    let mut assigned: Vec<usize> = Vec::with_capacity(tasks.len());
    while !unassigned.is_empty() {
        let mut given_up = None;
        let fits = |candidate: &usize| {
            let order: Vec<usize> = unassigned.iter().copied().filter(|t| t != candidate).collect();
            let lower = std::iter::once(*candidate).chain(assigned.iter().rev().copied());
            let order: Vec<usize> = order.into_iter().chain(lower).collect();
            let set = with_ranks(tasks, &order);
            let verdict = fixed_priority::verdict_of_by(&set, *candidate, sections, time, effort);
            if let Verdict::Unknown(why) = verdict
                && why != Refusal::NotExact
            {
                given_up = Some(why);
            }
            verdict == Verdict::Feasible
        };
        let Some(found) = unassigned.iter().position(fits) else {
            return given_up.map_or(Ok(None), Err);
        };
        assigned.push(unassigned.remove(found));
    }
    assigned.reverse();
    Ok(Some(with_ranks(tasks, &assigned)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn task(cost: u64, period: u64, deadline: u64) -> Task {
        Task::new(cost, period, deadline).unwrap()
    }

    fn preemptive(set: &TaskSet) -> Verdict {
        fixed_priority::analyse(set, Sections::Preemptive, TimeModel::Discrete).verdict()
    }

    /// Burns and Wellings: feasible in order of deadlines, not of periods.
    #[test]
    fn deadlines_before_periods() {
        let tasks = [task(3, 20, 5), task(3, 15, 7), task(4, 10, 10), task(3, 20, 20)];
        assert_eq!(preemptive(&deadline_monotonic(&tasks)), Verdict::Feasible);
        assert_ne!(preemptive(&rate_monotonic(&tasks)), Verdict::Feasible);
    }

    fn small_tasks() -> impl Strategy<Value = Vec<Task>> {
        let one = (2..20u64, 1..5u64, 1..30u64, 0..8u64).prop_map(|(period, tenths, d, j)| {
            task((period * tenths / 10).max(1), period, d).with_jitter(j.saturating_sub(5))
        });
        proptest::collection::vec(one, 1..5)
    }

    fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
        if items.is_empty() {
            return vec![Vec::new()];
        }
        let with_first = |at: usize| {
            let mut rest = items.to_vec();
            let first = rest.remove(at);
            let tails = permutations(&rest);
            tails.into_iter().map(move |tail| [vec![first], tail].concat()).collect::<Vec<_>>()
        };
        (0..items.len()).flat_map(with_first).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// The search finds an order exactly when one of all orders is feasible.
        #[test]
        fn audsley_is_optimal(tasks in small_tasks(), kind in 0..2usize) {
            let sections = [Sections::Preemptive, Sections::NonPreemptive][kind];
            let all: Vec<usize> = (0..tasks.len()).collect();
            let feasible = |set: &TaskSet| {
                fixed_priority::analyse(set, sections, TimeModel::Discrete).verdict()
                    == Verdict::Feasible
            };
            let any = permutations(&all).iter().any(|order| feasible(&with_ranks(&tasks, order)));
            let found = audsley(&tasks, sections, TimeModel::Discrete);
            prop_assert_eq!(found.is_some(), any);
            prop_assert!(found.is_none_or(|set| feasible(&set)));
        }

        /// The hyperbolic bound accepts what Liu and Layland accept, the exact test what it does.
        #[test]
        fn bounds_are_ordered(tasks in small_tasks()) {
            let implicit = tasks.iter().map(|t| task(t.cost, t.period, t.period));
            let set = rate_monotonic(&implicit.collect::<Vec<_>>());
            if crate::bounds::liu_layland(&set) == Verdict::Feasible {
                prop_assert_eq!(crate::bounds::hyperbolic(&set), Verdict::Feasible);
            }
            if crate::bounds::hyperbolic(&set) == Verdict::Feasible {
                prop_assert_eq!(preemptive(&set), Verdict::Feasible);
            }
        }
    }
}
