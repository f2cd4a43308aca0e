//! Random small sets: nothing that a test accepts misses, and no simulated response is over its
//! bound; and the examples of the papers.

use proptest::prelude::*;

use super::edf::{TESTS, Test, analyse};
use super::fixed_priority::{AS_PUBLISHED, Bound, OpaTest};
use super::schedule::{GlobalPolicy, Schedule, ScheduleEnd, ScheduleLimit, schedule};
use super::{assign, edf_response, fixed_priority, tardiness};
use crate::effort::StepLimit;
use crate::fixed_priority::{Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, Verdict, Witness};

const BOUNDS: [Bound; 5] = [
    AS_PUBLISHED,
    Bound::BertognaCirinei { slack: true, clamp: false },
    Bound::BertognaCirinei { slack: false, clamp: true },
    Bound::BertognaCirinei { slack: false, clamp: false },
    Bound::LimitedCarryIn,
];

fn task(cost: u64, period: u64, deadline: u64) -> Task {
    Task::new(cost, period, deadline).unwrap()
}

fn set_of(tasks: &[(u64, u64, u64)]) -> TaskSet {
    TaskSet::in_order(tasks.iter().map(|(c, t, d)| task(*c, *t, *d)).collect())
}

fn until_it_repeats(set: &TaskSet, offsets: &[u64], cpus: u64, policy: GlobalPolicy) -> Schedule {
    let until = ScheduleLimit { horizon: None, miss: false, keep: 0 };
    schedule(set, offsets, cpus, policy, until, StepLimit::with_steps(500_000))
}

/// SchedCAT's example: periods 4, 5, 9, 18 and costs 1, 1, 3, 9.
fn example() -> TaskSet {
    set_of(&[(1, 4, 4), (1, 5, 5), (3, 9, 9), (9, 18, 18)])
}

/// Bertogna and Cirinei's clamp makes the last bound 13 where SchedCAT, without it, has 14.
#[test]
fn the_clamp_of_the_paper_lowers_the_bound() {
    let bound = |slack, clamp| {
        let bound = Bound::BertognaCirinei { slack, clamp };
        fixed_priority::analyse(&example(), 3, bound).from_arrival()[3]
    };
    assert_eq!(bound(false, false), Some(14));
    assert_eq!(bound(false, true), Some(13));
}

/// SchedCAT, tests/fp.py, test_infeasible_blocking: blocking of 2 and 3.
#[test]
fn blocking_is_added_to_the_cost() {
    let mut tasks = example().tasks().to_vec();
    tasks[0] = tasks[0].with_blocking(2);
    tasks[3] = tasks[3].with_blocking(3);
    let tool = Bound::BertognaCirinei { slack: false, clamp: false };
    let found = fixed_priority::analyse(&TaskSet::new(tasks), 3, tool).from_arrival();
    assert_eq!(found, [Some(3), Some(1), Some(3), Some(18)]);
}

/// Dhall and Liu, Operations Research 1978: hardly more used than one processor has, and a miss on
/// two, under EDF and under fixed priorities by period.
#[test]
fn light_tasks_make_a_heavy_one_miss() {
    let set = set_of(&[(2, 10, 10), (2, 10, 10), (10, 11, 11)]);
    let miss = Witness::Response { task: 2, job: 1, response: 12, deadline: 11 };
    assert_eq!(analyse(&set, 2).verdict, Verdict::Infeasible(miss));
    // By period, the light tasks' second jobs at 10 come first, too.
    let later = Witness::Response { task: 2, job: 1, response: 14, deadline: 11 };
    assert_eq!(fixed_priority::verdict(&set, 2, AS_PUBLISHED), Verdict::Infeasible(later));
    let found = assign::audsley(set.tasks(), 2, OpaTest::Deadline).unwrap();
    assert_eq!(found.by_priority()[0], 2, "the heavy task goes first");
}

/// The bug: a miss was claimed that rests on an order among equal deadlines which no simulation has.
#[test]
fn a_miss_is_one_that_a_simulation_shows() {
    let sets = [
        (set_of(&[(1, 6, 6), (4, 6, 6), (1, 2, 2), (3, 6, 6)]), 2),
        (set_of(&[(1, 6, 6), (3, 12, 12), (3, 3, 3), (3, 6, 6)]), 2),
        (set_of(&[(1, 16, 16), (1, 8, 8), (7, 16, 16), (7, 16, 16), (6, 6, 6), (2, 3, 3)]), 3),
    ];
    for (set, cpus) in sets {
        let until = ScheduleLimit { horizon: None, miss: true, keep: 0 };
        let policy = GlobalPolicy::EarliestDeadline;
        let by_heap = schedule(&set, &[], cpus, policy, until, StepLimit::with_steps(500_000));
        assert!(by_heap.first_miss.is_some(), "another order of equals misses: {set:?}");
        assert_eq!(analyse(&set, cpus).verdict, Verdict::Unknown(Refusal::NotExact));
    }
}

