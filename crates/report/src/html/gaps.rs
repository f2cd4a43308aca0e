//! The gaps between a thread's records, and the kinds by which they are coloured.

use std::collections::BTreeMap;

use hourglass_documents::Cause;
use hourglass_trace::cause::AttributedGap;
use hourglass_trace::{Interval, IntervalStart};

use crate::run::RunView;

/// A gap before a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap<'a> {
    pub(super) thread: u32,
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    pub(super) cpu_before: u32,
    pub(super) cpu: u32,
    /// Place in [`KINDS`].
    pub(super) kind: usize,
    pub(super) attribution: Option<&'a AttributedGap>,
}

impl Gap<'_> {
    pub(super) fn length_ns(&self) -> u64 {
        if self.to_ns > self.from_ns { self.to_ns.abs_diff(self.from_ns) } else { 0 }
    }
}

/// What a gap may be, in words; the causes first, in the order of [`Cause::ALL`], then what the
/// recorder knows without a cause. The style sheet has a colour for each, by number.
pub(super) const KINDS: [&str; 19] = [
    "context switch, voluntary",
    "context switch, involuntary",
    "context switch",
    "timer tick",
    "interrupt",
    "softirq",
    "migration",
    "page fault",
    "real-time throttling",
    "deadline budget used up",
    "cgroup quota used up",
    "stopped by a signal",
    "interrupt or below the kernel",
    "below the kernel",
    "unknown",
    "reservation budget used up",
    "short, or no cause known",
    "yield",
    "moved to another CPU",
];

const WITHOUT_CAUSE: usize = 16;
const YIELDED: usize = 17;
const MOVED: usize = 18;

pub(super) fn kind_of(cause: Cause) -> usize {
    Cause::ALL.iter().position(|c| *c == cause).unwrap_or(WITHOUT_CAUSE)
}

/// The gaps of a run in the order of their ends, each with its cause if that is known.
pub(super) fn collect<'a>(run: &RunView<'a>) -> Vec<Gap<'a>> {
    let mut last: BTreeMap<u32, &Interval> = BTreeMap::new();
    let mut gaps = Vec::new();
    for record in run.intervals {
        let Some(before) = last.insert(record.thread, record) else { continue };
        if !record.onset.is_gap() {
            continue;
        }
        let why = run.cause_of(record.thread, record.start_ns);
        let kind = match (why, record.onset) {
            (Some(why), _) => kind_of(why.cause),
            (None, IntervalStart::Yield) => YIELDED,
            (None, IntervalStart::Migration) => MOVED,
            (None, _) => WITHOUT_CAUSE,
        };
        gaps.push(Gap {
            thread: record.thread,
            from_ns: before.end_ns,
            to_ns: record.start_ns,
            cpu_before: before.cpu,
            cpu: record.cpu,
            kind,
            attribution: why,
        });
    }
    gaps
}
