//! Tasks spread over processors that do not share them.
//!
//! Owns: the packing heuristics (Lopez, Diaz and Garcia, RTSJ 2004, compare them). Must not: judge;
//! the caller's test says whether tasks fit together.

use crate::exact_fraction::share_floor;
use crate::task::{Task, TaskSet};
use crate::verdict::Verdict;

/// The order in which tasks are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementOrder {
    /// The given order.
    Given,
    /// The largest utilisation first.
    Utilisation,
    /// The largest ratio of cost to deadline first.
    Density,
    /// The shortest period first.
    Period,
    /// The shortest deadline first.
    Deadline,
}

/// All orders.
pub const ORDERS: [PlacementOrder; 5] = [
    PlacementOrder::Given,
    PlacementOrder::Utilisation,
    PlacementOrder::Density,
    PlacementOrder::Period,
    PlacementOrder::Deadline,
];

/// The choice among processors where a task fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FitHeuristic {
    /// The first.
    First,
    /// The one that is used most.
    Best,
    /// The one that is used least.
    Worst,
}

/// All ways to fit.
pub const FITS: [FitHeuristic; 3] = [FitHeuristic::First, FitHeuristic::Best, FitHeuristic::Worst];

/// For each task its processor, if all could be placed.
///
/// `fits` is asked whether a set is feasible on one processor; what it does not know to be feasible
/// does not fit. It is asked at most tasks times processors times. `None` says that the heuristic
/// failed, not that there is no way. Whether `fits` ever gave up is for the caller to remember.
#[must_use]
pub fn partition(
    tasks: &[Task],
    processors: usize,
    order: PlacementOrder,
    fit: FitHeuristic,
    mut fits: impl FnMut(&TaskSet) -> Verdict,
) -> Option<Vec<usize>> {
    let mut placed: Vec<Vec<Task>> = vec![Vec::new(); processors];
    let mut used = vec![0u128; processors];
    let mut found = vec![0; tasks.len()];
    for position in ordered(tasks, order) {
        let task = &tasks[position];
        let mut candidates: Vec<usize> = (0..processors).collect();
        match fit {
            FitHeuristic::First => {}
            FitHeuristic::Best => candidates.sort_by_key(|at| std::cmp::Reverse(used[*at])),
            FitHeuristic::Worst => candidates.sort_by_key(|at| used[*at]),
        }
        let mut takes = |at: &usize| {
            let mut together = placed[*at].clone();
            together.push(task.clone());
            fits(&TaskSet::new(together)) == Verdict::Feasible
        };
        let chosen = candidates.into_iter().find(|at| takes(at))?;
        placed[chosen].push(task.clone());
        used[chosen] = used[chosen].saturating_add(share_floor(task.cost, task.period));
        found[position] = chosen;
    }
    Some(found)
}

/// Positions in the order in which they are placed; the smaller position first among equals.
fn ordered(tasks: &[Task], order: PlacementOrder) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..tasks.len()).collect();
    // A difference that 64 binary digits do not show does no harm to a heuristic.
    let largest = |part: u64, whole: u64| u128::MAX - share_floor(part, whole);
    match order {
        PlacementOrder::Given => {}
        PlacementOrder::Utilisation => {
            positions.sort_by_key(|at| largest(tasks[*at].cost, tasks[*at].period))
        }
        PlacementOrder::Density => {
            positions.sort_by_key(|at| largest(tasks[*at].cost, tasks[*at].deadline))
        }
        PlacementOrder::Period => positions.sort_by_key(|at| tasks[*at].period),
        PlacementOrder::Deadline => positions.sort_by_key(|at| tasks[*at].deadline),
    }
    positions
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edf::qpa;
    use crate::fixed_priority::{Sections, TimeModel};

    fn by_edf(set: &TaskSet) -> Verdict {
        qpa::feasible(set, Sections::Preemptive, TimeModel::Discrete).verdict
    }

    fn task(cost: u64, period: u64) -> Task {
        Task::new(cost, period, period).unwrap()
    }

    /// Dhall and Liu 1978: two light tasks and a heavy one miss under global EDF, not partitioned.
    #[test]
    fn a_heavy_task_gets_a_processor_of_its_own() {
        let tasks = [task(2, 10), task(2, 10), task(10, 11)];
        let found = partition(&tasks, 2, PlacementOrder::Utilisation, FitHeuristic::First, by_edf);
        assert_eq!(found, Some(vec![1, 1, 0]));
    }

    /// 1/2, 1/2, 1/3, 1/3, 1/3: the largest first fill two processors, as given they do as well;
    /// worst fit spreads the halves and leaves 1/2 of each to thirds, one too few.
    #[test]
    fn the_way_to_fit_matters() {
        let tasks = [task(3, 6), task(3, 6), task(2, 6), task(2, 6), task(2, 6)];
        let found = |fit| partition(&tasks, 2, PlacementOrder::Given, fit, by_edf);
        assert_eq!(found(FitHeuristic::First), Some(vec![0, 0, 1, 1, 1]));
        assert_eq!(found(FitHeuristic::Best), Some(vec![0, 0, 1, 1, 1]));
        assert_eq!(found(FitHeuristic::Worst), None);
    }

    proptest! {
        /// Every placed task is feasible on its processor.
        #[test]
        fn every_processor_is_feasible(
            numbers in proptest::collection::vec((1..10u64, 10..30u64), 1..9), cpus in 0..4usize,
            order in 0..5usize, fit in 0..3usize
        ) {
            let tasks: Vec<Task> = numbers.iter().map(|(c, t)| task(*c, *t)).collect();
            if let Some(found) = partition(&tasks, cpus, ORDERS[order], FITS[fit], by_edf) {
                for cpu in 0..cpus {
                    let here = tasks.iter().zip(&found).filter(|(_, at)| **at == cpu);
                    let set = TaskSet::new(here.map(|(task, _)| task.clone()).collect());
                    prop_assert_eq!(by_edf(&set), Verdict::Feasible);
                }
            }
        }
    }
}
