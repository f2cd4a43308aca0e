//! Which cases of a busy window need no look: those that cannot end later than the bound found so far.
//!
//! Owns: [`Steps`] and [`settled`]. The work that jobs of a task bring by an offset is a staircase, which
//! lies below a line as steep as the task's share of the processor. From a case downwards, work is at
//! most what it is there, and at most those lines: the cut of Singh ("Cutting-plane algorithms for
//! preemptive uniprocessor real-time scheduling problems", RTS 2023, section 5), which goes further than the step of
//! QPA (Zhang and Burns, IEEE TC 2009). Must not: know a policy.

use crate::exact_fraction::share_floor;

/// Jobs of a task that count one after the other as the offset of a case grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    /// The offset from which on the first job counts; perhaps before 0.
    pub(crate) begins: i128,
    pub(crate) period: u64,
    pub(crate) cost: u64,
    /// Share of the processor, rounded down, in 64 binary digits behind the point.
    share: u64,
}

impl Steps {
    pub(crate) fn new(begins: i128, period: u64, cost: u64) -> Steps {
        let share = u64::try_from(share_floor(cost, period)).unwrap_or(u64::MAX);
        Steps { begins, period, cost, share }
    }

    /// How many jobs count at an offset.
    pub(crate) fn jobs(&self, offset: u64) -> u64 {
        let after = i128::from(offset) - self.begins;
        match u64::try_from(after) {
            Ok(after) => (after / self.period).saturating_add(1),
            Err(_) if after < 0 => 0,
            Err(_) => {
                let jobs = after.unsigned_abs() / u128::from(self.period) + 1;
                u64::try_from(jobs).unwrap_or(u64::MAX)
            }
        }
    }

    /// The last offset below `end`, and not below 0, from which on one job more counts.
    pub(crate) fn last_before(&self, end: u64) -> Option<u64> {
        let last = end.checked_sub(1)?;
        let after = i128::from(last) - self.begins;
        let into = match u64::try_from(after) {
            Ok(after) => after % self.period,
            Err(_) if after < 0 => return None,
            Err(_) => (after.unsigned_abs() % u128::from(self.period)) as u64,
        };
        last.checked_sub(into)
    }
}

/// The least offset for which this is sure: no case from there up to and at `from` ends later than
/// `room` after its offset. Above `from` where not even that case is sure. `base` and the jobs that
/// count are all the work of a case at most; the shares add up to at most 1.
pub(crate) fn settled(
    steps: impl Iterator<Item = Steps> + Clone,
    base: u64,
    from: u64,
    room: i128,
) -> u64 {
    let work = steps.clone().map(|s| u128::from(s.jobs(from)) * u128::from(s.cost));
    let work = work.fold(u128::from(base), u128::saturating_add);
    let Ok(work) = i128::try_from(work) else { return from.saturating_add(1) };
    // With the work at `from`, all cases from here on are sure.
    let level = u64::try_from(work.saturating_sub(room).max(0)).unwrap_or(u64::MAX);
    if level > from {
        return from.saturating_add(1);
    }
    // At `level`, the lines of tasks with a later step are lower: the sum of share * (step - level).
    let (mut lower, mut used) = (0u128, 0u128);
    // A line is below the staircase where it is below 0.
    let mut least = 0i128;
    for task in steps {
        if let Some(last) = task.last_before(from.saturating_add(1))
            && last > level
        {
            lower += (u128::from(last - level) * u128::from(task.share)) >> 64;
            used += u128::from(task.share);
            least = least.max(task.begins - i128::from(task.period));
        }
    }
    let Some(free) = (1u128 << 64).checked_sub(used).filter(|free| *free > 0) else {
        return level;
    };
    let further = lower.checked_mul(1 << 64).map_or(u128::from(level), |lower| lower / free);
    let further = level.saturating_sub(u64::try_from(further).unwrap_or(level));
    further.max(u64::try_from(least).unwrap_or(0).min(level))
}