/// One task uses at most one processor, and deadlines that are not periods have no bound here.
#[test]
fn what_cannot_be_said_is_refused() {
    let too_much = set_of(&[(5, 4, 9)]);
    assert_eq!(analyse(&too_much, 8).verdict, Verdict::NoBound);
    assert!(!tardiness::is_bounded(&too_much, 8));
    let late = set_of(&[(5, 8, 4), (1, 9, 9)]);
    assert!(matches!(analyse(&late, 8).verdict, Verdict::Infeasible(_)));
    let long = set_of(&[(1, 4, 6), (1, 4, 4)]);
    for test in TESTS {
        assert_eq!(test.verdict(&long, 2), Verdict::Unknown(Refusal::LongDeadlines), "{test:?}");
    }
    let jittery = TaskSet::new(vec![task(1, 4, 4).with_jitter(1); 3]);
    assert_eq!(analyse(&jittery, 2).verdict, Verdict::Unknown(Refusal::OutsideModel));
    assert_eq!(tardiness::bounds(&long, 2), Err(Refusal::OutsideModel));
    assert_eq!(analyse(&set_of(&[(1, 2, 2)]), 0).verdict, Verdict::NoBound);
    assert_eq!(analyse(&TaskSet::new(Vec::new()), 0).verdict, Verdict::Feasible);
}

/// Numbers near 2^64 neither wrap nor panic.
#[test]
fn large_numbers_are_no_trouble() {
    let large = u64::MAX - 1;
    let set = set_of(&[(large / 3, large, large), (large / 2, large, large), (7, 9, 9)]);
    for test in TESTS {
        let _ = test.verdict(&set, 2);
    }
    for bound in BOUNDS {
        let _ = fixed_priority::analyse(&set, 2, bound);
    }
    let _ = tardiness::bounds(&set, 2);
    let _ = analyse(&set, 2);
    let _ = assign::dkc(set.tasks(), u64::from(u32::MAX));
}

fn small_sets() -> impl Strategy<Value = (TaskSet, u64)> {
    let period = proptest::sample::select(vec![2u64, 3, 4, 5, 6, 8, 10, 12, 15, 20]);
    let one = (period, 1..=10u64, 5..=10u64).prop_map(|(period, tenths, due)| {
        let cost = (period * tenths / 10).max(1);
        task(cost, period, (period * due / 10).max(cost))
    });
    (proptest::collection::vec(one, 1..6), 1..4u64)
        .prop_map(|(tasks, cpus)| (TaskSet::in_order(tasks), cpus))
}

