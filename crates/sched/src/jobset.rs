//! Jobs that are not preempted, on one processor: every order that can happen.
//!
//! Owns: the exploration by Nasri and Brandenburg (RTSS 2017), which merges all schedules that have
//! done the same jobs, and is exact on one processor in discrete time. Must not: assume an order of
//! the jobs given.

use std::collections::BTreeMap;

use crate::effort::StepLimit;
use crate::verdict::{Refusal, Verdict, Witness};

/// A job with release and execution time known up to an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncertainJob {
    /// The number of the job, for the report.
    pub id: u64,
    /// Earliest and latest release.
    pub release: (u64, u64),
    /// Shortest and longest execution time.
    pub cost: (u64, u64),
    /// Absolute deadline.
    pub deadline: u64,
    /// The smaller number is more urgent; under EDF the deadline.
    pub priority: u64,
}

/// The order of two jobs of equal priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The one with the smaller number.
    ById,
    /// The one that is released first; either one where that is not known.
    ByRelease,
    /// Either one.
    Any,
}

impl Ties {
    /// Whether `other` is certain to go before `job` when both are released.
    fn goes_before(self, other: &UncertainJob, job: &UncertainJob) -> bool {
        other.priority < job.priority
            || other.priority == job.priority
                && match self {
                    Ties::ById => other.id < job.id,
                    Ties::ByRelease => other.release.1 < job.release.0,
                    Ties::Any => false,
                }
    }
}

/// A job whose intervals are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {id}: the earliest is later than the latest")]
pub struct EmptyInterval {
    /// The job.
    pub id: u64,
}

/// The verdict and when each job is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration {
    /// Whether all jobs are done by their deadlines in every order.
    pub verdict: Verdict,
    /// Earliest and latest completion of each job, by its position; nothing where the search was
    /// given up.
    pub finish: Vec<Option<(u64, u64)>>,
}

/// Which jobs are done: all before the first of these positions, and the ones that follow it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct JobBitSet {
    first: usize,
    others: Vec<usize>,
}

impl JobBitSet {
    fn has(&self, position: usize) -> bool {
        position < self.first || self.others.binary_search(&position).is_ok()
    }

    fn with(&self, position: usize) -> JobBitSet {
        let mut others = self.others.clone();
        let at = others.binary_search(&position).unwrap_or_else(|at| at);
        others.insert(at, position);
        let is_next = |(at, other): &(usize, &usize)| **other == self.first + at;
        let passed = others.iter().enumerate().take_while(is_next).count();
        JobBitSet { first: self.first + passed, others: others.split_off(passed) }
    }
}

/// Explores all schedules of a work-conserving scheduler that never preempts. Goes on after a
/// deadline is missed.
///
/// # Errors
/// An interval that is empty.
pub fn explore(
    jobs: &[UncertainJob],
    ties: Ties,
    effort: StepLimit,
) -> Result<Exploration, EmptyInterval> {
    let empty = |job: &&UncertainJob| job.release.0 > job.release.1 || job.cost.0 > job.cost.1;
    if let Some(job) = jobs.iter().find(empty) {
        return Err(EmptyInterval { id: job.id });
    }
    // In order of their releases, so that a search for what may run next ends early.
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|at| jobs[*at].release);
    let sorted: Vec<UncertainJob> = order.iter().map(|at| jobs[*at]).collect();
    let mut found = vec![None; jobs.len()];
    let mut finish = vec![None; jobs.len()];
    let verdict = match search(&sorted, ties, effort, &mut found) {
        Ok(()) => {
            order.iter().zip(found).for_each(|(at, found)| finish[*at] = found);
            verdict(jobs, &finish)
        }
        Err(why) => Verdict::Unknown(why),
    };
    Ok(Exploration { verdict, finish })
}

fn verdict(jobs: &[UncertainJob], finish: &[Option<(u64, u64)>]) -> Verdict {
    let late = jobs.iter().zip(finish).filter_map(|(job, finish)| {
        let (_, latest) = (*finish)?;
        (latest > job.deadline).then_some(Witness::Job {
            job: job.id,
            finish: latest,
            deadline: job.deadline,
        })
    });
    late.into_iter().next().map_or(Verdict::Feasible, Verdict::Infeasible)
}

