//! One exact schedule of periodic tasks on processors that share all jobs.
//!
//! Owns: the schedule of a set whose jobs all take their cost and arrive as early as they may after
//! their task's offset, as worked examples have it.
//!
//! Of jobs equally urgent, running ones go on, and waiting ones are taken as a binary heap of their
//! keys gives them, which is what RealTimeScheduling.jl does. A job waits for the one before it of its
//! task. Must not: know jitter, blocking or suspension.

use crate::effort::StepLimit;
use crate::exact_fraction::hyperperiod;
use crate::task::TaskSet;

/// The order in which jobs are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobalPolicy {
    /// The earliest absolute deadline.
    EarliestDeadline,
    /// The highest priority.
    FixedPriority,
}

/// A job that misses its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Position of its task.
    pub task: usize,
    /// The number of the job of the task, from 1.
    pub job: u64,
    /// The absolute deadline: the time of the miss.
    pub missed_at: u64,
    /// A response that it has at least: from its arrival to when the miss is certain.
    pub response: u64,
    /// The relative deadline.
    pub deadline: u64,
}

/// The reason why a schedule ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleEnd {
    /// The horizon was reached.
    Horizon,
    /// From here on the schedule repeats: the state is the one of a hyperperiod before.
    Repeats,
    /// A deadline was missed.
    Miss,
    /// More steps than allowed, or a time of more than 64 bits.
    GivenUp,
}

/// How far a schedule is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleLimit {
    /// No further than this; `None`: until it repeats.
    pub horizon: Option<u64>,
    /// Whether the first miss ends it.
    pub miss: bool,
    /// Completions that are kept of each task.
    pub keep: usize,
}

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Completion times of the first jobs of each task.
    pub finish: Vec<Vec<u64>>,
    /// The longest response of each task among jobs that were done.
    pub longest: Vec<u64>,
    /// The first miss: the earliest deadline that a job misses.
    pub first_miss: Option<Miss>,
    /// Jobs done.
    pub jobs: u64,
    /// When and why it ends.
    pub end: (u64, ScheduleEnd),
}

/// The schedule of tasks whose first jobs arrive at `offsets` (0 for a task without one). A step is
/// an instant at which something happens.
#[must_use]
pub fn schedule(
    set: &TaskSet,
    offsets: &[u64],
    cpus: u64,
    policy: GlobalPolicy,
    until: ScheduleLimit,
    effort: StepLimit,
) -> Schedule {
    let mut machine = ScheduleState::new(set, offsets, cpus, policy, until.keep);
    let end = machine.run(until, effort);
    Schedule {
        finish: machine.finish,
        longest: machine.longest,
        first_miss: machine.first_miss,
        jobs: machine.jobs,
        end: (machine.now, end),
    }
}

/// A job that is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ScheduledJob {
    key: u64,
    task: usize,
    number: u64,
    arrival: u64,
    deadline: u64,
    remaining: u64,
}

/// What must be the same for a schedule to repeat: remaining costs in heap and on processors, and
/// how late each task's next job is.
type State = (Vec<(usize, u64)>, Vec<Option<(usize, u64)>>, Vec<i128>);

struct ScheduleState<'a> {
    set: &'a TaskSet,
    policy: GlobalPolicy,
    now: u64,
    /// A binary heap, the least key first.
    waiting: Vec<ScheduledJob>,
    running: Vec<Option<ScheduledJob>>,
    /// Arrival of each task's next job.
    next: Vec<u64>,
    /// How many jobs of each task have come.
    come: Vec<u64>,
    active: Vec<bool>,
    keep: usize,
    finish: Vec<Vec<u64>>,
    longest: Vec<u64>,
    first_miss: Option<Miss>,
    jobs: u64,
}

