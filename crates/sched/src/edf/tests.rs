//! Properties of EDF's tests and bounds, against each other and the simulated twin.

use proptest::prelude::*;

use super::demand::{demand_bound, processor_demand};
use super::qpa::feasible;
use super::*;
use crate::effort::StepLimit;
use crate::fixed_priority::{self, Sections, TimeModel};
use crate::reference::worst_edf;
use crate::task::{Task, TaskSet};
use crate::verdict::{Verdict, Witness};

fn small_task() -> impl Strategy<Value = Task> {
    (2..20u64, 1..7u64, 1..40u64, 0..12u64, 1..4u64).prop_map(|(period, tenths, d, j, np)| {
        let cost = (period * tenths / 10).max(1);
        let jitter = if j < 8 { 0 } else { j - 7 };
        let np = np.min(cost);
        Task::new(cost, period, d).unwrap().with_jitter(jitter).with_segments(np, 1).unwrap()
    })
}

fn small_set() -> impl Strategy<Value = TaskSet> {
    proptest::collection::vec(small_task(), 1..5).prop_map(TaskSet::in_order)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Every preemptive and non-preemptive bound is reached by a simulated case; with segments,
    /// where nothing jitters (the simulated blocker arrives as late as it can).
    #[test]
    fn bounds_are_reached(set in small_set(), kind in 0..2usize) {
        let still = |t: &Task| if kind == 0 { t.clone() } else { t.with_jitter(0) };
        let set = TaskSet::new(set.tasks().iter().map(still).collect());
        let analysis = response_times(&set, Sections::ALL[kind], TimeModel::Discrete);
        for (position, result) in analysis.tasks.iter().enumerate() {
            let Some(bound) = result.outcome.response() else { continue };
            if let Some(worst) = worst_edf(&set, Sections::ALL[kind], position, &analysis) {
                prop_assert_eq!(worst, bound, "task {} of {:?}", position, &set);
            }
        }
    }

    /// The simulation stays within all bounds (asserted in debug builds), and the checker agrees.
    #[test]
    fn bounds_hold(set in small_set(), kind in 0..4usize) {
        let analysis = response_times(&set, Sections::ALL[kind], TimeModel::Discrete);
        let continuous = response_times(&set, Sections::ALL[kind], TimeModel::Continuous);
        for (a, b) in analysis.from_arrival().iter().zip(continuous.from_arrival()) {
            prop_assert!(a.unwrap_or(u64::MAX) <= b.unwrap_or(u64::MAX));
        }
    }

    /// QPA, the full processor demand test and the response times give the same verdict.
    #[test]
    fn three_ways_agree(set in small_set(), kind in 0..2usize) {
        let quick = feasible(&set, Sections::ALL[kind], TimeModel::Discrete).verdict;
        let full = processor_demand(&set, Sections::ALL[kind], TimeModel::Discrete);
        prop_assert_eq!(quick == Verdict::Feasible, full == Verdict::Feasible);
        prop_assert_eq!(quick == Verdict::NoBound, full == Verdict::NoBound);
        let times = response_times(&set, Sections::ALL[kind], TimeModel::Discrete).verdict();
        if !matches!(times, Verdict::Unknown(_)) {
            prop_assert_eq!(quick == Verdict::Feasible, times == Verdict::Feasible, "{:?}", set);
        }
    }

    /// EDF is optimal: what fixed priorities schedule, it schedules.
    #[test]
    fn edf_accepts_what_fixed_priorities_accept(set in small_set()) {
        let fixed = fixed_priority::analyse(&set, Sections::Preemptive, TimeModel::Discrete);
        if fixed.verdict() == Verdict::Feasible {
            prop_assert_eq!(feasible(&set, Sections::Preemptive, TimeModel::Discrete).verdict,
                Verdict::Feasible);
        }
    }

    /// For all numbers the analysis soon gives an answer that the checker accepts.
    #[test]
    fn no_numbers_make_it_fail(
        numbers in proptest::collection::vec(
            (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u8>(), any::<u8>()), 1..5),
        kind in 0..4usize,
    ) {
        let task = |(c, t, d, j, shift, small): &(u64, u64, u64, u64, u8, u8)| {
            let cost = (c >> (shift % 64)).max(1);
            let period = (t >> (small % 40)).max(1);
            Task::new(cost, period, (*d).max(1)).unwrap().with_jitter(j >> (small % 64))
        };
        let set = TaskSet::in_order(numbers.iter().map(task).collect());
        for time in [TimeModel::Discrete, TimeModel::Continuous] {
            let times = response_times_within(&set, Sections::ALL[kind], time, StepLimit::with_steps(250_000));
            prop_assert_eq!(times.tasks.len(), set.len());
            let _ = qpa::feasible_within(&set, Sections::ALL[kind], time, StepLimit::with_steps(250_000));
        }
    }
}

fn set(tasks: &[(u64, u64, u64)]) -> TaskSet {
    TaskSet::in_order(tasks.iter().map(|(c, t, d)| Task::new(*c, *t, *d).unwrap()).collect())
}

/// Buttazzo, Hard Real-Time Computing Systems: 2/6/4, 2/8/5, 3/9/7 with L* = 25.
#[test]
fn the_demand_of_buttazzos_example() {
    let set = set(&[(2, 6, 4), (2, 8, 5), (3, 9, 7)]);
    let demands: Vec<u128> =
        [3, 4, 5, 7, 10, 13, 16, 21, 22].iter().map(|t| demand_bound(&set, *t)).collect();
    assert_eq!(demands, [0, 2, 4, 7, 9, 11, 16, 18, 20]);
    let found = feasible(&set, Sections::Preemptive, TimeModel::Discrete);
    assert_eq!(found.verdict, Verdict::Feasible);
    assert!(found.length >= 25 && found.length <= 61, "{}", found.length);
}

#[test]
fn too_much_demand_is_shown() {
    let set = set(&[(3, 8, 8), (4, 9, 5)]);
    let found = feasible(&set, Sections::Preemptive, TimeModel::Discrete);
    assert_eq!(found.verdict, Verdict::Feasible);
    let set = self::set(&[(3, 8, 6), (4, 9, 5)]);
    let found = feasible(&set, Sections::Preemptive, TimeModel::Discrete);
    assert_eq!(found.verdict, Verdict::Infeasible(Witness::Demand { interval: 6, demand: 7 }));
}

/// A job may be released when its deadline is over already.
#[test]
fn jitter_longer_than_the_deadline_is_infeasible() {
    let task = Task::new(1, 100, 3).unwrap().with_jitter(5);
    let found = feasible(&TaskSet::new(vec![task]), Sections::Preemptive, TimeModel::Discrete);
    assert_eq!(found.verdict, Verdict::Infeasible(Witness::Demand { interval: 0, demand: 1 }));
}

/// A peer drops tasks that are equal by value and answers 3.
#[test]
fn identical_tasks_are_two() {
    let found = response_times(
        &set(&[(3, 10, 10), (3, 10, 10)]),
        Sections::Preemptive,
        TimeModel::Discrete,
    );
    assert_eq!(found.from_arrival(), [Some(6), Some(6)]);
}