fn search(
    jobs: &[UncertainJob],
    ties: Ties,
    mut effort: StepLimit,
    finish: &mut [Option<(u64, u64)>],
) -> Result<(), Refusal> {
    // All states with the same number of jobs done: which, and when the processor becomes free.
    let start = JobBitSet { first: 0, others: Vec::new() };
    let mut states = BTreeMap::from([(start, vec![(0, 0)])]);
    for _ in 0..jobs.len() {
        let mut next: BTreeMap<JobBitSet, Vec<(u64, u64)>> = BTreeMap::new();
        for (done, frees) in &states {
            for free in frees {
                let waiting = waiting(jobs, done, *free);
                for position in &waiting {
                    effort.charge(waiting.len())?;
                    let Some(start) = starts(jobs, ties, &waiting, *free, *position) else {
                        continue;
                    };
                    let cost = jobs[*position].cost;
                    let earliest = start.0.checked_add(cost.0).ok_or(Refusal::Overflow)?;
                    let latest = start.1.checked_add(cost.1).ok_or(Refusal::Overflow)?;
                    let seen = finish[*position].unwrap_or((earliest, latest));
                    finish[*position] = Some((seen.0.min(earliest), seen.1.max(latest)));
                    next.entry(done.with(*position)).or_default().push((earliest, latest));
                }
            }
        }
        next.values_mut().for_each(|frees| *frees = merged(std::mem::take(frees)));
        states = next;
    }
    Ok(())
}

/// The jobs, in order of their earliest releases, that may be released before one must begin.
fn waiting(jobs: &[UncertainJob], done: &JobBitSet, free: (u64, u64)) -> Vec<usize> {
    let mut waiting = Vec::new();
    let mut first_sure = u64::MAX;
    for position in (done.first..jobs.len()).filter(|at| !done.has(*at)) {
        if jobs[position].release.0 > free.1.max(first_sure) {
            break;
        }
        first_sure = first_sure.min(jobs[position].release.1);
        waiting.push(position);
    }
    waiting
}

/// When one of the waiting jobs may start as the next one, if the processor becomes free within `free`.
fn starts(
    jobs: &[UncertainJob],
    ties: Ties,
    waiting: &[usize],
    free: (u64, u64),
    position: usize,
) -> Option<(u64, u64)> {
    let job = &jobs[position];
    // At the latest when the first job is sure to be released, if the processor is free by then.
    let first_sure = waiting.iter().map(|at| jobs[*at].release.1).min()?;
    let mut latest = free.1.max(first_sure);
    let others = waiting.iter().filter(|at| **at != position).map(|at| &jobs[*at]);
    for other in others.filter(|other| ties.goes_before(other, job)) {
        // The start is before a more urgent job is certainly released.
        latest = latest.min(other.release.1.checked_sub(1)?);
    }
    let earliest = free.0.max(job.release.0);
    (earliest <= latest).then_some((earliest, latest))
}

/// Intervals that touch become one.
fn merged(mut intervals: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    intervals.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(intervals.len());
    for (from, to) in intervals {
        match merged.last_mut() {
            Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Completion times by running every combination of whole release and execution times.
    fn by_force(jobs: &[UncertainJob]) -> Vec<Option<(u64, u64)>> {
        let mut finish = vec![None; jobs.len()];
        let choices: Vec<(u64, u64)> = jobs.iter().flat_map(|j| [j.release, j.cost]).collect();
        let mut chosen: Vec<u64> = choices.iter().map(|(from, _)| *from).collect();
        loop {
            run(jobs, &chosen, &mut finish);
            let Some(at) = (0..chosen.len()).find(|at| chosen[*at] < choices[*at].1) else { break };
            chosen[at] += 1;
            for before in 0..at {
                chosen[before] = choices[before].0;
            }
        }
        finish
    }

    fn run(jobs: &[UncertainJob], chosen: &[u64], finish: &mut [Option<(u64, u64)>]) {
        let mut left: Vec<usize> = (0..jobs.len()).collect();
        let mut now = 0;
        while !left.is_empty() {
            let ready = left.iter().filter(|at| chosen[**at * 2] <= now);
            match ready.min_by_key(|at| (jobs[**at].priority, jobs[**at].id)).copied() {
                Some(at) => {
                    now += chosen[at * 2 + 1];
                    let seen = finish[at].unwrap_or((now, now));
                    finish[at] = Some((seen.0.min(now), seen.1.max(now)));
                    left.retain(|other| *other != at);
                }
                None => now += 1,
            }
        }
    }

    fn job() -> impl Strategy<Value = (u64, u64, u64, u64, u64)> {
        (0..8u64, 0..3u64, 1..5u64, 0..3u64, 0..4u64)
    }

    proptest! {
        #[test]
        fn all_completion_times_are_found_and_no_others(
            numbers in proptest::collection::vec(job(), 1..5)
        ) {
            let jobs: Vec<UncertainJob> = numbers
                .iter()
                .zip(0..)
                .map(|((r, rs, c, cs, priority), id)| UncertainJob {
                    id,
                    release: (*r, r + rs),
                    cost: (*c, c + cs),
                    deadline: 12,
                    priority: *priority,
                })
                .collect();
            let found = explore(&jobs, Ties::ById, StepLimit::default()).unwrap();
            prop_assert_eq!(found.finish, by_force(&jobs));
        }
    }

    #[test]
    fn intervals_must_not_be_empty() {
        let job = UncertainJob { id: 7, release: (3, 2), cost: (1, 1), deadline: 9, priority: 0 };
        assert_eq!(explore(&[job], Ties::ById, StepLimit::default()), Err(EmptyInterval { id: 7 }));
    }
}
