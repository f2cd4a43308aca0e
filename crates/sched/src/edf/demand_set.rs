//! What a demand test keeps of each task.
//!
//! Owns: [`DemandSet`], the demand of all tasks in an interval, and the cut. Must not: judge; decide how long the
//! intervals are.

use crate::exact_fraction::share_floor;
use crate::task::Task;

use super::demand::{first_deadline, task_demand};

/// Binary digits behind the point of a share.
pub(super) const DIGITS: u32 = 32;

/// Intervals, deadlines, jitters and sums of costs below this cannot overflow: 146 years.
const NEAR: u64 = 1 << 62;

/// A task as a demand test sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DemandTask {
    /// By how much the deadline is longer than the jitter, where both are below [`NEAR`].
    lag: i64,
    period: u64,
    /// Cost and suspension.
    cost: u64,
    /// The share of the processor that it uses, rounded down.
    pub(super) share: u64,
    /// The last deadline in the current interval, or 0.
    last: u64,
}

impl DemandTask {
    pub(super) fn from_task(task: &Task) -> DemandTask {
        let cost = task.cost.saturating_add(task.suspension);
        let share = share_floor(cost, task.period) >> (u64::BITS - DIGITS);
        DemandTask::new(task, cost, u64::try_from(share).unwrap_or(u64::MAX))
    }

    #[inline]
    pub(super) fn new(task: &Task, cost: u64, share: u64) -> DemandTask {
        let lag = task.deadline.wrapping_sub(task.jitter).cast_signed();
        DemandTask { lag, period: task.period, cost, share, last: 0 }
    }

    /// How much longer than the period the first deadline is, of a task that is near. Below, its line is
    /// under the demand.
    fn begins(&self) -> u64 {
        u64::try_from(self.lag).unwrap_or(0).saturating_sub(self.period)
    }
}

/// All tasks of a set.
#[derive(Clone, Debug, Default)]
pub(crate) struct DemandSet {
    lanes: Vec<DemandTask>,
    /// The binary digits that any deadline or jitter has.
    times: u64,
    costs: u64,
    /// Whether any first deadline is longer than its period.
    has_long_deadlines: bool,
    /// The shortest of the lags.
    shortest: Option<i64>,
    blocking: u64,
}

impl DemandSet {
    pub(super) fn with_capacity(tasks: usize) -> DemandSet {
        DemandSet { lanes: Vec::with_capacity(tasks), ..DemandSet::default() }
    }

    pub(super) fn clear(&mut self) {
        let mut lanes = std::mem::take(&mut self.lanes);
        lanes.clear();
        *self = DemandSet { lanes, ..DemandSet::default() };
    }

    #[inline]
    pub(super) fn push(&mut self, task: &Task, lane: DemandTask) {
        self.times |= task.deadline | task.jitter;
        self.costs = self.costs.saturating_add(lane.cost);
        self.has_long_deadlines |= first_deadline(task) > task.period;
        self.blocking = self.blocking.max(task.blocking);
        self.shortest = Some(self.shortest.map_or(lane.lag, |lag| lag.min(lane.lag)));
        self.lanes.push(lane);
    }

    /// How long jobs are kept waiting where nothing but what is stated blocks.
    #[inline]
    pub(super) fn blocking(&self) -> u64 {
        self.blocking
    }

    /// The shortest first deadline; of tasks that are near.
    pub(super) fn lowest(&self) -> u64 {
        self.shortest.map_or(u64::MAX, |lag| u64::try_from(lag).unwrap_or(0))
    }

    /// Whether sums in intervals below `end` cannot overflow, given that the shares are at most 1 in all: a
    /// demand is at most the interval with the longest jitter, and a job of each task.
    pub(super) fn are_near(&self, end: u64) -> bool {
        (self.times | end | self.costs) < NEAR
    }

