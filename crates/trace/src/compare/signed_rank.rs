//! Paired differences: their signed ranks, and the estimate of a shift with its exact interval.
//!
//! Owns: the formulae (F. Wilcoxon, *Biometrics Bulletin* 1, 1945; J. L. Hodges and E. L. Lehmann,
//! *Annals of Mathematical Statistics* 34, 1963). Must not: know what was measured.

use crate::statistics::Estimate;

/// The distribution of the rank sum is exact up to this number of pairs.
const MOST_EXACT: usize = 60;

/// The standard normal quantity exceeds it in absolute value once in twenty times.
const NORMAL_95: f64 = 1.959_964;

/// Twice the rank of each difference by its size, with its sign. Equal sizes share their mean rank,
/// which is why ranks are doubled. A difference of zero, and one that is no number, gets 0.
pub(super) fn signed_ranks(differences: &[f64]) -> Vec<i64> {
    let mut order: Vec<usize> = (0..differences.len())
        .filter(|at| differences[*at] != 0.0 && differences[*at].is_finite())
        .collect();
    order.sort_by(|a, b| differences[*a].abs().total_cmp(&differences[*b].abs()));
    let mut ranks = vec![0; differences.len()];
    let mut from = 0;
    while from < order.len() {
        let size = differences[order[from]].abs();
        let alike = order[from..].iter().take_while(|at| differences[**at].abs() == size).count();
        // Ranks from + 1 to from + alike, twice their mean.
        let rank = (2 * from + alike + 1) as i64;
        for at in &order[from..from + alike] {
            ranks[*at] = if differences[*at] > 0.0 { rank } else { -rank };
        }
        from += alike;
    }
    ranks
}

/// The Hodges-Lehmann estimate of the shift (the median of all means of two differences), with the
/// interval between two of these means that holds it with 95 % at least. The interval is unbounded
/// with fewer than six differences; `None` without any.
pub(super) fn shift(differences: &[f64]) -> Option<Estimate> {
    let count = differences.len();
    let mut means = Vec::with_capacity(count * (count + 1) / 2);
    for (at, first) in differences.iter().enumerate() {
        means.extend(differences[at..].iter().map(|second| first / 2.0 + second / 2.0));
    }
    means.sort_unstable_by(f64::total_cmp);
    let all = means.len();
    let value = (means.get((all.checked_sub(1)?) / 2)? + means.get(all / 2)?) / 2.0;
    let (lo, hi) = match left_out(count) {
        Some(out) if 2 * out < all => (means[out], means[all - 1 - out]),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    Some(Estimate { value, lo, hi, count: count as u64 })
}

/// How many of the means lie outside of the interval on each side: the largest rank sum to which
/// at most one in forty comes. `None` without one.
fn left_out(count: usize) -> Option<usize> {
    const TAIL: f64 = 0.025;
    if count > MOST_EXACT {
        let n = count as f64;
        let (mean, variance) = (n * (n + 1.0) / 4.0, n * (n + 1.0) * (2.0 * n + 1.0) / 24.0);
        return Some((mean - NORMAL_95 * variance.sqrt() - 0.5).floor().max(0.0) as usize);
    }
    let sums = count * (count + 1) / 2;
    // Chance of each rank sum: every rank is in it, or not, with equal chance.
    let mut chance = vec![0.0; sums + 1];
    chance[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..=sums).rev() {
            let with = if sum >= rank { chance[sum - rank] } else { 0.0 };
            chance[sum] = (chance[sum] + with) / 2.0;
        }
    }
    let mut below = 0.0;
    let within = chance.iter().take_while(|chance| {
        below += **chance;
        below <= TAIL
    });
    // With the largest such sum of C, the interval begins with the mean of rank C + 1, from 1.
    within.count().checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M. Hollander and D. A. Wolfe, *Nonparametric Statistical Methods* (1973), page 29: depression
    /// scores of nine patients before and after. T+ of the differences is 5, p = 0.0391, the
    /// estimate -0.46, and the 96.1 % interval (-0.786, -0.010).
    #[test]
    fn hollander_and_wolfe() {
        // In thousandths.
        let before = [1_830, 500, 1_620, 2_480, 1_680, 1_880, 1_550, 3_060, 1_300];
        let after = [878, 647, 598, 2_050, 1_060, 1_290, 1_060, 3_140, 1_290];
        let differences: Vec<f64> =
            before.iter().zip(after).map(|(b, a)| f64::from(a - b)).collect();
        let ranks = signed_ranks(&differences);
        assert_eq!(ranks.iter().filter(|r| **r > 0).sum::<i64>(), 2 * 5);
        let found = shift(&differences).unwrap();
        assert!((found.value + 460.0).abs() < 1e-9, "{found:?}");
        assert!((found.lo + 786.0).abs() < 1e-9 && (found.hi + 10.0).abs() < 1e-9, "{found:?}");
    }

    /// Tables of the test (Hollander and Wolfe, A.4): the largest rank sums with a tail of 0.025 or
    /// less are 0 for 6 pairs, 8 for 10 and 52 for 20; five pairs have no such sum.
    #[test]
    fn ends_of_the_interval() {
        assert_eq!(left_out(5), None);
        assert_eq!([6, 10, 20].map(left_out), [Some(0), Some(8), Some(52)]);
        let exact = left_out(MOST_EXACT).unwrap();
        let n = (MOST_EXACT + 1) as f64;
        let next = left_out(MOST_EXACT + 1).unwrap() as f64;
        assert!(next > exact as f64 && next < exact as f64 + n, "{exact} and {next}");
        let none = shift(&[1.0; 5]).unwrap();
        assert_eq!((none.value, none.lo, none.hi), (1.0, f64::NEG_INFINITY, f64::INFINITY));
        let six = shift(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert_eq!((six.value, six.lo, six.hi), (3.5, 1.0, 6.0));
        assert!(shift(&[]).is_none());
    }

    #[test]
    fn ties_share_their_ranks_and_zeros_have_none() {
        assert_eq!(signed_ranks(&[2.0, -2.0, 0.0, 5.0, f64::NAN]), [3, -3, 0, 6, 0]);
    }
}
