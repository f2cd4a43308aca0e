//! Whether measurements of one kind tend to be larger than those of another.

use super::quantiles::normal_below;

/// The result of the test of Mann and Whitney on two sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// How often a measurement of the second set is larger than one of the first, ties counted
    /// half: 0.5 where neither tends to be larger.
    pub larger: f64,
    /// The probability of at least this difference if both came from one distribution.
    pub p: f64,
}

/// The rank-sum test (H. B. Mann and D. R. Whitney, *Annals of Mathematical Statistics* 18, 1947) by
/// its normal approximation, with the corrections for ties and continuity; good from eight
/// measurements a side. `None` where a side has none.
pub fn mann_whitney(first: &[u64], second: &[u64]) -> Option<RankTest> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let (n, m) = (first.len() as f64, second.len() as f64);
    let mut all: Vec<(u64, bool)> = Vec::with_capacity(first.len() + second.len());
    all.extend(first.iter().map(|value| (*value, false)));
    all.extend(second.iter().map(|value| (*value, true)));
    all.sort_unstable();
    let (mut before, mut rank_sum, mut ties) = (0.0, 0.0, 0.0);
    for tied in all.chunk_by(|a, b| a.0 == b.0) {
        let length = tied.len() as f64;
        let of_second = tied.iter().filter(|(_, second)| *second).count() as f64;
        rank_sum += of_second * (before + (length + 1.0) / 2.0);
        ties += length * length * length - length;
        before += length;
    }
    let u = rank_sum - m * (m + 1.0) / 2.0;
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    Some(RankTest { larger: u / (n * m), p: two_sided((u - n * m / 2.0).abs(), variance) })
}

/// The same where a measurement is yes or no: of each set how often yes, and how many there are. Exact
/// before the approximation, however many they are, and in no memory. `None` where a side has none.
pub fn mann_whitney_of_counts(first: (u64, u64), second: (u64, u64)) -> Option<RankTest> {
    let ((yes, n), (yes_too, m)) = (first, second);
    if n == 0 || m == 0 {
        return None;
    }
    let (yes, yes_too) = (yes.min(n), yes_too.min(m));
    let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
    // Twice the distance of the statistic from its mean, n m / 2.
    let (up, down) = (product(yes_too, n), product(yes, m));
    let distance = up.abs_diff(down) as f64 / 2.0;
    let (n, m) = (n as f64, m as f64);
    let hits = yes as f64 + yes_too as f64;
    // The variance after the correction for ties, where there are two values.
    let variance = n * m * hits * (n + m - hits) / (4.0 * (n + m - 1.0));
    let share = distance / (n * m);
    let larger = if up < down { 0.5 - share } else { 0.5 + share };
    Some(RankTest { larger, p: two_sided(distance, variance) })
}

/// The probability of at least this distance from the mean, corrected for continuity.
pub(super) fn two_sided(distance: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = (distance - 0.5).max(0.0);
    (2.0 * normal_below(-distance / variance.sqrt())).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M. Hollander and D. A. Wolfe, *Nonparametric Statistical Methods* (1973), pages 69 to 71:
    /// permeability of membranes, W = 35 of 50; here times 100. The exact two-sided p is 0.2544; by the
    /// normal approximation, z = (35 - 25 - 0.5) / sqrt(10 * 5 * 16 / 12) = 1.1635.
    #[test]
    fn the_membranes_of_hollander_and_wolfe() {
        let x = [80, 83, 189, 104, 145, 138, 191, 164, 73, 146];
        let y = [115, 88, 90, 74, 121];
        let found = mann_whitney(&x, &y).unwrap();
        assert!((found.larger - 15.0 / 50.0).abs() < 1e-12, "{found:?}");
        assert!((found.p - 0.2446).abs() < 0.0001, "{found:?}");
    }

    /// The slow twin: every measurement written out.
    #[test]
    fn counts_say_what_the_measurements_say() {
        let written =
            |(yes, all): (u64, u64)| -> Vec<u64> { (0..all).map(|n| u64::from(n < yes)).collect() };
        for (n, m) in [(1, 1), (1, 7), (5, 5), (8, 3), (40, 61)] {
            for (yes, yes_too) in (0..=n).flat_map(|yes| (0..=m).map(move |too| (yes, too))) {
                let (first, second) = ((yes, n), (yes_too, m));
                let found = mann_whitney_of_counts(first, second).unwrap();
                let wanted = mann_whitney(&written(first), &written(second)).unwrap();
                let apart = (found.larger - wanted.larger).abs().max((found.p - wanted.p).abs());
                assert!(apart < 1e-9, "{first:?} {second:?}: {found:?} {wanted:?}");
            }
        }
        assert_eq!(mann_whitney_of_counts((0, 0), (1, 2)), None);
        let all = u64::MAX;
        let same = mann_whitney_of_counts((0, all), (0, all)).unwrap();
        assert_eq!((same.larger, same.p), (0.5, 1.0));
        let apart = mann_whitney_of_counts((all, all), (0, all)).unwrap();
        assert_eq!((apart.larger, apart.p), (0.0, 0.0));
    }

    #[test]
    fn same_and_apart() {
        let low: Vec<u64> = (0..50).collect();
        let high: Vec<u64> = (100..150).collect();
        let apart = mann_whitney(&low, &high).unwrap();
        assert!(apart.larger == 1.0 && apart.p < 1e-15, "{apart:?}");
        let same = mann_whitney(&low, &low).unwrap();
        assert!(same.larger == 0.5 && same.p == 1.0, "{same:?}");
        let tied = mann_whitney(&[7; 20], &[7; 30]).unwrap();
        assert!(tied.larger == 0.5 && tied.p == 1.0, "{tied:?}");
        assert_eq!(mann_whitney(&[], &low), None);
    }
}
