//! Periodic threads: jobs released at absolute times, with deadline, budget and statistics.
//!
//! Owns: the parameters of a task ([`Parameters`]), its grid of releases and what becomes of those
//! that pass ([`OverrunPolicy`]), the loop that runs it on any clock ([`PeriodicLoop`]), the thread
//! that runs the loop on this machine ([`PeriodicThread`]), and what it counts ([`TaskStatistics`]).
//! Must not: allocate, lock or do I/O between the first release and the end; enforce anything by
//! itself (a job that takes too long is reported and counted; [`JobWatch`] is where enforcement
//! attaches, and [`Builder::deadline_handler`] attaches that of [`crate::fault`]).
//!
//! The periodic threads of RT-Mach (Savage and Tokuda, *Real-Time Mach Timers*, 1993, sections 3 and
//! 4), which there check a deadline only when the job has ended. The words are the field's: a **job**
//! is *released* at a point of the grid, *starts* when its body is entered (the difference is the
//! **release latency**, its spread the jitter), is *complete* after its **response time**, and has
//! *missed* if that is above the deadline. A job that is running at the next release has **overrun**
//! its period; one that took more CPU time than its **budget** has overrun its cost.
//!
//! # How a periodic thread runs
//!
//! `timer::periodic::PeriodicLoop` is the task without a thread: `step` sleeps to the next point of the
//! grid (`releases.rs`: integers only, each point counted from the first), runs the body, asks clock and
//! CPU clock, and lets the grid say what passed meanwhile. `thread.rs` gives a thread its CPUs and its
//! policy, tells the starter, and runs the loop. What it counts lies behind a sequence lock of atomics
//! (`statistics.rs`): the thread writes and never waits, readers copy again if it wrote meanwhile.
//! Enforcement is not here: `JobWatch` is notified when a job begins and ends.

mod builder;
mod error;
mod histogram;
mod job;
mod job_watch;
mod parameters;
mod periodic_loop;
mod releases;
mod scheduling;
mod scheduling_change;
mod statistics;
mod thread;

#[cfg(test)]
pub(crate) mod tests;

pub use builder::Builder;
pub use error::{JoinError, SpawnError};
pub use histogram::Distribution;
pub use job::{CompletedJob, JobControl, JobSlack, RunningJob};
pub use job_watch::{JobWatch, ReleasedJob};
pub use parameters::{OverrunPolicy, ParameterError, Parameters, ValidParameters};
pub use periodic_loop::{ActiveJob, DueRelease, LoopEnd, LoopStep, PeriodicLoop, Stop};
pub use scheduling::{Refusal, Scheduling, SchedulingError};
pub use scheduling_change::{SchedulingChange, TakeError};
pub use statistics::{Snapshot, TaskStatistics};
pub use thread::PeriodicThread;
