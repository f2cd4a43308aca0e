//! The demand bound function, and the test that looks at all of its steps.
//!
//! Owns: [`demand_bound`] (Baruah, Mok and Rosier, RTSS 1990), blocking by segments (Baker, RTSJ
//! 1991; Jeffay, Stanat and Martel, RTSS 1991), and the processor demand test. Must not: be fast; see
//! [`super::qpa`].

use crate::effort::StepLimit;
use crate::fixed_priority::{Sections, TimeModel};
use crate::sections::segment_before;
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, Verdict, Witness};

use super::analysis_length::{Length, length};
use super::demand_set::DemandSet;

/// The most processor time that jobs need which are released and due within `interval`. A task
/// that suspends itself counts as busy meanwhile.
#[must_use]
pub fn demand_bound(set: &TaskSet, interval: u64) -> u128 {
    set.tasks().iter().map(|task| task_demand(task, interval)).sum()
}

/// The share of one task. Its relative deadlines are shorter by its jitter.
pub(crate) fn task_demand(task: &Task, interval: u64) -> u128 {
    let shifted = u128::from(interval) + u128::from(task.jitter);
    match shifted.checked_sub(task.deadline.into()) {
        Some(after) => {
            let cost = u128::from(task.cost) + u128::from(task.suspension);
            // At most 2^65 jobs of 2^65; what does not fit is too much in any case.
            (after / u128::from(task.period) + 1).saturating_mul(cost)
        }
        None => 0,
    }
}

/// How long a job that is due within `interval` is kept waiting by one that is due later. A task of
/// which a job counts already in the demand cannot also keep it waiting: that job would come later.
#[must_use]
pub fn blocking_within(set: &TaskSet, interval: u64, sections: Sections, time: TimeModel) -> u64 {
    let stated = set.tasks().iter().map(|t| t.blocking).max().unwrap_or(0);
    stated.saturating_add(segment_within(set, interval, sections, time))
}

/// The part of it that comes from segments.
pub(super) fn segment_within(
    set: &TaskSet,
    interval: u64,
    sections: Sections,
    time: TimeModel,
) -> u64 {
    if sections == Sections::Preemptive {
        return 0;
    }
    let later = set.tasks().iter().filter(|t| first_deadline(t) > interval);
    later.map(|t| segment_before(t, sections, time)).max().unwrap_or(0)
}

/// Whether what a demand test counts can happen.
pub(crate) fn is_exact(set: &TaskSet, sections: Sections) -> bool {
    let plain = |t: &Task| t.blocking == 0 && t.suspension == 0;
    sections != Sections::Limited && set.tasks().iter().all(plain)
}

/// The processor demand test: at every deadline up to the length that matters, ascending.
#[must_use]
pub fn processor_demand(set: &TaskSet, sections: Sections, time: TimeModel) -> Verdict {
    if !set.is_plain() {
        return Verdict::Unknown(Refusal::OutsideModel);
    }
    let mut effort = StepLimit::default();
    let end = match length(set, sections, time, &mut effort, &mut DemandSet::default()) {
        Ok(Length::Below(end)) => end,
        Ok(Length::Overload) => return Verdict::NoBound,
        Err(why) => return Verdict::Unknown(why),
    };
    let mut due: Vec<u64> = set.tasks().iter().map(first_deadline).collect();
    while let Some(interval) = due.iter().copied().min().filter(|due| *due < end) {
        if effort.charge(set.len()).is_err() {
            return Verdict::Unknown(Refusal::TooLong);
        }
        let demand = demand_bound(set, interval)
            + u128::from(blocking_within(set, interval, sections, time));
        if demand > u128::from(interval) {
            return too_much(set, sections, interval, demand);
        }
        for (due, task) in due.iter_mut().zip(set.tasks()) {
            if *due == interval {
                *due = due.saturating_add(task.period);
            }
        }
    }
    Verdict::Feasible
}

/// When the first job of a task is due after its release.
pub(crate) fn first_deadline(task: &Task) -> u64 {
    task.deadline.saturating_sub(task.jitter)
}

/// The verdict on a demand that is over its interval.
pub(crate) fn too_much(set: &TaskSet, sections: Sections, interval: u64, demand: u128) -> Verdict {
    if is_exact(set, sections) {
        let demand = u64::try_from(demand).unwrap_or(u64::MAX);
        Verdict::Infeasible(Witness::Demand { interval, demand })
    } else {
        Verdict::Unknown(Refusal::NotExact)
    }
}
