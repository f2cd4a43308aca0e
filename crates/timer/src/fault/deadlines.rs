//! A thread's course through its deadlines, on any clock.
//!
//! Owns: taking and giving up deadlines, jobs, being ended at their bounds. Must not: know whether time
//! is real: that is the [`Side`].

use hourglass_sys::stop::{DisarmOutcome, StopGate};

use super::error::{FaultError, ThreadTerminated};
use super::jobs::{Deadline, EndedJob, JobDeadlines, Periodic};

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
    jobs: JobDeadlines,
}

impl<S: Side> Deadlines<S> {
    pub(super) fn new(side: S) -> Deadlines<S> {
        Deadlines { side, jobs: JobDeadlines::new() }
    }

    pub(super) fn arm(&mut self, deadline: Deadline) -> Result<(), FaultError> {
        let at_ns = deadline.at_ns(self.side.now_ns())?;
        self.jobs.stop();
        self.arm_at(at_ns)
    }

    pub(super) fn disarm(&mut self) -> Result<bool, ThreadTerminated> {
        self.jobs.stop();
        let (disarmed, _) = self.side.disarm();
        self.safepoint()?;
        Ok(disarmed == DisarmOutcome::Ahead)
    }

    pub(super) fn begin_job(&mut self, deadline: Deadline) -> Result<(), FaultError> {
        let at_ns = self.jobs.begin(deadline.at_ns(self.side.now_ns())?);
        self.arm_at(at_ns)
    }

    pub(super) fn begin_jobs(&mut self, series: Periodic) -> Result<(), FaultError> {
        let at_ns = self.jobs.begin_series(series)?;
        self.arm_at(at_ns)
    }

    pub(super) fn end_job(&mut self) -> Result<Option<EndedJob>, FaultError> {
        if !self.jobs.is_under_way() {
            self.safepoint()?;
            return Ok(None);
        }
        let (_, finished_ns) = self.side.disarm();
        self.safepoint()?;
        let ending = self.jobs.end(finished_ns);
        if let Some(next_ns) = ending.and_then(|ending| ending.next_deadline_ns) {
            self.arm_at(next_ns)?;
        }
        Ok(ending)
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
