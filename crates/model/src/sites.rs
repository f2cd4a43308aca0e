//! Spans of a program by call site, as a run keeps them: what the scheduler took from them.

use serde::{Deserialize, Serialize};

use crate::Cause;

/// What was counted at one call site of a program, by all of its threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteReport {
    /// Its name.
    pub name: String,
    /// Where the program named it first: file and line. Empty where that is not known.
    pub place: String,
    /// Spans that ended.
    pub spans: u64,
    /// Spans in which the thread was off the CPU.
    pub disturbed: u64,
    /// Spans of which nothing is known, as those from before a fork.
    pub unknown: u64,
    /// Median length of the spans, rounded up by less than 1/16; the same for the quantiles below.
    pub p50_ns: u64,
    /// 99 of 100 are not longer.
    pub p99_ns: u64,
    /// 999 of 1000 are not longer.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// For how long threads were off the CPU within spans, at least.
    pub lost_least_ns: u64,
    /// The same, at most.
    pub lost_most_ns: u64,
    /// The same by cause, that with the greatest loss first.
    pub causes: Vec<SiteCause>,
}

/// What a cause took from the spans of a call site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteCause {
    /// Its name.
    pub cause: String,
    /// Spans.
    pub count: u64,
    /// Summed over them, at least.
    pub lost_least_ns: u64,
    /// The same, at most.
    pub lost_most_ns: u64,
    /// Median of what each lost at most, rounded up by less than 1/8.
    pub p50_ns: u64,
    /// 99 of 100 lost no more.
    pub p99_ns: u64,
    /// What the worst lost.
    pub max_ns: u64,
}

/// A span in which its thread was off the CPU, with its evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LostSpan {
    /// The call site.
    pub site: String,
    /// The thread, by the kernel's number.
    pub tid: u32,
    /// What the thread was called.
    pub thread: String,
    /// When it began, counted from the run's start.
    pub at_ns: i64,
    /// How long it was.
    pub length_ns: u64,
    /// Off the CPU, at least: by the times of all switches where `evidence` has "a switch was recorded", else by the
    /// kernel's counts.
    pub lost_least_ns: u64,
    /// The same, at most.
    pub lost_most_ns: u64,
    /// Ready, and waiting for a CPU, by the kernel's count.
    pub waited_ns: u64,
    /// Context switches by the thread's own waits.
    pub voluntary: u64,
    /// Context switches forced on it.
    pub involuntary: u64,
    /// Page faults, at most.
    pub faults: u64,
    /// The CPU on which it began.
    pub cpu_before: u32,
    /// The CPU on which it ended.
    pub cpu_after: u32,
    /// Why.
    pub cause: String,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
    /// What speaks for it, in words.
    pub evidence: String,
    /// Another witnessed thread of the process that had the CPU meanwhile, by the kernel's number; null where none was
    /// seen on it, and then who had it is unknown.
    #[serde(default)]
    pub who: Option<u32>,
}

/// A span that was kept one by one, on the run's time line.
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
    /// What it lost; `None` if nothing disturbed it.
    pub lost: Option<RecordedLoss>,
}

/// What a span lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedLoss {
    /// Off the CPU at least, ns.
    pub least_ns: u64,
    /// Off the CPU at most, ns.
    pub most_ns: u64,
    /// Why; [`Cause::Unknown`] also where nothing is known of the span.
    pub cause: Cause,
}
