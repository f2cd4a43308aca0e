//! Exact statistics of many integers.

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct ValueCounts {
    by_value: BTreeMap<u64, u64>,
    total: u64,
}

impl ValueCounts {
    pub(crate) fn add(&mut self, value: u64) {
        *self.by_value.entry(value).or_insert(0) += 1;
        self.total += 1;
    }

    pub(crate) fn merge(&mut self, other: &ValueCounts) {
        for (value, count) in &other.by_value {
            *self.by_value.entry(*value).or_insert(0) += count;
        }
        self.total += other.total;
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The smallest value that `percent` of all (at most 100) do not exceed; `None` of none.
    pub(crate) fn percentile(&self, percent: u64) -> Option<u64> {
        let wanted = (u128::from(self.total) * u128::from(percent)).div_ceil(100).max(1);
        let mut below = 0u128;
        self.by_value.iter().find_map(|(value, count)| {
            below += u128::from(*count);
            (below >= wanted).then_some(*value)
        })
    }

    pub(crate) fn max(&self) -> Option<u64> {
        self.by_value.last_key_value().map(|(value, _)| *value)
    }
}

impl FromIterator<u64> for ValueCounts {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut counts = ValueCounts::default();
        values.into_iter().for_each(|value| counts.add(value));
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nearest rank: the value at place ceil(p n / 100) of the sorted list.
    #[test]
    fn percentiles_are_those_of_the_sorted_list() {
        let values: Vec<u64> = (0..1_000).map(|i| i * 7_919 % 613).collect();
        let counts: ValueCounts = values.iter().copied().collect();
        let mut sorted = values;
        sorted.sort_unstable();
        for percent in [1usize, 50, 99, 100] {
            let place = (percent * sorted.len()).div_ceil(100) - 1;
            assert_eq!(counts.percentile(percent as u64), Some(sorted[place]), "p{percent}");
        }
        assert_eq!((counts.total(), counts.max()), (1_000, sorted.last().copied()));
    }

    #[test]
    fn one_of_a_hundred_outliers_shows_in_the_maximum_only() {
        let counts: ValueCounts = std::iter::repeat_n(10, 99).chain([1_000]).collect();
        assert_eq!((counts.percentile(99), counts.max()), (Some(10), Some(1_000)));
        assert_eq!(ValueCounts::default().percentile(99), None);
    }
}
