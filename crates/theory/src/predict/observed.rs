//! What a run shows of each job where an analysis assumes something: when it came, what it received, who ran instead.
//!
//! Owns: putting jobs and intervals of a run together, and the excess of each job over each assumption. Must not:
//! explain, know the bounds.

use std::collections::BTreeMap;

use hourglass_documents::Policy;
use hourglass_documents::predict::Assumption;
use hourglass_measure::experiment::{Finished, JobTimes};
use hourglass_tasks::{Scheduler, Task, TaskSet};
use hourglass_time::Span;
use hourglass_trace::{Interval, IntervalStart};

use super::terms::{Coverage, Rule, only_cpu};
use hourglass_measure::task_threads::TaskRunPlan;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AnalysisAssumption {
    Arrivals,
    Release,
    Cost,
    WorkConserving,
    Priority,
    Supply,
}

impl AnalysisAssumption {
    pub(super) const ALL: [AnalysisAssumption; 6] = [
        AnalysisAssumption::Arrivals,
        AnalysisAssumption::Release,
        AnalysisAssumption::Cost,
        AnalysisAssumption::WorkConserving,
        AnalysisAssumption::Priority,
        AnalysisAssumption::Supply,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            AnalysisAssumption::Arrivals => "arrivals",
            AnalysisAssumption::Release => "release",
            AnalysisAssumption::Cost => "cost",
            AnalysisAssumption::WorkConserving => "work-conserving",
            AnalysisAssumption::Priority => "priority",
            AnalysisAssumption::Supply => "supply",
        }
    }
}

/// A job, and how late its timer released it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObservedJob {
    pub(super) times: JobTimes,
    pub(super) release_delay_ns: u64,
}

impl ObservedJob {
    /// The time from which on it wants the CPU, ns.
    pub(super) fn ready(&self) -> i64 {
        self.times.arrival_ns.saturating_add_unsigned(self.release_delay_ns)
    }
}

/// A thread of the run.
#[derive(Clone, Debug, Default)]
pub(super) struct ObservedThread {
    /// The only CPU of the thread; `None` if it has several.
    pub(super) cpu: Option<u32>,
    /// The larger is the more urgent; `None` where priorities do not order it.
    pub(super) urgency: Option<u8>,
    /// The jobs in the order in which they ended; empty for background threads.
    pub(super) jobs: Vec<ObservedJob>,
    /// When it gave up the CPU by itself, from and until, in order.
    pub(super) waits: Vec<(i64, i64)>,
    pub(super) ran: Coverage,
}

/// A run whose trace is whole.
#[derive(Clone, Debug, Default)]
pub(super) struct ObservedRun {
    /// The tasks in the order of the set, then background threads.
    pub(super) threads: Vec<ObservedThread>,
    pub(super) ran: Coverage,
}

/// Distances between arrivals that are tested: to the next, and the next but one, and so on.
const ARRIVALS_AHEAD: usize = 8;

impl ObservedRun {
    /// A run; `None` where intervals are missing.
    pub(super) fn of(
        set: &TaskSet,
        plan: &TaskRunPlan,
        finished: &Finished,
    ) -> Option<ObservedRun> {
        let reports = &finished.document.result.threads;
        if reports.iter().any(|thread| thread.records_dropped > 0) {
            return None;
        }
        let mut threads: Vec<ObservedThread> = Vec::new();
        for (id, spec) in (0u32..).zip(&plan.spec.threads) {
            let report = reports.iter().find(|thread| thread.id == id);
            let cpu = report.and_then(|thread| only_cpu(&thread.cpus));
            threads.push(ObservedThread {
                cpu,
                urgency: urgency(spec.policy),
                ..ObservedThread::default()
            });
        }
        let mut seen = ObservedRun { threads, ran: Coverage::default() };
        seen.trace(finished.intervals());
        for (id, task) in (0u32..).zip(&set.tasks) {
            let method = plan.timer(id as usize);
            let policy = plan.spec.threads.get(id as usize).map(|thread| thread.policy);
            let busy_wait =
                method.zip(policy).map_or(Span::ZERO, |(m, policy)| m.busy_wait(policy));
            let cpu = seen.threads.get(id as usize).and_then(|thread| thread.cpu);
            let rule = Rule {
                busy_wait,
                grid: method.and_then(|method| method.grid()),
                covered: cpu.map(|cpu| (&seen.ran, cpu)),
                comes_by_itself: task.after.is_empty(),
            };
            let mut previous = None;
            let jobs = finished.jobs(id).map(|times| {
                let late_ns = rule.before(times, previous.replace(times)).late_ns;
                ObservedJob { times, release_delay_ns: late_ns }
            });
            let jobs = jobs.collect();
            if let Some(thread) = seen.threads.get_mut(id as usize) {
                thread.jobs = jobs;
            }
        }
        Some(seen)
    }

