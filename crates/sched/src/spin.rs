//! Locks between processors: tasks stay on theirs, and spin in a queue for a lock, not preempted
//! from the request to the end of the critical section (MSRP: Gai, Lipari and Di Natale, RTSS 2001).
//!
//! Each task has its critical sections and stays on its processor ([`Task::with_critical_sections`],
//! [`Task::with_cpu`]); its cost holds its sections, but no spinning.
//!
//! Owns: two accounts of the time that spinning takes. [`SpinBound::Inflation`] makes each request as
//! long as it can be and adds it to the cost, as the paper does. [`SpinBound::Counting`] lets each
//! request of another processor delay once only, and counts how many there can be in a response time;
//! this is what the linear program of Wieder and Brandenburg (RTSS 2013) finds for queues that are
//! first come, first served, as long as each request of a processor for a lock is as long as the
//! others.
//!
//! Priorities are fixed on each processor. Locks of one processor are taken to be held without
//! preemption, too. Must not: let critical sections nest.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::effort::StepLimit;
use crate::fixed_priority::{self, Sections, TimeModel};
use crate::global::without_bound;
use crate::task::{CriticalSection, Task, TaskFeature, TaskSet};
use crate::verdict::{Analysis, Refusal, ResponseBound, TaskResult, Verdict};

/// Looks of the search by counting: one at each task whose sections another may wait for.
const COUNTING_LOOKS: u64 = 2_500_000;

/// How the time spent spinning is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpinBound {
    /// Each request waits for the longest critical section of each other processor.
    Inflation,
    /// Each critical section of another processor delays one request at most.
    Counting,
}

/// Tasks that cannot be meant: critical sections longer than the cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "task {task} holds locks for {held}, but its cost is {cost}; the cost must hold all critical sections"
)]
pub struct SectionsOverCost {
    /// Position of the task.
    pub task: usize,
    /// Length of its critical sections in all.
    pub held: u64,
    /// The execution time, without spinning.
    pub cost: u64,
}

/// Bounds the response times of tasks that share spin locks.
///
/// # Errors
/// Critical sections that do not fit into a task's cost.
pub fn analyse(tasks: &[Task], account: SpinBound) -> Result<Analysis, SectionsOverCost> {
    for (position, of) in tasks.iter().enumerate() {
        let length =
            |sum: u64, r: &CriticalSection| sum.saturating_add(r.count.saturating_mul(r.length));
        let held = of.critical_sections().iter().fold(0, length);
        if held > of.cost {
            return Err(SectionsOverCost { task: position, held, cost: of.cost });
        }
    }
    let outside = |of: &Task| {
        let known = of.is_plain_but(TaskFeature::Sections);
        !known || of.jitter > 0 || of.blocking > 0 || of.suspension > 0
    };
    if tasks.iter().any(outside) {
        return Ok(unknown(tasks, Refusal::OutsideModel));
    }
    Ok(match account {
        SpinBound::Inflation => inflated(tasks),
        SpinBound::Counting => counted(tasks),
    })
}

fn unknown(tasks: &[Task], why: Refusal) -> Analysis {
    let tasks = tasks.iter().map(|_| without_bound(Verdict::Unknown(why), 0)).collect();
    Analysis { tasks, points: Vec::new() }
}

/// How long a request on `cpu` waits at most: the longest section of each other processor, first come,
/// first served (Gai, Lipari and Di Natale 2001). `None` if that has more than 64 bits.
#[must_use]
pub fn request_waits(tasks: &[Task], cpu: usize, lock: usize) -> Option<u64> {
    let others: BTreeSet<usize> = tasks.iter().map(Task::cpu).filter(|c| *c != cpu).collect();
    let longest = |cpu: &usize| {
        let of = tasks.iter().filter(|t| t.cpu() == *cpu).flat_map(Task::critical_sections);
        of.filter(|r| r.resource == lock).map(|r| r.length).max().unwrap_or(0)
    };
    others.iter().map(longest).try_fold(0u64, u64::checked_add)
}

/// How long a job of the task at `position` waits at most in all its requests. `None` if that has more
/// than 64 bits, or there is no such task.
#[must_use]
pub fn job_waits(tasks: &[Task], position: usize) -> Option<u64> {
    let of = tasks.get(position)?;
    of.critical_sections().iter().try_fold(0u64, |sum, request| {
        let each = request_waits(tasks, of.cpu(), request.resource)?;
        sum.checked_add(each.checked_mul(request.count)?)
    })
}

/// The task with spinning in its cost, and blocked by the longest request of a less urgent one.
fn with_spinning(tasks: &[Task], position: usize) -> Option<Task> {
    let of = &tasks[position];
    let cost = of.cost.checked_add(job_waits(tasks, position)?)?;
    let lower = tasks.iter().filter(|t| t.cpu() == of.cpu() && t.priority < of.priority);
    let mut blocking = 0;
    for request in lower.flat_map(Task::critical_sections) {
        let held = request_waits(tasks, of.cpu(), request.resource)?.checked_add(request.length)?;
        blocking = held.max(blocking);
    }
    Some(Task { cost, blocking, ..of.plain() })
}

