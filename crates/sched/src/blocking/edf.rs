//! Demand under EDF with shared resources.
//!
//! Owns: the blocking of an interval, a function of its length (Baker, RTSJ 1991; Baruah, RTSS
//! 2006), and the processor demand test with it. Preemption levels follow deadlines less jitter.
//! Must not: take blocking for certain: where only it is too much, the answer is unknown.

use super::{LockProtocol, Usage, total};
use crate::curve::Curve;
use crate::edf::analysis_length::{Length, length};
use crate::edf::demand::first_deadline;
use crate::edf::demand_set::DemandSet;
use crate::edf::qpa::Feasibility;
use crate::edf::steps::{DemandStream, each_step};
use crate::effort::StepLimit;
use crate::fixed_priority::{Sections, TimeModel};
use crate::task::{CriticalSection, Task, TaskSet};
use crate::verdict::{Refusal, Verdict, Witness};

/// How long jobs that are due within `interval` wait for those that are due later: sections of tasks
/// whose deadline is longer, on resources that a task uses which may be due within. `None` if a
/// plain mutex is among them, for which nothing bounds the wait.
#[must_use]
pub fn blocking_within(usage: &Usage, interval: u64, time: TimeModel) -> Option<u64> {
    let tasks = usage.set.tasks();
    let mut wanted = vec![false; usage.protocols.len()];
    for (task, section) in usage.sections() {
        wanted[section.resource] |= first_deadline(&tasks[task]) <= interval;
    }
    let blocks = |(task, section): &(usize, &CriticalSection)| {
        let spins = usage.protocols[section.resource] == LockProtocol::Spin;
        tasks[*task].deadline > interval && (spins || wanted[section.resource])
    };
    let sections: Vec<(usize, &CriticalSection)> = usage.sections().filter(blocks).collect();
    total(&sections, &usage.protocols, time)?.checked_add(stated(&usage.set))
}

/// How long a task's jobs wait at most for those that are due later, in any busy window under EDF; `None`
/// if nothing bounds it. It changes only where one more task may be due within.
#[must_use]
pub fn blocking(usage: &Usage, position: usize, time: TimeModel) -> Option<u64> {
    let tasks = usage.set.tasks();
    let own = first_deadline(tasks.get(position)?);
    let edges = tasks.iter().map(first_deadline).filter(|edge| *edge >= own);
    let mut blocking = edges.map(|edge| blocking_within(usage, edge, time));
    blocking.try_fold(0, |most, blocking| Some(blocking?.max(most)))
}

/// The longest blocking that a task states.
fn stated(set: &TaskSet) -> u64 {
    set.tasks().iter().map(Task::blocking).max().unwrap_or(0)
}

/// Whether demand and blocking ever exceed an interval.
#[must_use]
pub fn feasible(usage: &Usage, time: TimeModel) -> Feasibility {
    feasible_within(usage, time, StepLimit::default())
}

/// The same with a stated effort. The intervals visited ascend, and are all at which demand grows.
#[must_use]
pub fn feasible_within(usage: &Usage, time: TimeModel, effort: StepLimit) -> Feasibility {
    let mut found = Feasibility { verdict: Verdict::Feasible, length: 0, visited: Vec::new() };
    match search(usage, time, effort, &mut found) {
        Ok(verdict) => found.verdict = verdict,
        Err(why) => found.verdict = Verdict::Unknown(why),
    }
    debug_assert_eq!(crate::checker::shared_demand(usage, time, &found), Ok(()));
    found
}

/// The most that any interval is blocked: it changes only where one more task is due within.
fn max_blocking(usage: &Usage, time: TimeModel) -> Result<u64, Refusal> {
    let tasks = usage.set.tasks();
    let edges = tasks.iter().map(first_deadline);
    let mut blocking = edges.map(|edge| blocking_within(usage, edge, time).ok_or(Refusal::Mutex));
    blocking.try_fold(0, |most, blocking| Ok(blocking?.max(most)))
}

