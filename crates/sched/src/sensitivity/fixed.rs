//! The same limits under fixed priorities, a task at a time.
//!
//! Owns: [`FixedLimits`]. Whether a set is feasible is a question to each of its tasks. What one of them
//! accepts is sought by bisection for that one alone; the others are only asked about the result. A task that
//! accepted a larger value need not be asked again. Must not: answer where tests are not monotone.

use std::ops::Range;

use crate::effort::StepLimit;
use crate::fixed_priority::{LateRanks, is_swept, late_among};
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, Refusal, Verdict};

use super::with_cost;

/// Limits of a set that is preemptive, feasible, and of different priorities without blocking.
#[derive(Clone, Debug)]
pub struct FixedLimits {
    set: TaskSet,
    /// The rank of each task.
    rank: Vec<usize>,
    /// For each rank the one at or after it whose bound is closest to its deadline: it probably decides.
    critical: Vec<usize>,
}

impl FixedLimits {
    /// Of a set with its preemptive analysis; `None` where it is not such a set.
    #[must_use]
    pub fn new(set: &TaskSet, analysis: &Analysis) -> Option<FixedLimits> {
        if !is_swept(set) || analysis.verdict() != Verdict::Feasible {
            return None;
        }
        let order = set.by_priority();
        let bounds = analysis.from_arrival();
        let mut rank = vec![0; set.len()];
        let mut critical = vec![0; set.len()];
        let close = |rank: usize| {
            let bound = bounds.get(order[rank]).copied().flatten().unwrap_or(u64::MAX);
            (u128::from(bound), u128::from(set.tasks()[order[rank]].deadline))
        };
        let mut best = set.len().checked_sub(1)?;
        for at in (0..set.len()).rev() {
            let ((bound, deadline), (most, least)) = (close(at), close(best));
            if bound * least > most * deadline {
                best = at;
            }
            critical[at] = best;
            rank[order[at]] = at;
        }
        Some(FixedLimits { set: set.clone(), rank, critical })
    }

    /// As [`super::largest_cost`].
    ///
    /// # Errors
    /// [`Refusal::TooLong`] where the effort ends.
    pub fn largest_cost(
        &mut self,
        task: usize,
        effort: &mut StepLimit,
    ) -> Result<Option<u64>, Refusal> {
        let Some(old) = self.set.tasks().get(task) else { return Ok(None) };
        let (low, high) = (old.cost, old.deadline);
        self.limit(task, (low, high), with_cost, effort).map(Some)
    }

    /// As [`super::largest_jitter`].
    ///
    /// # Errors
    /// [`Refusal::TooLong`] where the effort ends.
    pub fn largest_jitter(
        &mut self,
        task: usize,
        effort: &mut StepLimit,
    ) -> Result<Option<u64>, Refusal> {
        let Some(old) = self.set.tasks().get(task) else { return Ok(None) };
        let (low, high) = (old.jitter, old.deadline);
        self.limit(task, (low, high), |t, jitter| Some(t.with_jitter(jitter)), effort).map(Some)
    }

    /// As [`super::smallest_period`].
    ///
    /// # Errors
    /// [`Refusal::TooLong`] where the effort ends.
    pub fn smallest_period(
        &mut self,
        task: usize,
        effort: &mut StepLimit,
    ) -> Result<Option<u64>, Refusal> {
        let Some(old) = self.set.tasks().get(task) else { return Ok(None) };
        let (longest, implicit) = (old.period, old.deadline == old.period);
        let change = |t: &Task, less: u64| {
            let period = longest - less;
            let deadline = if implicit { period } else { t.deadline };
            Some(Task { period, deadline, ..t.clone() })
        };
        let less = self.limit(task, (0, longest - 1), change, effort)?;
        Ok(Some(longest - less))
    }

    /// The largest value up to `high` with which the set is feasible; with `low` it is.
    fn limit(
        &mut self,
        task: usize,
        (low, high): (u64, u64),
        change: impl Fn(&Task, u64) -> Option<Task>,
        effort: &mut StepLimit,
    ) -> Result<u64, Refusal> {
        let first = self.rank[task];
        let critical = self.critical[first];
        let old = self.set.tasks()[task].clone();
        let mut accepts = |set: &mut TaskSet, value: u64, from: usize, to: usize| {
            let Some(changed) = change(&old, value) else { return Ok(Some(LateRanks::at(from))) };
            set.replace(task, changed);
            match late_among(set, from..to, effort) {
                Err(Refusal::TooLong) => Err(Refusal::TooLong),
                // A set without a verdict is not accepted.
                Err(_) => Ok(Some(LateRanks::at(from))),
                Ok(late) => Ok(late),
            }
        };
        let found = search(&mut self.set, (low, high), (first, critical), &mut accepts);
        self.set.replace(task, old);
        found
    }
}

/// Asks the critical rank first, then all from `first` on. `accepts` gives the late ones of a range
/// of ranks.
fn search(
    set: &mut TaskSet,
    (low, high): (u64, u64),
    (first, critical): (usize, usize),
    accepts: &mut impl FnMut(&mut TaskSet, u64, usize, usize) -> Result<Option<LateRanks>, Refusal>,
) -> Result<u64, Refusal> {
    let mut value = narrowed(set, (low, high), critical..critical + 1, accepts)?;
    let mut next = first;
    while value > low {
        let Some(late) = accepts(set, value, next, set.len())? else { break };
        let less = narrowed(set, (low, value), late.worst..late.worst + 1, accepts)?;
        if less == value {
            // A number of another task does not fit.
            return narrowed(set, (low, value), next..set.len(), accepts);
        }
        (value, next) = (less, late.first);
    }
    Ok(value)
}

/// The largest value that ranks accept; they do accept `low`.
fn narrowed(
    set: &mut TaskSet,
    (low, high): (u64, u64),
    ranks: Range<usize>,
    accepts: &mut impl FnMut(&mut TaskSet, u64, usize, usize) -> Result<Option<LateRanks>, Refusal>,
) -> Result<u64, Refusal> {
    let mut accepted = |value: u64| Ok(accepts(set, value, ranks.start, ranks.end)?.is_none());
    if low >= high || accepted(high)? {
        return Ok(high.max(low));
    }
    let (mut good, mut bad) = (low, high);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if accepted(middle)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok(good)
}
