//! Priorities for tasks on several processors that share all jobs.
//!
//! Owns: orders by deadline and cost, and Audsley's search with tests that allow it. Must not: look
//! at response times; an order of higher priorities that a test depends on spoils the search (Davis
//! and Burns, RTSJ 2011).

use crate::task::{Task, TaskSet};

use super::beforehand;
use super::fixed_priority::{OpaTest, keeps_deadline};

/// Binary digits behind the point of the factor k of [`dkc`].
const DIGITS: u32 = 20;

/// By D - k C with k = (m - 1 + sqrt(5 m^2 - 6 m + 1)) / (2 m) (Andersson and Jonsson, RTCSA 2000,
/// as generalised by Davis and Burns, RTSS 2009), the least the most urgent. k is rounded down to
/// 20 binary digits, which is enough for an order that is a rule of thumb. `None`: 0 processors, or
/// more than 2^32.
#[must_use]
pub fn dkc(tasks: &[Task], cpus: u64) -> Option<TaskSet> {
    let factor = factor(cpus)?;
    Some(by_key(tasks, |t| i128::from(t.deadline) * (1 << DIGITS) - factor * i128::from(t.cost)))
}

/// The order by T - k C, with one k, the least the most urgent.
#[must_use]
pub fn tkc(tasks: &[Task], cpus: u64) -> Option<TaskSet> {
    let factor = factor(cpus)?;
    Some(by_key(tasks, |t| i128::from(t.period) * (1 << DIGITS) - factor * i128::from(t.cost)))
}

/// The order by D - C, the least the most urgent.
#[must_use]
pub fn dcmpo(tasks: &[Task]) -> TaskSet {
    by_key(tasks, |t| i128::from(t.deadline) - i128::from(t.cost))
}

fn factor(cpus: u64) -> Option<i128> {
    let m = i128::from(u32::try_from(cpus).ok().filter(|m| *m > 0)?);
    let square = (5 * m * m - 6 * m + 1) << (2 * (DIGITS - 1));
    Some((((m - 1) << (DIGITS - 1)) + square.isqrt()) / m)
}

fn by_key(tasks: &[Task], key: impl Fn(&Task) -> i128) -> TaskSet {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|position| key(&tasks[*position]));
    in_order(tasks, &order)
}

/// The tasks as given, the first in `order` being the most urgent.
fn in_order(tasks: &[Task], order: &[usize]) -> TaskSet {
    let mut ranked = tasks.to_vec();
    for (rank, position) in order.iter().rev().enumerate() {
        ranked[*position].priority = u32::try_from(rank).unwrap_or(u32::MAX);
    }
    TaskSet::new(ranked)
}

/// Audsley's search: from the lowest priority up, a task that keeps its deadline there stays there;
/// of several the one with the largest D - k C. If the test accepts any order, it accepts the one
/// found; `None` if it accepts no order. Needs at most n (n + 1) / 2 tests of a task.
#[must_use]
pub fn audsley(tasks: &[Task], cpus: u64, test: OpaTest) -> Option<TaskSet> {
    let set = dkc(tasks, cpus)?;
    if beforehand(&set, cpus, true).is_some() {
        return set.is_empty().then_some(set);
    }
    let mut unassigned: Vec<usize> = set.by_priority().to_vec();
    let mut assigned = Vec::with_capacity(tasks.len());
    while !unassigned.is_empty() {
        let fits = |at: &usize| {
            let others = unassigned.iter().enumerate().filter(|(i, _)| i != at);
            let higher: Vec<usize> = others.map(|(_, task)| *task).collect();
            keeps_deadline(tasks, &higher, unassigned[*at], cpus, test)
        };
        let found = (0..unassigned.len()).rev().find(fits)?;
        assigned.push(unassigned.remove(found));
    }
    assigned.reverse();
    Some(in_order(tasks, &assigned))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Costs, deadlines and periods in which each order is another one.
    fn tasks() -> Vec<Task> {
        [(6, 10, 40), (1, 8, 30), (9, 12, 20)]
            .map(|(cost, deadline, period)| Task::new(cost, period, deadline).unwrap())
            .to_vec()
    }

    /// With one processor k is 0, so that D - k C is deadline monotonic and T - k C rate monotonic. With
    /// two it is (1 + sqrt(9)) / 4 = 1: then D - k C is D - C.
    #[test]
    fn orders_by_their_formulae() {
        let tasks = tasks();
        let order = |set: Option<TaskSet>| set.unwrap().by_priority().to_vec();
        assert_eq!(order(dkc(&tasks, 1)), [1, 0, 2]);
        assert_eq!(order(tkc(&tasks, 1)), [2, 1, 0]);
        assert_eq!(order(dkc(&tasks, 2)), [2, 0, 1]);
        assert_eq!(order(Some(dcmpo(&tasks))), [2, 0, 1]);
        // T - C: 34, 29, 11.
        assert_eq!(order(tkc(&tasks, 2)), [2, 1, 0]);
        assert!(dkc(&tasks, 0).is_none() && tkc(&tasks, 1 << 33).is_none());
    }
}