fn search(
    usage: &Usage,
    time: TimeModel,
    mut effort: StepLimit,
    found: &mut Feasibility,
) -> Result<Verdict, Refusal> {
    let most = max_blocking(usage, time)?;
    let blocked = usage.set.tasks().iter().map(|task| task.plain().with_blocking(most));
    let blocked = TaskSet::new(blocked.collect());
    found.length =
        match length(&blocked, Sections::Preemptive, time, &mut effort, &mut DemandSet::default())?
        {
            Length::Below(end) => end,
            Length::Overload => return Ok(Verdict::NoBound),
        };
    let tasks = usage.set.tasks();
    let curves: Vec<Curve> = tasks.iter().filter_map(|t| Curve::periodic(t.period).ok()).collect();
    let due = |(t, curve)| {
        let t: &Task = t;
        let cost = t.cost.checked_add(t.suspension)?;
        Some(DemandStream { curve, cost, deadline: t.deadline, jitter: t.jitter })
    };
    let dues = tasks.iter().zip(&curves).map(due).collect::<Option<Vec<DemandStream>>>();
    let mut verdict = Verdict::Feasible;
    each_step(
        &dues.ok_or(Refusal::Overflow)?,
        found.length,
        &mut effort,
        &mut |interval, work| {
            let blocking = blocking_within(usage, interval, time).unwrap_or(u64::MAX);
            let demand = work.saturating_add(blocking.into());
            let demand = u64::try_from(demand).unwrap_or(u64::MAX);
            found.visited.push((interval, demand));
            if demand > interval {
                let certain =
                    work > u128::from(interval) && tasks.iter().all(|t| t.suspension == 0);
                verdict = if certain {
                    let demand = u64::try_from(work).unwrap_or(u64::MAX);
                    Verdict::Infeasible(Witness::Demand { interval, demand })
                } else {
                    Verdict::Unknown(Refusal::NotExact)
                };
            }
            verdict == Verdict::Feasible
        },
    )?;
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edf::qpa;

    /// A task's cost, period and deadline, and its sections (resource, length).
    type Holding<'a> = ((u64, u64, u64), &'a [(usize, u64)]);

    fn set(tasks: &[Holding]) -> TaskSet {
        let task = |((c, t, d), held): &Holding| {
            let section = |(resource, length): &(usize, u64)| CriticalSection {
                resource: *resource,
                count: 1,
                length: *length,
            };
            let sections: Vec<CriticalSection> = held.iter().map(section).collect();
            Task::new(*c, *t, *d).unwrap().with_critical_sections(&sections)
        };
        TaskSet::in_order(tasks.iter().map(task).collect())
    }

    /// A section delays an interval only if a task with a deadline in it uses the resource.
    #[test]
    fn blocking_depends_on_the_interval() {
        let protocols = vec![LockProtocol::Ceiling(None); 2];
        let set = set(&[
            ((1, 10, 5), &[(0, 1)]),
            ((3, 20, 12), &[(1, 2)]),
            ((8, 40, 30), &[(0, 3), (1, 4)]),
        ]);
        let usage = Usage::new(set, protocols).unwrap();
        let blocking =
            [4, 5, 11, 12, 29, 30].map(|t| blocking_within(&usage, t, TimeModel::Continuous));
        assert_eq!(blocking, [Some(0), Some(3), Some(3), Some(4), Some(4), Some(0)]);
        assert_eq!(feasible(&usage, TimeModel::Continuous).verdict, Verdict::Feasible);
    }

    /// 2 by 4, and 3 more while the other holds what it wants.
    #[test]
    fn blocking_may_be_too_much() {
        let of = |protocol| {
            let set = set(&[((2, 20, 4), &[(0, 1)]), ((5, 20, 20), &[(0, 3)])]);
            Usage::new(set, vec![protocol]).unwrap()
        };
        let found = feasible(&of(LockProtocol::Ceiling(None)), TimeModel::Continuous);
        assert_eq!(found.verdict, Verdict::Unknown(Refusal::NotExact));
        assert_eq!(found.visited, [(4, 5)]);
        let plain = feasible(&of(LockProtocol::Plain), TimeModel::Continuous);
        assert_eq!(plain.verdict, Verdict::Unknown(Refusal::Mutex));
    }

    proptest! {
        /// A section that is never preempted is a non-preemptive segment; without sections, the test
        /// is the usual one.
        #[test]
        fn spinning_is_a_segment(
            numbers in proptest::collection::vec((3..20u64, 1..6u64, 1..30u64, 0..4u64), 1..5),
        ) {
            let tasks: Vec<Task> = numbers.iter().map(|(period, tenths, deadline, np)| {
                let cost = (period * tenths / 16).max(1);
                Task::new(cost, *period, *deadline).unwrap().with_segments(*np.min(&cost), 0).unwrap()
            }).collect();
            let set = TaskSet::in_order(tasks);
            let held = |task: &Task| {
                let length = task.longest_segment();
                task.with_critical_sections(&[CriticalSection { resource: 0, count: 1, length }])
            };
            let holding = TaskSet::new(set.tasks().iter().map(held).collect());
            let usage = Usage::new(holding.clone(), vec![LockProtocol::Spin]).unwrap();
            let floating = qpa::feasible(&set, Sections::Floating, TimeModel::Discrete).verdict;
            let spinning = feasible(&usage, TimeModel::Discrete).verdict;
            prop_assert_eq!(spinning == Verdict::Feasible, floating == Verdict::Feasible);
            prop_assert_eq!(spinning == Verdict::NoBound, floating == Verdict::NoBound);
            let ceilings = Usage::new(holding, vec![LockProtocol::Ceiling(None)]).unwrap();
            if spinning == Verdict::Feasible {
                let verdict = feasible(&ceilings, TimeModel::Discrete).verdict;
                prop_assert_eq!(verdict, Verdict::Feasible);
            }
        }
    }
}
