//! How late jobs can be under global EDF if no processor time is wasted.
//!
//! Owns: the bound of Devi and Anderson (RTSS 2005; RTSJ 38, 2008, theorem 2). Must not: apply it to
//! tasks whose deadlines are not their periods, for which it was not proven.

use std::cmp::Ordering;

use crate::exact_fraction::{compare_shares, share_floor};
use crate::task::{Task, TaskSet};
use crate::verdict::Refusal;

use super::overloaded;

/// Whether tardiness is bounded at all: the utilisation is at most m, and no cost is over its
/// period.
#[must_use]
pub fn is_bounded(set: &TaskSet, cpus: u64) -> bool {
    !overloaded(set, cpus)
}

/// By how much jobs of each task are done after their deadlines at most: C + x, with x the sum of the
/// L largest costs less the smallest, over m less the L - 1 largest utilisations, L being the
/// utilisation rounded up, less 1. `None` if it grows without bound. On one processor nothing is late.
/// x is rounded up to a whole unit.
///
/// # Errors
/// A deadline that is not the period, or parameters that the theorem does not know.
pub fn bounds(set: &TaskSet, cpus: u64) -> Result<Option<Vec<u64>>, Refusal> {
    let outside =
        |t: &Task| t.deadline != t.period || t.jitter > 0 || t.suspension > 0 || t.blocking > 0;
    if !set.is_plain() || set.tasks().iter().any(outside) {
        return Err(Refusal::OutsideModel);
    }
    if !is_bounded(set, cpus) {
        return Ok(None);
    }
    if cpus == 1 {
        return Ok(Some(vec![0; set.len()]));
    }
    let extra = extra(set, cpus)?;
    let bound = |t: &Task| t.cost.checked_add(extra).ok_or(Refusal::Overflow);
    set.tasks().iter().map(bound).collect::<Result<Vec<_>, _>>().map(Some)
}

/// x, rounded up.
fn extra(set: &TaskSet, cpus: u64) -> Result<u64, Refusal> {
    let taken = usize::try_from(full_below(set, cpus)).map_err(|_| Refusal::Overflow)?;
    let mut costs: Vec<u64> = set.tasks().iter().map(Task::cost).collect();
    costs.sort_unstable_by(|a, b| b.cmp(a));
    let least = u128::from(costs.last().copied().unwrap_or(0));
    let above = costs.iter().take(taken).map(|cost| u128::from(*cost)).sum::<u128>();
    let above = above.saturating_sub(least);
    // Rounded up, so that the line below is rounded down.
    let mut shares: Vec<u128> =
        set.tasks().iter().map(|t| share_floor(t.cost, t.period) + 1).collect();
    shares.sort_unstable_by(|a, b| b.cmp(a));
    let used: u128 = shares.iter().take(taken.saturating_sub(1)).sum();
    let free = (u128::from(cpus) << 64).checked_sub(used).filter(|free| *free > 0);
    let free = free.ok_or(Refusal::NotExact)?;
    exactly(set, cpus, taken, above)
        .or_else(|| u64::try_from(above.checked_mul(1 << 64)?.div_ceil(free)).ok())
        .ok_or(Refusal::Overflow)
}

/// x without a rounded utilisation, where the fractions fit into 128 bits.
fn exactly(set: &TaskSet, cpus: u64, taken: usize, above: u128) -> Option<u64> {
    let mut tasks: Vec<&Task> = set.tasks().iter().collect();
    let share = |t: &Task| share_floor(t.cost, t.period);
    tasks.sort_by(|a, b| {
        let exact = u128::from(b.cost) * u128::from(a.period);
        let with = u128::from(a.cost) * u128::from(b.period);
        share(b).cmp(&share(a)).then(exact.cmp(&with))
    });
    let (mut free, mut whole) = (u128::from(cpus), 1u128);
    for task in tasks.iter().take(taken.saturating_sub(1)) {
        let used = whole.checked_mul(task.cost.into())?;
        free = free.checked_mul(task.period.into())?.checked_sub(used)?;
        whole = whole.checked_mul(task.period.into())?;
    }
    let bound = above.checked_mul(whole)?.div_ceil(Some(free).filter(|free| *free > 0)?);
    u64::try_from(bound).ok()
}

/// The utilisation rounded up, less 1: how many processors it fills completely and more.
fn full_below(set: &TaskSet, cpus: u64) -> u64 {
    let shares = || set.tasks().iter().map(|t| (t.cost, t.period));
    let above = |whole: u64| compare_shares(shares(), (whole, 1)) == Ordering::Greater;
    let most = cpus.min(set.len() as u64);
    (1..most).rev().find(|whole| above(*whole)).unwrap_or(0)
}