impl<'a> ScheduleState<'a> {
    fn new(
        set: &'a TaskSet,
        offsets: &[u64],
        cpus: u64,
        policy: GlobalPolicy,
        keep: usize,
    ) -> ScheduleState<'a> {
        let count = set.len();
        let cpus = usize::try_from(cpus).unwrap_or(usize::MAX).min(count);
        ScheduleState {
            set,
            policy,
            now: 0,
            waiting: Vec::with_capacity(count),
            running: vec![None; cpus],
            next: (0..count).map(|at| offsets.get(at).copied().unwrap_or(0)).collect(),
            come: vec![0; count],
            active: vec![false; count],
            keep,
            finish: vec![Vec::new(); count],
            longest: vec![0; count],
            first_miss: None,
            jobs: 0,
        }
    }

    fn run(&mut self, until: ScheduleLimit, mut effort: StepLimit) -> ScheduleEnd {
        let period = hyperperiod(self.set.tasks().iter());
        // From the last first arrival on, the state is compared once a hyperperiod.
        let mut mark = self.next.iter().copied().max().unwrap_or(0);
        let mut before: Option<State> = None;
        loop {
            if effort.charge(self.set.len()).is_err() || !self.release() {
                return ScheduleEnd::GivenUp;
            }
            if self.now == mark && until.horizon.is_none() {
                let state = self.state();
                if before.as_ref() == Some(&state) {
                    return ScheduleEnd::Repeats;
                }
                before = Some(state);
                let Some(after) = period.and_then(|p| mark.checked_add(p)) else {
                    mark = u64::MAX;
                    continue;
                };
                mark = after;
            }
            self.dispatch();
            let Some(next) = self.next_event() else { return ScheduleEnd::GivenUp };
            let next = if until.horizon.is_none() { next.min(mark) } else { next };
            if until.horizon.is_some_and(|horizon| next > horizon) {
                self.advance(until.horizon.unwrap_or(next));
                return ScheduleEnd::Horizon;
            }
            self.advance(next);
            if until.miss && self.first_miss.is_some() {
                return ScheduleEnd::Miss;
            }
        }
    }

    /// Jobs that have arrived, unless their task has one that is not done.
    fn release(&mut self) -> bool {
        for (task, of) in self.set.tasks().iter().enumerate() {
            if self.active[task] || self.next[task] > self.now {
                continue;
            }
            let arrival = self.next[task];
            let (Some(deadline), Some(next)) =
                (arrival.checked_add(of.deadline), arrival.checked_add(of.period))
            else {
                return false;
            };
            self.come[task] += 1;
            self.next[task] = next;
            self.active[task] = true;
            let key = match self.policy {
                GlobalPolicy::EarliestDeadline => deadline,
                GlobalPolicy::FixedPriority => u64::from(u32::MAX - of.priority),
            };
            let number = self.come[task];
            self.push(ScheduledJob { key, task, number, arrival, deadline, remaining: of.cost });
        }
        true
    }

    /// Idle processors first, then those with the least urgent jobs, get what is more urgent.
    fn dispatch(&mut self) {
        let urgency = |job: &Option<ScheduledJob>| job.map_or(u64::MAX, |job| job.key);
        let mut order: Vec<usize> = (0..self.running.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(urgency(&self.running[*at])));
        for at in order {
            let Some(first) = self.waiting.first() else { return };
            match self.running[at] {
                None => self.running[at] = self.pop(),
                Some(job) if first.key < job.key => {
                    self.push(job);
                    self.running[at] = self.pop();
                }
                Some(_) => {}
            }
        }
    }

    /// When something happens next: a completion, an arrival, or a deadline that passes.
    fn next_event(&self) -> Option<u64> {
        let done = self.running.iter().flatten().map(|job| self.now.checked_add(job.remaining));
        let mut first = None;
        for done in done {
            let done = done?;
            first = Some(first.map_or(done, |first: u64| first.min(done)));
        }
        let idle = self.next.iter().zip(&self.active).filter(|(_, active)| !**active);
        idle.map(|(next, _)| *next).chain(first).min()
    }

    /// Lets time pass up to `then`, at which jobs may be done, and late ones are noticed.
    fn advance(&mut self, then: u64) {
        let passed = then - self.now;
        self.now = then;
        for at in 0..self.running.len() {
            let Some(job) = &mut self.running[at] else { continue };
            job.remaining -= passed;
            let job = *job;
            if job.remaining > 0 {
                self.notice(&job);
                continue;
            }
            self.running[at] = None;
            self.active[job.task] = false;
            self.jobs += 1;
            let response = then - job.arrival;
            self.longest[job.task] = self.longest[job.task].max(response);
            if self.finish[job.task].len() < self.keep {
                self.finish[job.task].push(then);
            }
            if then > job.deadline {
                self.miss(&job, response);
            }
        }
        for at in 0..self.waiting.len() {
            let job = self.waiting[at];
            self.notice(&job);
        }
    }

    /// A job with something left at its deadline misses it.
    fn notice(&mut self, job: &ScheduledJob) {
        if job.deadline <= self.now {
            let certain = (self.now - job.arrival).saturating_add(1);
            self.miss(job, certain.min((job.deadline - job.arrival).saturating_add(1)));
        }
    }

    fn miss(&mut self, job: &ScheduledJob, response: u64) {
        if self.first_miss.is_none_or(|first| job.deadline < first.missed_at) {
            self.first_miss = Some(Miss {
                task: job.task,
                job: job.number,
                missed_at: job.deadline,
                response,
                deadline: job.deadline - job.arrival,
            });
        }
    }

    fn state(&self) -> State {
        let left = |job: &ScheduledJob| (job.task, job.remaining);
        (
            self.waiting.iter().map(left).collect(),
            self.running.iter().map(|job| job.as_ref().map(left)).collect(),
            self.next.iter().map(|next| i128::from(*next) - i128::from(self.now)).collect(),
        )
    }

    fn push(&mut self, job: ScheduledJob) {
        self.waiting.push(job);
        let mut at = self.waiting.len() - 1;
        while at > 0 && job.key < self.waiting[(at - 1) / 2].key {
            self.waiting.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn pop(&mut self) -> Option<ScheduledJob> {
        let last = self.waiting.len().checked_sub(1)?;
        self.waiting.swap(0, last);
        let first = self.waiting.pop();
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let key = |at: usize| self.waiting.get(at).map(|job| job.key);
            let Some(below) = key(left) else { return first };
            let child = if key(right).is_some_and(|k| k < below) { right } else { left };
            if key(child) >= key(at) {
                return first;
            }
            self.waiting.swap(at, child);
            at = child;
        }
    }
}
