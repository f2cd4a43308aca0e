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
//!
//! # How a set of tasks runs
//!
//! `workload::replay` makes a thread execution model of each task. A task that is no more than an execution
//! time in a period is the paper's `PERIODIC`. Any other becomes a script (`compile.rs`): names of locks,
//! conditions, barriers and timers are places in one `Shared`, so that nothing is looked up while a thread is
//! measured. Jobs arrive at absolute times and are never skipped. Every wait ends with the thread's time at
//! the latest (`Recorder::block`), so that a deadlock in a file ends with the run. The recorder keeps each
//! job's arrival, beginning, end and received time in room made before the start.
//!
//! A thread that another one forks exists from the start and waits for it (`Step::Forked`), so that nothing is created
//! while others are measured.
//!
//! `measure::task_threads` plans the run, and `theory::predict` takes from its jobs what an analysis assumes (`terms.rs`; job by job
//! `observed.rs`, which tests each assumption on the trace). If a job took longer than its bound, the analysis is asked again
//! (`explain.rs`): with what was measured in the busy window of that job (`window.rs`), which also says which assumptions
//! failed there. Where the trace is not enough for that, it is asked with jitter and execution time as measured in the run,
//! and on each CPU one more task above all others, which in each window demands the most that a noise run lost in any
//! window of that length (`noise.rs`).

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

pub use compile::threads;

use std::sync::Arc;

use thiserror::Error;

use crate::models::Model;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Delay each release by a random part of the task's release jitter, evenly up to all of it.
    pub draws_jitter: bool,
}

#[derive(Clone, Debug)]
pub struct Replayed {
    pub name: String,
    pub model: Arc<dyn Model>,
}

#[derive(Clone, Debug)]
pub struct Threads {
    /// One for each task, in the order of the set.
    pub tasks: Vec<Replayed>,
    pub background: Vec<Replayed>,
    /// What the run does not do as the set says, one sentence each.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayError {
    #[error(
        "thread '{thread}': fork {started} starts no thread; give one the first step 'forked \
         {started} 0', or leave the fork out"
    )]
    Fork { thread: String, started: String },
    /// A step of a kind that is not known here.
    #[error("thread '{thread}': the step '{step}' is not replayed; leave it out")]
    Step { thread: String, step: String },
    #[error("io steps write to {device}, which cannot be opened: {reason}")]
    Device { device: &'static str, reason: String },
}
