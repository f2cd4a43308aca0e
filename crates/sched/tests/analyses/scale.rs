//! The unit of time decides nothing: the same set in microseconds and in nanoseconds gets the same
//! answers from the tests for several processors, and none is given up.

use hourglass_sched::effort::StepLimit;
use hourglass_sched::global::edf_response;
use hourglass_sched::global::fixed_priority::{self, AS_PUBLISHED, Bound};
use hourglass_sched::{Analysis, Refusal, Task, TaskSet, Verdict, assign};
use hourglass_tasks::generate::{Deadlines, DrawnTask, Millionths, Recipe, UtilisationMethod};

/// Less work than a sweep allows.
const EFFORT: StepLimit = StepLimit::with_steps(250_000);

const BOUNDS: [Bound; 4] = [
    AS_PUBLISHED,
    Bound::BertognaCirinei { slack: true, clamp: false },
    Bound::BertognaCirinei { slack: false, clamp: true },
    Bound::LimitedCarryIn,
];

/// The set with all times multiplied.
fn times(set: &TaskSet, factor: u64) -> TaskSet {
    let task = |t: &Task| {
        let made = Task::new(t.cost() * factor, t.period() * factor, t.deadline() * factor);
        made.unwrap().with_priority(t.priority())
    };
    TaskSet::new(set.tasks().iter().map(task).collect())
}

/// Sets with periods of 10,000 to 1,000,000 units, in which deadlines matter, seed 2007.
fn sets(cpus: u32, tasks: usize, count: u64) -> Vec<TaskSet> {
    let mut found = Vec::new();
    for percent in [30u64, 40, 50, 60, 70, 80, 90] {
        let recipe = Recipe {
            seed: 2007 + percent,
            tasks,
            processors: cpus,
            method: UtilisationMethod::RandFixedSum,
            periods: "log-uniform:10us,1ms".parse().unwrap(),
            granularity: "1ns".parse().unwrap(),
            cost_granularity: "1ns".parse().unwrap(),
            deadlines: Deadlines::Slack(Millionths::new(500_000), Millionths::new(1_000_000)),
            ..Recipe::default()
        };
        let source = recipe.at(Millionths::new(u64::from(cpus) * percent * 10_000)).unwrap();
        for number in 0..count {
            let drawn = source.draw(number).unwrap();
            let task =
                |t: &DrawnTask| Task::new(t.cost.min(t.deadline), t.period, t.deadline).unwrap();
            let tasks: Vec<Task> = drawn.iter().map(task).collect();
            found.push(assign::deadline_monotonic(&tasks));
        }
    }
    found
}

fn answers(set: &TaskSet, cpus: u64) -> Vec<Analysis> {
    let fixed = |bound| fixed_priority::analyse_by(set, cpus, bound, &mut { EFFORT });
    let mut found: Vec<Analysis> = BOUNDS.into_iter().map(fixed).collect();
    found.push(edf_response::analyse_by(set, cpus, &mut { EFFORT }));
    found
}

/// Windows that rivals fill grew by a nanosecond a step until the effort was spent, so that the tests
/// accepted in nanoseconds hardly anything of what they accept in microseconds. Bounds differ by the
/// rounding of the tests themselves, which is a unit a task.
#[test]
fn a_thousand_times_all_times_change_no_verdict() {
    let (mut accepted, mut compared) = (0, 0);
    for (cpus, tasks) in [(2, 5), (4, 10), (8, 16)] {
        for set in sets(cpus, tasks, 120) {
            let (coarse, fine) =
                (answers(&set, cpus.into()), answers(&times(&set, 1_000), cpus.into()));
            for (at, (coarse, fine)) in coarse.iter().zip(&fine).enumerate() {
                let (coarse, fine) = (coarse.verdict(), fine.verdict());
                assert_ne!(fine, Verdict::Unknown(Refusal::TooLong), "test {at} of {set:?}");
                assert_eq!(coarse, fine, "test {at} on {cpus} processors of {set:?}");
                accepted += u32::from(coarse == Verdict::Feasible);
                compared += 1;
            }
        }
    }
    println!("{accepted} of {compared} accepted");
    assert!(accepted * 5 > compared && accepted * 5 < compared * 4, "{accepted} of {compared}");
}

/// On one processor nothing is rounded: bounds are multiplied as well.
#[test]
fn on_one_processor_bounds_are_multiplied() {
    for set in sets(1, 5, 150) {
        for (coarse, fine) in answers(&set, 1).iter().zip(answers(&times(&set, 1_000), 1)) {
            let multiplied = coarse.from_arrival().iter().map(|b| b.map(|b| b * 1_000)).collect();
            let multiplied: Vec<Option<u64>> = multiplied;
            assert_eq!(multiplied, fine.from_arrival(), "{set:?}");
        }
    }
}
