//! Bounds that an independent tool found on random sets; only its numbers are here.

use hourglass_sched::edf;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::{Task, TaskSet};

/// See its first lines.
const PYRTA: &str = include_str!("../data/pyrta.txt");

fn task(text: &str) -> Task {
    let numbers: Vec<u64> = text.split(',').map(|number| number.parse().unwrap()).collect();
    let [cost, period, deadline, jitter, priority] = numbers[..] else { panic!("{text}") };
    let task = Task::new(cost, period, deadline).unwrap().with_jitter(jitter);
    task.with_priority(u32::try_from(priority).unwrap())
}

/// pyRTA 0.1.1 (Bozhko and Brandenburg, ECRTS 2020; its EDF analyses follow the same scheme), from
/// release, in discrete time. Its bounds are exact for sporadic tasks, as ours are.
#[test]
fn bounds_are_those_of_pyrta() {
    let mut compared = 0;
    for line in PYRTA.lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.split("; ").collect();
        let [kind, tasks, bounds] = parts[..] else { panic!("{line}") };
        let set = TaskSet::new(tasks.split(' ').map(task).collect());
        let wanted: Vec<Option<u64>> = bounds.split(' ').map(|bound| bound.parse().ok()).collect();
        let sections = match kind.ends_with("-np") {
            true => Sections::NonPreemptive,
            false => Sections::Preemptive,
        };
        let found = match kind.starts_with("fp") {
            true => fixed_priority::analyse(&set, sections, TimeModel::Discrete),
            false => edf::response_times(&set, sections, TimeModel::Discrete),
        };
        assert_eq!(found.from_release(), wanted, "{line}");
        compared += wanted.len();
    }
    assert!(compared > 400, "{compared}");
}
