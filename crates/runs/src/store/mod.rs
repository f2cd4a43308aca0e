//! Run folders on disk: the manifest, the trace as Parquet, the latencies as an HDR log and one by
//! one as Parquet, the kernel's events as Parquet.
//!
//! Owns: the layout of a run folder, the versions of its files, the recognition of half-written
//! ones, and the merging of the threads' records into one order of start.
//! Rounds of runs lie in one folder, under names of their own ([`rounds`]).
//! Must not: compute anything from what it stores, measure, or print.
//!
//! A run folder is written in one order, so that its state can be read off its files:
//!
//! 1. [`RunFolder::create`], before the measurement: the folder and `trace.parquet.partial`.
//! 2. [`NewRunFolder::trace`]: `trace.parquet`, renamed from its partial name when complete.
//! 3. [`NewRunFolder::write_latencies`]: `latency.hlog`, where latencies were recorded.
//! 4. [`NewRunFolder::write_samples`]: `latency.parquet`, the same latencies one by one.
//! 5. [`NewRunFolder::write_kernel_events`]: `kernel.parquet`, where the kernel was traced.
//! 6. [`NewRunFolder::write_looks`]: `looks.parquet`, where other threads were watched.
//! 7. [`NewRunFolder::write_spans`]: `spans.parquet`, where a program recorded its spans.
//! 8. [`NewRunFolder::write_jobs`]: `jobs.parquet`, where jobs of periodic threads are known one by one.
//! 9. [`NewRunFolder::finish`]: `manifest.json`. A folder without it is half-written.
//!
//! Every file reaches the disk (`fsync`) before it gets its final name. Reading never panics,
//! whatever the files contain.

mod create;
mod error;
mod folder;
mod guard;
mod jobs;
mod kernel;
mod latency;
mod manifest;
mod merge;
pub mod merged;
mod partial;
pub mod rounds;
mod samples;
mod spans;
pub mod sweep;
mod table;
mod trace;
mod watch_samples;

pub use create::NewRunFolder;
pub use error::{CreateError, LatencyError, OpenError, RowFault, TraceError, WriteError};
pub use folder::RunFolder;
pub use guard::is_decoding;
pub use kernel::KernelEvents;
pub use merge::{Merge, merge_by_start};
pub use samples::StoredWakeUp;
pub use trace::{Trace, TraceWriter};

pub const MANIFEST_FILE: &str = "manifest.json";
pub const TRACE_FILE: &str = "trace.parquet";
pub const LATENCY_FILE: &str = "latency.hlog";
pub const SAMPLES_FILE: &str = "latency.parquet";
pub const KERNEL_FILE: &str = "kernel.parquet";
pub const LOOKS_FILE: &str = "looks.parquet";
pub const SPANS_FILE: &str = "spans.parquet";
pub const JOBS_FILE: &str = "jobs.parquet";

const FILES: [&str; 8] = [
    TRACE_FILE,
    LATENCY_FILE,
    SAMPLES_FILE,
    KERNEL_FILE,
    LOOKS_FILE,
    SPANS_FILE,
    JOBS_FILE,
    MANIFEST_FILE,
];