    /// Takes in the intervals of all threads, in order of their starts.
    pub(super) fn trace(&mut self, intervals: impl IntoIterator<Item = Interval>) {
        let mut ends: BTreeMap<u32, i64> = BTreeMap::new();
        for interval in intervals {
            self.ran.push(interval.cpu, interval.start_ns, interval.end_ns);
            let before = ends.insert(interval.thread, interval.end_ns);
            let Some(thread) = self.threads.get_mut(interval.thread as usize) else { continue };
            thread.ran.push(interval.cpu, interval.start_ns, interval.end_ns);
            if let Some(end) = before.filter(|_| interval.onset == IntervalStart::Wait) {
                thread.waits.push((end, interval.start_ns));
            }
        }
    }

    /// By how much job `number` of a task is over what the set says, for each assumption; `None` where that cannot be
    /// said.
    pub(super) fn excess(
        &self,
        set: &TaskSet,
        task: usize,
        number: usize,
        assumed: AnalysisAssumption,
    ) -> Option<u64> {
        let said = set.tasks.get(task)?;
        let thread = self.threads.get(task)?;
        let job = thread.jobs.get(number)?;
        let over = |seen: u64, allowed: Span| seen.saturating_sub(allowed.nanos_or_zero());
        Some(match assumed {
            AnalysisAssumption::Arrivals => too_early(said, &thread.jobs, number),
            AnalysisAssumption::Release => over(job.release_delay_ns, said.jitter),
            AnalysisAssumption::Cost => over(job.times.received_ns, said.wcet),
            AnalysisAssumption::WorkConserving => {
                let cpu = thread.cpu?;
                let waits = thread.waits_within(job);
                let idle = waits.map(|(from, to)| self.ran.uncovered(cpu, from, to)).sum();
                over(idle, said.suspension)
            }
            AnalysisAssumption::Priority => {
                over(self.less_urgent(task, job, job.ready())?, blocking(set, task))
            }
            AnalysisAssumption::Supply => self.lost(task, job, job.ready())?,
        })
    }

    /// For how long less urgent threads ran on its CPU from `from` to the end of a job, while that did not wait by
    /// itself. `None` where priorities do not order it.
    pub(super) fn less_urgent(&self, task: usize, job: &ObservedJob, from: i64) -> Option<u64> {
        let thread = self.threads.get(task)?;
        let (cpu, own) = (thread.cpu?, thread.urgency?);
        let mut sum = 0;
        for other in self.threads.iter().filter(|other| other.urgency.unwrap_or(0) < own) {
            let all = other.ran.covered(cpu, from, job.times.finished_ns);
            let waits = thread.waits_within(job).map(|(from, to)| other.ran.covered(cpu, from, to));
            sum += all.saturating_sub(waits.sum());
        }
        Some(sum)
    }

    /// For how long no thread of the run had its CPU from `from` to the end of a job that did not wait by itself.
    pub(super) fn lost(&self, task: usize, job: &ObservedJob, from: i64) -> Option<u64> {
        let thread = self.threads.get(task)?;
        let cpu = thread.cpu?;
        let all = self.ran.uncovered(cpu, from, job.times.finished_ns);
        let waits = thread.waits_within(job).map(|(from, to)| self.ran.uncovered(cpu, from, to));
        Some(all.saturating_sub(waits.sum()))
    }

