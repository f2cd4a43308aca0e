//! A deadline that is missed where processors share tasks, found by simulation.
//!
//! Owns: the case that is simulated: all tasks begin together, and all jobs take their cost. It is one that
//! sporadic tasks allow: a miss in it is a witness, no miss in it proves nothing about other arrivals.
//! A simulation of these tasks in this order (`hourglass simulate`) shows the same miss. Must
//! not: know jitter, blocking or suspension.

use crate::exact_fraction::hyperperiod;
use crate::task::{Task, TaskSet};
use crate::verdict::Witness;
use hourglass_sim::{
    self as sim, ArrivalPattern, Class, CostModel, FirstMiss, SimSettings, System, Thread,
};

use super::schedule::GlobalPolicy;

/// Jobs that are simulated at most, about.
const MOST_JOBS: u64 = 100_000;

/// Events for each of these jobs: its release, its end, and preemptions.
const EVENTS_A_JOB: u64 = 8;

/// The first deadline missed when all tasks begin together, if there is one within two hyperperiods and
/// about 100,000 jobs.
#[must_use]
pub fn first(set: &TaskSet, cpus: u64, policy: GlobalPolicy) -> Option<Witness> {
    let mut system = System::new(u32::try_from(cpus.min(set.len() as u64)).ok()?);
    system.threads = set.tasks().iter().map(|task| thread(task, policy)).collect();
    let repeats = hyperperiod(set.tasks().iter()).and_then(|period| period.checked_mul(2));
    let horizon = repeats.unwrap_or(u64::MAX).min(time_of(set, MOST_JOBS));
    let settings = SimSettings::until(horizon).with_most_events(MOST_JOBS * EVENTS_A_JOB);
    let outcome = sim::run(&system, settings).ok()?;
    let misses = outcome.threads.iter().enumerate();
    let misses = misses.filter_map(|(task, thread)| Some((task, thread.first_miss?)));
    let (task, miss) = misses.min_by_key(|(task, miss)| (miss.deadline, *task))?;
    Some(witness(task, &miss))
}

fn thread(task: &Task, policy: GlobalPolicy) -> Thread {
    let class = match policy {
        GlobalPolicy::EarliestDeadline => Class::Edf,
        GlobalPolicy::FixedPriority => Class::Fifo(task.priority),
    };
    let arrivals = ArrivalPattern::Periodic { offset: 0, period: task.period };
    Thread::new(class, arrivals, CostModel::Worst(task.cost), task.deadline)
}

/// The time in which about `jobs` jobs arrive.
fn time_of(set: &TaskSet, jobs: u64) -> u64 {
    // Jobs in 2^64 units of time.
    let rate: u128 = set.tasks().iter().map(|task| (1u128 << 64) / u128::from(task.period)).sum();
    u64::try_from((u128::from(jobs) << 64) / rate.max(1)).unwrap_or(u64::MAX)
}

fn witness(task: usize, miss: &FirstMiss) -> Witness {
    let deadline = miss.deadline - miss.arrival;
    // One that is not done is later than its deadline.
    let response = miss.done.map_or(deadline.saturating_add(1), |done| done - miss.arrival);
    Witness::Response { task, job: miss.job + 1, response, deadline }
}