fn sets_with_offsets() -> impl Strategy<Value = (TaskSet, u64, Vec<u64>)> {
    let offsets = proptest::collection::vec(0..12u64, 6);
    (small_sets(), offsets).prop_map(|((set, cpus), offsets)| (set, cpus, offsets))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// What a test accepts does not miss, wherever the tasks begin; bounds are not exceeded.
    #[test]
    fn accepted_sets_do_not_miss((set, cpus, offsets) in sets_with_offsets()) {
        for offsets in [&[][..], &offsets] {
            let found = until_it_repeats(&set, offsets, cpus, GlobalPolicy::EarliestDeadline);
            for test in TESTS {
                if test.verdict(&set, cpus) == Verdict::Feasible {
                    prop_assert_eq!(found.first_miss, None, "{:?}", test);
                }
            }
            let bounds = edf_response::analyse(&set, cpus).from_arrival();
            for (longest, bound) in found.longest.iter().zip(bounds) {
                prop_assert!(bound.is_none_or(|bound| *longest <= bound));
            }
            if analyse(&set, cpus).verdict == Verdict::Feasible {
                prop_assert_eq!(found.first_miss, None);
            }
        }
    }

    /// Bounds hold under fixed priorities.
    #[test]
    fn bounds_hold_under_fixed_priorities((set, cpus, offsets) in sets_with_offsets()) {
        for offsets in [&[][..], &offsets] {
            let found = until_it_repeats(&set, offsets, cpus, GlobalPolicy::FixedPriority);
            for bound in BOUNDS {
                let analysis = fixed_priority::analyse(&set, cpus, bound);
                for (longest, bound) in found.longest.iter().zip(analysis.from_arrival()) {
                    prop_assert!(bound.is_none_or(|bound| *longest <= bound));
                }
                if analysis.verdict() == Verdict::Feasible {
                    prop_assert_eq!(found.first_miss, None);
                }
            }
        }
    }

    /// Among equal priorities the bound holds in any order of service.
    #[test]
    fn equals_delay_each_other((set, cpus, offsets) in sets_with_offsets(), merge in 0..4u32) {
        let tasks = set.tasks().iter().map(|t| t.with_priority(t.priority() / (merge + 1)));
        let set = TaskSet::new(tasks.collect());
        let found = until_it_repeats(&set, &offsets, cpus, GlobalPolicy::FixedPriority);
        for bound in BOUNDS {
            let bounds = fixed_priority::analyse(&set, cpus, bound).from_arrival();
            for (longest, bound) in found.longest.iter().zip(bounds) {
                prop_assert!(bound.is_none_or(|bound| *longest <= bound));
            }
        }
    }

    /// Better tests accept what weaker ones accept; better bounds are not larger.
    #[test]
    fn tests_are_ordered((set, cpus) in small_sets()) {
        let accepts = |test: Test| test.verdict(&set, cpus) == Verdict::Feasible;
        if accepts(Test::Bcl) {
            prop_assert!(accepts(Test::BclIterative));
        }
        if accepts(Test::BclIterative) {
            prop_assert!(accepts(Test::ResponseTimes));
        }
        let bounds = |bound| fixed_priority::analyse(&set, cpus, bound).from_arrival();
        for slack in [true, false] {
            let with = bounds(Bound::BertognaCirinei { slack, clamp: true });
            let without = bounds(Bound::BertognaCirinei { slack, clamp: false });
            for (with, without) in with.iter().zip(without) {
                prop_assert!(without.is_none_or(|b| with.is_some_and(|a| a <= b)));
            }
        }
        let limited = bounds(Bound::LimitedCarryIn);
        for (limited, all) in limited.iter().zip(bounds(AS_PUBLISHED)) {
            prop_assert!(all.is_none_or(|all| limited.is_some_and(|limited| limited <= all)));
        }
    }

    /// On one processor, no bound is below the exact one.
    #[test]
    fn one_processor_is_a_case_of_many((set, _) in small_sets()) {
        let (sections, time) = (Sections::Preemptive, TimeModel::Discrete);
        let exact = crate::fixed_priority::analyse(&set, sections, time).from_arrival();
        for bound in BOUNDS {
            let found = fixed_priority::analyse(&set, 1, bound).from_arrival();
            for (exact, found) in exact.iter().zip(found) {
                prop_assert!(found.is_none_or(|found| exact.is_some_and(|exact| exact <= found)));
            }
        }
        let exact = crate::edf::response_times(&set, sections, time);
        let found = edf_response::analyse(&set, 1);
        for (exact, found) in exact.from_arrival().iter().zip(found.from_arrival()) {
            prop_assert!(found.is_none_or(|found| exact.is_some_and(|exact| exact <= found)));
        }
        let decided = analyse(&set, 1).verdict == Verdict::Feasible;
        prop_assert_eq!(decided, exact.verdict() == Verdict::Feasible);
    }

    /// Devi and Anderson: nothing is later than its bound, however full the processors are.
    #[test]
    fn tardiness_stays_bounded((set, cpus, offsets) in sets_with_offsets()) {
        let set = TaskSet::new(set.tasks().iter().map(|t| {
            task(t.cost(), t.period(), t.period())
        }).collect());
        let Ok(Some(bounds)) = tardiness::bounds(&set, cpus) else { return Ok(()) };
        let found = until_it_repeats(&set, &offsets, cpus, GlobalPolicy::EarliestDeadline);
        for (at, bound) in bounds.iter().enumerate() {
            prop_assert!(found.longest[at] <= set.tasks()[at].period() + bound);
        }
    }

    /// Orders found by Audsley's search are accepted by the analysis with the same carry-in, and
    /// miss in no schedule.
    #[test]
    fn found_orders_hold((set, cpus, offsets) in sets_with_offsets()) {
        for test in [OpaTest::Deadline, OpaTest::LimitedCarryIn] {
            let Some(found) = assign::audsley(set.tasks(), cpus, test) else { continue };
            let run = until_it_repeats(&found, &offsets, cpus, GlobalPolicy::FixedPriority);
            prop_assert_eq!(run.first_miss, None);
            let bound = fixed_priority::analyse(&found, cpus, Bound::LimitedCarryIn);
            prop_assert_eq!(bound.verdict(), Verdict::Feasible);
        }
    }

    /// The order of tasks in a set does not matter to a test.
    #[test]
    fn the_order_does_not_matter((set, cpus) in small_sets(), seed in 0..1000usize) {
        let mut tasks = set.tasks().to_vec();
        let turn = seed % tasks.len();
        tasks.rotate_left(turn);
        let turned = TaskSet::new(tasks);
        for test in TESTS {
            prop_assert_eq!(test.verdict(&set, cpus), test.verdict(&turned, cpus));
        }
    }
}

/// Random schedules end for a reason that is stated.
#[test]
fn a_schedule_repeats_or_is_given_up() {
    let set = set_of(&[(2, 3, 3), (2, 3, 3), (2, 3, 3)]);
    let found = until_it_repeats(&set, &[], 3, GlobalPolicy::EarliestDeadline);
    assert_eq!((found.end, found.first_miss), ((3, ScheduleEnd::Repeats), None));
    let overloaded = until_it_repeats(&set, &[], 1, GlobalPolicy::EarliestDeadline);
    assert_eq!(overloaded.end.1, ScheduleEnd::GivenUp);
    assert_eq!(overloaded.first_miss.map(|miss| miss.missed_at), Some(3));
}
