//! Spans of a program by call site, as a run keeps them: what the scheduler took from them.

use serde::{Deserialize, Serialize};

use crate::Cause;

/// Counts of one call site of a program, over all of its threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteReport {
    /// Name of the call site.
    pub name: String,
    /// Where the program named it first: file and line. Empty where that is not known.
    pub place: String,
    /// Spans that ended.
    pub spans: u64,
    /// Spans in which the thread was off the CPU.
    pub disturbed: u64,
    /// Spans whose losses are unknown, as those from before a fork.
    pub unknown: u64,
    /// Median length of the spans, rounded up by less than 1/16, as the quantiles below.
    pub p50_ns: u64,
    /// 99 of 100 are not longer.
    pub p99_ns: u64,
    /// 999 of 1000 are not longer.
    pub p999_ns: u64,
    /// The longest span, ns.
    pub max_ns: u64,
    /// Lower bound of the time off the CPU within spans, ns.
    pub lost_least_ns: u64,
    /// Upper bound of the time off the CPU within spans, ns.
    pub lost_most_ns: u64,
    /// Lost time by cause, the greatest loss first.
    pub causes: Vec<SiteCause>,
}

/// Time that the spans of a call site lost by one cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteCause {
    /// Name of the cause.
    pub cause: String,
    /// Number of spans that lost time by it.
    pub count: u64,
    /// Lower bound of the lost time, summed over these spans, ns.
    pub lost_least_ns: u64,
    /// Upper bound of the lost time, summed over these spans, ns.
    pub lost_most_ns: u64,
    /// Median of the upper bounds of each span's loss, rounded up by less than 1/8.
    pub p50_ns: u64,
    /// 99 of 100 lost no more.
    pub p99_ns: u64,
    /// Upper bound of the greatest loss of one span, ns.
    pub max_ns: u64,
}

/// A span in which its thread was off the CPU, with its evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LostSpan {
    /// Name of the call site.
    pub site: String,
    /// The thread, by the kernel's number.
    pub tid: u32,
    /// Name of the thread.
    pub thread: String,
    /// When it began, counted from the run's start, ns.
    pub at_ns: i64,
    /// Length of the span, ns.
    pub length_ns: u64,
    /// Lower bound of the time off the CPU, ns: by the times of all switches where `evidence` has "a switch was
    /// recorded", else by the kernel's counts.
    pub lost_least_ns: u64,
    /// Upper bound of the time off the CPU, ns.
    pub lost_most_ns: u64,
    /// Time for which it was ready and waited for a CPU, by the kernel's count, ns.
    pub waited_ns: u64,
    /// Context switches by the thread's own waits.
    pub voluntary: u64,
    /// Context switches forced on it.
    pub involuntary: u64,
    /// Upper bound of the number of page faults.
    pub faults: u64,
    /// The CPU on which it began.
    pub cpu_before: u32,
    /// The CPU on which it ended.
    pub cpu_after: u32,
    /// Why it was off the CPU.
    pub cause: String,
    /// Confidence in the cause, from 0 to 1.
    pub confidence: f64,
    /// Indications of the cause, in words.
    pub evidence: String,
    /// Another witnessed thread of the process that had the CPU in the span, by the kernel's number; null where no such
    /// thread was seen on it, and the occupant is unknown.
    #[serde(default)]
    pub who: Option<u32>,
}

/// A span that was stored one by one, on the run's time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedSpan {
    /// Number of the thread in the run.
    pub thread: u32,
    /// Place of its call site in the run's `sites`.
    pub site: u32,
    /// When it began, ns from the run's start.
    pub start_ns: i64,
    /// When it ended, ns from the run's start.
    pub end_ns: i64,
    /// The CPU on which it began.
    pub cpu_before: u32,
    /// The CPU on which it ended.
    pub cpu_after: u32,
    /// Its loss; `None` for an undisturbed span.
    pub lost: Option<RecordedLoss>,
}

/// The loss of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedLoss {
    /// Lower bound of the time off the CPU, ns.
    pub least_ns: u64,
    /// Upper bound of the time off the CPU, ns.
    pub most_ns: u64,
    /// Why it was off the CPU; [`Cause::Unknown`] also for an unknown span.
    pub cause: Cause,
}
