//! The analyst's view of a task: numbers, without names or units.
//!
//! Owns: [`Task`], the one description of a task that all analyses here take, [`CriticalSection`],
//! [`TaskSet`], and what is refused in them. Must not: judge schedulability.
//!
//! Few analyses know all of a task. One that does not know an arrival curve, a phase, a preemption
//! threshold or critical sections refuses a set with them ([`TaskSet::is_plain`]) and never passes over
//! them.

use std::sync::Arc;

use crate::curve::{Curve, CurveError};

/// A recurring task on one processor.
///
/// Built by [`Task::new`] and the `with_` functions, so that what is here is always sensible:
/// cost, period and deadline are above zero, segments are no longer than the cost.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Apart, so that tasks without it, of which there are many, stay small.
    pub(crate) extra: Option<Arc<TaskExtension>>,
}

/// Properties that few tasks have and few analyses support.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskExtension {
    curve: Option<Curve>,
    phase: Option<u64>,
    threshold: Option<u32>,
    sections: Vec<CriticalSection>,
    cpu: Option<usize>,
}

/// The properties of tasks beyond plain ones that an analysis supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskFeature {
    Bursts,
    Phase,
    Threshold,
    /// Critical sections, and the processor.
    Sections,
}

/// A resource that a task's jobs hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CriticalSection {
    /// The position of the resource.
    pub resource: usize,
    /// How often a job asks for it.
    pub count: u64,
    /// For how long it executes with it each time at most; part of the job's cost.
    pub length: u64,
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
    /// A threshold below the priority.
    #[error("a preemption threshold of {threshold} is below the priority of {priority}")]
    LowThreshold {
        /// The threshold.
        threshold: u32,
        /// The priority.
        priority: u32,
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
                extra: None,
            }),
        }
    }

    /// A job is released, that is, may execute, up to `jitter` after its arrival.
    #[must_use]
    pub fn with_jitter(&self, jitter: u64) -> Task {
        Task { jitter, ..self.clone() }
    }

    /// Jobs that take `cost` or more.
    #[must_use]
    pub fn with_cost_at_least(&self, cost: u64) -> Task {
        Task { cost: self.cost.max(cost), ..self.clone() }
    }

    /// Tasks of lower priority hold the processor for up to `blocking`, once in a busy window.
    #[must_use]
    pub fn with_blocking(&self, blocking: u64) -> Task {
        Task { blocking, ..self.clone() }
    }

    /// A job suspends itself for up to `suspension` in all, at any points of its execution.
    #[must_use]
    pub fn with_suspension(&self, suspension: u64) -> Task {
        Task { suspension, ..self.clone() }
    }

    /// The longest segment that is not preempted, and the last one.
    ///
    /// # Errors
    /// Segments longer than the cost; a last one longer than the longest.
    pub fn with_segments(&self, np: u64, last: u64) -> Result<Task, TaskError> {
        if np > self.cost {
            return Err(TaskError::SegmentOverCost { segment: np, cost: self.cost });
        }
        if last > np {
            return Err(TaskError::LastOverLongest { last, np });
        }
        Ok(Task { np, last, ..self.clone() })
    }

    /// The larger number is more urgent, as in Linux. Equal numbers are served first come, first
    /// served.
    #[must_use]
    pub fn with_priority(&self, priority: u32) -> Task {
        Task { priority, ..self.clone() }
    }

    /// Jobs arrive in bursts: `later` has the shortest times from the first to the 2nd, 3rd, ... arrival,
    /// beyond which each is the period of now after the one before; none for no bursts. Distances that are those of the
    /// period are no bursts.
    ///
    /// # Errors
    /// Distances that descend or are too many.
    pub fn with_bursts(&self, later: &[u64]) -> Result<Task, CurveError> {
        let curve = Curve::bursts(later, self.period)?;
        Ok(self.with(|extra| extra.curve = Some(curve).filter(|curve| !curve.is_periodic())))
    }

    /// The first job arrives at `phase`, each further one exactly a period after the one before; `None`
    /// for a task that may come in any phase, or sporadically.
    #[must_use]
    pub fn with_phase(&self, phase: Option<u64>) -> Task {
        self.with(|extra| extra.phase = phase)
    }

    /// Only priorities above `threshold` preempt a job that has begun.
    ///
    /// # Errors
    /// A threshold below the priority.
    pub fn with_threshold(&self, threshold: u32) -> Result<Task, TaskError> {
        if threshold < self.priority {
            return Err(TaskError::LowThreshold { threshold, priority: self.priority });
        }
        Ok(self.with(|extra| extra.threshold = Some(threshold)))
    }

    /// This task with these critical sections. Sections of no length or count are left out.
    #[must_use]
    pub fn with_critical_sections(&self, sections: &[CriticalSection]) -> Task {
        let held = sections.iter().copied().filter(|s| s.length > 0 && s.count > 0);
        self.with(|extra| extra.sections = held.collect())
    }

    /// The processor that it stays on, where there are several.
    #[must_use]
    pub fn with_cpu(&self, cpu: usize) -> Task {
        self.with(|extra| extra.cpu = Some(cpu))
    }

    /// This task without bursts, phase, threshold, critical sections and processor.
    #[must_use]
    pub fn plain(&self) -> Task {
        Task { extra: None, ..self.clone() }
    }

    /// This task with the jitter that covers its bursts, in place of them. `None` if it has more
    /// than 64 bits.
    #[must_use]
    pub fn with_bursts_as_jitter(&self) -> Option<Task> {
        let Some(curve) = self.curve() else { return Some(self.clone()) };
        let jitter = self.jitter.checked_add(curve.as_jitter()?)?;
        Some(self.with(|extra| extra.curve = None).with_jitter(jitter))
    }

    fn with(&self, change: impl FnOnce(&mut TaskExtension)) -> Task {
        let mut extra = self.extra.as_deref().cloned().unwrap_or_default();
        change(&mut extra);
        let extra = (extra != TaskExtension::default()).then(|| Arc::new(extra));
        Task { extra, ..self.clone() }
    }

    /// Whether it has no bursts, phase, threshold, critical sections or processor.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.extra.is_none()
    }

    /// Whether it has none of these but what an analysis knows.
    pub(crate) fn is_plain_but(&self, known: TaskFeature) -> bool {
        let Some(extra) = self.extra.as_deref() else { return true };
        let TaskExtension { curve, phase, threshold, sections, cpu } = extra;
        let is = |of| known == of;
        (curve.is_none() || is(TaskFeature::Bursts))
            && (phase.is_none() || is(TaskFeature::Phase))
            && (threshold.is_none() || is(TaskFeature::Threshold))
            && (sections.is_empty() || is(TaskFeature::Sections))
            && (cpu.is_none() || is(TaskFeature::Sections))
    }

    /// How soon after each other its jobs arrive, with or without bursts.
    pub(crate) fn arrivals(&self) -> Curve {
        self.curve().cloned().unwrap_or_else(|| Curve::every(self.period))
    }

    /// How soon after each other its jobs arrive, if they come in bursts.
    #[must_use]
    pub fn curve(&self) -> Option<&Curve> {
        self.extra.as_ref()?.curve.as_ref()
    }

    /// When its first job arrives, if each further one is exactly a period later.
    #[must_use]
    pub fn phase(&self) -> Option<u64> {
        self.extra.as_ref()?.phase
    }

    /// Its preemption threshold, never below its priority; `None` if everything above its priority
    /// preempts it.
    #[must_use]
    pub fn threshold(&self) -> Option<u32> {
        self.extra.as_ref()?.threshold.map(|threshold| threshold.max(self.priority))
    }

    /// The critical sections of its jobs.
    #[must_use]
    pub fn critical_sections(&self) -> &[CriticalSection] {
        self.extra.as_ref().map_or(&[], |extra| &extra.sections)
    }

    /// The processor that it stays on; 0 if none is stated.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.extra.as_ref().and_then(|extra| extra.cpu).unwrap_or(0)
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

    /// A set of these tasks, the first being the most urgent, the last of priority 1.
    #[must_use]
    pub fn in_order(tasks: Vec<Task>) -> TaskSet {
        let priorities = (1..=u32::try_from(tasks.len()).unwrap_or(u32::MAX)).rev();
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

    /// Whether the set has no task.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Whether no task has bursts, a phase, a threshold, critical sections or a processor, of which most
    /// analyses know nothing.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.tasks.iter().all(Task::is_plain)
    }

    /// Whether all have none of these but what an analysis knows.
    pub(crate) fn is_plain_but(&self, known: TaskFeature) -> bool {
        self.tasks.iter().all(|task| task.is_plain_but(known))
    }

    /// The tasks of this set, plain.
    #[must_use]
    pub fn plain(&self) -> TaskSet {
        let tasks = self.tasks.iter().map(Task::plain).collect();
        TaskSet { tasks, order: self.order.clone() }
    }

    /// Puts another task of the same priority in the place of one.
    pub(crate) fn replace(&mut self, position: usize, task: Task) {
        debug_assert_eq!(self.tasks[position].priority, task.priority);
        self.tasks[position] = task;
    }

    /// Positions in the set, the most urgent first; equals in the order given.
    #[must_use]
    pub fn by_priority(&self) -> &[usize] {
        &self.order
    }
}
