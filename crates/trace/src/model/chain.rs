//! Who activates whom: a thread that is woken by another one, once in each of its jobs.
//!
//! A thread that is still at work when it is woken again shows one job for two: such a chain is found, too, with its share, and
//! is not exact.

use hourglass_documents::task_model::{ChainFitModel, ThreadModel};

use super::jobs::{Grouped, Job};
use super::{covers, main_waker};

/// Of the jobs of a thread one in so many at most is merged with others. A thread that has no job for one in a few of them may
/// leave jobs out by a rule of its own.
const MERGED: u64 = 10;

#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub(super) after: String,
    pub(super) fit: ChainFitModel,
    /// For each job of the thread, how many of the one before came while it was at work, beside its own.
    pub(super) merged: Vec<u64>,
}

/// The thread that wakes this one for its jobs, in each of its own jobs once at most.
pub(super) fn find(
    thread: &ThreadModel,
    jobs: &[Job],
    all: &[(ThreadModel, Grouped)],
) -> Option<Chain> {
    let waker = main_waker(jobs)?;
    let (from, before) = all.iter().find(|(other, _)| other.tid == Some(waker))?;
    let is_task = from.unmodelled.is_none() && thread.unmodelled.is_none();
    if !is_task || from.tid == thread.tid || from.after.as_ref() == Some(&thread.name) {
        return None;
    }
    let at = |job: &Job| before.jobs.partition_point(|earlier| earlier.at_ns <= job.at_ns);
    let numbers: Vec<usize> = jobs.iter().map(at).collect();
    let is_once = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    let span = numbers.last()?.checked_sub(*numbers.first()?)?.checked_add(1)?;
    // The jobs before the next one's that began while this one was at work.
    let came = |at: usize| {
        let between = numbers[at]..numbers.get(at + 1).map_or(numbers[at], |next| next - 1);
        let others = before.jobs.get(between).unwrap_or_default();
        others.iter().filter(|other| other.at_ns <= jobs[at].end_ns).count() as u64
    };
    if !is_once {
        return None;
    }
    let merged: Vec<u64> = (0..jobs.len()).map(came).collect();
    let fit = ChainFitModel {
        jobs: span as u64,
        own: numbers.len() as u64,
        merged: merged.iter().copied().fold(0, u64::saturating_add),
    };
    // A thread that follows only some of the jobs is not activated by each.
    let is_each = covers(fit.own.saturating_add(fit.merged), fit.jobs)
        && fit.merged.saturating_mul(MERGED) <= fit.jobs;
    is_each.then(|| Chain { after: from.name.clone(), fit, merged })
}
