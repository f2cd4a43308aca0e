//! Properties of bounds and demand with bursts, against the simulated twin among others.

use proptest::prelude::*;

use super::*;
use crate::reference::worst_of;
use crate::verdict::ResponseBound;

type Numbers = (u64, u64, u64, u64, u64, Vec<u64>);

fn numbers() -> impl Strategy<Value = Vec<Numbers>> {
    let gaps = proptest::collection::vec(0..12u64, 0..4);
    let one = (3..30u64, 1..6u64, 1..40u64, 0..9u64, 1..4u64, gaps);
    proptest::collection::vec(one, 1..4)
}

fn set_of(numbers: &[Numbers], bursts: bool) -> TaskSet {
    let task = |(period, tenths, deadline, jitter, np, _): &Numbers| {
        let cost = (period * tenths / 20).max(1);
        let made = Task::new(cost, *period, *deadline).unwrap();
        let np = (*np).min(cost);
        made.with_jitter(jitter.saturating_sub(4)).with_segments(np, 1).unwrap()
    };
    let later = |(.., gaps): &Numbers| -> Vec<u64> {
        let distances = gaps.iter().scan(0, |sum, gap| {
            *sum += gap;
            Some(*sum)
        });
        if bursts { distances.collect() } else { Vec::new() }
    };
    let tasks = numbers.iter().map(|of| task(of).with_bursts(&later(of)).unwrap());
    TaskSet::in_order(tasks.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Without bursts the equations are those of sporadic tasks with jitter, point by point.
    #[test]
    fn without_bursts_nothing_changes(numbers in numbers(), kind in 0..4usize, equal in any::<bool>()) {
        let mut set = set_of(&numbers, false);
        if equal {
            set = TaskSet::new(set.tasks().iter().map(|t| t.with_priority(7)).collect());
        }
        let bursty = BurstyTaskSet::of(&set);
        let (sections, time) = (Sections::ALL[kind], TimeModel::Discrete);
        let curves = with_curves(&bursty, sections, time, &mut StepLimit::default());
        let plain = fixed_priority::analyse(&set, sections, time);
        for (at, (a, b)) in curves.tasks.iter().zip(&plain.tasks).enumerate() {
            if a.outcome == ResponseBound::Unknown(Refusal::Endless) {
                continue;
            }
            prop_assert_eq!(a.outcome, b.outcome, "task {}", at);
            prop_assert_eq!(a.verdict, b.verdict);
        }
        let curves = demand_with_curves(&bursty, sections, time, &mut StepLimit::default()).verdict;
        let plain = crate::edf::qpa::feasible(&set, sections, time).verdict;
        if curves != Verdict::Unknown(Refusal::Endless) {
            prop_assert_eq!(curves == Verdict::Feasible, plain == Verdict::Feasible);
        }
    }

    /// The simulated worst case is the bound.
    #[test]
    fn bounds_are_reached(numbers in numbers(), kind in 0..4usize) {
        let set = set_of(&numbers, true);
        let bursty = BurstyTaskSet::of(&set);
        let analysis = with_curves(&bursty, Sections::ALL[kind], TimeModel::Discrete, &mut StepLimit::default());
        for (position, result) in analysis.tasks.iter().enumerate() {
            let Some(bound) = result.outcome.response() else { continue };
            let worst = worst_of(&set, &bursty.curves, Sections::ALL[kind], position, &analysis);
            if let Some(worst) = worst {
                prop_assert_eq!(worst, bound, "task {} of {:?}", position, &set);
            }
        }
    }

    /// EDF is optimal: it accepts what fixed priorities schedule.
    #[test]
    fn edf_accepts_what_fixed_priorities_accept(numbers in numbers()) {
        let set = set_of(&numbers, true);
        let (sections, time) = (Sections::Preemptive, TimeModel::Discrete);
        if fixed_priority(&set, sections, time).verdict() == Verdict::Feasible {
            prop_assert_eq!(edf(&set, sections, time).verdict, Verdict::Feasible);
        }
    }

    /// A burst is never better than none.
    #[test]
    fn bursts_do_not_help(numbers in numbers(), kind in 0..4usize) {
        let tight = |(period, a, b, c, d, gaps): &Numbers| {
            let gaps = gaps.iter().map(|gap| (*gap).min(*period)).collect();
            (*period, *a, *b, *c, *d, gaps)
        };
        let numbers: Vec<Numbers> = numbers.iter().map(tight).collect();
        let with = fixed_priority(&set_of(&numbers, true), Sections::ALL[kind], TimeModel::Discrete);
        let without = fixed_priority(&set_of(&numbers, false), Sections::ALL[kind], TimeModel::Discrete);
        for (with, without) in with.from_arrival().iter().zip(without.from_arrival()) {
            prop_assert!(with.is_none_or(|with| without.is_some_and(|w| w <= with)));
        }
    }
}

/// Three jobs at once every 20: a burst of 3 x 2 delays the second task by 6.
#[test]
fn a_burst_delays_by_all_of_it() {
    let tasks = [Task::new(2, 20, 20).unwrap(), Task::new(4, 40, 40).unwrap()];
    let tasks = [tasks[0].with_bursts(&[0, 0]).unwrap(), tasks[1].clone()];
    let set = TaskSet::in_order(tasks.to_vec());
    let found = fixed_priority(&set, Sections::Preemptive, TimeModel::Discrete);
    assert_eq!(found.from_arrival(), [Some(6), Some(10)]);
    assert_eq!(edf(&set, Sections::Preemptive, TimeModel::Discrete).verdict, Verdict::Feasible);
}
