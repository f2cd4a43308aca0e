//! What an analysis answers, and what proves it.
//!
//! Owns: [`Verdict`], [`Analysis`] and their parts. Must not: compute bounds.

use std::ops::Range;

/// Whether deadlines hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every job is done by its deadline.
    Feasible,
    /// A job misses its deadline in a case that the model allows.
    Infeasible(Witness),
    /// More is demanded than the processor has: responses grow without bound.
    NoBound,
    /// The test cannot tell.
    Unknown(Refusal),
}

impl Verdict {
    /// Of several verdicts the one on all: the first infeasible one, else the first without a bound,
    /// else the first unknown one. No verdicts are feasible.
    #[must_use]
    pub fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
        let weight = |verdict: &Verdict| match verdict {
            Verdict::Infeasible(_) => 3,
            Verdict::NoBound => 2,
            Verdict::Unknown(_) => 1,
            Verdict::Feasible => 0,
        };
        let worse = |worst: Verdict, next: Verdict| {
            if weight(&next) > weight(&worst) { next } else { worst }
        };
        verdicts.into_iter().fold(Verdict::Feasible, worse)
    }
}

/// A case in which a deadline is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// The `job`th job (from 1) of a busy window responds in `response`, later than `deadline`.
    Response {
        /// Position of the task in its set.
        task: usize,
        /// The number of the job in the busy window, from 1.
        job: u64,
        /// The response time from the nominal arrival.
        response: u64,
        /// The relative deadline that is missed.
        deadline: u64,
    },
    /// Jobs that arrive and are due within `interval` need `demand`, which is more.
    Demand {
        /// Length of the interval.
        interval: u64,
        /// Processor time that is due in it.
        demand: u64,
    },
    /// The job with this number misses its deadline in an order that can happen.
    Job {
        /// The job's number.
        job: u64,
        /// When it is done at the latest.
        finish: u64,
        /// The deadline that it exceeds.
        deadline: u64,
    },
}

/// The reason why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A sufficient test failed: the bound is over the deadline, but may not be reached.
    #[error("the bound is over the deadline, but blocking or suspension in it may never happen")]
    NotExact,
    /// More steps than allowed.
    #[error("the search was given up: it takes more steps than an analysis may")]
    TooLong,
    /// A number has more than 64 bits.
    #[error("a time has more than 64 bits")]
    Overflow,
    /// Nothing bounds the interference of a suspending task.
    #[error(
        "a task of higher priority suspends itself and is not known to be done within its period"
    )]
    Suspension,
    /// With suspension counted as execution, more is demanded than there is; without it, not.
    #[error(
        "suspension is counted as execution, and then more is demanded than there is; the execution times alone fit"
    )]
    SuspensionAsExecution,
    /// Suspension and non-preemptive segments together.
    #[error(
        "a task suspends itself, and the non-preemptive segments of other tasks meanwhile are not bounded"
    )]
    SuspensionInSegments,
    /// Parameters that the test does not know.
    #[error("this test knows neither jitter, nor blocking, nor suspension")]
    OutsideModel,
    /// Deadlines longer than periods, which the test does not know.
    #[error("this test needs deadlines of at most the period")]
    LongDeadlines,
    /// Response times and jitter of chains drive each other up.
    #[error("response times and jitter raise each other and do not settle")]
    Diverges,
    /// All of the processor is used and releases jitter, so that the busy window never ends.
    #[error("the processor is fully used and the busy window never ends")]
    Endless,
    /// Nothing bounds how long a plain mutex is waited for.
    #[error("a plain mutex is shared, and nothing bounds how long it is waited for")]
    Mutex,
}

/// Bounds on a task's response time. Both, since tools differ in which they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseTime {
    /// From a job's nominal arrival, its own release jitter included (Tindell; SchedCAT). This one
    /// is compared with the deadline.
    pub from_arrival: u64,
    /// The bound from a job's actual release (pyCPA, the `response-time-analysis` crate).
    pub from_release: u64,
}

/// The result for a task's response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseBound {
    /// The response time is at most this.
    Bounded(ResponseTime),
    /// The response time grows without bound.
    Unbounded,
    /// The analysis cannot tell.
    Unknown(Refusal),
}

impl ResponseBound {
    /// The bounds, if there are any.
    #[must_use]
    pub fn response(&self) -> Option<ResponseTime> {
        match self {
            ResponseBound::Bounded(response) => Some(*response),
            ResponseBound::Unbounded | ResponseBound::Unknown(_) => None,
        }
    }
}

/// One analysed case in a busy window: a fixed point of its equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// From the beginning of the window to the job's release (under EDF, to its arrival plus its
    /// jitter).
    pub offset: u64,
    /// How many jobs of the task the window holds up to this one.
    pub jobs: u64,
    /// The time from the beginning of the window to the job's completion.
    pub finish: u64,
}

/// The busy windows behind a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The last point's completion ends the window: no later job begins in it.
    Closed,
    /// The window is at most this long.
    Length(u64),
    /// At full utilisation the window does not end, but it repeats after this time.
    Repeats(u64),
}

/// The answer for one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskResult {
    /// The result for its response time.
    pub outcome: ResponseBound,
    /// Whether its deadline holds.
    pub verdict: Verdict,
    /// The window that bounds the analysed cases.
    pub window: Window,
    /// The indices of its points in [`Analysis::points`].
    pub(crate) points: Range<usize>,
}

/// The answer for a task set, in the order of its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// One a task, in the set's order.
    pub tasks: Vec<TaskResult>,
    /// The points of all tasks.
    pub(crate) points: Vec<Point>,
}

impl Analysis {
    /// The fixed points that prove the bound of the task at `position`.
    #[must_use]
    pub fn points(&self, position: usize) -> &[Point] {
        let range = self.tasks.get(position).map(|task| task.points.clone());
        range.and_then(|range| self.points.get(range)).unwrap_or_default()
    }

    /// The bound of each task from nominal arrival; `None` for a task without a bound.
    #[must_use]
    pub fn from_arrival(&self) -> Vec<Option<u64>> {
        let bound = |task: &TaskResult| task.outcome.response().map(|r| r.from_arrival);
        self.tasks.iter().map(bound).collect()
    }

    /// The bound of each task from actual release; `None` for a task without a bound.
    #[must_use]
    pub fn from_release(&self) -> Vec<Option<u64>> {
        let bound = |task: &TaskResult| task.outcome.response().map(|r| r.from_release);
        self.tasks.iter().map(bound).collect()
    }

    /// The verdict on the whole set: the worst of its tasks'. A set of no tasks is feasible.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::worst(self.tasks.iter().map(|task| task.verdict))
    }

    /// Every task responds within its bound, which is within its deadline; a point a task proves it.
    pub(crate) fn all_within(bounds: &[u64]) -> Analysis {
        let point = |bound: &u64| Point { offset: 0, jobs: 1, finish: *bound };
        let task = |(at, bound): (usize, &u64)| TaskResult {
            outcome: ResponseBound::Bounded(ResponseTime {
                from_arrival: *bound,
                from_release: *bound,
            }),
            verdict: Verdict::Feasible,
            window: Window::Closed,
            points: at..at + 1,
        };
        Analysis {
            tasks: bounds.iter().enumerate().map(task).collect(),
            points: bounds.iter().map(point).collect(),
        }
    }
}
