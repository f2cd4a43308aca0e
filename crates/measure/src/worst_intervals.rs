//! The worst of a run: its longest gaps and its latest wake-ups.
//!
//! Owns: which these are. Must not: say why they were.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hourglass_trace::Interval;

const WORST: usize = 5;

/// A gap or wake-up, ns from the run's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorstInterval {
    /// `gap` or `wake_up`, as documents call it.
    pub(crate) kind: &'static str,
    pub(crate) thread: u32,
    pub(crate) from_ns: i64,
    pub(crate) to_ns: i64,
    /// Where the thread went on; of a wake-up only if it was one CPU that it might use.
    pub(crate) cpu: Option<u32>,
}

impl WorstInterval {
    pub(crate) const GAP: &'static str = "gap";
    pub(crate) const WAKE_UP: &'static str = "wake_up";

    pub(crate) fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns).max(0).unsigned_abs()
    }
}

/// The gaps between intervals, which come in order of start.
pub(crate) fn gaps(
    intervals: impl Iterator<Item = Interval>,
) -> impl Iterator<Item = WorstInterval> {
    let mut ended: BTreeMap<u32, i64> = BTreeMap::new();
    intervals.filter_map(move |interval| {
        let from_ns = ended.insert(interval.thread, interval.end_ns)?;
        let (thread, to_ns, cpu) = (interval.thread, interval.start_ns, Some(interval.cpu));
        let span = WorstInterval { kind: WorstInterval::GAP, thread, from_ns, to_ns, cpu };
        interval.onset.is_gap().then_some(span)
    })
}

pub(crate) fn longest(all: impl Iterator<Item = WorstInterval>) -> Vec<WorstInterval> {
    let mut kept: Vec<WorstInterval> = Vec::with_capacity(2 * WORST);
    let cut = |kept: &mut Vec<WorstInterval>| {
        kept.sort_by_key(|span| (Reverse(span.length_ns()), span.to_ns, span.thread));
        kept.truncate(WORST);
    };
    for span in all {
        if kept.len() == 2 * WORST {
            cut(&mut kept);
        }
        kept.push(span);
    }
    cut(&mut kept);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_kept() {
        let span = |n: i64| WorstInterval {
            kind: WorstInterval::GAP,
            thread: 0,
            from_ns: 0,
            to_ns: (n * 37) % 101,
            cpu: None,
        };
        let kept: Vec<i64> = longest((0..101).map(span)).iter().map(|span| span.to_ns).collect();
        assert_eq!(kept, [100, 99, 98, 97, 96]);
    }
}