fn inflated(tasks: &[Task]) -> Analysis {
    let all: Option<Vec<Task>> = (0..tasks.len()).map(|at| with_spinning(tasks, at)).collect();
    let Some(all) = all else { return unknown(tasks, Refusal::Overflow) };
    let mut found = unknown(tasks, Refusal::NotExact);
    let cpus: BTreeSet<usize> = tasks.iter().map(Task::cpu).collect();
    for cpu in cpus {
        let here: Vec<usize> = (0..tasks.len()).filter(|at| tasks[*at].cpu() == cpu).collect();
        let set = TaskSet::new(here.iter().map(|at| all[*at].clone()).collect());
        let plain = TaskSet::new(here.iter().map(|at| tasks[*at].plain()).collect());
        let (sections, time) = (Sections::Preemptive, TimeModel::Continuous);
        let analysis = fixed_priority::analyse(&set, sections, time);
        let without = fixed_priority::analyse(&plain, sections, time);
        for (local, at) in here.iter().enumerate() {
            let from = found.points.len();
            found.points.extend_from_slice(analysis.points(local));
            let TaskResult { outcome, verdict, window, .. } = analysis.tasks[local].clone();
            // Without any spinning, the same analysis is exact.
            let missed = without.tasks[local].verdict;
            let verdict = match (verdict, missed) {
                (Verdict::Feasible, _) => Verdict::Feasible,
                (_, Verdict::NoBound | Verdict::Infeasible(_)) => named(missed, *at),
                (Verdict::Infeasible(_) | Verdict::NoBound, _) => {
                    Verdict::Unknown(Refusal::NotExact)
                }
                (verdict, _) => verdict,
            };
            let outcome = match (outcome, verdict) {
                (ResponseBound::Unbounded, Verdict::Unknown(why)) => ResponseBound::Unknown(why),
                (outcome, _) => outcome,
            };
            let points = from..found.points.len();
            found.tasks[*at] = TaskResult { outcome, verdict, window, points };
        }
    }
    found
}

/// A verdict whose witness names the task by its position among all.
fn named(verdict: Verdict, at: usize) -> Verdict {
    use crate::verdict::Witness::Response;
    match verdict {
        Verdict::Infeasible(Response { job, response, deadline, .. }) => {
            Verdict::Infeasible(Response { task: at, job, response, deadline })
        }
        other => other,
    }
}

/// The fixed point over all tasks, from below: how many requests of others fall into a response
/// depends on their responses. Either all of the bounds hold or none.
fn counted(tasks: &[Task]) -> Analysis {
    let mut effort = StepLimit::with_steps(COUNTING_LOOKS);
    let mut bounds: Vec<u64> = tasks.iter().map(|t| t.cost).collect();
    loop {
        let mut changed = false;
        for at in 0..tasks.len() {
            let limit = tasks[at].deadline.min(tasks[at].period);
            if effort.charge(tasks.len()).is_err() {
                return unknown(tasks, Refusal::TooLong);
            }
            let Some(next) = demand(tasks, at, bounds[at], &bounds) else {
                return unknown(tasks, Refusal::Overflow);
            };
            if next > limit {
                return unknown(tasks, Refusal::NotExact);
            }
            changed |= next > bounds[at];
            bounds[at] = bounds[at].max(next);
        }
        if !changed {
            let found = Analysis::all_within(&bounds);
            debug_assert_eq!(crate::checker::spin_counting(tasks, &found), Ok(()));
            return found;
        }
    }
}

/// Cost, interference, spinning and blocking of a task in a window of `length`.
fn demand(tasks: &[Task], at: usize, length: u64, bounds: &[u64]) -> Option<u64> {
    let of = &tasks[at];
    let here = |t: &&Task| t.cpu() == of.cpu();
    let mut demand = of.cost;
    let mut rivals = Vec::new();
    for (other, t) in tasks.iter().enumerate().filter(|(_, t)| here(t)) {
        if other != at && t.priority >= of.priority {
            let jobs = length.div_ceil(t.period);
            demand = demand.checked_add(jobs.checked_mul(t.cost)?)?;
            rivals.push((t, jobs));
        }
    }
    rivals.push((of, 1));
    let count = |lock: usize| -> u64 {
        let of_one = |(t, jobs): &(&Task, u64)| {
            let all: u64 =
                t.critical_sections().iter().filter(|r| r.resource == lock).map(|r| r.count).sum();
            all.saturating_mul(*jobs)
        };
        rivals.iter().map(of_one).fold(0, u64::saturating_add)
    };
    let locks: BTreeSet<usize> =
        tasks.iter().flat_map(Task::critical_sections).map(|r| r.resource).collect();
    let spins = |extra: Option<usize>| -> Option<u64> {
        locks.iter().try_fold(0u64, |sum, lock| {
            let requests = count(*lock).saturating_add(u64::from(extra == Some(*lock)));
            sum.checked_add(waits(tasks, of.cpu(), *lock, requests, length, bounds)?)
        })
    };
    let mut worst = spins(None)?;
    let lower = tasks.iter().filter(here).filter(|t| t.priority < of.priority);
    for request in lower.flat_map(Task::critical_sections) {
        worst = worst.max(spins(Some(request.resource))?.checked_add(request.length)?);
    }
    demand.checked_add(worst)
}

/// How long `requests` requests for a lock wait in all: on each other processor, that many of the
/// longest sections that fall into the window.
fn waits(
    tasks: &[Task],
    cpu: usize,
    lock: usize,
    requests: u64,
    length: u64,
    bounds: &[u64],
) -> Option<u64> {
    let others: BTreeSet<usize> = tasks.iter().map(Task::cpu).filter(|c| *c != cpu).collect();
    let mut sum = 0u64;
    for other in others {
        let mut sections = Vec::new();
        for (at, t) in tasks.iter().enumerate().filter(|(_, t)| t.cpu() == other) {
            let jobs = length.checked_add(bounds[at])?.div_ceil(t.period);
            let of_lock = t.critical_sections().iter().filter(|r| r.resource == lock);
            sections.extend(of_lock.map(|r| (r.length, r.count.saturating_mul(jobs))));
        }
        sections.sort_unstable_by(|a, b| b.cmp(a));
        let mut left = requests;
        for (length, count) in sections {
            let taken = left.min(count);
            sum = sum.checked_add(length.checked_mul(taken)?)?;
            left -= taken;
        }
    }
    Some(sum)
}
