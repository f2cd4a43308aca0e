//! Slack of a processor with jobs pending and jobs to come.
//!
//! Owns: equation 9 of the SMT paper, with the jobs to come counted as well, and its counterpart under
//! fixed priorities. Must not: claim more slack than there is: whatever is left out or cut short
//! makes it smaller.
//!
//! Equation 9 counts the processes that wait. A job that arrives later with an earlier deadline takes
//! its time from them too, so that its work is counted here as if it were pending:
//! - by deadline: the least of d - now - W(d) over all absolute deadlines d, where W(d) is the work
//!   pending and to come with deadlines up to d. It is exact (processor demand from this instant on).
//! - by priority: for each job pending or next to come, the most of w - now - W(w) over instants w
//!   up to its deadline, where W(w) is the work of its priority or above, pending or arriving before
//!   w; of these the least. With that much lost, the processor is free of such work at w, so that
//!   later jobs find nothing left over (slack stealing, Lehoczky and Ramos-Thuel 1992).
//!
//! What is lost is work of jobs that are pending. If every deadline holds without loss, it holds
//! after the loss of this slack.

use crate::ArrivalPattern;

/// How a job competes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobPriority {
    /// The order by absolute deadline, before all priorities.
    Deadline,
    /// The order by priority, the larger first.
    Priority(u32),
}

impl JobPriority {
    /// Whether a job of this order may delay one of priority `level`.
    fn delays(self, level: u32) -> bool {
        match self {
            JobPriority::Deadline => true,
            JobPriority::Priority(priority) => priority >= level,
        }
    }
}

/// A job that has been released and is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingJob {
    pub order: JobPriority,
    pub due: u64,
    /// The largest remaining part of its reserve.
    pub left: u64,
}

/// The jobs that are to come of one thread, each as early as it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FutureJobs {
    order: JobPriority,
    cost: u64,
    deadline: u64,
    /// Number of the job that `first` is the arrival of.
    base: u64,
    first: u64,
    /// The times from the first arrival to the next ones of a burst.
    distances: Vec<u64>,
    /// Between arrivals after these; without it none follow.
    period: Option<u64>,
    /// Whether arrivals may come later than a period apart.
    sporadic: bool,
    /// Number of the next job to come.
    next: u64,
}

/// The number of deadlines or arrivals tested before the answer is given as far as it is known.
const MOST_POINTS: usize = 4_096;

impl FutureJobs {
    /// All jobs of a thread with these arrivals. Threads that are always ready have none.
    #[must_use]
    pub fn new(
        order: JobPriority,
        arrivals: &ArrivalPattern,
        cost: u64,
        deadline: u64,
    ) -> FutureJobs {
        let mut coming = FutureJobs {
            order,
            cost,
            deadline,
            base: 0,
            first: u64::MAX,
            distances: Vec::new(),
            period: None,
            sporadic: false,
            next: 0,
        };
        match arrivals {
            ArrivalPattern::Always { .. } => {}
            ArrivalPattern::Periodic { offset, period } => {
                (coming.first, coming.period) = (*offset, Some(*period));
            }
            ArrivalPattern::Sporadic { offset, period, .. } => {
                (coming.first, coming.period) = (*offset, Some(*period));
                coming.sporadic = true;
            }
            ArrivalPattern::Burst { offset, distances, period } => {
                (coming.first, coming.period) = (*offset, Some(*period));
                coming.distances.clone_from(distances);
            }
            ArrivalPattern::Listed(times) => {
                coming.first = times.first().copied().unwrap_or(u64::MAX);
                coming.distances = times.iter().skip(1).map(|at| at - coming.first).collect();
            }
        }
        coming
    }

    /// Job `number` arrived at `at`: of a sporadic thread, later ones arrive after that.
    pub fn saw(&mut self, number: u64, at: u64) {
        if self.sporadic {
            (self.base, self.first) = (number, at);
        }
    }

    /// The next job to come is `number` at the earliest, and arrives at `at` at the earliest.
    pub fn skip_to(&mut self, number: u64, at: u64) {
        self.next = self.next.max(number);
        let Some(arrival) = self.arrival(self.next) else { return };
        if arrival >= at {
            return;
        }
        if self.sporadic {
            (self.base, self.first) = (self.next, at);
            return;
        }
        let burst = self.base.saturating_add(self.distances.len() as u64);
        while self.next < burst && self.arrival(self.next).is_some_and(|arrival| arrival < at) {
            self.next += 1;
        }
        let (Some(arrival), Some(period)) = (self.arrival(self.next), self.period) else {
            if self.period.is_none() && self.arrival(self.next).is_some_and(|arrival| arrival < at)
            {
                self.next += 1;
            }
            return;
        };
        self.next = self.next.saturating_add(at.saturating_sub(arrival).div_ceil(period.max(1)));
    }

    /// When job `number` arrives at the earliest; `None` if never, or beyond 64 bits.
    fn arrival(&self, number: u64) -> Option<u64> {
        let Some(place) = number.checked_sub(self.base)?.checked_sub(1) else {
            return (self.first < u64::MAX).then_some(self.first);
        };
        let burst = self.distances.len() as u64;
        if let Some(distance) = usize::try_from(place).ok().and_then(|p| self.distances.get(p)) {
            return self.first.checked_add(*distance);
        }
        let last = self.distances.last().copied().unwrap_or(0);
        let periods = self.period?.checked_mul(place - burst + 1)?;
        self.first.checked_add(last)?.checked_add(periods)
    }

    /// When job `number` is due at the earliest.
    fn due(&self, number: u64) -> Option<u64> {
        self.arrival(number)?.checked_add(self.deadline)
    }

