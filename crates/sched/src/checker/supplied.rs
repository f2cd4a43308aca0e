//! Demand under EDF inside a reservation, checked by substitution.
//!
//! Owns: what [`supplied_demand`] checks. Must not: search.

use crate::edf::qpa::Feasibility;
use crate::supply::Supply;
use crate::task::{Task, TaskSet};
use crate::verdict::Verdict;

use super::{Defect, released_before};

/// Checks an answer of [`crate::supply::edf::feasible`]: each demand and that none was left out, the
/// supply, and that the busy period ends where it is said to.
///
/// # Errors
/// The first property that does not hold; the task is always 0.
pub fn supplied_demand(set: &TaskSet, supply: &Supply, found: &Feasibility) -> Result<(), Defect> {
    let blocking = u128::from(set.tasks().iter().map(Task::blocking).max().unwrap_or(0));
    let demand = |interval: u64| -> u128 {
        let work = |t: &Task| {
            let shifted = u128::from(interval) + u128::from(t.jitter);
            let after = shifted.checked_sub(t.deadline.into());
            after.map_or(0, |after| after / u128::from(t.period) + 1) * u128::from(t.cost)
        };
        set.tasks().iter().map(work).sum()
    };
    let mut before = 0;
    for (point, (interval, stated)) in found.visited.iter().enumerate() {
        if demand(*interval) + blocking != u128::from(*stated) && *stated != u64::MAX {
            return Err(Defect::NotFixed { task: 0, point });
        }
        if interval.checked_sub(1).is_some_and(|last| demand(last) != before) {
            return Err(Defect::Missing { task: 0, point });
        }
        before = demand(*interval);
    }
    if found.verdict != Verdict::Feasible {
        return Ok(());
    }
    let length = u128::from(found.length);
    let released = |t: &Task| released_before(length, t.jitter, t.period) * u128::from(t.cost);
    let work = blocking + set.tasks().iter().map(released).sum::<u128>();
    // Either supply has caught up, or all of it is used and a whole repetition was looked at.
    let repeats = || {
        let begun = set.tasks().iter().map(Task::deadline).max().unwrap_or(0);
        let begun = begun.max(supply.window_for(1).map_or(u64::MAX, |first| first - 1));
        let whole = found.length.checked_sub(begun).filter(|whole| *whole > 0);
        let divides = |whole: u64| {
            set.tasks()
                .iter()
                .map(Task::period)
                .chain([supply.period()])
                .all(|p| whole.is_multiple_of(p))
        };
        whole.is_some_and(divides)
    };
    let enough = work <= u128::from(supply.least_in(found.length)) || repeats();
    let fits = found.visited.iter().all(|(interval, demand)| *demand <= supply.least_in(*interval));
    let holds = enough && fits && demand(found.length) == before;
    if holds { Ok(()) } else { Err(Defect::Verdict { task: 0 }) }
}
