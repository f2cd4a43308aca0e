//! What a deadline handler learns about a fault, and what it may answer.
//!
//! Owns: the types of both. Must not: carry out a verdict.

use hourglass_sys::sched::Attributes as Scheduling;
use hourglass_sys::stop::{self, FaultMessage};

use super::jobs::Deadline;

/// What is done to a thread that passes its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultAction {
    /// The handler gets a message; the thread runs on.
    #[default]
    Notify,
    /// The thread gets the scheduling in its handler's [`super::Attributes::demoted`] before the
    /// handler is called. It runs on, with its locks, when no better thread wants its CPU.
    Demote,
    /// It stands where it is until its handler has answered. See the module on what that can break.
    Suspend,
}

impl FaultAction {
    /// What is done to the thread at its gate. A demotion is the handler's part.
    pub(super) const fn done(self) -> stop::StopAction {
        match self {
            FaultAction::Notify => stop::StopAction::Notify,
            FaultAction::Demote => stop::StopAction::Hold,
            FaultAction::Suspend => stop::StopAction::Suspend,
        }
    }
}

impl From<stop::StopAction> for FaultAction {
    fn from(done: stop::StopAction) -> FaultAction {
        match done {
            stop::StopAction::Notify => FaultAction::Notify,
            stop::StopAction::Hold => FaultAction::Demote,
            stop::StopAction::Suspend => FaultAction::Suspend,
        }
    }
}

/// A deadline that was passed: what the handler's entry is called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kernel's number of the thread.
    pub thread: u32,
    /// How many deadlines the thread has passed since it is watched, with this one.
    pub count: u64,
    /// How many of those reached no handler.
    pub undelivered: u64,
    /// The deadline, ns on `CLOCK_MONOTONIC` as the others; `u64::MAX` for a budget.
    pub deadline_ns: u64,
    /// When the thread was stopped; with [`FaultAction::Notify`] when it was interrupted. With a region
    /// that put the stop off: when that was left.
    pub stopped_ns: u64,
    /// When the handler ran.
    pub handled_ns: u64,
    /// What was done to the thread.
    pub strength: FaultAction,
    /// Whether a region put it off, or one of this module's own calls.
    pub deferred: bool,
}

impl Fault {
    /// Whether the thread used up its budget of CPU time ([`super::DeadlineWatch::arm_budget`]), and did not
    /// pass a deadline by this.
    #[must_use]
    pub fn is_over_budget(&self) -> bool {
        self.deadline_ns == stop::NEVER
    }

    pub(super) fn new(
        mail: &FaultMessage,
        thread: u32,
        undelivered: u64,
        handled_ns: u64,
    ) -> Fault {
        Fault {
            thread,
            count: mail.number,
            undelivered,
            deadline_ns: mail.deadline_ns,
            stopped_ns: mail.stopped_ns,
            handled_ns,
            strength: mail.strength.into(),
            deferred: mail.deferred,
        }
    }
}

/// What is to become of a thread that passed its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultVerdict {
    /// It goes on, with the scheduling that it had.
    Resume,
    /// Resumes with a new deadline, unless the thread has taken another, given this one up or passed the
    /// next meanwhile (which only a thread that runs can). A relative one counts from the verdict.
    ResumeBy(Deadline),
    /// It goes on with other scheduling.
    Reschedule(SchedulingUpdate),
    /// It goes on as demoted as it is. (Without a demotion: as [`FaultVerdict::Resume`].)
    KeepDemoted,
    /// It goes on with the scheduling that it had, to its next safepoint or bound of a job, where it
    /// gets [`super::ThreadTerminated`].
    End,
}

impl FaultVerdict {
    /// What it changes of the thread's scheduling and deadline.
    pub(super) fn change(self) -> SchedulingUpdate {
        match self {
            FaultVerdict::ResumeBy(deadline) => {
                SchedulingUpdate { deadline: Some(deadline), ..SchedulingUpdate::default() }
            }
            FaultVerdict::Reschedule(change) => change,
            FaultVerdict::Resume | FaultVerdict::KeepDemoted | FaultVerdict::End => {
                SchedulingUpdate::default()
            }
        }
    }
}

/// A change of scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulingUpdate {
    /// Class and priority; what it had before a demotion if not given.
    pub scheduling: Option<Scheduling>,
    /// The CPU that it runs on; left alone if not given.
    pub cpu: Option<u32>,
    /// A new deadline, as with [`FaultVerdict::ResumeBy`].
    pub deadline: Option<Deadline>,
}

/// What a deadline handler has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandlerCounts {
    /// How often its entry was called.
    pub faults: u64,
    /// How often that panicked; the thread was resumed then.
    pub panics: u64,
    /// Demotions, restorations and changes that the kernel refused, or deadlines out of range.
    pub refused: u64,
}
