//! Random sets of tasks, and what the simulator's own tests use.

#[path = "../../../../sim/tests/sim/support.rs"]
mod of_sim;

use hourglass_dice::Dice;
use hourglass_sched::{Task, TaskSet};
use hourglass_sim::{Event, Thread};

pub(crate) use of_sim::{Record, system};

/// A set of up to `most` tasks whose utilisation is usually below one. Small periods, so that
/// everything comes together soon.
pub(crate) fn set(dice: &mut Dice, most: u64, jitter: bool) -> TaskSet {
    let count = dice.between(1, most);
    let mut tasks = Vec::new();
    for priority in 1..=count {
        let period = dice.between(4, 40);
        let cost = dice.between(1, (period * 2 / (count + 1)).max(1));
        let deadline = dice.between(cost, period * 3 / 2);
        let task = Task::new(cost, period, deadline).unwrap();
        let jitter =
            if jitter && dice.between(0, 1) == 1 { dice.between(0, period * 2) } else { 0 };
        // Some equals.
        let priority = if dice.between(0, 4) == 0 { 1 } else { priority };
        tasks.push(task.with_jitter(jitter).with_priority(priority as u32));
    }
    TaskSet::new(tasks)
}

/// A set's tasks as threads under fixed priorities.
pub(crate) fn threads(set: &TaskSet) -> Vec<Thread> {
    let thread = |task: &Task| {
        Thread::periodic(task.cost(), task.period())
            .with_deadline(task.deadline())
            .with_priority(task.priority())
    };
    set.tasks().iter().map(thread).collect()
}

/// A server's deadlines, and when they were given.
pub(crate) fn deadlines(record: &Record, of: usize) -> Vec<(u64, u64)> {
    let given = |(at, event): &(u64, Event)| match event {
        Event::Replenished { server, deadline } if *server == of => Some((*at, *deadline)),
        _ => None,
    };
    record.events.iter().filter_map(given).collect()
}
