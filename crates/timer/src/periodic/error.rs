//! Why a periodic thread was not started, and why it ended badly.

use std::error::Error;
use std::io;

use super::parameters::ParameterError;
use super::scheduling::{Refusal, SchedulingError};
use super::statistics::Snapshot;

/// A periodic thread that was not started. Nothing is left of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// Parameters that make no task.
    #[error("{name}: {error}")]
    Parameters {
        /// The thread.
        name: String,
        /// What is wrong with them.
        error: ParameterError,
    },
    /// A policy that it cannot have.
    #[error("{name}: {error}")]
    Scheduling {
        /// The thread.
        name: String,
        /// Why not.
        error: SchedulingError,
    },
    /// A policy that the kernel refused.
    #[error("{name}: {refusal}")]
    Refused {
        /// The thread.
        name: String,
        /// What was refused, and what grants it.
        refusal: Refusal,
    },
    /// CPUs that it may not use.
    #[error(
        "{name}: CPUs {cpus:?} cannot be used ({error}): give some that are online and allowed (nproc, taskset -p $$)"
    )]
    Affinity {
        /// The thread.
        name: String,
        /// The CPUs asked for.
        cpus: Vec<u32>,
        /// The kernel's answer.
        error: io::Error,
    },
    /// CPUs cannot be kept out of deep idle states.
    #[error(
        "{name}: {device} cannot be held ({error}): `sudo chmod a+w {device}`, or leave the idle latency out",
        device = hourglass_sys::idle_latency::DEVICE
    )]
    IdleLatency {
        /// The thread.
        name: String,
        /// The kernel's answer.
        error: io::Error,
    },
    /// A name that no thread can have.
    #[error("a thread cannot be called {0:?}: leave the zero byte out")]
    Name(String),
    /// There is no watch.
    #[error("{name}: its deadlines cannot be watched: {error}")]
    Watch {
        /// The thread.
        name: String,
        /// Why not.
        error: Box<dyn Error + Send + Sync>,
    },
    /// What it was to do first failed ([`super::Builder::on_start`]).
    #[error("{name}: its start hook failed: {error}")]
    OnStart {
        /// The thread.
        name: String,
        /// What it said.
        error: Box<dyn Error + Send + Sync>,
    },
    /// There is no thread to be had.
    #[error("{name}: no thread to be had ({error}): end others or raise the limit (ulimit -u)")]
    NoThread {
        /// The thread.
        name: String,
        /// The kernel's answer.
        error: io::Error,
    },
    /// It ended while it was set up.
    #[error(
        "{0}: ended while it was set up, by a panic in its start hook or where its watch is made"
    )]
    Gone(String),
}

/// A periodic thread that ended badly. What it did until then is kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// Its body (or a handler) panicked.
    #[error("{name} panicked in job {job}: {message}")]
    Panicked {
        /// The thread.
        name: String,
        /// The job, counted from 0.
        job: u64,
        /// What the panic said, if that was a text.
        message: String,
        /// What the task did until then.
        statistics: Box<Snapshot>,
    },
    /// The handle is a copy in a child made by `fork`, which has no such thread.
    #[error(
        "{name} runs in the process that started it, and not in this child made by `fork`: start one here"
    )]
    Forked {
        /// The thread.
        name: String,
    },
    /// The thread waited for its own end.
    #[error("{name} cannot wait for its own end: let its body return `ControlFlow::Break`")]
    Itself {
        /// The thread.
        name: String,
    },
}
