//! What interrupted busy threads, without the time that the kernel keeps from real-time ones.
//!
//! Owns: numbers of gaps from which throttled ones are taken out. Must not: decide what a gap's cause is.

use std::collections::BTreeMap;
use std::convert::Infallible;

use hdrhistogram::Histogram;
use hourglass_documents::Cause;
use hourglass_documents::document::{GapReport, ThreadReport};

use crate::experiment::Finished;
use crate::findings::percentiles;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noise {
    pub thread: u32,
    pub gaps: GapReport,
    /// How many fell into each step, from 0 on, where steps were wanted.
    pub counts: Vec<u64>,
    pub beyond: u64,
}

impl Finished {
    /// The noise of each thread. Throttled gaps are known however long the run was: those that found the
    /// trace full have a place beside it.
    pub fn noise(&self) -> Vec<Noise> {
        let mut throttled: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let mut longest: BTreeMap<u32, u64> = BTreeMap::new();
        let intervals = self.intervals_and_long_gaps().map(Ok::<_, Infallible>);
        for gap in self.explanation().gaps(intervals, self.kernel_events().map(Ok)) {
            let Ok(gap) = gap;
            let ns = gap.end_ns.saturating_sub(gap.start_ns).max(0).unsigned_abs();
            if gap.cause == Cause::RtThrottling {
                throttled.entry(gap.thread).or_default().push(ns);
            } else {
                let known = longest.entry(gap.thread).or_default();
                *known = ns.max(*known);
            }
        }
        let noise = |report: &ThreadReport| {
            let taken_out = throttled.get(&report.id).map_or(&[][..], Vec::as_slice);
            let complete_ns = self.known_from_ns(report);
            let known =
                longest.get(&report.id).filter(|ns| complete_ns.is_some_and(|all| all <= **ns));
            let (thread, gaps) = (report.id, report.gaps);
            let (counts, beyond, width_ns) = match self.buckets(thread) {
                Some(buckets) => (buckets.counts().to_vec(), buckets.beyond(), buckets.width_ns),
                None => (Vec::new(), 0, 1),
            };
            let all = Noise { thread, gaps, counts, beyond };
            match self.outcome(thread).map(|outcome| &outcome.recorded.gaps.histogram) {
                Some(histogram) => all.without(taken_out, histogram, width_ns, known.copied()),
                None => all,
            }
        };
        self.document.result.threads.iter().map(noise).collect()
    }
}

impl Finished {
    /// Gaps of a thread at least this long are all known, whether the trace has room for them or not.
    fn known_from_ns(&self, report: &ThreadReport) -> Option<u64> {
        if report.records_dropped == 0 {
            return Some(0);
        }
        Some(self.outcome(report.id)?.recorded.long_gaps.complete_from_ns())
    }
}

impl Noise {
    /// Takes gaps of these lengths out. `histogram` has all gaps; `longest_ns` is the longest of the
    /// others, if that is known exactly.
    fn without(
        mut self,
        lengths: &[u64],
        histogram: &Histogram<u64>,
        width_ns: u64,
        longest_ns: Option<u64>,
    ) -> Noise {
        let mut removed = histogram.clone();
        removed.clear();
        for ns in lengths {
            removed.saturating_record(recorded_as(*ns, histogram, &removed));
        }
        let mut rest = histogram.clone();
        if lengths.is_empty() || rest.subtract(&removed).is_err() {
            return self;
        }
        for ns in lengths {
            let step = usize::try_from(ns / width_ns.max(1)).unwrap_or(usize::MAX);
            let place = self.counts.get_mut(step).unwrap_or(&mut self.beyond);
            *place = place.saturating_sub(1);
        }
        let lost = lengths.iter().copied().fold(0, u64::saturating_add);
        let max_ns = longest_ns.unwrap_or_else(|| rest.max());
        let [p50_ns, p99_ns, p999_ns] = percentiles(&rest, max_ns);
        let total_ns = self.gaps.total_ns.saturating_sub(lost);
        self.gaps = GapReport { count: rest.len(), total_ns, p50_ns, p99_ns, p999_ns, max_ns };
        self
    }
}

/// The value under which a gap of this length stands in the histogram. The recorder reads its length by
/// the rate at the start, the trace by that of the whole run: it may stand in the step beside its own.
fn recorded_as(ns: u64, histogram: &Histogram<u64>, removed: &Histogram<u64>) -> u64 {
    let beside =
        [ns, histogram.lowest_equivalent(ns).saturating_sub(1), histogram.next_non_equivalent(ns)];
    let left = |value: &u64| removed.count_at(*value) < histogram.count_at(*value);
    beside.into_iter().find(left).unwrap_or(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(lengths: &[u64]) -> (Noise, Histogram<u64>) {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        lengths.iter().for_each(|ns| histogram.record(*ns).unwrap());
        let max_ns = lengths.iter().copied().max().unwrap();
        let total_ns = lengths.iter().sum();
        let gaps =
            GapReport { count: lengths.len() as u64, total_ns, max_ns, ..Default::default() };
        (Noise { thread: 0, gaps, counts: vec![2, 1], beyond: 2 }, histogram)
    }

    /// Two throttled gaps of 50 ms, one of which the recorder counted a step higher than the trace has
    /// it, beside three that are noise.
    #[test]
    fn throttled_gaps_are_in_no_row() {
        let (all, histogram) = noise(&[300, 500, 1_700, 50_054_144, 50_100_000]);
        let rest = all.without(&[50_054_143, 50_100_000], &histogram, 1_000, Some(1_700));
        assert_eq!((rest.gaps.count, rest.gaps.max_ns, rest.gaps.p50_ns), (3, 1_700, 500));
        assert_eq!((rest.counts, rest.beyond), (vec![2, 1], 0));
        assert_eq!(rest.gaps.total_ns, 2_501);
    }

    /// What the histogram does not have cannot be taken out; then the numbers stay.
    #[test]
    fn nothing_is_taken_out_twice() {
        let (all, histogram) = noise(&[300, 500, 1_700, 50_000_000]);
        let kept = all.clone().without(&[50_000_000, 50_000_000], &histogram, 1_000, None);
        assert_eq!(kept, all);
        assert_eq!(all.clone().without(&[], &histogram, 1_000, None), all);
        let rest = all.without(&[50_000_000], &histogram, 1_000, None);
        assert_eq!((rest.gaps.count, rest.gaps.max_ns / 10), (3, 170), "to three digits");
    }
}
