//! Slack-time monitoring (section 3): neighbours run for as long as slack lasts.
//!
//! Owns: what is known of each core's jobs, and when to look again. Must not: know how much of a job
//! is really left, but through [`Monitoring::done`].

use super::plan::{Core, CorePlan};
use super::slack::{FutureJobs, JobPriority, PendingJob, least_slack};
use super::{MonitorCounts, Monitoring};
use crate::slack::Decision;
use crate::{
    CallReasons, Class, CostModel, CpuGate, Jitter, MachineView, Monitor, OrderList, System, Thread,
};

/// The present state of the siblings of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No real-time job is there.
    #[default]
    Free,
    /// Co-runners run until the timer.
    Watching,
    /// Co-runners are being stopped, and still run.
    Stopping,
    Stopped,
}

/// A core as the monitor knows it.
#[derive(Debug)]
struct CoreState {
    core: Core,
    tasks: Vec<KnownTask>,
    state: State,
    /// The first unfinished job of each thread at the last check.
    jobs: Vec<Option<u64>>,
    /// The job that ran at the last wake-up, and how many wake-ups it has had.
    at_job: (Option<(usize, u64)>, u64),
}

/// The facts about a thread that are known beforehand.
#[derive(Debug)]
struct KnownTask {
    order: JobPriority,
    reserve: u64,
    /// The longest time from arrival to release.
    jitter: u64,
    coming: FutureJobs,
    /// Number of the first job that has not been seen yet.
    unseen: u64,
}

/// Watches the slack of each core.
#[derive(Debug)]
pub(super) struct SlackMonitor {
    monitoring: Monitoring,
    watches: Vec<CoreState>,
    watched: MonitorCounts,
}

impl SlackMonitor {
    pub(super) fn new(system: &System, plan: CorePlan, monitoring: Monitoring) -> SlackMonitor {
        let watch = |core: Core| {
            let threads = core.threads.iter().filter_map(|thread| system.threads.get(*thread));
            let tasks: Vec<KnownTask> = threads.map(KnownTask::new).collect();
            let jobs = vec![None; tasks.len()];
            CoreState { core, tasks, state: State::Free, jobs, at_job: (None, 0) }
        };
        let watches = plan.cores.into_iter().map(watch).collect();
        SlackMonitor { monitoring, watches, watched: MonitorCounts::default() }
    }

    pub(super) fn watched(&self) -> MonitorCounts {
        self.watched
    }
}

impl KnownTask {
    fn new(thread: &Thread) -> KnownTask {
        let order = match thread.class {
            Class::Fifo(priority) | Class::RoundRobin(priority) => JobPriority::Priority(priority),
            Class::Edf | Class::Fair(_) | Class::Idle => JobPriority::Deadline,
        };
        let reserve = match &thread.cost {
            CostModel::Worst(cost) => *cost,
            CostModel::Drawn { at_most, .. } => *at_most,
            CostModel::Listed(costs) => costs.iter().copied().max().unwrap_or(1),
        };
        let jitter = match thread.jitter {
            Jitter::None => 0,
            Jitter::Worst(jitter) | Jitter::Random(jitter) => jitter,
        };
        KnownTask {
            order,
            reserve,
            jitter: jitter.saturating_add(thread.tick.min(thread.tick_jitter)),
            coming: FutureJobs::new(order, &thread.arrivals, reserve, thread.deadline),
            unseen: 0,
        }
    }
}

impl Monitor for SlackMonitor {
    fn timers(&self) -> usize {
        self.watches.len()
    }

    fn call_reasons(&self) -> CallReasons {
        CallReasons { release: true, completion: true, timer: true, ..CallReasons::default() }
    }

    fn on_event(&mut self, view: &dyn MachineView, orders: &mut OrderList<'_>) {
        for (timer, watch) in self.watches.iter_mut().enumerate() {
            let expired = view.expired(timer);
            let changed = watch.update(view);
            if !expired && !changed {
                continue;
            }
            if expired && watch.state == State::Watching {
                self.watched.wakeups += 1;
                let most = &mut self.watched.wakeups_per_job_max;
                *most = (*most).max(watch.count_wakeup(view));
            }
            let decision = watch.decision(self.monitoring, view);
            watch.follow(decision, timer, self.monitoring.latency, view, orders, &mut self.watched);
        }
    }
}

