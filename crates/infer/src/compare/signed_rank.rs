//! Paired differences: their signed ranks, the estimate of a shift with its exact interval, and a test
//! of several quantities at once.
//!
//! Owns: the formulae (F. Wilcoxon, *Biometrics Bulletin* 1, 1945; J. L. Hodges and E. L. Lehmann,
//! *Annals of Mathematical Statistics* 34, 1963; P. H. Westfall and S. S. Young, *Resampling-Based
//! Multiple Testing*, 1993). Must not: know what was measured.

use hourglass_model::generate::Stream;

use crate::statistics::Estimate;

/// Up to so many pairs the distribution of the rank sum is counted out.
const MOST_EXACT: usize = 60;

/// Up to so many pairs all signs are tried; with more, they are drawn.
const MOST_ENUMERATED: usize = 13;

/// So many are drawn.
const DRAWN: u64 = 10_000;

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
/// at most one in forty comes. `None` if there is none.
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

/// For each quantity of a family the chance that one of them seems to have moved as much as it did
/// or more, if none has: its step-down p-value by the largest standardised rank sum, over all signs that the
/// pairs might have had. `family` holds the differences of each quantity, pair by pair; all have the
/// same pairs. With more than 13 pairs, the signs are drawn from a sequence that begins with `seed`.
pub(super) fn joint_chances(family: &[Vec<f64>], seed: u64) -> Vec<f64> {
    let ranks: Vec<Vec<i64>> = family.iter().map(|one| signed_ranks(one)).collect();
    let pairs = ranks.iter().map(Vec::len).min().unwrap_or(0);
    let spread: Vec<f64> =
        ranks.iter().map(|one| one.iter().map(|r| (r * r) as f64).sum::<f64>().sqrt()).collect();
    let standardised = |one: usize, flipped: &dyn Fn(usize) -> bool| {
        let sum: i64 =
            ranks[one].iter().enumerate().map(|(at, r)| if flipped(at) { -r } else { *r }).sum();
        if spread[one] > 0.0 { sum.unsigned_abs() as f64 / spread[one] } else { 0.0 }
    };
    let observed: Vec<f64> = (0..ranks.len()).map(|one| standardised(one, &|_| false)).collect();
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_by(|a, b| observed[*b].total_cmp(&observed[*a]));
    let mut reached = vec![0_u64; ranks.len()];
    let mut tried = 0_u64;
    let mut random = Stream::of(&[seed, pairs as u64]);
    let is_enumerated = pairs <= MOST_ENUMERATED;
    let mut signs = vec![false; pairs];
    let tries = if is_enumerated { 1_u64 << pairs } else { DRAWN };
    for number in 0..tries {
        for (at, sign) in signs.iter_mut().enumerate() {
            *sign = if is_enumerated { number >> at & 1 == 1 } else { random.below(2) == 1 };
        }
        let flipped = |at: usize| signs.get(at).copied().unwrap_or(false);
        let mut largest = 0.0_f64;
        for one in order.iter().rev() {
            largest = largest.max(standardised(*one, &flipped));
            // What is equal but for rounding is equal.
            reached[*one] += u64::from(largest >= observed[*one] * (1.0 - 1e-12));
        }
        tried += 1;
    }
    // The signs that were there are among those enumerated; among those drawn they are counted in.
    let extra = u64::from(!is_enumerated);
    let mut chances = vec![1.0; ranks.len()];
    let mut least = 0.0_f64;
    for one in order {
        least = least.max((reached[one] + extra) as f64 / (tried + extra) as f64);
        chances[one] = least;
    }
    chances
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
        let chance = joint_chances(&[differences], 1)[0];
        assert!((chance - 0.0391).abs() < 5e-5, "{chance}");
    }

    /// Tables of the test (Hollander and Wolfe, A.4): the largest rank sums with a tail of 0.025 or
    /// less are 0 for 6 pairs, 8 for 10 and 52 for 20; with five pairs there is none.
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

    /// The obviously right twin: the least chance is that of equal signs, one of 2^(n-1), however
    /// many quantities move together.
    #[test]
    fn quantities_that_move_together_count_once() {
        let one: Vec<f64> = (1..=8).map(f64::from).collect();
        let chances = joint_chances(&vec![one; 12], 1);
        assert!(chances.iter().all(|p| (p - 2.0 / 256.0).abs() < 1e-12), "{chances:?}");
        let still = joint_chances(&[vec![0.0; 8]], 1);
        assert_eq!(still, [1.0]);
        assert!(joint_chances(&[], 1).is_empty());
    }

    /// Drawn signs give what all signs give (seed 3).
    #[test]
    fn drawn_signs_agree_with_the_normal_distribution() {
        // 20 pairs, T+ = 52: the exact two-sided chance is 0.0484 (Hollander and Wolfe, A.4).
        let is_positive = |rank: i32| [20, 19, 13].contains(&rank);
        let differences: Vec<f64> = (1..=20)
            .map(|rank| if is_positive(rank) { f64::from(rank) } else { -f64::from(rank) })
            .collect();
        let chance = joint_chances(&[differences], 3)[0];
        assert!((chance - 0.0484).abs() < 0.008, "{chance}");
    }
}
