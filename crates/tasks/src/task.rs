//! One task: what it needs, how often, by when, and under which rules.
//!
//! Owns: [`Task`] and the small nouns in it. Must not: know the other tasks.

use hourglass_documents::{CpuSet, ExecutionTime, Policy};
use hourglass_time::Span;

use super::program::Program;

/// A recurring activity.
///
/// A field that is `None` was not said; the functions give what then holds.
/// [`TaskSet::check`](super::TaskSet::check) says whether the values make sense.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The name, unique in the set.
    pub name: String,
    /// Whether jobs arrive at fixed times or only never too soon.
    pub activation: Activation,
    /// The time between two arrivals of a periodic task, the shortest such time of a sporadic
    /// one. Above zero.
    pub period: Span,
    /// The longest execution time of a job, critical sections included. Above zero.
    pub wcet: Span,
    /// The shortest execution time of a job, if it is known; from above zero to `wcet`.
    pub bcet: Option<Span>,
    /// Where `wcet` is no more than an upper bound of an execution time that is not known: what the longest is at least; from
    /// above zero to `wcet`. What `wcet` alone makes late is not known to be late.
    pub wcet_at_least: Option<Span>,
    /// The distribution of execution times in simulations and runs; the worst case without it.
    pub execution_time: Option<ExecutionTime>,
    /// The time from a job's nominal arrival within which it should be done; may be longer than
    /// the period. Without it, the period.
    pub deadline: Option<Span>,
    /// The longest time from a job's nominal arrival to its release, or to the wait for a tick that
    /// ends in its release.
    pub jitter: Span,
    /// When the first job arrives, if phases are known. Without it, any phase is possible.
    pub offset: Option<Span>,
    /// For how long less urgent tasks may hold it up, beyond what critical sections and
    /// non-preemptive sections of the set account for.
    pub blocking: Span,
    /// The longest time in all for which a job suspends itself.
    pub suspension: Span,
    pub preemption: Preemption,
    /// The priority: the larger number is more urgent, as with the kernel's FIFO class.
    pub priority: Option<u32>,
    /// The kernel's class, where a run is to use another than FIFO at the task's priority.
    pub policy: Option<Policy>,
    /// CPUs on which it may run; without it, all of the machine.
    pub cpus: Option<CpuSet>,
    /// The shortest time from any arrival to the next, to the one after it, and so on.
    /// Beyond the last of these, each further arrival is at least a period later. Empty without
    /// bursts.
    pub arrivals: Vec<Span>,
    /// Tasks whose job must be finished before that of this one is released.
    pub after: Vec<String>,
    pub critical_sections: Vec<CriticalSection>,
    /// What wakes it in a run: a wake-up method of `hourglass run`, such as `HR` or `TICK:100`.
    pub timer: Option<String>,
    /// For how long the tick of [`Task::timer`] delays a release at most; a whole tick without it.
    /// From 0 to a tick.
    pub tick_jitter: Option<Span>,
    /// The steps of a job, where they are known and can be replayed.
    pub program: Option<Program>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activation {
    /// Exactly a period apart.
    #[default]
    Periodic,
    /// A period apart or more.
    Sporadic,
}

/// The tasks that may preempt a job, and the points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preemption {
    /// Any more urgent task, at any point.
    #[default]
    Full,
    None,
    /// Tasks above this priority, at any point (Wang and Saksena 1999).
    Threshold(u32),
    /// Any more urgent task, at fixed points between non-preemptive sections.
    Limited {
        longest: Span,
        /// The last section; not longer than the longest.
        last: Span,
    },
    /// Any more urgent task, but not within sections that lie anywhere.
    Floating {
        longest: Span,
    },
}

/// A part of a job during which it holds a resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CriticalSection {
    pub resource: String,
    /// The longest execution time in the section.
    pub length: Span,
    /// How often a job does so, at least once.
    pub count: u32,
}

impl Task {
    /// A periodic task with an implicit deadline that any more urgent task preempts.
    #[must_use]
    pub fn new(name: &str, wcet: Span, period: Span) -> Task {
        Task {
            name: name.to_owned(),
            activation: Activation::Periodic,
            period,
            wcet,
            bcet: None,
            wcet_at_least: None,
            execution_time: None,
            deadline: None,
            jitter: Span::ZERO,
            offset: None,
            blocking: Span::ZERO,
            suspension: Span::ZERO,
            preemption: Preemption::Full,
            priority: None,
            policy: None,
            cpus: None,
            arrivals: Vec::new(),
            after: Vec::new(),
            critical_sections: Vec::new(),
            timer: None,
            tick_jitter: None,
            program: None,
        }
    }

    /// Whether `wcet` is only an upper bound of what it needs.
    #[must_use]
    pub fn has_upper_bound(&self) -> bool {
        self.wcet_at_least.is_some_and(|least| least < self.wcet)
    }

    /// The deadline that holds: the one given, else the period.
    #[must_use]
    pub fn deadline(&self) -> Span {
        self.deadline.unwrap_or(self.period)
    }

    /// The priority as it was given, by itself or by a real-time policy.
    #[must_use]
    pub fn priority(&self) -> Option<u32> {
        self.priority.or(match self.policy {
            Some(Policy::Fifo(priority) | Policy::RoundRobin(priority)) => Some(priority.into()),
            _ => None,
        })
    }

    /// Whether the task is scheduled by its priority, given or yet to be assigned. The kernel's
    /// time-sharing classes and its deadline class have none.
    #[must_use]
    pub fn has_fixed_priority(&self) -> bool {
        self.policy.is_none_or(Policy::is_real_time)
    }

    /// The time between two ticks, if a tick wakes the task: `TICK:100` is 10 ms. A remainder is
    /// cut off.
    #[must_use]
    pub fn tick(&self) -> Option<Span> {
        let hertz = self.timer.as_ref()?.strip_prefix("TICK:")?.parse::<i64>().ok()?;
        Span::SECOND.nanos().checked_div(hertz).filter(|ns| *ns > 0).map(Span::from_nanos)
    }

    /// For how long the tick that wakes the task delays a release at most: what is given, else a
    /// whole tick; 0 without a tick.
    #[must_use]
    pub fn tick_delay(&self) -> Span {
        self.tick().map_or(Span::ZERO, |tick| self.tick_jitter.unwrap_or(tick))
    }

    /// The longest non-preemptive section: the whole job if it is never preempted, else what was
    /// given, or nothing.
    #[must_use]
    pub fn longest_section(&self) -> Span {
        match self.preemption {
            Preemption::None => self.wcet,
            Preemption::Limited { longest, .. } | Preemption::Floating { longest } => longest,
            Preemption::Full | Preemption::Threshold(_) => Span::ZERO,
        }
    }

    /// The last non-preemptive section; nothing where it is not known to be one.
    #[must_use]
    pub fn last_section(&self) -> Span {
        match self.preemption {
            Preemption::None => self.wcet,
            Preemption::Limited { last, .. } => last,
            _ => Span::ZERO,
        }
    }
}
