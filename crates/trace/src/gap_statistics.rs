//! Count, sum, percentiles and maximum of gaps, in memory that does not grow with their number.

use hdrhistogram::Histogram;
use hourglass_documents::document::GapReport;

/// Significant decimal digits that the percentiles keep: an error of at most one in a thousand,
/// as in the recorder's own histograms.
const DIGITS: u8 = 3;

/// Collects the lengths of gaps.
///
/// Count, total and maximum are exact; percentiles keep three significant digits and are rounded
/// up, never above the maximum.
#[derive(Clone, Debug, Default)]
pub struct GapStatistics {
    count: u64,
    total_ns: u64,
    max_ns: u64,
    // Made at the first gap: a thread without one needs no memory for it.
    lengths: Option<Histogram<u64>>,
}

impl GapStatistics {
    pub fn push(&mut self, ns: u64) {
        self.count = self.count.saturating_add(1);
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        if self.lengths.is_none() {
            self.lengths = Histogram::new(DIGITS).ok();
        }
        if let Some(lengths) = &mut self.lengths {
            // A value outside a histogram that resizes itself can only come from a machine whose
            // address space is too small for it; it then counts as the highest that fits.
            if lengths.record(ns).is_err() {
                lengths.saturating_record(ns);
            }
        }
    }

    pub fn report(&self) -> GapReport {
        let percentile = |quantile: f64| {
            self.lengths.as_ref().map_or(0, |l| l.value_at_quantile(quantile)).min(self.max_ns)
        };
        GapReport {
            count: self.count,
            total_ns: self.total_ns,
            p50_ns: percentile(0.5),
            p99_ns: percentile(0.99),
            p999_ns: percentile(0.999),
            max_ns: self.max_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slow, obviously right twin: sort, and take the value of that rank.
    fn exact(lengths: &mut [u64], per_mille: usize) -> u64 {
        lengths.sort_unstable();
        lengths[(lengths.len() * per_mille).div_ceil(1000).max(1) - 1]
    }

    #[test]
    fn percentiles_agree_with_sorting() {
        let mut dice = hourglass_dice::Dice::new(20_020_618);
        let mut lengths = Vec::new();
        let mut statistics = GapStatistics::default();
        for _ in 0..10_000 {
            let ns = dice.below(1 << 31) >> dice.below(32);
            lengths.push(ns);
            statistics.push(ns);
        }
        let report = statistics.report();
        assert_eq!(report.count, 10_000);
        assert_eq!(report.total_ns, lengths.iter().sum::<u64>());
        assert_eq!(report.max_ns, *lengths.iter().max().unwrap());
        for (found, per_mille) in
            [(report.p50_ns, 500), (report.p99_ns, 990), (report.p999_ns, 999)]
        {
            let exact = exact(&mut lengths, per_mille);
            assert!(
                found >= exact && found - exact <= exact / 1000 + 1,
                "{per_mille}: {found} for {exact}"
            );
        }
    }

    #[test]
    fn nothing_and_the_longest() {
        assert_eq!(GapStatistics::default().report(), GapReport::default());
        let longest = u64::MAX / 2; // the longest that two signed timestamps can make
        let mut statistics = GapStatistics::default();
        for _ in 0..3 {
            statistics.push(longest);
        }
        let report = statistics.report();
        assert_eq!((report.count, report.total_ns), (3, u64::MAX));
        assert_eq!((report.p50_ns, report.max_ns), (longest, longest));
    }
}
