//! What something costs, from the gaps that it made.

use crate::statistics::{Estimate, USUAL, median, mode, quantile_of};

/// Gaps longer than the third quartile by so many times the distance of the quartiles are set aside
/// (J. W. Tukey, *Exploratory Data Analysis*, 1977, section 2D). Up to a quarter of the gaps may be
/// contaminated without moving the limit by more than that.
const FENCE: f64 = 1.5;

/// The cost of something, from the lengths of gaps (section 4, first rule, and section 5.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// The shortest gap: the fastest path, ns.
    pub fastest_ns: u64,
    /// Where the gaps that were kept lie densest, ns.
    pub mode_ns: u64,
    /// Median of the gaps that were kept, with its 95 % interval, ns.
    pub median: Estimate,
    /// Gaps that were kept.
    pub count: u64,
    /// Gaps that were set aside: longer than [`Cost::limit_ns`], contaminated by other activity or
    /// by a path of unpredictable length.
    pub set_aside: u64,
    /// The longest gap that was kept may have been so long, ns.
    pub limit_ns: u64,
}

impl Cost {
    /// The cost that gaps of these lengths, ns, speak of. `None` without a gap.
    #[must_use]
    pub fn of(mut lengths: Vec<u64>) -> Option<Cost> {
        lengths.sort_unstable();
        let quartile = |share| quantile_of(&lengths, share);
        let (first, third) = (quartile(0.25)?, quartile(0.75)?);
        let reach = (FENCE * third.saturating_sub(first) as f64) as u64;
        let limit_ns = third.saturating_add(reach);
        let kept = lengths.get(..lengths.partition_point(|ns| *ns <= limit_ns))?;
        Some(Cost {
            fastest_ns: *kept.first()?,
            mode_ns: mode(kept)?,
            median: median(kept, USUAL)?,
            count: kept.len() as u64,
            set_aside: (lengths.len() - kept.len()) as u64,
            limit_ns,
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
        let cost = Cost::of(lengths).unwrap();
        assert_eq!((cost.fastest_ns, cost.mode_ns), (2_100, 2_115));
        assert_eq!((cost.count, cost.set_aside), (95, 5));
        assert!(cost.median.holds(2_114.0) && cost.median.hi < 2_130.0, "{cost:?}");
    }

    #[test]
    fn one_and_none() {
        assert_eq!(Cost::of(Vec::new()), None);
        let one = Cost::of(vec![5]).unwrap();
        assert_eq!((one.fastest_ns, one.count, one.set_aside), (5, 1, 0));
        let all = Cost::of(vec![u64::MAX, 0, u64::MAX, u64::MAX]).unwrap();
        assert_eq!(all.limit_ns, u64::MAX);
    }
}
