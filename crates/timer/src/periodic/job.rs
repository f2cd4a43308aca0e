//! One job: what its body is given, and what is known of it when it is complete.

use std::ops::{ControlFlow, Deref};

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::Timebase;
use hourglass_time::{Instant, Monotonic, Span};

use crate::sleep::{KernelSleep, Mechanism, Sleeper};

use super::periodic_loop::Stop;
use super::releases::MissedReleases;

/// What a body returns: whether there is to be another job.
///
/// Nothing (`()`) goes on; [`ControlFlow::Break`] ends the task.
pub trait JobControl {
    /// Whether this was the last job.
    fn is_last(&self) -> bool;
}

impl JobControl for () {
    fn is_last(&self) -> bool {
        false
    }
}

impl<B, C> JobControl for ControlFlow<B, C> {
    fn is_last(&self) -> bool {
        self.is_break()
    }
}

/// A job that is running.
#[derive(Debug)]
pub struct RunningJob<'a, C = &'static Clock, M = KernelSleep> {
    pub(super) sleeper: &'a mut Sleeper<C, M>,
    pub(super) stop: &'a Stop,
    pub(super) facts: JobStart,
    pub(super) budget_ns: Option<u64>,
    pub(super) cpu_begun_ns: u64,
    pub(super) previous: Option<CompletedJob>,
    /// By how much it moved the grid.
    pub(super) shift: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobStart {
    pub(super) number: u64,
    pub(super) release_ns: u64,
    pub(super) started_ns: u64,
    pub(super) deadline_ns: u64,
    pub(super) late: bool,
}

/// How a running job stands: what is left of its deadline and of its budget, negative if it is
/// overrun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct JobSlack {
    /// Time until the deadline.
    pub until_deadline: Span,
    /// CPU time until the budget is used; `None` without one.
    pub budget_left: Option<Span>,
}

impl JobSlack {
    /// Whether the deadline has passed.
    #[must_use]
    pub const fn missed(&self) -> bool {
        self.until_deadline.is_negative()
    }

    /// Whether the budget is overrun.
    #[must_use]
    pub fn is_cost_overrun(&self) -> bool {
        self.budget_left.is_some_and(Span::is_negative)
    }

    /// Whether the job is within both.
    #[must_use]
    pub fn is_within(&self) -> bool {
        !self.missed() && !self.is_cost_overrun()
    }
}

impl<C, M> RunningJob<'_, C, M> {
    /// How many jobs there were before.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.facts.number
    }

    /// When it was released, ns on `CLOCK_MONOTONIC`: the point of the grid.
    #[must_use]
    pub const fn release_ns(&self) -> u64 {
        self.facts.release_ns
    }

    /// When its body was entered, ns: never before its release, and after the CPU clock was
    /// read for it.
    #[must_use]
    pub const fn started_ns(&self) -> u64 {
        self.facts.started_ns
    }

    /// From release to start, ns.
    #[must_use]
    pub const fn latency_ns(&self) -> u64 {
        self.facts.started_ns.saturating_sub(self.facts.release_ns)
    }

    /// By when it is to be complete, ns.
    #[must_use]
    pub const fn deadline_ns(&self) -> u64 {
        self.facts.deadline_ns
    }

    /// By when it is to be complete.
    #[must_use]
    pub fn deadline(&self) -> Instant<Monotonic> {
        Instant::from_nanos(i64::try_from(self.facts.deadline_ns).unwrap_or(i64::MAX))
    }

    /// Whether its release had passed when the job before was complete: it is caught up on.
    #[must_use]
    pub const fn is_late(&self) -> bool {
        self.facts.late
    }

    /// The job before, and what it did wrong; `None` in the first one.
    #[must_use]
    pub const fn previous(&self) -> Option<&CompletedJob> {
        self.previous.as_ref()
    }

    /// Releases that were lost between the job before and this one.
    #[must_use]
    pub fn lost_before(&self) -> u64 {
        self.previous.map_or(0, |previous| previous.lost)
    }

    /// Moves the grid by `by`, later or earlier, by less than a period in all (more is held there): all releases after
    /// this job's, so that the loop may follow the clock of a device. Earlier moves of this job count too.
    pub fn shift(&mut self, by: Span) {
        self.shift = self.shift.saturating_add(by);
    }

    /// Whether the task is asked to stop: a long job may want to end early.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stop.is_requested()
    }

    /// The task's sleeper, for a pause within the job. A stop ends that too.
    pub fn sleeper(&mut self) -> &mut Sleeper<C, M> {
        self.sleeper
    }
}

