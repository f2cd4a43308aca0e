//! Numbers of many sleeps.

/// Some values, ns, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values(Vec<i64>);

impl Values {
    pub(crate) fn of(values: impl Iterator<Item = i64>) -> Values {
        let mut values: Vec<i64> = values.collect();
        values.sort_unstable();
        Values(values)
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The least value that `percent` of all do not exceed; `None` without values.
    pub(crate) fn percentile(&self, percent: usize) -> Option<f64> {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).map(|value| *value as f64)
    }

    pub(crate) fn median(&self) -> Option<f64> {
        self.percentile(50)
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        let sum: i128 = self.0.iter().map(|value| i128::from(*value)).sum();
        (!self.0.is_empty()).then(|| sum as f64 / self.0.len() as f64)
    }

    fn mean_square(&self) -> Option<f64> {
        let sum: f64 = self.0.iter().map(|value| (*value as f64).powi(2)).sum();
        (!self.0.is_empty()).then(|| sum / self.0.len() as f64)
    }
}

/// The mean over several groups that count alike, however many values each has.
pub(crate) fn mean_of(groups: &[&Values], of: impl Fn(&Values) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = groups.iter().map(|group| of(group)).collect();
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// The median of the medians of several groups.
pub(crate) fn median_of(groups: &[&Values]) -> Option<f64> {
    let medians: Option<Vec<f64>> = groups.iter().map(|group| group.median()).collect();
    // Medians are values, and so whole.
    Values::of(medians?.into_iter().map(|median| median as i64)).median()
}

/// The standard deviation over several groups that count alike.
pub(crate) fn deviation_of(groups: &[&Values]) -> Option<f64> {
    let mean = mean_of(groups, Values::mean)?;
    let square = mean_of(groups, Values::mean_square)?;
    Some((square - mean * mean).max(0.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_values() {
        let values = Values::of([9, 2, 4, 4, 5, 5, 4, 7].into_iter());
        assert_eq!((values.count(), values.mean(), values.median()), (8, Some(5.0), Some(4.0)));
        assert_eq!((values.percentile(99), values.percentile(0)), (Some(9.0), Some(2.0)));
        assert_eq!(deviation_of(&[&values]), Some(2.0));
        let none = Values::default();
        assert_eq!((none.mean(), none.median(), deviation_of(&[])), (None, None, None));
        assert_eq!(mean_of(&[&values, &none], Values::mean), None);
    }

    #[test]
    fn groups_count_alike() {
        let (one, many) = (Values::of([10].into_iter()), Values::of([20; 100].into_iter()));
        assert_eq!(mean_of(&[&one, &many], Values::mean), Some(15.0));
        assert_eq!(deviation_of(&[&one, &many]), Some(5.0));
        assert_eq!(median_of(&[&one, &many, &many]), Some(20.0));
        assert_eq!((median_of(&[]), median_of(&[&one, &Values::default()])), (None, None));
    }
}
