//! Demand with shared resources, checked by substitution.
//!
//! Owns: what [`shared_demand`] checks. Must not: search.

use crate::blocking::{LockProtocol, Usage};
use crate::edf::qpa::Feasibility;
use crate::fixed_priority::TimeModel;
use crate::task::Task;
use crate::verdict::{Verdict, Witness};

use super::Defect;

/// Checks an answer of [`crate::blocking::edf::feasible`]: each demand with its blocking, and that
/// demand grows nowhere else. How long an interval must be looked at is not checked here.
///
/// # Errors
/// The first property that does not hold; the task is always 0.
pub fn shared_demand(usage: &Usage, time: TimeModel, found: &Feasibility) -> Result<(), Defect> {
    let demand = |interval: u64| -> u128 {
        let work = |t: &Task| {
            let shifted = u128::from(interval) + u128::from(t.jitter);
            let after = shifted.checked_sub(t.deadline.into());
            let jobs = after.map_or(0, |after| after / u128::from(t.period) + 1);
            jobs.saturating_mul(u128::from(t.cost) + u128::from(t.suspension))
        };
        usage.set().tasks().iter().map(work).sum()
    };
    let mut before = 0;
    for (point, (interval, stated)) in found.visited.iter().enumerate() {
        let total = demand(*interval) + at_least(usage, *interval, time);
        if total > u128::from(*stated) && *stated != u64::MAX {
            return Err(Defect::NotFixed { task: 0, point });
        }
        if interval.checked_sub(1).is_some_and(|last| demand(last) != before) {
            return Err(Defect::Missing { task: 0, point });
        }
        before = demand(*interval);
    }
    let holds = match found.verdict {
        Verdict::Feasible => {
            let last = found.length.checked_sub(1).is_none_or(|last| demand(last) == before);
            last && found.visited.iter().all(|(interval, demand)| demand <= interval)
        }
        Verdict::Infeasible(Witness::Demand { interval, demand: stated }) => {
            stated > interval && demand(interval) >= stated.into()
        }
        Verdict::Infeasible(_) => false,
        Verdict::NoBound | Verdict::Unknown(_) => true,
    };
    if holds { Ok(()) } else { Err(Defect::Verdict { task: 0 }) }
}

/// The longest single section against an interval, and the blocking stated. Under inheritance more
/// than one may count.
fn at_least(usage: &Usage, interval: u64, time: TimeModel) -> u128 {
    let tasks = usage.set().tasks();
    let wanted = |resource: usize| {
        usage.sections().any(|(user, other)| {
            let user = &tasks[user];
            other.resource == resource && user.deadline.saturating_sub(user.jitter) <= interval
        })
    };
    let mut longest = 0;
    for (_, section) in usage.sections().filter(|(at, _)| tasks[*at].deadline > interval) {
        if usage.protocols()[section.resource] == LockProtocol::Spin || wanted(section.resource) {
            longest = longest.max(section.length - u64::from(time == TimeModel::Discrete));
        }
    }
    u128::from(longest) + u128::from(tasks.iter().map(|t| t.blocking).max().unwrap_or(0))
}