impl<B: Timebase, C: Deref<Target = Clock<B>>, M: Mechanism> RunningJob<'_, C, M> {
    /// The time on the task's clock, ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.sleeper.now_ns()
    }

    /// CPU time that the job took so far, ns; a system call (0.2 us). Without the time that others
    /// had the CPU.
    #[must_use]
    pub fn cost_ns(&mut self) -> u64 {
        self.sleeper.mechanism().cpu_time_ns().saturating_sub(self.cpu_begun_ns)
    }

    /// How the job stands. A reading of the clock (some 20 ns), and with a budget a system call more
    /// (0.2 us): to be asked now and then by a job that can do with less, so that an overrun is seen
    /// while it happens and not only at the end.
    pub fn check(&mut self) -> JobSlack {
        let budget_left =
            self.budget_ns.map(|budget_ns| duration_between(self.cost_ns(), budget_ns));
        JobSlack {
            until_deadline: duration_between(self.now_ns(), self.facts.deadline_ns),
            budget_left,
        }
    }
}

/// From the one to the other, held at the ends.
fn duration_between(from_ns: u64, to_ns: u64) -> Span {
    let ns = i128::from(to_ns) - i128::from(from_ns);
    Span::from_nanos(i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX }))
}

/// A job that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletedJob {
    /// How many jobs there were before.
    pub number: u64,
    /// When it was released, ns.
    pub release_ns: u64,
    /// When its body was entered, ns.
    pub started_ns: u64,
    /// By when it was to be complete, ns.
    pub deadline_ns: u64,
    /// When it was complete, ns.
    pub completed_ns: u64,
    /// CPU time that it took, ns.
    pub cost_ns: u64,
    /// CPU time that it was to take at most, ns.
    pub budget_ns: Option<u64>,
    /// Whether its release had passed when the job before was complete.
    pub late: bool,
    /// Whether it was running at the next release.
    pub overrun: bool,
    /// Releases that were lost by that.
    pub lost: u64,
    /// By how much the grid moved, ns.
    pub moved_ns: u64,
}

impl CompletedJob {
    pub(super) fn of(
        facts: JobStart,
        completed_ns: u64,
        cost: JobCpuTime,
        passed: MissedReleases,
    ) -> CompletedJob {
        CompletedJob {
            number: facts.number,
            release_ns: facts.release_ns,
            started_ns: facts.started_ns,
            deadline_ns: facts.deadline_ns,
            completed_ns,
            cost_ns: cost.took_ns,
            budget_ns: cost.budget_ns,
            late: facts.late,
            overrun: passed.overrun,
            lost: passed.lost,
            moved_ns: passed.moved_ns,
        }
    }

    /// From release to start, ns.
    #[must_use]
    pub const fn latency_ns(&self) -> u64 {
        self.started_ns.saturating_sub(self.release_ns)
    }

    /// From release to completion, ns.
    #[must_use]
    pub const fn response_ns(&self) -> u64 {
        self.completed_ns.saturating_sub(self.release_ns)
    }

    /// Whether it missed its deadline. Complete at the deadline is in time.
    #[must_use]
    pub const fn missed(&self) -> bool {
        self.completed_ns > self.deadline_ns
    }

    /// Whether it took more CPU time than its budget.
    #[must_use]
    pub fn is_cost_overrun(&self) -> bool {
        self.budget_ns.is_some_and(|budget_ns| self.cost_ns > budget_ns)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct JobCpuTime {
    pub(super) took_ns: u64,
    pub(super) budget_ns: Option<u64>,
}
