//! Properties of the bounds under fixed priorities, against the simulated twin among others.

use proptest::prelude::*;

use super::*;
use crate::reference::worst_fixed_priority;
use crate::task::Task;
use crate::verdict::{ResponseBound, TaskResult, Window, Witness};

/// A small task: period, cost as a share of it, deadline, jitter, segments.
fn small_task() -> impl Strategy<Value = Task> {
    (2..24u64, 1..9u64, 1..40u64, 0..12u64, 1..4u64).prop_map(|(period, tenths, d, j, np)| {
        let cost = (period * tenths / 10).max(1);
        let jitter = if j < 6 { 0 } else { j - 5 };
        let np = np.min(cost);
        Task::new(cost, period, d).unwrap().with_jitter(jitter).with_segments(np, 1).unwrap()
    })
}

fn small_tasks() -> impl Strategy<Value = Vec<Task>> {
    proptest::collection::vec(small_task(), 1..5)
}

fn discrete(set: &TaskSet, sections: Sections) -> Analysis {
    analyse(set, sections, TimeModel::Discrete)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Every bound is reached by a case of the simulation, which never exceeds it.
    #[test]
    fn bounds_are_reached(tasks in small_tasks(), equal in any::<bool>(), kind in 0..4usize) {
        let order = TaskSet::in_order(tasks.clone());
        let set = if equal { TaskSet::new(tasks) } else { order };
        let analysis = discrete(&set, Sections::ALL[kind]);
        for (position, result) in analysis.tasks.iter().enumerate() {
            let Some(bound) = result.outcome.response() else { continue };
            if let Some(worst) = worst_fixed_priority(&set, Sections::ALL[kind], position, &analysis) {
                prop_assert_eq!(worst, bound, "task {} of {:?}", position, &set);
            }
        }
    }

    /// The fast sweep and the search task by task find the same points.
    #[test]
    fn the_sweep_agrees_with_the_search(tasks in small_tasks(), scale in 1..1_000_000_000_000u64) {
        let scaled = tasks.iter().map(|t| scaled(t, scale)).collect();
        let set = TaskSet::in_order(scaled);
        let order = set.by_priority();
        let fast = sweep::analyse(&set, order, &mut StepLimit::default());
        let slow =
            level::analyse(&set, order, Sections::Preemptive, TimeModel::Discrete, &mut StepLimit::default());
        for position in 0..set.len() {
            prop_assert_eq!(&fast.tasks[position].outcome, &slow.tasks[position].outcome);
            prop_assert_eq!(fast.tasks[position].verdict, slow.tasks[position].verdict);
            prop_assert_eq!(fast.points(position), slow.points(position));
        }
    }

    /// The same for sets that use nearly all, of many tasks whose periods are far apart, so that every kind of
    /// round is needed; with times of 32 binary digits, of 64, and that do not fit.
    #[test]
    fn rounds_find_what_the_search_finds(
        numbers in proptest::collection::vec((0..12u32, 1..16u64, 1..100u64, 0..8u64), 2..24),
        unit in prop_oneof![Just(1u64), 1..60u64, Just(1u64 << 24), 1..1u64 << 46], used in 80..101u64,
    ) {
        let shares: u64 = numbers.iter().map(|(_, _, share, _)| share).sum();
        let task = |(size, part, share, jitter): &(u32, u64, u64, u64)| {
            let period = ((16 + part) << size) * unit;
            let cost = u128::from(period) * u128::from(share * used) / u128::from(shares * 100);
            let cost = u64::try_from(cost).unwrap().max(1);
            let jitter = if *jitter == 7 { period / 3 } else { 0 };
            Task::new(cost, period, period).unwrap().with_jitter(jitter)
        };
        let mut tasks: Vec<Task> = numbers.iter().map(task).collect();
        tasks.sort_by_key(Task::period);
        let set = TaskSet::in_order(tasks);
        let order = set.by_priority();
        let mut effort = StepLimit::with_steps(300_000);
        let fast = sweep::analyse(&set, order, &mut effort);
        let slow = level::analyse(&set, order, Sections::Preemptive, TimeModel::Discrete, &mut StepLimit::with_steps(3_000_000));
        for position in 0..set.len() {
            // Either may give up; times that do not fit are met in another order.
            let is_known = |result: &TaskResult| !matches!(result.outcome, ResponseBound::Unknown(_));
            if !is_known(&fast.tasks[position]) || !is_known(&slow.tasks[position]) {
                continue;
            }
            prop_assert_eq!(&fast.tasks[position].outcome, &slow.tasks[position].outcome);
            prop_assert_eq!(fast.tasks[position].verdict, slow.tasks[position].verdict);
            prop_assert_eq!(fast.points(position), slow.points(position));
        }
    }

    /// k times all times gives k times the bounds, up to 2^53 and beyond (a peer's floats round).
    #[test]
    fn bounds_scale(tasks in small_tasks(), k in 1..1u64 << 50) {
        let one = analyse(&TaskSet::in_order(tasks.clone()), Sections::Preemptive, TimeModel::Discrete);
        let many = tasks.iter().map(|t| scaled(t, k)).collect();
        let many = analyse(&TaskSet::in_order(many), Sections::Preemptive, TimeModel::Discrete);
        let expected: Vec<_> = one.from_arrival().iter().map(|r| r.map(|r| r * k)).collect();
        prop_assert_eq!(many.from_arrival(), expected);
    }

    /// The order in which tasks are given does not matter, only their priorities do.
    #[test]
    fn permutation_changes_nothing(tasks in small_tasks(), turn in 0..5usize, kind in 0..4usize) {
        let set = TaskSet::in_order(tasks);
        let before = discrete(&set, Sections::ALL[kind]);
        let mut turned = set.tasks().to_vec();
        turned.rotate_left(turn % set.len());
        let after = discrete(&TaskSet::new(turned), Sections::ALL[kind]);
        let mut expected = before.from_arrival();
        expected.rotate_left(turn % set.len());
        prop_assert_eq!(after.from_arrival(), expected);
    }

    /// A twin of equal priority never shortens a response, and has the same bound.
    #[test]
    fn identical_twins_count_twice(tasks in small_tasks(), which in 0..5usize, kind in 0..4usize) {
        let mut twins = TaskSet::in_order(tasks).tasks().to_vec();
        let which = which % twins.len();
        let before = discrete(&TaskSet::new(twins.clone()), Sections::ALL[kind]);
        twins.push(twins[which].clone());
        let after = discrete(&TaskSet::new(twins), Sections::ALL[kind]);
        let (one, two) = (after.tasks[which].outcome, after.tasks[after.tasks.len() - 1].outcome);
        prop_assert_eq!(one, two);
        if let (Some(before), Some(after)) = (before.tasks[which].outcome.response(), one.response()) {
            prop_assert!(after.from_arrival >= before.from_arrival);
        }
    }

    /// More cost, jitter or blocking never shortens a bound.
    #[test]
    fn bounds_are_monotone(
        tasks in small_tasks(), which in 0..5usize, by in 1..5u64, what in 0..3, kind in 0..4usize
    ) {
        let set = TaskSet::in_order(tasks);
        let before = discrete(&set, Sections::ALL[kind]);
        let mut grown = set.tasks().to_vec();
        let task = &mut grown[which % set.len()];
        match what {
            0 => task.cost += by,
            1 => task.jitter += by,
            _ => task.blocking += by,
        }
        let after = discrete(&TaskSet::new(grown), Sections::ALL[kind]);
        for (old, new) in before.from_arrival().iter().zip(after.from_arrival()) {
            // None, which is no bound, is the largest.
            prop_assert!(new.unwrap_or(u64::MAX) >= old.unwrap_or(u64::MAX));
        }
    }

    /// For all numbers the analysis soon gives an answer that the checker accepts.
    #[test]
    fn no_numbers_make_it_fail(
        numbers in proptest::collection::vec(
            (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u8>(), any::<u8>()), 1..5),
        equal in any::<bool>(), kind in 0..4usize,
    ) {
        let task = |(c, t, d, j, shift, small): &(u64, u64, u64, u64, u8, u8)| {
            let cost = (c >> (shift % 64)).max(1);
            let period = (t >> (small % 40)).max(1);
            Task::new(cost, period, (*d).max(1)).unwrap().with_jitter(j >> (small % 64))
        };
        let tasks: Vec<Task> = numbers.iter().map(task).collect();
        let set = if equal { TaskSet::new(tasks) } else { TaskSet::in_order(tasks) };
        for time in [TimeModel::Discrete, TimeModel::Continuous] {
            let found = analyse_within(&set, Sections::ALL[kind], time, StepLimit::with_steps(250_000));
            prop_assert_eq!(found.tasks.len(), set.len());
        }
    }
}