    /// The demand in an interval and the last deadline in it, or 0, for tasks that are near.
    #[inline]
    pub(super) fn look(&mut self, interval: u64) -> (u64, u64) {
        let (mut sum, mut latest) = (0u64, 0);
        for lane in &mut self.lanes {
            lane.last = 0;
            if let Ok(after) = u64::try_from(interval.cast_signed() - lane.lag) {
                let jobs = after / lane.period;
                sum += (jobs + 1) * lane.cost;
                // A job may be due before 0, which is later than its release.
                lane.last = interval.saturating_sub(after - jobs * lane.period);
                latest = latest.max(lane.last);
            }
        }
        (sum, latest)
    }

    /// The same for any tasks; `None` without a deadline in the interval.
    #[cold]
    pub(super) fn look_far(&mut self, tasks: &[Task], interval: u64) -> (u128, Option<u64>) {
        let (mut sum, mut latest) = (0u128, None);
        for (lane, task) in self.lanes.iter_mut().zip(tasks) {
            sum = sum.saturating_add(task_demand(task, interval));
            // Jitter puts deadlines closer, the first perhaps before 0.
            let shifted = u128::from(interval) + u128::from(task.jitter);
            let after = shifted.checked_sub(task.deadline.into());
            let rest = after.map(|after| after % u128::from(task.period));
            let rest = rest.and_then(|rest| u64::try_from(rest).ok());
            let last = rest.and_then(|rest| interval.checked_sub(rest));
            lane.last = last.unwrap_or(0);
            latest = latest.max(last);
        }
        (sum, latest)
    }

    /// The least interval from which up to the one looked at nothing demands too much, given that what is
    /// demanded in that one is `level` with the blocking: where jobs due after `level` count by their
    /// shares only. Of tasks that are near. A cut of Singh ("Cutting-plane algorithms for preemptive
    /// uniprocessor real-time scheduling problems", RTS 2023, section 5); QPA goes to `level`.
    #[inline]
    pub(super) fn cut(&self, level: u64, interval: u64) -> u64 {
        let (lower, used) = match u32::try_from(interval) {
            Ok(_) => self.lower(level),
            Err(_) => self.lower_far(level),
        };
        let free = (1u64 << DIGITS).checked_sub(used).filter(|free| *free > 0);
        let further = match (free, u64::try_from(lower)) {
            (None, _) => return level,
            (Some(free), Ok(lower)) => lower / free,
            (Some(free), Err(_)) => u64::try_from(lower / u128::from(free)).unwrap_or(u64::MAX),
        };
        level.saturating_sub(further).max(self.least(level))
    }

    /// Of the tasks with a job due after `level`: by how much their lines are lower there, and their shares.
    /// For intervals below 2^32, in which lines with shares of at most 1 in all fit into 64 digits.
    #[inline]
    fn lower(&self, level: u64) -> (u128, u64) {
        let (mut lower, mut used) = (0u64, 0u64);
        for lane in &self.lanes {
            let share = lane.share & u64::from(lane.last > level).wrapping_neg();
            lower = lower.wrapping_add(lane.last.wrapping_sub(level).wrapping_mul(share));
            used = used.wrapping_add(share);
        }
        (lower.into(), used)
    }

    /// The same for any intervals.
    #[cold]
    fn lower_far(&self, level: u64) -> (u128, u64) {
        let (mut lower, mut used) = (0u128, 0u64);
        for lane in self.lanes.iter().filter(|lane| lane.last > level) {
            lower += u128::from(lane.last - level) * u128::from(lane.share);
            used = used.saturating_add(lane.share);
        }
        (lower, used)
    }

    /// The point from which on the lines hold, but not above `level`.
    #[inline]
    fn least(&self, level: u64) -> u64 {
        if !self.has_long_deadlines {
            return 0;
        }
        let later = self.lanes.iter().filter(|lane| lane.last > level);
        later.map(DemandTask::begins).max().unwrap_or(0).min(level)
    }
}
