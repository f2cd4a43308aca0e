//! How often which time occurred, in fixed memory.
//!
//! Owns: [`Histogram`], of integers, logarithmic by powers of two and linear within each. Must not:
//! use floating point, or grow with the number of values.

/// Binary digits that are kept: a bucket is at most 1/64 of its values wide.
const DIGITS: u32 = 6;

/// Buckets of one power of two.
const LINEAR: usize = 1 << DIGITS;

/// Buckets for all of 64 bits.
const BUCKETS: usize = (64 - DIGITS as usize + 1) * LINEAR;

/// Counts of values from 0 to 2^64 - 1. Values below 128 are exact, others fall into buckets that
/// are no wider than 1/64 of them. It has 30 KB once it holds a value, and never more.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

#[inline]
fn bucket(value: u64) -> usize {
    // Below LINEAR the value itself; above, its highest DIGITS + 1 digits and how far they lie.
    let shift = (63 - (value | (LINEAR as u64 - 1)).leading_zeros() + 1).saturating_sub(DIGITS + 1);
    shift as usize * LINEAR + (value >> shift) as usize
}

/// The largest value of a bucket.
fn largest(bucket: usize) -> u64 {
    if bucket < 2 * LINEAR {
        return bucket as u64;
    }
    let shift = bucket / LINEAR - 1;
    let digits = (bucket % LINEAR + LINEAR) as u64;
    (digits << shift) | ((1u64 << shift) - 1)
}

impl Histogram {
    #[inline]
    pub fn record(&mut self, value: u64) {
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        self.total += 1;
        if let Some(count) = self.counts.get_mut(bucket(value)) {
            *count += 1;
        }
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The largest value of the bucket in which the `part`th of `whole` parts of the values ends: 99
    /// and 100 for the 99th percentile. `None` without values, for a `whole` of 0, or a larger `part`.
    #[must_use]
    pub fn quantile(&self, part: u64, whole: u64) -> Option<u64> {
        if self.total == 0 || whole == 0 || part > whole {
            return None;
        }
        let wanted = (u128::from(self.total) * u128::from(part)).div_ceil(u128::from(whole)).max(1);
        let mut seen = 0u128;
        self.counts.iter().enumerate().find_map(|(bucket, count)| {
            seen += u128::from(*count);
            (seen >= wanted).then(|| largest(bucket))
        })
    }

    /// The buckets that are not empty: largest value and count, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(bucket, count)| (largest(bucket), *count))
    }

    pub fn add(&mut self, other: &Histogram) {
        if self.counts.is_empty() {
            self.counts.clone_from(&other.counts);
        } else {
            for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
                *mine += theirs;
            }
        }
        self.total += other.total;
    }
}

/// Only the buckets that are not empty.
impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.buckets()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value lies in its bucket, and buckets follow one another without a gap.
    #[test]
    fn buckets_cover_all_values() {
        for value in (0..5_000).chain([u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, 1 << 40]) {
            let index = bucket(value);
            assert!(index < BUCKETS && largest(index) >= value, "{value}");
            assert!(index == 0 || largest(index - 1) < value, "{value}");
            assert!(largest(index) - value <= value / 64, "{value}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_round_up_to_the_bucket() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(1, 2), None);
        (1..=100).for_each(|value| histogram.record(value));
        assert_eq!(histogram.quantile(1, 2), Some(50));
        assert_eq!(histogram.quantile(99, 100), Some(99));
        assert_eq!(histogram.quantile(1, 1), Some(100));
        assert_eq!(histogram.quantile(0, 1), Some(1));
        assert_eq!(histogram.quantile(2, 1), None);
        let mut twice = histogram.clone();
        twice.add(&histogram);
        assert_eq!((twice.count(), twice.quantile(1, 2)), (200, Some(50)));
    }
}
