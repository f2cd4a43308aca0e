//! A whole run, as a page or a foreign format shows it.
//!
//! Owns: the shape of what is handed over. Must not: read it from anywhere, or infer it.

use hourglass_model::document::{RunDocument, ThreadReport};
use hourglass_model::kernel::KernelNames;
use hourglass_model::{Cause, Interval, KernelEvent};

/// All that there is to show of a run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What the run found.
    pub document: &'a RunDocument,
    /// Its trace, in order of start.
    pub intervals: &'a [Interval],
    /// Why threads did not run, in order of thread and then of end; gaps without a cause are
    /// left out. Empty where no cause was inferred.
    pub causes: &'a [Explained],
    /// Lateness of wake-ups, one for each thread that measured it.
    pub latencies: &'a [LatencyCounts],
    /// What the kernel told, in order of time. Empty where it told nothing.
    pub events: &'a [KernelEvent],
    /// Names for what the kernel's events number.
    pub names: &'a KernelNames,
}

/// Why a thread did not run.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// Number of the thread.
    pub thread: u32,
    /// When the gap ended, ns from the run's start: the start of the interval after it.
    pub end_ns: i64,
    /// Why.
    pub cause: Cause,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// What speaks for it.
    pub evidence: String,
}

/// How late the wake-ups of a thread were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyCounts {
    /// Number of the thread.
    pub thread: u32,
    /// Whole microseconds of lateness, ascending, and how many wake-ups were so late.
    pub counts: Vec<(u64, u64)>,
}

impl LatencyCounts {
    /// Wake-ups that were `us` late or later.
    #[must_use]
    pub fn from_us(&self, us: u64) -> u64 {
        let late = self.counts.iter().filter(|(at, _)| *at >= us);
        late.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

/// What a thread is called in a picture: its name, or else its workload.
pub(crate) fn label(thread: &ThreadReport) -> &str {
    thread.name.as_deref().unwrap_or(&thread.workload)
}
