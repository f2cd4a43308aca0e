//! Tasks as threads: a set of tasks replayed with its releases, phases, locks and signals.
//!
//! Owns: what a job of a task does in a run ([`threads`]), the locks, conditions, barriers and
//! timers that the threads of a set share, the thread execution models that come of it. Jobs
//! arrive at absolute times and are never skipped: one that is late delays those behind it. Only
//! a task that is no more than an execution time in a period runs as `PERIODIC`, which skips
//! periods that are over (Hourglass paper, section 3.2).
//!
//! Must not: choose CPUs, policies or wake-up methods (the caller's `ThreadSpec` has them), judge
//! whether deadlines can hold.

mod arrivals;
mod compile;
mod execution;
mod lock;
mod memory;
mod script;
mod shared;
mod signals;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use hourglass_model::tasks::TaskSet;
use thiserror::Error;

use crate::models::Model;

/// How a set is to be replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Delay each release by a random part of the task's release jitter, evenly up to all of it.
    pub draws_jitter: bool,
}

/// A thread of a replayed set.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The name of the task or background thread.
    pub name: String,
    /// What it does.
    pub model: Arc<dyn Model>,
}

/// The threads of a set.
#[derive(Clone, Debug)]
pub struct Threads {
    /// One for each task, in the order of the set.
    pub tasks: Vec<Replayed>,
    /// One for each background thread.
    pub background: Vec<Replayed>,
    /// What the run does not do as the set says, one sentence each.
    pub notes: Vec<String>,
}

/// A set that cannot be replayed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayError {
    /// A thread would start one that there is not.
    #[error(
        "thread '{thread}': fork {started} starts no thread; give one the first step 'forked \
         {started} 0', or leave the fork out"
    )]
    Fork {
        /// The thread.
        thread: String,
        /// What it would start.
        started: String,
    },
    /// A step of a kind that is not known here.
    #[error("thread '{thread}': the step '{step}' is not replayed; leave it out")]
    Step {
        /// The thread.
        thread: String,
        /// The step.
        step: String,
    },
    /// A device that steps write to cannot be opened.
    #[error("io steps write to {device}, which cannot be opened: {reason}")]
    Device {
        /// The device.
        device: &'static str,
        /// What the kernel says.
        reason: String,
    },
}

/// The threads that replay a set, as far as their workloads go.
///
/// # Errors
/// A step cannot be replayed.
pub fn threads(set: &TaskSet, manner: Manner) -> Result<Threads, ReplayError> {
    compile::threads(set, manner)
}
