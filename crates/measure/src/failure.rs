//! Why there was no run.

use hourglass_documents::CpuSet;
use hourglass_machine::refusal::Refusal;
use hourglass_runs::store::CreateError;
use hourglass_workload::spec::SpecError;
use thiserror::Error;

use crate::gates::GateError;

/// Why there was no run. Nothing was measured and nothing is left behind.
#[derive(Debug, Error)]
pub enum RunFailure {
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Gate(#[from] GateError),
    #[error("thread {thread}: --cpu: CPU {cpu} is not online; use some of {online}")]
    NoSuchCpu { thread: usize, cpu: u32, online: CpuSet },
    #[error(
        "thread {thread}: --cpu: CPU {cpu} is not in the cpuset of this process's control group; use \
         some of {permitted}, or give the cpuset more (docker: --cpuset-cpus)"
    )]
    Barred { thread: usize, cpu: u32, permitted: CpuSet },
    #[error(
        "-e: the records and arrays of the run take {wanted} MiB, and {limit}; lower -e, or the SIZE \
         of its scanning threads"
    )]
    Memory {
        /// What the run would lock, MiB.
        wanted: u64,
        /// What it may have, MiB.
        given: u64,
        limit: String,
    },
    /// More memory than there is, for one of the sizes of `cache-cost`.
    #[error(
        "--sizes: arrays of {kib} KiB and their records take {wanted} MiB, and {limit}; name smaller sizes"
    )]
    Sizes {
        /// The size, KiB.
        kib: u64,
        /// What the run would lock, MiB.
        wanted: u64,
        limit: String,
    },
    #[error("--load: {kind} does not start: {reason}; leave it out, or raise what limits it")]
    Load { kind: &'static str, reason: String },
    #[error("-o: {0}")]
    Folder(#[from] CreateError),
    #[error("{}", .0.first().map_or("the machine refuses", |r| r.what.as_str()))]
    Refused(Vec<Refusal>),
    /// Something else of the machine.
    #[error("{0}")]
    Other(String),
}
