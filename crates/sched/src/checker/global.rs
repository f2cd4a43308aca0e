//! Bounds on several processors that share all jobs, checked by substitution.
//!
//! Owns: what [`global_fixed_priority`] and [`global_edf`] check. A bound R of a task holds if the
//! others' work in a window of R, counted by their own bounds, does not delay a job beyond R: then no
//! job can be the first to break its bound. Jitter is before the window and in the bounds of the others. Must not: search.

use crate::global::fixed_priority::Bound;
use crate::servers::DEADLINE_CLASS;
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, ResponseBound};

use super::{Defect, check_verdict};

/// Checks an answer of [`crate::global::fixed_priority::analyse`].
///
/// # Errors
/// The first property that does not hold.
pub fn global_fixed_priority(
    set: &TaskSet,
    cpus: u64,
    bound: Bound,
    analysis: &Analysis,
) -> Result<(), Defect> {
    let (slack, clamp) = match bound {
        Bound::BertognaCirinei { slack, clamp } => (slack, clamp),
        Bound::LimitedCarryIn => (true, true),
    };
    for (k, task) in set.tasks().iter().enumerate() {
        let Some(from_arrival) = bound_of(analysis, k) else { continue };
        if task.priority == DEADLINE_CLASS {
            return Err(Defect::Bound { task: k });
        }
        let own: u128 = [task.cost, task.blocking, task.suspension].map(u128::from).iter().sum();
        let x = from_arrival.checked_sub(task.jitter.into());
        let room = x.and_then(|x| x.checked_sub(own));
        let Some((x, room)) = x.zip(room) else { return Err(Defect::Numbers { task: k }) };
        let most = if clamp { room + 1 } else { u128::MAX };
        let mut works = Vec::new();
        for (i, other) in set.tasks().iter().enumerate() {
            if i == k || other.priority < task.priority {
                continue;
            }
            let limit = u128::from(other.deadline.min(other.period));
            let bounded = bound_of(analysis, i).filter(|known| *known <= limit);
            let known = match other.priority {
                DEADLINE_CLASS => u128::from(other.cost) + u128::from(other.jitter),
                above => {
                    let known = bounded.ok_or(Defect::Missing { task: k, point: i })?;
                    if slack && above > task.priority { known } else { limit }
                }
            };
            let (without, with) = work(other, x, known, bound);
            works.push((without.min(most), with.min(most)));
        }
        let sum = if (works.len() as u64) < cpus { 0 } else { sum(&works, cpus) };
        if sum / u128::from(cpus) > room {
            return Err(Defect::NotFixed { task: k, point: 0 });
        }
        check_verdict(k, task, &analysis.tasks[k])?;
    }
    Ok(())
}

fn bound_of(analysis: &Analysis, task: usize) -> Option<u128> {
    match analysis.tasks.get(task)?.outcome {
        ResponseBound::Bounded(bound) => Some(bound.from_arrival.into()),
        ResponseBound::Unbounded | ResponseBound::Unknown(_) => None,
    }
}

/// The work of a task in a window of `x` without and with work carried in, if its jobs are done within `known` of their
/// arrivals. One that may be under way though it is not running may always carry work in.
fn work(task: &Task, x: u128, known: u128, bound: Bound) -> (u128, u128) {
    let (cost, period) = (u128::from(task.cost), u128::from(task.period));
    let within = |reach: u128| reach / period * cost + cost.min(reach % period);
    let anywhere = within(x + known - cost);
    let is_hidden = task.suspension > 0 || task.priority == DEADLINE_CLASS;
    if is_hidden || bound != Bound::LimitedCarryIn {
        return (anywhere, anywhere);
    }
    let after = x.saturating_sub(cost);
    let alpha = (after % period).saturating_sub(period - known).min(cost - 1);
    let with = after / period * cost + cost + alpha;
    (within(x + u128::from(task.jitter)).min(anywhere), with)
}

/// All work without, and the largest differences that m - 1 tasks can make.
fn sum(works: &[(u128, u128)], cpus: u64) -> u128 {
    let mut more: Vec<u128> = works.iter().map(|(a, b)| b.saturating_sub(*a)).collect();
    more.sort_unstable();
    let count = usize::try_from(cpus - 1).unwrap_or(usize::MAX);
    let more: u128 = more.iter().rev().take(count).sum();
    works.iter().map(|(without, _)| without).sum::<u128>() + more
}

/// Checks an answer of [`crate::global::edf_response::analyse`].
///
/// # Errors
/// The first property that does not hold.
pub fn global_edf(set: &TaskSet, cpus: u64, analysis: &Analysis) -> Result<(), Defect> {
    let bounds: Option<Vec<u128>> = (0..set.len()).map(|k| bound_of(analysis, k)).collect();
    let Some(bounds) = bounds else {
        // One without a bound leaves all without.
        let some = (0..set.len()).find(|k| bound_of(analysis, *k).is_some());
        return some.map_or(Ok(()), |task| Err(Defect::Bound { task }));
    };
    for (k, task) in set.tasks().iter().enumerate() {
        let (x, due) = (bounds[k], u128::from(task.deadline));
        let Some(room) = x.checked_sub(task.cost.into()) else {
            return Err(Defect::Numbers { task: k });
        };
        let mut sum = 0;
        for (i, other) in set.tasks().iter().enumerate().filter(|(i, _)| *i != k) {
            let (cost, period) = (u128::from(other.cost), u128::from(other.period));
            let slack = u128::from(other.deadline).checked_sub(bounds[i]);
            let slack = slack.ok_or(Defect::Verdict { task: i })?;
            let reach = x + bounds[i] - cost;
            let anywhere = reach / period * cost + cost.min(reach % period);
            let urgent = due / period * cost + cost.min((due % period).saturating_sub(slack));
            sum += anywhere.min(urgent).min(room + 1);
        }
        if sum / u128::from(cpus) > room {
            return Err(Defect::NotFixed { task: k, point: 0 });
        }
        check_verdict(k, task, &analysis.tasks[k])?;
    }
    Ok(())
}