    /// The work that it may bring beyond its share of the time.
    fn excess(&self) -> u128 {
        u128::from(self.cost) * (self.distances.len() as u128 + 1)
    }
}

/// The next job to come of a thread, on the way through time.
#[derive(Clone, Copy, Debug)]
struct Stream<'a> {
    task: &'a FutureJobs,
    number: u64,
    /// When it arrives, or is due, as the walk goes; `None` if never.
    at: Option<u64>,
}

/// The first of those that come, of equal ones the first stream.
fn first<'a, 'b>(streams: &'b mut [Stream<'a>]) -> Option<(u64, &'b mut Stream<'a>)> {
    let next = streams.iter_mut().filter_map(|stream| Some((stream.at?, stream)));
    next.min_by_key(|(at, _)| *at)
}

/// The slack at `now` of a processor with these jobs, in the caller's unit of time; negative if a
/// deadline cannot be kept. `None` without a job pending.
///
/// It is a lower bound where more than some thousand deadlines matter, where fixed priorities have
/// deadlines beyond periods, and where deadlines leave no time unused (zero then).
#[must_use]
pub fn least_slack(now: u64, pending: &[PendingJob], coming: &[FutureJobs]) -> Option<i128> {
    if pending.is_empty() {
        return None;
    }
    let by_deadline = deadline_slack(now, pending, coming);
    let mut least = by_deadline;
    let mut take = |level: u32, due: u64| {
        let slack = priority_slack(now, level, due, pending, coming, least);
        least = Some(least.map_or(slack, |least| least.min(slack)));
    };
    for job in pending {
        if let JobPriority::Priority(level) = job.order {
            take(level, job.due);
        }
    }
    for task in coming {
        if let (JobPriority::Priority(level), Some(due)) = (task.order, task.due(task.next)) {
            take(level, due);
        }
    }
    least
}

/// The least d - now - W(d) of the jobs by deadline.
fn deadline_slack(now: u64, pending: &[PendingJob], coming: &[FutureJobs]) -> Option<i128> {
    let by_deadline = |order: &JobPriority| *order == JobPriority::Deadline;
    let mut jobs: Vec<(u64, u64)> =
        pending.iter().filter(|job| by_deadline(&job.order)).map(|j| (j.due, j.left)).collect();
    jobs.sort_unstable_by_key(|(due, _)| std::cmp::Reverse(*due));
    let streams = coming.iter().filter(|task| by_deadline(&task.order));
    let mut streams: Vec<Stream> =
        streams.map(|task| Stream { task, number: task.next, at: task.due(task.next) }).collect();
    if jobs.is_empty() && streams.is_empty() {
        return None;
    }
    let excess: u128 = streams.iter().map(|stream| stream.task.excess()).sum();
    let excess = i128::try_from(excess).unwrap_or(i128::MAX);
    let mut work = 0i128;
    let mut least: Option<i128> = None;
    let full = !is_below_full(&streams);
    for point in 0..MOST_POINTS {
        let next = first(&mut streams);
        let due = match (jobs.last().copied(), next) {
            (None, None) => return least,
            (Some((due, left)), next) if next.as_ref().is_none_or(|(d, ..)| due <= *d) => {
                jobs.pop();
                work += i128::from(left);
                due
            }
            (_, Some((due, stream))) => {
                work += i128::from(stream.task.cost);
                stream.number = stream.number.saturating_add(1);
                stream.at = stream.task.due(stream.number);
                due
            }
            (Some(_), None) => return least,
        };
        let slack = i128::from(due) - i128::from(now) - work;
        let mut tightest = least.map_or(slack, |least| least.min(slack));
        // No later deadline is tighter than this, unless more than all of the time is needed.
        let later = slack.saturating_sub(excess);
        if point + 1 == MOST_POINTS || (full && jobs.is_empty()) {
            tightest = tightest.min(if full { 0 } else { later });
        }
        least = Some(tightest);
        if jobs.is_empty() && (full || later >= tightest) {
            break;
        }
    }
    least
}

/// Whether threads need no more than all of the time in the long run; rounded against it.
fn is_below_full(streams: &[Stream]) -> bool {
    const WHOLE: u128 = 1 << 64;
    let share = |task: &FutureJobs| {
        task.period.map_or(0, |period| (u128::from(task.cost) << 64).div_ceil(period.max(1).into()))
    };
    streams.iter().map(|stream| share(stream.task)).fold(0, u128::saturating_add) <= WHOLE
}

/// Of a job of priority `level` that is due at `due`: the most of w - now - W(w) over w up to then,
/// or anything not below `enough`, which is as good.
fn priority_slack(
    now: u64,
    level: u32,
    due: u64,
    pending: &[PendingJob],
    coming: &[FutureJobs],
    enough: Option<i128>,
) -> i128 {
    let waiting = pending.iter().filter(|job| job.order.delays(level));
    let mut work: i128 = waiting.map(|job| i128::from(job.left)).sum();
    let streams = coming.iter().filter(|task| task.order.delays(level));
    let mut streams: Vec<Stream> = streams
        .map(|task| Stream { task, number: task.next, at: task.arrival(task.next) })
        .collect();
    let free_at = |at: u64, work: i128| i128::from(at) - i128::from(now) - work;
    let mut most = free_at(now.min(due), work);
    for _ in 0..MOST_POINTS {
        let Some((arrival, stream)) = first(&mut streams).filter(|(at, _)| *at < due) else {
            return most.max(free_at(due, work));
        };
        if arrival > now {
            most = most.max(free_at(arrival, work));
        }
        if enough.is_some_and(|enough| most >= enough) {
            return most;
        }
        work += i128::from(stream.task.cost);
        stream.number = stream.number.saturating_add(1);
        stream.at = stream.task.arrival(stream.number);
    }
    most
}
