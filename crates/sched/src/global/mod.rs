//! Equal processors that share one queue: any job may run on any of them, and move at any time.
//!
//! Owns: what all tests for such machines have in common: which sets they are about, and how much
//! work of a task fits into a window. A job never runs on two processors at once, and the jobs of a
//! task follow each other. Time is discrete: jobs are released and preempted at whole units only, as
//! in the papers, so that a bound belongs to its unit.
//!
//! All tests for several processors are sufficient only: what they do not accept is unknown, unless
//! a simulation ([`miss`]) finds a miss. Must not: know which processor a job is on.

pub mod assign;
pub mod edf;
pub mod edf_response;
pub mod fixed_priority;
pub mod miss;
pub mod schedule;
pub mod tardiness;
#[cfg(test)]
mod tests;
mod window;

use std::cmp::Ordering;

use crate::exact_fraction::compare_shares;
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, ResponseBound, TaskResult, Verdict, Window, Witness};

/// What can be said without a test: a set of no tasks, a job longer than its deadline, more demanded
/// than `cpus` have, or parameters that the tests do not know.
pub(crate) fn beforehand(set: &TaskSet, cpus: u64, by_priority: bool) -> Option<Verdict> {
    if set.is_empty() {
        return Some(Verdict::Feasible);
    }
    let late = set.tasks().iter().enumerate().find_map(|(at, task)| late(at, task));
    let overload = || overloaded(set, cpus).then_some(Verdict::NoBound);
    late.or_else(overload).or_else(|| outside(set, by_priority).map(Verdict::Unknown))
}

/// A single job of this task takes longer than it may.
pub(crate) fn late(at: usize, task: &Task) -> Option<Verdict> {
    let (response, deadline) = (task.cost, task.deadline);
    let witness = Witness::Response { task: at, job: 1, response, deadline };
    (response > deadline).then_some(Verdict::Infeasible(witness))
}

/// Parameters that the tests do not know; those of fixed priorities know what delays single tasks.
pub(crate) fn outside(set: &TaskSet, by_priority: bool) -> Option<Refusal> {
    let is_delayed = |t: &Task| t.jitter > 0 || t.suspension > 0 || t.blocking > 0;
    let is_outside = !set.is_plain() || !by_priority && set.tasks().iter().any(is_delayed);
    is_outside.then_some(Refusal::OutsideModel)
}

/// Whether more is demanded than there is: of all processors, or of the one that a task can use.
pub(crate) fn overloaded(set: &TaskSet, cpus: u64) -> bool {
    let shares = set.tasks().iter().map(|task| (task.cost, task.period));
    set.tasks().iter().any(|task| task.cost > task.period)
        || compare_shares(shares, (cpus, 1)) == Ordering::Greater
}

/// The verdict before tests of sets whose deadlines are at most their periods.
pub(crate) fn beforehand_constrained(set: &TaskSet, cpus: u64) -> Option<Verdict> {
    let long = || {
        let long = set.tasks().iter().any(|task| task.deadline > task.period);
        long.then_some(Verdict::Unknown(Refusal::LongDeadlines))
    };
    beforehand(set, cpus, false).or_else(long)
}

pub(crate) fn accepted(holds: bool) -> Verdict {
    if holds { Verdict::Feasible } else { Verdict::Unknown(Refusal::NotExact) }
}

/// The result of a task that is known by its verdict alone; its points would begin at `at`.
pub(crate) fn without_bound(verdict: Verdict, at: usize) -> TaskResult {
    let outcome = match verdict {
        Verdict::NoBound => ResponseBound::Unbounded,
        Verdict::Unknown(why) => ResponseBound::Unknown(why),
        Verdict::Feasible | Verdict::Infeasible(_) => ResponseBound::Unknown(Refusal::NotExact),
    };
    TaskResult { outcome, verdict, window: Window::Closed, points: at..at }
}

/// Most work of a task in a window of `length` if its jobs are done within `response` of their nominal arrivals, in
/// whatever order: the first job ends as late as it can, the others come as early as they can (Bertogna and Cirinei,
/// RTSS 2007, equations 4 and 8). Of `cost` and jitter, it is the most in a window before which no job was released.
pub(crate) fn work_with_carry_in(task: &Task, length: u64, response: u64) -> u128 {
    let reach = u128::from(length) + u128::from(response.saturating_sub(task.cost));
    let (cost, period) = (u128::from(task.cost), u128::from(task.period));
    (reach / period).saturating_mul(cost).saturating_add((reach % period).min(cost))
}

/// The sum of `base` and the `count` largest of `more`.
pub(crate) fn with_largest(base: u128, mut more: Vec<u128>, count: u64) -> u128 {
    more.sort_unstable_by(|a, b| b.cmp(a));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    more.into_iter().take(count).fold(base, u128::saturating_add)
}
