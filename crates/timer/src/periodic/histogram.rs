//! A log-linear histogram that one thread fills and others read.

use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets of each power of two, as a power of two: a bucket is at most 1/32 of its values wide.
const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;
/// Values from 2^this ns on (73 minutes) share the last bucket.
const TOP_BITS: u32 = 42;

pub(super) const BUCKETS: usize = ((TOP_BITS - SUB_BITS + 1) * SUB as u32) as usize + 1;

pub(super) fn bucket_of(value_ns: u64) -> usize {
    if value_ns < SUB {
        return value_ns as usize;
    }
    if value_ns >> TOP_BITS != 0 {
        return BUCKETS - 1;
    }
    let shift = value_ns.ilog2() - SUB_BITS;
    // The bits after the highest one.
    let sub = (value_ns >> shift) - SUB;
    (u64::from(shift + 1) * SUB + sub) as usize
}

pub(super) fn highest_in(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUB {
        return bucket;
    }
    if bucket as usize >= BUCKETS - 1 {
        return u64::MAX;
    }
    let shift = bucket / SUB - 1;
    let sub = bucket % SUB;
    ((SUB + sub + 1) << shift) - 1
}

/// Times as they are counted: written by one thread.
#[derive(Debug)]
pub(super) struct Times {
    count: AtomicU64,
    min_ns: AtomicU64,
    max_ns: AtomicU64,
    sum_ns: AtomicU64,
    buckets: Box<[AtomicU64]>,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            count: AtomicU64::new(0),
            min_ns: AtomicU64::new(u64::MAX),
            max_ns: AtomicU64::new(0),
            sum_ns: AtomicU64::new(0),
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Times {
    /// Counts one; by the writer only.
    pub(super) fn add(&self, value_ns: u64) {
        raise(&self.count, 1);
        raise(&self.sum_ns, value_ns);
        if value_ns < self.min_ns.load(Ordering::Relaxed) {
            self.min_ns.store(value_ns, Ordering::Relaxed);
        }
        if value_ns > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.store(value_ns, Ordering::Relaxed);
        }
        if let Some(bucket) = self.buckets.get(bucket_of(value_ns)) {
            raise(bucket, 1);
        }
    }

    /// Copies everything, which may be half written: the caller finds out.
    pub(super) fn copy_to(&self, into: &mut Distribution) {
        into.count = self.count.load(Ordering::Relaxed);
        into.min_ns = self.min_ns.load(Ordering::Relaxed);
        into.max_ns = self.max_ns.load(Ordering::Relaxed);
        into.sum_ns = self.sum_ns.load(Ordering::Relaxed);
        for (copy, bucket) in into.buckets.iter_mut().zip(&self.buckets) {
            *copy = bucket.load(Ordering::Relaxed);
        }
    }
}

/// Adds to a word that only this thread writes; a load and a store, held at the end.
pub(super) fn raise(word: &AtomicU64, by: u64) {
    word.store(word.load(Ordering::Relaxed).saturating_add(by), Ordering::Relaxed);
}

/// How times are distributed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    count: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u64,
    buckets: Box<[u64]>,
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution {
            count: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
            buckets: vec![0; BUCKETS].into(),
        }
    }
}

impl Distribution {
    /// How many times there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The shortest, ns, exactly; `None` without any.
    #[must_use]
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// The longest, ns, exactly; `None` without any.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// The mean, ns, rounded down; `None` without any.
    #[must_use]
    pub fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.count)
    }

    /// The difference between the longest and the shortest, ns: of release latencies the release
    /// jitter, of response times the response jitter. 0 without any.
    #[must_use]
    pub fn jitter_ns(&self) -> u64 {
        self.max_ns.saturating_sub(self.min_ns)
    }

    /// The least time that `ppm` parts per million of all do not exceed, ns, at most 1/32 too
    /// high and never too low; `None` without any. 500,000 is the median; from 1,000,000 on the
    /// longest.
    #[must_use]
    pub fn quantile_ns(&self, ppm: u32) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(ppm)).div_ceil(1_000_000).max(1);
        let mut seen = 0u128;
        let found = self.buckets.iter().position(|bucket| {
            seen += u128::from(*bucket);
            seen >= rank
        });
        let highest = found.map_or(self.max_ns, highest_in);
        (self.count > 0).then(|| highest.clamp(self.min_ns, self.max_ns))
    }

    /// The buckets that are not empty, ascending: the greatest value of each, ns, and how many
    /// times lie in it.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = self.buckets.iter().enumerate();
        all.filter(|(_, count)| **count > 0).map(|(bucket, count)| (highest_in(bucket), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buckets follow each other without gap or overlap, and none is wider than 1/32 of its values.
    #[test]
    fn every_value_has_its_bucket() {
        let mut lowest = 0;
        for bucket in 0..BUCKETS - 1 {
            let highest = highest_in(bucket);
            assert_eq!((bucket_of(lowest), bucket_of(highest)), (bucket, bucket));
            assert!((highest - lowest) * 32 <= lowest.max(1), "bucket {bucket} from {lowest}");
            lowest = highest + 1;
        }
        assert_eq!(lowest, 1 << TOP_BITS);
        assert_eq!((bucket_of(lowest), bucket_of(u64::MAX)), (BUCKETS - 1, BUCKETS - 1));
    }

    #[test]
    fn quantiles_are_never_too_low() {
        let times = Times::default();
        let mut sorted: Vec<u64> = (0..1_000u64).map(|i| (i * i * i) % 700_001 + 3).collect();
        for value in &sorted {
            times.add(*value);
        }
        sorted.sort_unstable();
        let mut distribution = Distribution::default();
        times.copy_to(&mut distribution);
        for ppm in [0, 1, 1_000, 250_000, 500_000, 990_000, 999_999, 1_000_000, u32::MAX] {
            let rank = (1_000 * u128::from(ppm)).div_ceil(1_000_000).clamp(1, 1_000);
            let exact = sorted[rank as usize - 1];
            let quantile = distribution.quantile_ns(ppm).unwrap();
            assert!(quantile >= exact && quantile - exact <= exact / 32, "{ppm}: {quantile}");
        }
        assert_eq!(distribution.min_ns(), sorted.first().copied());
        assert_eq!(distribution.quantile_ns(1_000_000), sorted.last().copied());
        assert_eq!(distribution.mean_ns(), Some(sorted.iter().sum::<u64>() / 1_000));
        assert_eq!(distribution.jitter_ns(), sorted[999] - sorted[0]);
        assert_eq!(distribution.buckets().map(|(_, count)| count).sum::<u64>(), 1_000);
    }

    #[test]
    fn nothing_has_no_quantile() {
        let none = Distribution::default();
        assert_eq!((none.quantile_ns(500_000), none.min_ns(), none.mean_ns()), (None, None, None));
        assert_eq!((none.jitter_ns(), none.count()), (0, 0));
        let times = Times::default();
        times.add(u64::MAX);
        let mut distribution = none;
        times.copy_to(&mut distribution);
        assert_eq!(distribution.quantile_ns(1), Some(u64::MAX));
    }
}
