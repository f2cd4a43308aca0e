//! What runs: its class, when its jobs come, what they need and do.
//!
//! Owns: [`Thread`] and the small nouns in it. Must not: know the other threads.

use hourglass_documents::ExecutionTime;

use super::script::Script;

/// Something that runs: a task with jobs, or a thread that is always ready.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Thread {
    /// How it competes, while no server runs it.
    pub class: Class,
    /// CPUs on which it may run; empty for all.
    pub cpus: Vec<u32>,
    /// When jobs arrive.
    pub arrivals: ArrivalPattern,
    /// Threads whose job of the same number must be done before a job of this one is released. Its
    /// own arrivals are then not used: a job arrives with that of the first of these threads.
    pub after: Vec<usize>,
    /// The execution times of jobs.
    pub cost: CostModel,
    /// The time from a job's nominal arrival within which it should be done, ns. Above zero.
    pub deadline: u64,
    /// How much later than they arrive jobs are released.
    pub jitter: Jitter,
    /// Releases happen at multiples of this only, ns: the tick of the timer that wakes the thread. 0
    /// or 1 for any nanosecond.
    pub tick: u64,
    /// No release waits longer for the tick than this, ns.
    pub tick_jitter: u64,
    /// The threads that may preempt it, and the points.
    pub preemption: Preemption,
    /// The actions of a job, by work done; ascending.
    pub marks: Vec<Mark>,
    /// The treatment of a job that is released while an earlier one is unfinished.
    pub late: OverrunPolicy,
    pub server: Option<usize>,
    /// Numbers the random draws of this thread: threads with the same number draw the same. `None`
    /// takes the position.
    pub stream: Option<u64>,
    /// What it does act by act. It has no arrivals, predecessors and marks then, and its cost and jitter are not used.
    pub script: Option<Script>,
}

/// How a thread competes. Deadlines come before priorities, these before fair shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Ordered by its job's absolute deadline. Of equal ones the running thread goes on, then the first.
    Edf,
    /// Ordered by priority, the larger first; equals in the order of release.
    Fifo(u32),
    /// Ordered by priority; equals take turns of [`System::quantum`](super::System::quantum).
    RoundRobin(u32),
    /// Shares the remaining time by weight; nice from -20 to 19.
    Fair(i8),
    /// Has the smallest share: `SCHED_IDLE`.
    Idle,
}

/// When jobs arrive, ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrivalPattern {
    /// One job that begins at this time and never ends: a best-effort thread. It has no deadline.
    Always {
        /// When it becomes ready.
        offset: u64,
    },
    /// A period apart.
    Periodic {
        offset: u64,
        /// Above zero.
        period: u64,
    },
    /// A period and up to `extra` more apart, every length being equally likely.
    Sporadic {
        offset: u64,
        /// Above zero.
        period: u64,
        /// The longest addition.
        extra: u64,
    },
    /// A burst, then a period apart.
    Burst {
        offset: u64,
        /// The times from the first to the 2nd, 3rd, ... arrival; ascending.
        distances: Vec<u64>,
        /// Between arrivals after these. Above zero.
        period: u64,
    },
    /// Arrivals at these times; ascending.
    Listed(Vec<u64>),
}

/// The execution times of jobs, ns of a CPU that is not shared.
#[derive(Clone, Debug, PartialEq)]
pub enum CostModel {
    /// Always this; above zero.
    Worst(u64),
    /// Draws, cut off at `at_most`.
    Drawn {
        times: ExecutionTime,
        /// The longest execution time; above zero.
        at_most: u64,
    },
    /// One after the other, from the first again at the end. None is zero.
    Listed(Vec<u64>),
}

