//! EDF inside a reservation.
//!
//! Owns: the test whether demand ever exceeds the least supply (Shin and Lee, RTSS 2003, theorem 1),
//! at every deadline within the longest busy period: there, supply has caught up with all work
//! released, and supply of two windows is never more than of both at once, so that no longer
//! interval has to be looked at. Must not: take the least supply for certain.

use std::cmp::Ordering;

use super::Supply;
use crate::curve::Curve;
use crate::edf::qpa::Feasibility;
use crate::edf::steps::{DemandStream, each_step};
use crate::effort::StepLimit;
use crate::exact_fraction::compare_shares;
use crate::recurrence::Stream;
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, Verdict};

/// Whether the demand of a set and the longest blocking stated ever exceed the least supply. Too
/// much demand leaves it unknown: the supply need not be the least every time.
#[must_use]
pub fn feasible(set: &TaskSet, supply: &Supply) -> Feasibility {
    feasible_by(set, supply, &mut StepLimit::default())
}

/// The same, which takes what it needs from an effort for several tests. The intervals visited ascend, and are all at which
/// demand grows.
#[must_use]
pub fn feasible_by(set: &TaskSet, supply: &Supply, effort: &mut StepLimit) -> Feasibility {
    let mut found = Feasibility { verdict: Verdict::Feasible, length: 0, visited: Vec::new() };
    match search(set, supply, effort, &mut found) {
        Ok(verdict) => found.verdict = verdict,
        Err(why) => found.verdict = Verdict::Unknown(why),
    }
    debug_assert_eq!(crate::checker::supplied_demand(set, supply, &found), Ok(()));
    found
}

fn search(
    set: &TaskSet,
    supply: &Supply,
    effort: &mut StepLimit,
    found: &mut Feasibility,
) -> Result<Verdict, Refusal> {
    let tasks = set.tasks();
    if !set.is_plain() {
        return Err(Refusal::OutsideModel);
    }
    if tasks.iter().any(|task| task.suspension > 0) {
        return Err(Refusal::Suspension);
    }
    let blocking = tasks.iter().map(Task::blocking).max().unwrap_or(0);
    let shares = tasks.iter().map(|task| (task.cost, task.period));
    found.length = match compare_shares(shares, (supply.budget, supply.period)) {
        Ordering::Greater => return Ok(Verdict::NoBound),
        Ordering::Less => busy_period(set, supply, blocking, effort)?,
        Ordering::Equal => repeating(set, supply).ok_or(Refusal::Endless)?,
    };
    let end = found.length.checked_add(1).ok_or(Refusal::Overflow)?;
    let curves: Vec<Curve> = tasks.iter().filter_map(|t| Curve::periodic(t.period).ok()).collect();
    let due = |(t, curve)| {
        let t: &Task = t;
        DemandStream { curve, cost: t.cost, deadline: t.deadline, jitter: t.jitter }
    };
    let dues: Vec<DemandStream> = tasks.iter().zip(&curves).map(due).collect();
    let mut verdict = Verdict::Feasible;
    each_step(&dues, end, effort, &mut |interval, work| {
        let demand = u64::try_from(work.saturating_add(blocking.into())).unwrap_or(u64::MAX);
        found.visited.push((interval, demand));
        if demand > supply.least_in(interval) {
            verdict = Verdict::Unknown(Refusal::NotExact);
        }
        verdict == Verdict::Feasible
    })?;
    Ok(verdict)
}

/// If all supply is used, demand and supply grow equally in every repetition, once all tasks and
/// the supply have begun.
fn repeating(set: &TaskSet, supply: &Supply) -> Option<u64> {
    let begun = set.tasks().iter().map(Task::deadline).max()?;
    let begun = begun.max(u64::try_from(supply.gap()).ok()?);
    super::repetition(supply, set.tasks().iter())?.checked_add(begun)
}

/// The least window that is sure to be supplied with all that is released before its end.
fn busy_period(
    set: &TaskSet,
    supply: &Supply,
    blocking: u64,
    effort: &mut StepLimit,
) -> Result<u64, Refusal> {
    let mut window = 1;
    loop {
        effort.charge(set.len())?;
        let add = |sum: u64, t: &Task| sum.checked_add(Stream::from_task(t).work_before(window)?);
        let work = set.tasks().iter().try_fold(blocking, add).ok_or(Refusal::Overflow)?;
        let next = supply.window_for(work).ok_or(Refusal::Overflow)?;
        if next <= window {
            return Ok(window);
        }
        window = next;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edf::qpa;
    use crate::fixed_priority::{Sections, TimeModel};

    fn set_of(numbers: &[(u64, u64, u64, u64)]) -> TaskSet {
        let task = |(period, tenths, deadline, jitter): &(u64, u64, u64, u64)| {
            let made = Task::new((period * tenths / 16).max(1), *period, *deadline).unwrap();
            made.with_jitter(jitter.saturating_sub(6))
        };
        TaskSet::in_order(numbers.iter().map(task).collect())
    }

    proptest! {
        /// The whole processor as a reservation is the processor; and EDF accepts in a reservation
        /// what fixed priorities do.
        #[test]
        fn all_of_the_processor_is_the_processor(
            numbers in proptest::collection::vec((3..24u64, 1..8u64, 1..40u64, 0..9u64), 1..5),
            period in 1..20u64, budget in 1..20u64,
        ) {
            let set = set_of(&numbers);
            let whole = feasible(&set, &Supply::periodic(period, period).unwrap()).verdict;
            let known = qpa::feasible(&set, Sections::Preemptive, TimeModel::Discrete).verdict;
            if whole != Verdict::Unknown(Refusal::TooLong) {
                prop_assert_eq!(whole == Verdict::Feasible, known == Verdict::Feasible);
            }
            if let Ok(supply) = Supply::periodic(period, budget) {
                let fixed = super::super::fixed_priority(&set, &supply).verdict();
                if fixed == Verdict::Feasible {
                    prop_assert_eq!(feasible(&set, &supply).verdict, Verdict::Feasible);
                }
            }
        }

        /// No interval up to three busy periods demands more than is supplied, if it is feasible.
        #[test]
        fn no_longer_interval_matters(
            numbers in proptest::collection::vec((3..24u64, 1..5u64, 1..40u64, 0..9u64), 1..4),
            period in 1..20u64, budget in 1..20u64,
        ) {
            let set = set_of(&numbers);
            let Ok(supply) = Supply::periodic(period, budget) else { return Ok(()) };
            let found = feasible(&set, &supply);
            if found.verdict == Verdict::Feasible {
                for interval in 0..3 * found.length.min(2_000) {
                    let demand = crate::edf::demand::demand_bound(&set, interval);
                    prop_assert!(demand <= supply.least_in(interval).into());
                }
            }
        }
    }
}