fn scaled(task: &Task, k: u64) -> Task {
    Task::new(task.cost * k, task.period * k, task.deadline * k)
        .unwrap()
        .with_jitter(task.jitter * k)
        .with_blocking(task.blocking * k)
}

fn set(tasks: &[(u64, u64, u64)]) -> TaskSet {
    TaskSet::in_order(tasks.iter().map(|(c, t, d)| Task::new(*c, *t, *d).unwrap()).collect())
}

fn preemptive(set: &TaskSet) -> Analysis {
    analyse(set, Sections::Preemptive, TimeModel::Continuous)
}

/// Hourglass paper, section 5.5, and the jobs of the busy window of its third analysis.
#[test]
fn the_paper_of_hourglass() {
    assert_eq!(preemptive(&set(&[(3, 8, 8), (17, 33, 33)])).from_arrival(), [Some(3), Some(29)]);
    let late = Task::new(19, 33, 33).unwrap().with_jitter(8);
    let found = preemptive(&TaskSet::in_order(vec![Task::new(3, 8, 8).unwrap(), late]));
    let each = found.points(1).iter().map(|p| response(p, 33, 8).unwrap());
    let each: Vec<(u64, u64)> = each.map(|r| (r.from_arrival, r.from_release)).collect();
    // The fourth is released at 91, two before the third is done.
    assert_eq!(each, [(39, 31), (37, 37), (35, 35), (33, 33)]);
    // A peer compares 31, without the jitter, with 33 and calls it schedulable.
    let witness = Witness::Response { task: 1, job: 1, response: 39, deadline: 33 };
    assert_eq!(found.verdict(), Verdict::Infeasible(witness));
}