/// How much later than they arrive jobs are released, ns. Jobs are released in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Jobs are released at once.
    #[default]
    None,
    /// No job before the first one has had all of it, the others at once: what bounds of response
    /// times assume.
    Worst(u64),
    /// Releases are late by up to this, ns, every length being equally likely.
    Random(u64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preemption {
    /// Any more urgent thread, at any point.
    #[default]
    Full,
    /// No thread.
    None,
    /// Fixed priorities above this only, once a job has begun (Wang and Saksena 1999).
    Threshold(u32),
    /// Any more urgent thread, at fixed points: a job consists of sections of `longest`, a shorter
    /// one for what remains, and at the end one of `last`.
    Limited {
        /// The longest section, ns of work; above zero.
        longest: u64,
        /// The last section, ns of work; not longer.
        last: u64,
    },
}

/// A point of a job's execution at which it does something. Beyond the end of a job that needs
/// less, it is not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Work done until then, ns.
    pub at: u64,
    pub action: MarkAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkAction {
    /// Suspends itself for this time, ns.
    Suspend(u64),
    Lock(usize),
    /// Releases the lock. At its end a job releases all locks that it still holds.
    Unlock(usize),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverrunPolicy {
    /// The job waits for its turn.
    #[default]
    Queue,
    /// The job never starts: it is lost.
    Skip,
}

impl Thread {
    /// A thread whose jobs need `cost` and arrive every `period` from 0 on, with the period as
    /// deadline, at priority 1.
    #[must_use]
    pub fn periodic(cost: u64, period: u64) -> Thread {
        let arrivals = ArrivalPattern::Periodic { offset: 0, period };
        Thread::new(Class::Fifo(1), arrivals, CostModel::Worst(cost), period)
    }

    /// A thread of the fair class that always has something to do.
    #[must_use]
    pub fn best_effort(nice: i8) -> Thread {
        let arrivals = ArrivalPattern::Always { offset: 0 };
        Thread::new(Class::Fair(nice), arrivals, CostModel::Worst(1), u64::MAX)
    }

    /// A thread that runs anywhere, is preempted anywhere, and queues late jobs.
    #[must_use]
    pub fn new(class: Class, arrivals: ArrivalPattern, cost: CostModel, deadline: u64) -> Thread {
        Thread {
            class,
            cpus: Vec::new(),
            arrivals,
            after: Vec::new(),
            cost,
            deadline,
            jitter: Jitter::None,
            tick: 0,
            tick_jitter: u64::MAX,
            preemption: Preemption::Full,
            marks: Vec::new(),
            late: OverrunPolicy::Queue,
            server: None,
            stream: None,
            script: None,
        }
    }

    /// A thread that follows a script; `deadline` is that of its jobs, ns.
    #[must_use]
    pub fn scripted(class: Class, script: Script, deadline: u64) -> Thread {
        let arrivals = ArrivalPattern::Listed(Vec::new());
        let thread = Thread::new(class, arrivals, CostModel::Worst(1), deadline);
        Thread { script: Some(script), ..thread }
    }

    /// This thread with a fixed priority; the larger is more urgent.
    #[must_use]
    pub fn with_priority(self, priority: u32) -> Thread {
        Thread { class: Class::Fifo(priority), ..self }
    }

    #[must_use]
    pub fn with_class(self, class: Class) -> Thread {
        Thread { class, ..self }
    }

    #[must_use]
    pub fn with_deadline(self, deadline: u64) -> Thread {
        Thread { deadline, ..self }
    }

    #[must_use]
    pub fn on(self, cpus: &[u32]) -> Thread {
        Thread { cpus: cpus.to_vec(), ..self }
    }

    #[must_use]
    pub fn in_server(self, server: usize) -> Thread {
        Thread { server: Some(server), ..self }
    }

    /// The jitter that is to be suffered first, ns.
    pub(super) fn worst_jitter(&self) -> u64 {
        if let Jitter::Worst(jitter) = self.jitter { jitter } else { 0 }
    }

    /// Whether it is one endless job.
    #[must_use]
    pub fn is_best_effort(&self) -> bool {
        matches!(self.arrivals, ArrivalPattern::Always { .. })
    }
}

impl ArrivalPattern {
    /// Moves the first arrival; listed times stay.
    pub fn set_offset(&mut self, to: u64) {
        match self {
            ArrivalPattern::Always { offset }
            | ArrivalPattern::Periodic { offset, .. }
            | ArrivalPattern::Sporadic { offset, .. }
            | ArrivalPattern::Burst { offset, .. } => *offset = to,
            ArrivalPattern::Listed(_) => {}
        }
    }
}
