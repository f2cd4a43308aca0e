//! The analyst's view of a task: numbers, without names or units.
//!
//! Owns: [`Task`], [`TaskSet`] and what is refused in them. Must not: judge schedulability.

/// A recurring task on one processor.
///
/// Built by [`Task::new`] and the `with_` functions, so that what is here is always sensible:
/// cost, period and deadline are above zero, segments are no longer than the cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub(crate) cost: u64,
    pub(crate) period: u64,
    pub(crate) deadline: u64,
    pub(crate) jitter: u64,
    pub(crate) blocking: u64,
    pub(crate) suspension: u64,
    pub(crate) np: u64,
    pub(crate) last: u64,
    pub(crate) priority: u32,
}

/// A task that cannot be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// The cost is zero.
    #[error("the cost is 0; give the longest execution time of a job, or leave the task out")]
    NoCost,
    /// The period is zero.
    #[error("the period is 0; give the shortest time between two jobs")]
    NoPeriod,
    /// The deadline is zero.
    #[error("the deadline is 0; give the time a job may take, or leave it out for the period")]
    NoDeadline,
    /// A segment that is longer than the job.
    #[error("a non-preemptive segment of {segment} is longer than the cost of {cost}")]
    SegmentOverCost {
        /// The segment's length.
        segment: u64,
        /// The task's cost.
        cost: u64,
    },
    /// The last segment is longer than the longest.
    #[error("the last segment of {last} is longer than the longest, {np}")]
    LastOverLongest {
        /// The last segment's length.
        last: u64,
        /// The longest segment's length.
        np: u64,
    },
}

impl Task {
    /// A task that needs `cost` at most, whose jobs arrive at least `period` apart and should be
    /// done within `deadline` of their arrival. A cost above the deadline is no error: such a task
    /// is infeasible.
    ///
    /// # Errors
    /// A cost, period or deadline of 0.
    pub fn new(cost: u64, period: u64, deadline: u64) -> Result<Task, TaskError> {
        match (cost, period, deadline) {
            (0, _, _) => Err(TaskError::NoCost),
            (_, 0, _) => Err(TaskError::NoPeriod),
            (_, _, 0) => Err(TaskError::NoDeadline),
            _ => Ok(Task {
                cost,
                period,
                deadline,
                jitter: 0,
                blocking: 0,
                suspension: 0,
                np: 0,
                last: 0,
                priority: 0,
            }),
        }
    }

    /// A job is released, that is, may execute, up to `jitter` after its arrival.
    #[must_use]
    pub fn with_jitter(self, jitter: u64) -> Task {
        Task { jitter, ..self }
    }

    /// Tasks of lower priority hold the processor for up to `blocking`, once in a busy window.
    #[must_use]
    pub fn with_blocking(self, blocking: u64) -> Task {
        Task { blocking, ..self }
    }

    /// A job suspends itself for up to `suspension` in all, at any points of its execution.
    #[must_use]
    pub fn with_suspension(self, suspension: u64) -> Task {
        Task { suspension, ..self }
    }

    /// The longest segment that is not preempted, and the last one.
    ///
    /// # Errors
    /// Segments longer than the cost; a last one longer than the longest.
    pub fn with_segments(self, np: u64, last: u64) -> Result<Task, TaskError> {
        if np > self.cost {
            return Err(TaskError::SegmentOverCost { segment: np, cost: self.cost });
        }
        if last > np {
            return Err(TaskError::LastOverLongest { last, np });
        }
        Ok(Task { np, last, ..self })
    }

    /// The larger number is more urgent, as in Linux. Equal numbers are served first come, first
    /// served.
    #[must_use]
    pub fn with_priority(self, priority: u32) -> Task {
        Task { priority, ..self }
    }

    /// The longest execution time of a job.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// The shortest time between two arrivals.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.period
    }

    /// The time from a job's arrival within which it should be done.
    #[must_use]
    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    /// The longest time from a job's arrival to its release.
    #[must_use]
    pub fn jitter(&self) -> u64 {
        self.jitter
    }

    /// The longest time for which lower priorities delay a busy window.
    #[must_use]
    pub fn blocking(&self) -> u64 {
        self.blocking
    }

    /// The longest time in all for which a job suspends itself.
    #[must_use]
    pub fn suspension(&self) -> u64 {
        self.suspension
    }

    /// The longest non-preemptive segment; 0 where a job may be preempted anywhere.
    #[must_use]
    pub fn longest_segment(&self) -> u64 {
        self.np
    }

    /// The last non-preemptive segment.
    #[must_use]
    pub fn last_segment(&self) -> u64 {
        self.last
    }

    /// The priority; larger is more urgent.
    #[must_use]
    pub fn priority(&self) -> u32 {
        self.priority
    }
}

impl From<Vec<Task>> for TaskSet {
    fn from(tasks: Vec<Task>) -> TaskSet {
        TaskSet::new(tasks)
    }
}

/// Tasks that share one processor, in the order in which they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSet {
    tasks: Vec<Task>,
    /// Positions, the most urgent first.
    order: Vec<usize>,
}

impl TaskSet {
    /// A set of these tasks, with the priorities that they have.
    #[must_use]
    pub fn new(tasks: Vec<Task>) -> TaskSet {
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|position| std::cmp::Reverse(tasks[*position].priority));
        TaskSet { tasks, order }
    }

    /// A set of these tasks, the first being the most urgent.
    #[must_use]
    pub fn in_order(tasks: Vec<Task>) -> TaskSet {
        let priorities = (0..=u32::MAX).rev();
        let tasks = tasks.into_iter().zip(priorities).map(|(task, p)| task.with_priority(p));
        TaskSet::new(tasks.collect())
    }

    /// The tasks as given.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Positions in the set, the most urgent first; equals in the order given.
    #[must_use]
    pub fn by_priority(&self) -> &[usize] {
        &self.order
    }
}
