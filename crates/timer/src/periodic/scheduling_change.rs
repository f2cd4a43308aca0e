//! Policy and CPUs of a thread that runs a periodic task in its own code, and back.

use std::io;

use hourglass_sys::sched::SavedScheduling;
use hourglass_sys::thread as os;

use super::parameters::ValidParameters;
use super::scheduling::{Refusal, Scheduling, SchedulingError};

/// What a thread was not given. It is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeError {
    /// A policy that it cannot have.
    #[error(transparent)]
    Scheduling(#[from] SchedulingError),
    /// A policy that the kernel refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// CPUs that it may not use.
    #[error(
        "CPUs {cpus:?} cannot be used ({error}): give some that are online and allowed (nproc, taskset -p $$)"
    )]
    Affinity {
        /// The requested CPUs.
        cpus: Vec<u32>,
        /// Error of the kernel.
        error: io::Error,
    },
    /// What it has cannot be read, and so not be put back.
    #[error("the thread's policy and CPUs cannot be read: {0}")]
    Unknown(io::Error),
}

/// A thread's policy and CPUs that were changed, and what they were before. Dropped, they stay changed.
///
/// ```no_run
/// use hourglass_time::Span;
/// use hourglass_timer::periodic::{Parameters, Scheduling, SchedulingChange};
///
/// let parameters = Parameters::every(Span::from_millis(1)).check()?;
/// let taken = SchedulingChange::by_this_thread(Scheduling::Fifo(50), Some(&[1]), &parameters)?;
/// // The loop.
/// taken.restore()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SchedulingChange {
    tid: u32,
    policy: Option<SavedScheduling>,
    cpus: Option<Vec<u32>>,
}

impl SchedulingChange {
    /// Gives the calling thread these CPUs (`None`: those that it has) and this policy, which for the
    /// deadline class has budget, deadline and period of `parameters`.
    ///
    /// # Errors
    /// [`TakeError`].
    pub fn by_this_thread(
        scheduling: Scheduling,
        cpus: Option<&[u32]>,
        parameters: &ValidParameters,
    ) -> Result<SchedulingChange, TakeError> {
        scheduling.check(parameters)?;
        let changes = scheduling != Scheduling::Inherited;
        let policy =
            changes.then(|| SavedScheduling::read(0)).transpose().map_err(TakeError::Unknown)?;
        let before = cpus.map(|_| os::affinity()).transpose().map_err(TakeError::Unknown)?;
        if let Some(cpus) = cpus {
            let set = os::set_affinity(cpus.iter().copied());
            set.map_err(|error| TakeError::Affinity { cpus: cpus.to_vec(), error })?;
        }
        let taken = SchedulingChange { tid: os::id(), policy, cpus: before };
        if let Err(refusal) = scheduling.take(parameters) {
            // The thread had them a moment ago.
            let _ = taken.restore();
            return Err(refusal.into());
        }
        Ok(taken)
    }

    /// Puts back what was, from any thread. A thread that is over has nothing to be put back.
    ///
    /// # Errors
    /// What the kernel answers: a nice value can be raised without a privilege, and not lowered.
    pub fn restore(self) -> io::Result<()> {
        /// `errno(3)`: no such thread.
        const ESRCH: i32 = 3;
        let there = |done: io::Result<()>| match done {
            Err(error) if error.raw_os_error() == Some(ESRCH) => Ok(()),
            done => done,
        };
        let policy = self.policy.map_or(Ok(()), |policy| there(policy.restore(self.tid)));
        let cpus = self.cpus.map_or(Ok(()), |cpus| there(os::set_affinity_of(self.tid, cpus)));
        policy.and(cpus)
    }
}

#[cfg(test)]
#[path = "tests/taken.rs"]
mod tests;
