//! Up to which length intervals must be looked at.
//!
//! Owns: the bounds called La (Baruah, Rosier and Howell, RTSJ 1990; Hoang et al., 2006) and Lb, the
//! synchronous busy period (Spuri, 1996). Must not: be exact; any larger length does as well.

use std::cmp::Ordering;

use crate::effort::StepLimit;
use crate::exact_fraction::{compare_shares, greatest_common_divisor, share_floor, stretched};
use crate::fixed_priority::{Sections, TimeModel};
use crate::recurrence::{InterferenceTerms, Stream};
use crate::task::{Task, TaskSet};
use crate::verdict::Refusal;

use super::demand::{blocking_within, first_deadline, segment_within};
use super::demand_set::{DIGITS, DemandSet, DemandTask};

/// The bound on the length of intervals that can demand too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// If there is one, there is one below this length.
    Below(u64),
    /// More is demanded than there is in all intervals that are long enough.
    Overload,
}

/// What an interval that demands too much is shorter than; and into `lanes` what a demand test needs of each
/// task.
pub(crate) fn length(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    effort: &mut StepLimit,
    lanes: &mut DemandSet,
) -> Result<Length, Refusal> {
    let segment = segment_within(set, 0, sections, time);
    if let Some(end) = quick(set.tasks(), segment, lanes) {
        return Ok(Length::Below(end));
    }
    let blocking = blocking_within(set, 0, sections, time);
    lanes.clear();
    set.tasks().iter().for_each(|task| lanes.push(task, DemandTask::from_task(task)));
    let share = |t: &Task| (t.cost.saturating_add(t.suspension), t.period);
    match compare_shares(set.tasks().iter().map(share), (1, 1)) {
        Ordering::Greater if is_overload(set) => Ok(Length::Overload),
        Ordering::Greater => Err(Refusal::SuspensionAsExecution),
        Ordering::Less => match slow(set.tasks(), blocking) {
            Some(end) => Ok(Length::Below(end)),
            None => full(set.tasks(), blocking, effort),
        },
        Ordering::Equal => full(set.tasks(), blocking, effort),
    }
}

/// Whether execution alone, without suspension, is more than there is.
pub(super) fn is_overload(set: &TaskSet) -> bool {
    let shares = set.tasks().iter().map(|task| (task.cost, task.period));
    compare_shares(shares, (1, 1)) == Ordering::Greater
}

fn stream(task: &Task, jitter: u64) -> Option<Stream> {
    Some(Stream {
        cost: task.cost.checked_add(task.suspension)?,
        jitter,
        ..Stream::from_task(task)
    })
}

/// La for numbers of usual size and a utilisation that is clearly below one:
/// the larger of D - T and (B + sum of (T - D) U) / (1 - U), rounded up. `segment`: what segments block.
fn quick(tasks: &[Task], segment: u64, lanes: &mut DemandSet) -> Option<u64> {
    let mut used = 0u64;
    // The excess has the digits behind the point of a share, rounded up.
    let mut excess = 0i128;
    let mut least = 0;
    for task in tasks {
        let cost = u32::try_from(task.cost.checked_add(task.suspension)?).ok()?;
        let lane = DemandTask::new(task, cost.into(), (u64::from(cost) << DIGITS) / task.period);
        used = used.checked_add(lane.share + 1)?;
        let deadline = i64::try_from(first_deadline(task)).ok()?;
        let gap = i64::try_from(task.period).ok()? - deadline;
        least = least.max(-gap);
        let share = i64::try_from(lane.share).ok()? + i64::from(gap > 0);
        excess += i128::from(gap) * i128::from(share);
        lanes.push(task, lane);
    }
    let free = (1u64 << DIGITS).checked_sub(used).filter(|free| *free >= 1 << (DIGITS / 2))?;
    excess += i128::from(lanes.blocking().saturating_add(segment)) << DIGITS;
    let end = match u64::try_from(excess.max(0)) {
        Ok(excess) => excess / free,
        Err(_) => u64::try_from(excess / i128::from(free)).ok()?,
    };
    end.max(u64::try_from(least).unwrap_or(0)).checked_add(1)
}

/// The same for any numbers, with 64 binary digits behind the point; `None` if they do not suffice.
fn slow(tasks: &[Task], blocking: u64) -> Option<u64> {
    let mut used = 0u128;
    let mut excess = i128::from(blocking);
    let mut least = 0;
    for task in tasks {
        let cost = task.cost.checked_add(task.suspension)?;
        used = used.checked_add(share_floor(cost, task.period) + 1)?;
        let deadline = first_deadline(task);
        least = least.max(deadline.saturating_sub(task.period));
        let gap = i128::from(task.period) - i128::from(deadline);
        excess = excess.checked_add(gap.checked_mul(cost.into())? / i128::from(task.period) + 1)?;
    }
    let end = stretched(u64::try_from(excess.max(0)).ok()?, used)?;
    end.max(least).checked_add(2)
}

/// At full utilisation the demand repeats after the hyperperiod, once every task has begun.
fn full(tasks: &[Task], blocking: u64, effort: &mut StepLimit) -> Result<Length, Refusal> {
    if blocking == 0 && tasks.iter().all(|t| t.jitter == 0) {
        // The busy period is at most a hyperperiod, and may be found where that has no number.
        let plain = tasks.iter().map(|t| stream(t, 0)).collect::<Option<Vec<_>>>();
        let plain = plain.ok_or(Refusal::Overflow)?;
        let first = plain.iter().try_fold(0u64, |sum, s| sum.checked_add(s.cost));
        let first = first.ok_or(Refusal::Overflow)?;
        let end = InterferenceTerms::from_task(plain).least_fixed_point(0, first, effort)?;
        return end.checked_add(1).map(Length::Below).ok_or(Refusal::Overflow);
    }
    let multiple = tasks.iter().try_fold(1u64, |multiple, t| {
        (multiple / greatest_common_divisor(multiple, t.period)).checked_mul(t.period)
    });
    let last = tasks.iter().map(|t| t.deadline).max().unwrap_or(0);
    let end = multiple.ok_or(Refusal::Endless)?.checked_add(last).and_then(|e| e.checked_add(1));
    end.map(Length::Below).ok_or(Refusal::Overflow)
}
