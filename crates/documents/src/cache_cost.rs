//! The document `hourglass.cache-cost/1`: what a context switch costs threads whose data leave the
//! cache, by the size of their working sets.

use serde::{Deserialize, Serialize};

use crate::document::Warning;

/// Name and version of the document.
pub const CACHE_COST_SCHEMA: &str = "hourglass.cache-cost/1";

/// The result of an experiment as in section 5.2 of the Hourglass paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheCostDocument {
    /// Always [`CACHE_COST_SCHEMA`].
    pub schema: String,
    /// CPU on which everything ran.
    pub cpu: u32,
    /// The processor's model, if the machine gives it.
    pub processor: Option<String>,
    /// Release of the kernel.
    pub kernel: String,
    /// Threads of the run that is compared with that of one thread.
    pub threads: u32,
    /// How long each run took, ns.
    pub duration_ns: u64,
    /// Requested trials of each size.
    pub trials: u32,
    /// Results, in the order in which sizes were given.
    pub sizes: Vec<SizeCost>,
    /// What a reader must know before believing the numbers.
    pub warnings: Vec<Warning>,
    /// Whether a signal ended the experiment; trials that were not complete are left out.
    pub interrupted: bool,
}

/// Results for one size of working sets. Numbers are null where nothing was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeCost {
    /// Working set of each thread, bytes.
    pub bytes: u64,
    /// Penalty of a switch by the paper's formula, ns: work lost to switches, their direct cost
    /// and everything else that takes more from several threads than from one included.
    pub penalty_ns: Option<f64>,
    /// Lower end of its 95 % interval; null with one trial.
    pub ci_lo_ns: Option<f64>,
    /// Upper end of its 95 % interval.
    pub ci_hi_ns: Option<f64>,
    /// Penalty by work in received time, ns: how much slower threads run after a switch, without the direct cost and
    /// without what other programs took.
    pub refill_ns: Option<f64>,
    /// Lower end of its 95 % interval.
    pub refill_ci_lo_ns: Option<f64>,
    /// Upper end of its 95 % interval.
    pub refill_ci_hi_ns: Option<f64>,
    /// Complete trials.
    pub trials: u32,
    /// Context switches in a second in the runs of several threads.
    pub switches_per_s: Option<f64>,
    /// Passes over the working set that one thread did in a run, on average.
    pub work_of_one: Option<f64>,
    /// Passes that all threads together did in a run, on average.
    pub work_of_many: Option<f64>,
}