/// A peer refuses a processor that is used completely: 5/20, 10/40 and 40/80 are feasible.
#[test]
fn full_utilisation_is_no_overload() {
    let found = preemptive(&set(&[(5, 20, 20), (10, 40, 40), (40, 80, 80)]));
    assert_eq!(found.from_arrival(), [Some(5), Some(15), Some(80)]);
    assert_eq!(found.verdict(), Verdict::Feasible);
}

/// Used completely, with jitter: the window never ends, but repeats.
#[test]
fn full_utilisation_with_jitter_is_bounded_by_repetition() {
    let early = Task::new(1, 2, 2).unwrap().with_jitter(1);
    let found = preemptive(&TaskSet::in_order(vec![early, Task::new(2, 4, 9).unwrap()]));
    assert_eq!(found.tasks[1].window, Window::Repeats(4));
    assert_eq!(found.from_arrival(), [Some(2), Some(5)]);
}

/// Lehoczky, RTSS 1990, example 3: of the jobs of the second task the fifth is the worst.
#[test]
fn the_worst_job_need_not_be_the_first() {
    let found = preemptive(&set(&[(26, 70, 70), (62, 100, 118)]));
    let jobs: Vec<u64> = found.points(1).iter().map(|p| p.finish - p.offset).collect();
    assert_eq!(jobs, [114, 102, 116, 104, 118, 106, 94]);
    let missed = preemptive(&set(&[(26, 70, 70), (62, 100, 116)]));
    assert!(matches!(missed.verdict(), Verdict::Infeasible(Witness::Response { job: 5, .. })));
}

/// 2^53 + 1 is no f64; the interference jumps exactly there.
#[test]
fn times_beyond_floats_are_exact() {
    let edge = (1u64 << 53) + 1;
    let found = preemptive(&set(&[(1, edge, edge), (edge, 1 << 55, 1 << 55)]));
    assert_eq!(found.from_arrival(), [Some(1), Some(edge + 2)]);
}

#[test]
fn blocking_over_the_deadline_is_unknown_not_infeasible() {
    let task = Task::new(1, 10, 4).unwrap().with_blocking(5);
    let found = preemptive(&TaskSet::in_order(vec![task]));
    assert_eq!(found.verdict(), Verdict::Unknown(Refusal::NotExact));
}

#[test]
fn effort_ends_a_search_and_says_so() {
    let tasks = set(&[(9, 10, 10), (7, 1_009, 1_009), (1_000, 12_007, 12_007)]);
    let found = analyse_within(
        &tasks,
        Sections::Preemptive,
        TimeModel::Discrete,
        StepLimit::with_steps(75),
    );
    assert_eq!(found.from_arrival()[0], Some(9));
    assert_eq!(found.tasks[2].outcome, ResponseBound::Unknown(Refusal::TooLong));
}