    /// Each assumption about each task, tested on all jobs.
    pub(super) fn table(&self, set: &TaskSet) -> Vec<Assumption> {
        let tasks = 0..set.tasks.len();
        let rows = tasks.flat_map(|task| AnalysisAssumption::ALL.map(|assumed| (task, assumed)));
        rows.map(|(task, assumed)| {
            let jobs = self.threads.get(task).map_or(0, |thread| thread.jobs.len());
            self.row(set, task, assumed, 0..jobs)
        })
        .collect()
    }

    /// The worst of these jobs.
    pub(super) fn row(
        &self,
        set: &TaskSet,
        task: usize,
        assumed: AnalysisAssumption,
        jobs: impl Iterator<Item = usize>,
    ) -> Assumption {
        let thread = self.threads.get(task);
        let mut found = Assumption {
            task: set.tasks.get(task).map_or_else(String::new, |task| task.name.clone()),
            assumption: assumed.name().to_owned(),
            held: None,
            jobs: 0,
            excess_ns: 0,
            at_ns: None,
            cpu: thread.and_then(|thread| thread.cpu),
        };
        for number in jobs {
            let Some(excess) = self.excess(set, task, number, assumed) else { continue };
            found.jobs += 1;
            found.held = Some(found.held != Some(false) && excess == 0);
            if excess > found.excess_ns {
                let job = thread.and_then(|thread| thread.jobs.get(number));
                (found.excess_ns, found.at_ns) = (excess, job.map(|job| job.times.arrival_ns));
            }
        }
        found
    }
}

impl ObservedThread {
    /// When it gave up the CPU by itself within a job.
    pub(super) fn waits_within(&self, job: &ObservedJob) -> impl Iterator<Item = (i64, i64)> + '_ {
        let (begun, finished) = (job.times.start_ns, job.times.finished_ns);
        let first = self.waits.partition_point(|(from, _)| *from <= begun);
        self.waits[first..].iter().copied().take_while(move |(_, to)| *to < finished)
    }
}

/// The priority in the kernel's real-time classes; `None` for all other policies, which are below them.
fn urgency(policy: Policy) -> Option<u8> {
    match policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => Some(priority),
        _ => None,
    }
}

/// How much earlier a job arrives than the curve of its task allows.
fn too_early(task: &Task, jobs: &[ObservedJob], number: usize) -> u64 {
    let arrival = |at: usize| jobs[at].times.arrival_ns;
    let ahead = 1..=number.min(ARRIVALS_AHEAD);
    let early = ahead.map(|ahead| {
        let apart = arrival(number).saturating_sub(arrival(number - ahead));
        let wanted = distance(task, ahead).saturating_sub(task.jitter);
        wanted.nanos().saturating_sub(apart).max(0).unsigned_abs()
    });
    early.max().unwrap_or(0)
}

/// The shortest time from a job's arrival to that of the job that comes `ahead` jobs later.
fn distance(task: &Task, ahead: usize) -> Span {
    let periods = |count: usize| {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        task.period.checked_mul(count).unwrap_or(Span::MAX)
    };
    match (task.arrivals.get(ahead - 1), task.arrivals.last()) {
        (Some(known), _) => *known,
        (None, Some(last)) => last.saturating_add(periods(ahead - task.arrivals.len())),
        (None, None) => periods(ahead),
    }
}

/// For how long less urgent tasks may run before a job of the task by what the set says, or more.
fn blocking(set: &TaskSet, task: usize) -> Span {
    if set.scheduler != Scheduler::FixedPriority {
        return Span::MAX;
    }
    let others = set.tasks.iter().enumerate().filter(|(at, _)| *at != task).map(|(_, other)| other);
    let own = set.tasks.get(task).map_or(Span::ZERO, |task| task.blocking);
    others.fold(own, |sum, other| {
        let sections = other.critical_sections.iter();
        let longest = sections.map(|s| s.length).max().unwrap_or(Span::ZERO);
        sum.saturating_add(longest.max(other.longest_section()))
    })
}
