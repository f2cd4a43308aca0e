//! The busy window of one job: from when its CPU last had nothing as urgent to do, to its end.
//!
//! Owns: which jobs are in it, which assumptions fail there, and the set with what was measured in it. Must not: use
//! what was measured elsewhere, so that the bound that follows is as tight as the run allows.

use hourglass_documents::predict::Assumption;
use hourglass_tasks::TaskSet;
use hourglass_time::Span;

use super::observed::{AnalysisAssumption, ObservedJob, ObservedRun};

/// The window of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The task whose job it is.
    task: usize,
    job: ObservedJob,
    /// Tasks at least as urgent on its CPU, each with the numbers of its jobs that overlap the window.
    jobs: Vec<(usize, std::ops::Range<usize>)>,
}

impl Window {
    /// The window of the job with the longest response. `None` where no job of the task ended, or it has several CPUs.
    pub(super) fn of_worst(seen: &ObservedRun, set: &TaskSet, task: usize) -> Option<Window> {
        let thread = seen.threads.get(task)?;
        thread.cpu?;
        let job = *thread.jobs.iter().max_by_key(|job| job.times.response_ns())?;
        let end = job.times.finished_ns;
        let as_urgent = |other: usize| {
            let known = &seen.threads[other];
            other == task
                || (known.cpu == thread.cpu
                    && known.urgency.is_none_or(|u| Some(u) >= thread.urgency))
        };
        let tasks: Vec<usize> = (0..set.tasks.len().min(seen.threads.len()))
            .filter(|other| as_urgent(*other))
            .collect();
        let mut start = job.times.arrival_ns;
        loop {
            // Jobs are in the order of their ends, of one task also in that of their arrivals.
            let earlier = tasks.iter().filter_map(|other| {
                let jobs = &seen.threads[*other].jobs;
                let first = jobs.partition_point(|job| job.times.finished_ns <= start);
                jobs.get(first).map(|job| job.times.arrival_ns).filter(|arrival| *arrival < start)
            });
            match earlier.min() {
                Some(arrival) => start = arrival,
                None => break,
            }
        }
        let within = |other: &usize| {
            let jobs = &seen.threads[*other].jobs;
            let first = jobs.partition_point(|job| job.times.finished_ns <= start);
            let last = jobs.partition_point(|job| job.times.arrival_ns < end);
            (*other, first..last.max(first))
        };
        Some(Window { task, job, jobs: tasks.iter().map(within).collect() })
    }

    /// The response of its job.
    pub(super) fn response_ns(&self) -> u64 {
        self.job.times.response_ns()
    }

    /// The assumptions that fail in it, the largest excess first.
    pub(super) fn failed(&self, seen: &ObservedRun, set: &TaskSet) -> Vec<Assumption> {
        let rows = self.jobs.iter().flat_map(|(task, jobs)| {
            AnalysisAssumption::ALL.map(|assumed| seen.row(set, *task, assumed, jobs.clone()))
        });
        let mut failed: Vec<Assumption> = rows.filter(|row| row.held == Some(false)).collect();
        let own = set.tasks.get(self.task).map_or("", |task| task.name.as_str());
        failed.sort_by_key(|row| (std::cmp::Reverse(row.excess_ns), row.task != own));
        failed
    }

    /// The set with what was measured in the window where that is more than what it says: execution times, release
    /// jitter, and as blocking of the task what others and less urgent tasks took, and what its jobs waited.
    pub(super) fn corrected(&self, seen: &ObservedRun, set: &TaskSet) -> TaskSet {
        let mut corrected = set.clone();
        let mut ready = self.job.ready();
        for (position, numbers) in &self.jobs {
            let jobs = &seen.threads[*position].jobs[numbers.clone()];
            let Some(task) = corrected.tasks.get_mut(*position) else { continue };
            let excess = |assumed| {
                let over = numbers.clone().filter_map(|n| seen.excess(set, *position, n, assumed));
                Span::saturating_from_nanos(over.max().unwrap_or(0))
            };
            let received = jobs.iter().map(|job| job.times.received_ns).max().unwrap_or(0);
            let late = jobs.iter().map(|job| job.release_delay_ns).max().unwrap_or(0);
            task.wcet = task.wcet.max(Span::saturating_from_nanos(received));
            task.jitter = task
                .jitter
                .max(Span::saturating_from_nanos(late))
                .saturating_add(excess(AnalysisAssumption::Arrivals));
            task.bcet = task.bcet.map(|bcet| bcet.min(task.wcet));
            ready =
                jobs.iter().map(ObservedJob::ready).min().map_or(ready, |first| first.min(ready));
        }
        let lost = seen.lost(self.task, &self.job, ready).unwrap_or(0);
        let inverted = seen.less_urgent(self.task, &self.job, ready).unwrap_or(0);
        let waited =
            seen.excess(set, self.task, self.number(seen), AnalysisAssumption::WorkConserving);
        let delay = lost.saturating_add(inverted).saturating_add(waited.unwrap_or(0));
        let delay = delay.max(self.beside_jobs(seen, ready));
        if let Some(task) = corrected.tasks.get_mut(self.task) {
            task.blocking = task.blocking.saturating_add(Span::saturating_from_nanos(delay));
        }
        corrected
    }

    /// How much of the window since `ready` none of its jobs received, but for what the job waited by itself: also what
    /// threads do between two jobs, and what rounding of times to ns leaves.
    fn beside_jobs(&self, seen: &ObservedRun, ready: i64) -> u64 {
        let length = self.job.times.finished_ns.saturating_sub(ready).max(0).unsigned_abs();
        let of_thread = |(position, numbers): &(usize, std::ops::Range<usize>)| -> u64 {
            let jobs = &seen.threads[*position].jobs[numbers.clone()];
            jobs.iter().map(|job| job.times.received_ns).sum()
        };
        let received = self.jobs.iter().map(of_thread).sum();
        let waits = seen.threads[self.task].waits_within(&self.job);
        let waited = waits.map(|(from, to)| to.saturating_sub(from).max(0).unsigned_abs()).sum();
        length.saturating_sub(received).saturating_sub(waited)
    }

    fn number(&self, seen: &ObservedRun) -> usize {
        let jobs = &seen.threads[self.task].jobs;
        jobs.iter().position(|job| *job == self.job).unwrap_or(usize::MAX)
    }
}