impl CoreState {
    /// Reads the present jobs. Returns whether they differ from those at the last check.
    fn update(&mut self, view: &dyn MachineView) -> bool {
        let mut changed = false;
        for ((thread, task), last) in
            self.core.threads.iter().zip(&mut self.tasks).zip(&mut self.jobs)
        {
            let job = view.job(*thread).map(|job| job.job);
            changed |= job != *last;
            *last = job;
            if let Some(job) = view.job(*thread) {
                task.unseen = task.unseen.max(job.job.saturating_add(1));
                task.coming.saw(job.job, job.arrival);
            }
        }
        changed
    }

    /// Counts a wake-up for the job that runs. How many it has had.
    fn count_wakeup(&mut self, view: &dyn MachineView) -> u64 {
        let thread = view.running(self.core.cpu).filter(|t| self.core.threads.contains(t));
        let job = thread.and_then(|thread| Some((thread, view.job(thread)?.job)));
        if self.at_job.0 != job {
            self.at_job = (job, 0);
        }
        self.at_job.1 += 1;
        self.at_job.1
    }

    /// The slack of the core at this instant; `None` if no real-time job is there.
    fn slack(&mut self, monitoring: Monitoring, view: &dyn MachineView) -> Option<i128> {
        let now = view.now();
        let mut pending = Vec::new();
        let mut coming = Vec::new();
        for (thread, task) in self.core.threads.iter().zip(&mut self.tasks) {
            if let Some(job) = view.job(*thread) {
                let done = monitoring.done(task.reserve, job.cost, job.done);
                let left = task.reserve - done;
                pending.push(PendingJob { order: task.order, due: job.deadline, left });
            }
            task.coming.skip_to(task.unseen, job_not_over(view, *thread, now, task.jitter));
            coming.push(task.coming.clone());
        }
        if pending.is_empty() { None } else { least_slack(now, &pending, &coming) }
    }

    /// The decision now; `None` without a real-time job.
    fn decision(&mut self, monitoring: Monitoring, view: &dyn MachineView) -> Option<Decision> {
        self.slack(monitoring, view).map(|slack| monitoring.decide(view.now(), slack))
    }

    fn follow(
        &mut self,
        decision: Option<Decision>,
        timer: usize,
        latency: u64,
        view: &dyn MachineView,
        orders: &mut OrderList<'_>,
        watched: &mut MonitorCounts,
    ) {
        match (decision, self.state) {
            (None, _) => {
                self.open(State::Free, orders);
                orders.cancel(timer);
            }
            (Some(Decision::RunUntil(at)), _) => {
                self.open(State::Watching, orders);
                orders.wake_at(timer, at);
            }
            (Some(Decision::Stop), State::Stopped) => {}
            (Some(Decision::Stop), State::Stopping) => {
                if view.expired(timer) {
                    self.close(orders);
                }
            }
            (Some(Decision::Stop), State::Free | State::Watching) => {
                watched.stops += 1;
                if latency == 0 {
                    orders.cancel(timer);
                    self.close(orders);
                } else {
                    self.state = State::Stopping;
                    orders.wake_at(timer, view.now().saturating_add(latency));
                }
            }
        }
    }

    fn open(&mut self, state: State, orders: &mut OrderList<'_>) {
        if self.state == State::Stopped {
            self.core.siblings.iter().for_each(|cpu| orders.gate(*cpu, CpuGate::Open));
        }
        self.state = state;
    }

    fn close(&mut self, orders: &mut OrderList<'_>) {
        self.core.siblings.iter().for_each(|cpu| orders.gate(*cpu, CpuGate::Closed));
        self.state = State::Stopped;
    }
}

/// The earliest arrival that a job to come can have: with a job pending all later ones count, even
/// those that already wait behind it; else one whose release would be past has been and is gone.
fn job_not_over(view: &dyn MachineView, thread: usize, now: u64, jitter: u64) -> u64 {
    if view.job(thread).is_some() { 0 } else { now.saturating_sub(jitter) }
}
