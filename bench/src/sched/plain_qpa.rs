//! Quick processor-demand analysis as it was published.
//!
//! Owns: the search of Zhang and Burns (IEEE TC 2009) without cuts, as it stood here before them, in 64
//! bits and without a proof. Must not: be fast by other means.

use hourglass_sched::TaskSet;

/// Its name in the rows.
pub(super) const NAME: &str = "plain-qpa";

/// Binary digits behind the point of a share.
const DIGITS: u32 = 32;

/// Whether the demand of a set of preemptive tasks without jitter never exceeds the interval in which it is
/// due. `None` where numbers are too large, or nearly all of the processor is used.
pub(super) fn feasible(set: &TaskSet) -> Option<bool> {
    let mut interval = last_before(set, length(set)?);
    let first = set.tasks().iter().map(|task| task.deadline()).min().unwrap_or(u64::MAX);
    while let Some(at) = interval.filter(|at| *at >= first) {
        let demand = demand(set, at)?;
        if demand > at {
            return Some(false);
        }
        interval = if demand < at { Some(demand) } else { last_before(set, at) };
    }
    Some(true)
}

/// La: more is demanded in no interval as long or longer.
fn length(set: &TaskSet) -> Option<u64> {
    let (mut used, mut excess, mut least) = (0u64, 0i64, 0);
    for task in set.tasks() {
        let cost = u64::from(u32::try_from(task.cost()).ok()?);
        used = used.checked_add((cost << DIGITS) / task.period() + 1)?;
        least = least.max(task.deadline().saturating_sub(task.period()));
        let period = i64::try_from(task.period()).ok()?;
        let gap = period - i64::try_from(task.deadline()).ok()?;
        excess = excess.checked_add(gap.checked_mul(i64::try_from(cost).ok()?)? / period + 1)?;
    }
    let free = (1u64 << DIGITS).checked_sub(used).filter(|free| *free > 0)?;
    let end = (u128::try_from(excess).unwrap_or(0) << DIGITS) / u128::from(free);
    u64::try_from(end).ok()?.max(least).checked_add(1)
}

fn demand(set: &TaskSet, interval: u64) -> Option<u64> {
    let mut sum = 0u64;
    for task in set.tasks() {
        if let Some(after) = interval.checked_sub(task.deadline()) {
            sum = sum.checked_add((after / task.period() + 1).checked_mul(task.cost())?)?;
        }
    }
    Some(sum)
}

fn last_before(set: &TaskSet, end: u64) -> Option<u64> {
    let end = end.checked_sub(1)?;
    let last = |task: &hourglass_sched::Task| {
        let after = end.checked_sub(task.deadline())?;
        Some(end - after % task.period())
    };
    set.tasks().iter().filter_map(last).max()
}
