//! Which task is late first, without bounds: what a search for limits asks again and again.
//!
//! Owns: [`first_late`]. Tasks known to be in time are only counted; windows grow from there.
//! Must not: answer for a set to which the sweep does not apply.

use std::cmp::Ordering;
use std::ops::Range;

use super::{Digits, Lanes, NEAR, Shares, Sweep, all_digits, level};
use crate::effort::Effort;
use crate::fixed_priority::{Sections, TimeModel, response};
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, Verdict};

/// The first rank of `ranks` at which a task is not known to be in time; those before are in time.
pub(in crate::fixed_priority) fn first_late(
    set: &TaskSet,
    ranks: Range<usize>,
    effort: &mut Effort,
) -> Result<Option<usize>, Refusal> {
    let digits = all_digits(set);
    let near = digits.saturating_mul(set.len() as u64) < NEAR;
    if digits < <u32 as Digits>::LONGEST {
        Probe::<u32>::new(set, near, *effort).search(ranks, effort)
    } else {
        Probe::<u64>::new(set, near, *effort).search(ranks, effort)
    }
}

struct Probe<'a, N> {
    set: &'a TaskSet,
    sweep: Sweep<N>,
    shares: Shares,
}

impl<N: Digits> Probe<'_, N> {
    fn new(set: &TaskSet, near: bool, effort: Effort) -> Probe<'_, N> {
        let counted = Lanes::with_capacity(set.len());
        let sweep = Sweep { counted, earliest: 0, end: 0, used: 0, early: 0, near, effort };
        Probe { set, sweep, shares: Shares::default() }
    }

    fn search(
        mut self,
        ranks: Range<usize>,
        effort: &mut Effort,
    ) -> Result<Option<usize>, Refusal> {
        let found = self.first(ranks);
        *effort = self.sweep.effort;
        found
    }

    fn first(&mut self, ranks: Range<usize>) -> Result<Option<usize>, Refusal> {
        self.sweep.effort.look(ranks.start)?;
        for rank in 0..ranks.end {
            let order = self.set.by_priority();
            let task = |rank: usize| &self.set.tasks()[order[rank]];
            let used = self.shares.add(task(rank), || (0..=rank).map(task));
            if used == Ordering::Greater {
                return Ok(Some(rank.max(ranks.start)));
            }
            if rank < ranks.start {
                self.begin(task(rank)).ok_or(Refusal::Overflow)?;
            } else if !self.in_time(rank, used)? {
                return Ok(Some(rank));
            }
        }
        Ok(None)
    }

    /// Counts the jobs of a task that are released when the window begins.
    fn begin(&mut self, task: &Task) -> Option<()> {
        let jobs = task.jitter / task.period + 1;
        self.sweep.end = self.sweep.end.checked_add(jobs.checked_mul(task.cost)?)?;
        let next = jobs.checked_mul(task.period)?.checked_sub(task.jitter)?;
        self.sweep.count(task, 0, next, &self.shares);
        Some(())
    }

    /// Whether the task is known to be in time; then it is counted.
    fn in_time(&mut self, rank: usize, used: Ordering) -> Result<bool, Refusal> {
        let position = self.set.by_priority()[rank];
        if used == Ordering::Equal && self.shares.jitter > 0 {
            // The window repeats. What comes after has no share left.
            let (sections, time) = (Sections::Preemptive, TimeModel::Continuous);
            let found = level::one(self.set, position, sections, time, &mut self.sweep.effort);
            return if found == Verdict::Unknown(Refusal::TooLong) {
                Err(Refusal::TooLong)
            } else {
                Ok(found == Verdict::Feasible)
            };
        }
        let task = &self.set.tasks()[position];
        let mut late = false;
        self.sweep.task(task, &self.shares, |point| {
            let found = response(&point, task.period, task.jitter);
            late = found.is_none_or(|found| found.from_arrival > task.deadline);
            !late
        })?;
        Ok(!late)
    }
}
