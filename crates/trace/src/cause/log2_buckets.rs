//! Lengths by powers of two.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    counts: [u64; u64::BITS as usize],
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { counts: [0; u64::BITS as usize] }
    }
}

impl Sizes {
    pub(super) fn push(&mut self, length_ns: u64) {
        let count = &mut self.counts[Sizes::place(length_ns)];
        *count = count.saturating_add(1);
    }

    /// Counts lengths of this power of two, and longer ones.
    pub(super) fn at_least(&self, length_ns: u64) -> u64 {
        let longer = &self.counts[Sizes::place(length_ns)..];
        longer.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// A power of two below which no more than `few` gaps are, ns.
    pub(super) fn lower_bound(&self, few: u64) -> u64 {
        let mut below = 0_u64;
        let reached = |count: &u64| {
            below = below.saturating_add(*count);
            below > few
        };
        self.counts.iter().position(reached).map_or(0, |place| 1 << place)
    }

    fn place(length_ns: u64) -> usize {
        length_ns.max(1).ilog2() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_by_powers_of_two() {
        let mut sizes = Sizes::default();
        let lengths = [0, 1_500, 9_000, 10_000, 16_383, 16_384, u64::MAX];
        lengths.into_iter().for_each(|length| sizes.push(length));
        assert_eq!(
            (sizes.at_least(8_192), sizes.at_least(16_383), sizes.at_least(16_384)),
            (5, 5, 2)
        );
        assert_eq!(
            (sizes.lower_bound(0), sizes.lower_bound(2), sizes.lower_bound(4)),
            (1, 8_192, 8_192)
        );
        assert_eq!(sizes.lower_bound(7), 0);
    }
}
