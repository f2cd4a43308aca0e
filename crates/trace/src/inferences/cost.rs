//! The cost of an event, from the gaps that it made.

use crate::statistics::{Estimate, USUAL, median, mode, quantile_of};

/// Gaps longer than the third quartile by this many times the distance of the quartiles are set aside
/// (J. W. Tukey, *Exploratory Data Analysis*, 1977, section 2D). Up to a quarter of the gaps may be
/// contaminated without moving the limit by more than that.
const FENCE: f64 = 1.5;

/// A gap of the same kind is not much longer than the shortest ones (section 4): at most this many
/// times as long as the third shortest, or the one in a hundred that is shortest. A longer gap
/// holds the whole turn of another thread.
const NOT_MUCH_LONGER: u64 = 10;
const SHORTEST: usize = 2;
const SHORT_ONES: f64 = 0.01;

/// Unless so few gaps are left then: in that case nothing is typical of them, and all are taken.
const FEW: usize = 5;
const FEW_OF_ALL: f64 = 0.02;

/// The cost of something, from the lengths of gaps (section 4, first rule, and section 5.1).
#[derive(Clone, Debug, PartialEq)]
pub struct CostEstimate {
    /// The shortest gap: the fastest path, ns.
    pub fastest_ns: u64,
    /// The length at which the kept gaps are densest, ns.
    pub mode_ns: u64,
    /// Median of the gaps that were kept, with its 95 % interval, ns.
    pub median: Estimate,
    pub count: u64,
    /// Gaps that were set aside: longer than [`CostEstimate::limit_ns`], contaminated by other activity or
    /// by a path of unpredictable length.
    pub set_aside: u64,
    /// Maximum length of a gap that was kept, ns.
    pub limit_ns: u64,
    /// Whether mode and median speak of the cost: enough gaps are not much longer than the shortest.
    /// If not, most gaps held something else, and only the fastest path is known.
    pub representative: bool,
}

impl CostEstimate {
    /// The cost by gaps of these lengths, ns. `None` without a gap.
    pub fn of(mut lengths: Vec<u64>) -> Option<CostEstimate> {
        lengths.sort_unstable();
        let short = quantile_of(&lengths, SHORT_ONES)?;
        let short = short.max(lengths.get(SHORTEST).copied().unwrap_or(0));
        let most_ns = short.saturating_mul(NOT_MUCH_LONGER);
        let near = lengths.get(..lengths.partition_point(|ns| *ns <= most_ns))?;
        let many = near.len() >= FEW && near.len() as f64 >= FEW_OF_ALL * lengths.len() as f64;
        let representative = many || near.len() == lengths.len();
        let near = if representative { near } else { &lengths };
        let quartile = |share| quantile_of(near, share);
        let (first, third) = (quartile(0.25)?, quartile(0.75)?);
        let reach = (FENCE * third.saturating_sub(first) as f64) as u64;
        let limit_ns = third.saturating_add(reach);
        let kept = near.get(..near.partition_point(|ns| *ns <= limit_ns))?;
        Some(CostEstimate {
            fastest_ns: *kept.first()?,
            mode_ns: mode(kept)?,
            median: median(kept, USUAL)?,
            count: kept.len() as u64,
            set_aside: (lengths.len() - kept.len()) as u64,
            limit_ns,
            representative,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 4: the shortest is the fastest path, the median of many like it is representative,
    /// very long outliers are contaminated.
    #[test]
    fn outliers_are_set_aside_and_counted() {
        let mut lengths: Vec<u64> = (0..90).map(|n| 2_100 + n % 30).collect();
        lengths.extend([2_115; 5]);
        lengths.extend([40_000, 55_000, 1_000_000, 7_000, 9_000]);
        let cost = CostEstimate::of(lengths).unwrap();
        assert_eq!((cost.fastest_ns, cost.mode_ns), (2_100, 2_115));
        assert_eq!((cost.count, cost.set_aside), (95, 5));
        assert!(cost.median.holds(2_114.0) && cost.median.hi < 2_130.0, "{cost:?}");
    }

    /// On a machine with other programs most gaps hold the whole turn of one of them.
    #[test]
    fn turns_of_others_do_not_become_the_cost() {
        let mut lengths: Vec<u64> = (0..40).map(|n| 20_000 + n * 100).collect();
        lengths.extend((0..100).map(|n| 4_000_000 + n * 1_000));
        let cost = CostEstimate::of(lengths).unwrap();
        assert_eq!((cost.count, cost.set_aside), (40, 100));
        assert!(cost.median.hi < 24_000.0, "{cost:?}");
        // Two short gaps among many long ones are not typical of them.
        let mut rare = vec![100; 2];
        rare.extend((0..94).map(|n| 5_000 + n));
        let rare = CostEstimate::of(rare).unwrap();
        assert!(rare.median.lo > 4_000.0 && rare.representative, "of all but two it is");
        // A few real ones among the turns of others: nothing but the fastest path is known.
        let mut busy: Vec<u64> = vec![28_000, 31_000];
        busy.extend((0..140).map(|n| 8_000_000 + n));
        busy.extend([30_000, 33_000]);
        busy.sort_unstable();
        let busy = CostEstimate::of(busy).unwrap();
        assert!(busy.fastest_ns == 28_000 && !busy.representative, "{busy:?}");
    }

    #[test]
    fn one_and_none() {
        assert_eq!(CostEstimate::of(Vec::new()), None);
        let one = CostEstimate::of(vec![5]).unwrap();
        assert_eq!((one.fastest_ns, one.count, one.set_aside), (5, 1, 0));
        let longest = CostEstimate::of(vec![u64::MAX, u64::MAX - 9, u64::MAX]).unwrap();
        assert_eq!((longest.limit_ns, longest.count), (u64::MAX, 3));
    }
}
