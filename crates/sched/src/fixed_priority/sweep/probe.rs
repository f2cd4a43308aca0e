//! Which tasks are late, without bounds: what a search for limits asks again and again.
//!
//! Owns: [`late_among`]. Tasks known to be in time are only counted; windows grow from there.
//! Must not: answer for a set to which the sweep does not apply.

use std::cmp::Ordering;
use std::ops::Range;

use super::{Digits, NEAR, Shares, Sweep, VectorTasks, all_digits, level};
use crate::effort::StepLimit;
use crate::fixed_priority::{Sections, TimeModel, response};
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, Verdict};

/// Ranks of tasks that are not known to be in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LateRanks {
    /// The most urgent.
    pub(crate) first: usize,
    /// The one whose response is the most of its deadline.
    pub(crate) worst: usize,
}

impl LateRanks {
    /// Only one.
    pub(crate) fn at(rank: usize) -> LateRanks {
        LateRanks { first: rank, worst: rank }
    }
}

/// Those of `ranks` that are late, preemptively, in a set that is swept; the more urgent ones are in time.
pub(crate) fn late_among(
    set: &TaskSet,
    ranks: Range<usize>,
    effort: &mut StepLimit,
) -> Result<Option<LateRanks>, Refusal> {
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
    fn new(set: &TaskSet, near: bool, effort: StepLimit) -> Probe<'_, N> {
        let counted = VectorTasks::with_capacity(set.len());
        let sweep = Sweep { counted, earliest: 0, end: 0, used: 0, early: 0, near, effort };
        Probe { set, sweep, shares: Shares::default() }
    }

    fn search(
        mut self,
        ranks: Range<usize>,
        effort: &mut StepLimit,
    ) -> Result<Option<LateRanks>, Refusal> {
        let found = self.late(ranks);
        *effort = self.sweep.effort;
        found
    }

    fn late(&mut self, ranks: Range<usize>) -> Result<Option<LateRanks>, Refusal> {
        self.sweep.effort.charge(ranks.start)?;
        let mut late = None::<LateRanks>;
        let mut worst = DeadlineRatio { response: 0, deadline: 1 };
        for rank in 0..ranks.end {
            let order = self.set.by_priority();
            let task = |rank: usize| &self.set.tasks()[order[rank]];
            let used = self.shares.add(task(rank), || (0..=rank).map(task));
            if used == Ordering::Greater {
                let rank = rank.max(ranks.start);
                return Ok(Some(LateRanks {
                    first: late.map_or(rank, |late| late.first),
                    worst: rank,
                }));
            }
            if rank < ranks.start {
                self.begin(task(rank)).ok_or(Refusal::Overflow)?;
                continue;
            }
            let found = self.count(rank, used, ranks.len() == 1)?;
            if found.response > found.deadline {
                let late = late.get_or_insert(LateRanks::at(rank));
                if found.is_closer_than(worst) {
                    (late.worst, worst) = (rank, found);
                }
            }
        }
        Ok(late)
    }

    /// Counts the jobs of a task that are released when the window begins.
    fn begin(&mut self, task: &Task) -> Option<()> {
        let jobs = task.jitter / task.period + 1;
        self.sweep.end = self.sweep.end.checked_add(jobs.checked_mul(task.cost)?)?;
        let next = jobs.checked_mul(task.period)?.checked_sub(task.jitter)?;
        self.sweep.count(task, 0, next, &self.shares);
        Some(())
    }

    /// Counts a task; if it is `alone`, only up to a late job.
    fn count(
        &mut self,
        rank: usize,
        used: Ordering,
        alone: bool,
    ) -> Result<DeadlineRatio, Refusal> {
        let position = self.set.by_priority()[rank];
        let task = &self.set.tasks()[position];
        let mut found = DeadlineRatio { response: 0, deadline: task.deadline };
        if used == Ordering::Equal && self.shares.jitter > 0 {
            // The window repeats. What comes after has no share left.
            let (sections, time) = (Sections::Preemptive, TimeModel::Continuous);
            match level::analyse_task(self.set, position, sections, time, &mut self.sweep.effort) {
                Verdict::Unknown(Refusal::TooLong) => return Err(Refusal::TooLong),
                Verdict::Feasible => {}
                _ => found.response = u64::MAX,
            }
            return Ok(found);
        }
        self.sweep.task(task, &self.shares, |point| {
            let last = response(&point, task.period, task.jitter);
            found.response = found.response.max(last.map_or(u64::MAX, |last| last.from_arrival));
            !alone || found.response <= task.deadline
        })?;
        Ok(found)
    }
}

/// A response and the deadline for it.
#[derive(Clone, Copy, Debug)]
struct DeadlineRatio {
    response: u64,
    deadline: u64,
}

impl DeadlineRatio {
    fn is_closer_than(self, other: DeadlineRatio) -> bool {
        let part =
            |a: DeadlineRatio, b: DeadlineRatio| u128::from(a.response) * u128::from(b.deadline);
        part(self, other) > part(other, self)
    }
}
