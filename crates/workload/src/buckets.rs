//! Histograms of equal, exact steps, as cyclictest and oslat print them.
//!
//! Owns: counts made before the start. Must not: lose what is beyond them; it is counted too.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Width of one, ns; at least 1.
    pub width_ns: u64,
    pub count: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets {
    pub width_ns: u64,
    counts: Vec<u64>,
    beyond: u64,
    /// The numbers, from 0, of the first that were beyond; as many as there are steps.
    beyond_at: Vec<u64>,
    beyond_kept: usize,
    total: u64,
}

impl Buckets {
    /// An empty histogram, its pages written.
    pub fn new(steps: Steps) -> Buckets {
        // Not zero, so that memory is written and not only promised.
        let mut counts = vec![1; steps.count];
        counts.fill(0);
        Buckets {
            width_ns: steps.width_ns.max(1),
            counts,
            beyond: 0,
            beyond_at: vec![u64::MAX; steps.count],
            beyond_kept: 0,
            total: 0,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        let place = usize::try_from(ns / self.width_ns).unwrap_or(usize::MAX);
        match self.counts.get_mut(place) {
            Some(count) => *count += 1,
            None => {
                self.beyond += 1;
                if let Some(at) = self.beyond_at.get_mut(self.beyond_kept) {
                    *at = self.total;
                    self.beyond_kept += 1;
                }
            }
        }
        self.total += 1;
    }

    /// How many fell into each step, from 0 on; a step does not hold its upper end.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Which ones those were, by their numbers from 0, as far as they were kept.
    pub fn beyond_at(&self) -> &[u64] {
        self.beyond_at.get(..self.beyond_kept).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_step_or_is_beyond() {
        let mut buckets = Buckets::new(Steps { width_ns: 1_000, count: 3 });
        [0, 999, 1_000, 2_999, 3_000, 5, u64::MAX].into_iter().for_each(|ns| buckets.record(ns));
        assert_eq!(buckets.counts(), [3, 1, 1]);
        assert_eq!((buckets.beyond(), buckets.beyond_at()), (2, &[4, 6][..]));
    }

    #[test]
    fn more_are_beyond_than_can_be_named() {
        let mut buckets = Buckets::new(Steps { width_ns: 1, count: 1 });
        (0..5).for_each(|_| buckets.record(1));
        assert_eq!((buckets.beyond(), buckets.beyond_at()), (5, &[0][..]));
    }
}
