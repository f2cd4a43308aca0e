//! Jobs and their deadlines: which one is in force, which comes next; a thread's course through them.
//!
//! Owns: taking and giving up deadlines, jobs, being ended at their bounds. Must not: know whether time
//! is real: that is the [`Side`].

use hourglass_sys::stop::{DisarmOutcome, StopGate};
use hourglass_time::Span;

use super::error::{FaultError, ThreadTerminated};

/// The latest deadline, ns: beyond it the kernel's times end.
const LAST_NS: u64 = i64::MAX as u64;

/// When something has to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// At a time on `CLOCK_MONOTONIC`, ns. One that is past, 0 as well, is a fault at once.
    At(u64),
    /// So far from now. Zero and negative ones are past.
    In(Span),
}

impl Deadline {
    /// As a time, ns.
    ///
    /// # Errors
    /// [`FaultError::OutOfRange`] beyond 2^63 - 1 ns.
    pub fn at_ns(self, now_ns: u64) -> Result<u64, FaultError> {
        let at_ns = match self {
            Deadline::At(at_ns) => Some(at_ns),
            Deadline::In(span) => now_ns.checked_add(span.nanos_or_zero()),
        };
        at_ns.filter(|at_ns| *at_ns <= LAST_NS).ok_or(FaultError::OutOfRange)
    }
}

/// Deadlines that come again: that of job k, from 0, is `first_ns + k * period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periodic {
    /// The first job's deadline, ns on `CLOCK_MONOTONIC`: its release and the relative deadline.
    pub first_ns: u64,
    /// From each deadline to the next.
    pub period: Span,
}

/// A job that was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedJob {
    /// Its number, from 0; without a series of jobs always 0.
    pub number: u64,
    /// Its deadline, ns.
    pub deadline_ns: u64,
    /// When it was ended, ns.
    pub finished_ns: u64,
    /// The deadline of the next job, now in force, ns; none for a single job.
    pub next_deadline_ns: Option<u64>,
}

impl EndedJob {
    /// Whether it was ended at its deadline or after.
    #[must_use]
    pub fn has_missed(&self) -> bool {
        self.finished_ns >= self.deadline_ns
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CurrentJob {
    number: u64,
    deadline_ns: u64,
    period_ns: Option<u64>,
}

impl CurrentJob {
    /// Its deadline is that of this one and a period, never counted from now.
    fn next(self) -> Option<CurrentJob> {
        let deadline_ns = self.deadline_ns.checked_add(self.period_ns?)?;
        let number = self.number.wrapping_add(1);
        // A series ends where time does.
        (deadline_ns <= LAST_NS).then_some(CurrentJob { number, deadline_ns, ..self })
    }
}

/// The thread's side of its gate, with a clock and a timer.
pub(super) trait Side {
    fn now_ns(&self) -> u64;
    fn gate(&self) -> &StopGate;
    fn arm(&self, at_ns: u64) -> bool;
    fn disarm(&self) -> (DisarmOutcome, u64);
}

#[derive(Debug)]
pub(super) struct Deadlines<S> {
    pub(super) side: S,
    job: Option<CurrentJob>,
}

impl<S: Side> Deadlines<S> {
    pub(super) fn new(side: S) -> Deadlines<S> {
        Deadlines { side, job: None }
    }

    /// No job is under way from now on.
    pub(super) fn arm(&mut self, deadline: Deadline) -> Result<(), FaultError> {
        let at_ns = deadline.at_ns(self.side.now_ns())?;
        self.job = None;
        self.arm_at(at_ns)
    }

    pub(super) fn disarm(&mut self) -> Result<bool, ThreadTerminated> {
        self.job = None;
        let (disarmed, _) = self.side.disarm();
        self.safepoint()?;
        Ok(disarmed == DisarmOutcome::Ahead)
    }

    pub(super) fn begin_job(&mut self, deadline: Deadline) -> Result<(), FaultError> {
        let deadline_ns = deadline.at_ns(self.side.now_ns())?;
        self.job = Some(CurrentJob { number: 0, deadline_ns, period_ns: None });
        self.arm_at(deadline_ns)
    }

    pub(super) fn begin_jobs(&mut self, series: Periodic) -> Result<(), FaultError> {
        if !series.period.is_positive() {
            return Err(FaultError::Period(series.period.nanos()));
        }
        if series.first_ns > LAST_NS {
            return Err(FaultError::OutOfRange);
        }
        let period_ns = Some(series.period.nanos_or_zero());
        self.job = Some(CurrentJob { number: 0, deadline_ns: series.first_ns, period_ns });
        self.arm_at(series.first_ns)
    }

    pub(super) fn end_job(&mut self) -> Result<Option<EndedJob>, FaultError> {
        let Some(job) = self.job else {
            self.safepoint()?;
            return Ok(None);
        };
        let (_, finished_ns) = self.side.disarm();
        self.safepoint()?;
        self.job = job.next();
        let next_deadline_ns = self.job.map(|next| next.deadline_ns);
        if let Some(next_ns) = next_deadline_ns {
            self.arm_at(next_ns)?;
        }
        let CurrentJob { number, deadline_ns, .. } = job;
        Ok(Some(EndedJob { number, deadline_ns, finished_ns, next_deadline_ns }))
    }

    fn arm_at(&mut self, at_ns: u64) -> Result<(), FaultError> {
        self.safepoint()?;
        if !self.side.arm(at_ns) {
            return Err(FaultError::Forked);
        }
        Ok(self.safepoint()?)
    }

    pub(super) fn safepoint(&self) -> Result<(), ThreadTerminated> {
        if self.side.gate().is_ended() { Err(ThreadTerminated) } else { Ok(()) }
    }
}
