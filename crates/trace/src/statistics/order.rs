//! Medians, percentiles and modes, which an outlier does not move.

use super::Estimate;
use super::quantiles::normal;

/// With a variance of the rank above this the normal distribution gives the ranks: they are then
/// hundreds apart, and the exact ones differ by one at most.
const EXACT_UP_TO: f64 = 2_500.0;

/// Median of `sorted` (ascending) with the interval between two order statistics.
pub fn median(sorted: &[u64], confidence: f64) -> Option<Estimate> {
    percentile(sorted, 0.5, confidence)
}

/// The measurement that `quantile` (from 0 to 1) of all do not exceed, with the interval between the
/// two order statistics that hold the quantile of the distribution (Jain 1991, box 13.1: no
/// assumption about the distribution). `sorted` ascends.
///
/// An end of the interval is infinite where even the extreme measurement does not bound the
/// quantile with this confidence: the 99.9th percentile needs some 3,700 measurements. `None`
/// without a measurement.
pub fn percentile(sorted: &[u64], quantile: f64, confidence: f64) -> Option<Estimate> {
    let value = quantile_of(sorted, quantile)? as f64;
    let count = sorted.len();
    let (below, above) = ranks(count, quantile.clamp(0.0, 1.0), confidence);
    let at = |rank: usize| sorted.get(rank).map(|value| *value as f64);
    Some(Estimate {
        value,
        lo: below.and_then(at).unwrap_or(f64::NEG_INFINITY),
        hi: above.and_then(at).unwrap_or(f64::INFINITY),
        count: count as u64,
    })
}

/// The measurement that `quantile` of all do not exceed: the least of rank `ceil(quantile * count)`.
/// `sorted` ascends.
pub fn quantile_of(sorted: &[u64], quantile: f64) -> Option<u64> {
    let count = sorted.len();
    // A product that is whole but for its last digits is whole.
    let rank = (quantile.clamp(0.0, 1.0) * count as f64 * (1.0 - 1e-14)).ceil() as usize;
    sorted.get(rank.clamp(1, count.max(1)) - 1).copied()
}

/// Ranks, from 0, of the order statistics between which the quantile lies; `None` where there are
/// too few measurements.
///
/// The number of measurements below the quantile is binomial. The quantile lies above the
/// measurement of rank r (from 0) if more than r are below it.
fn ranks(count: usize, quantile: f64, confidence: f64) -> (Option<usize>, Option<usize>) {
    let tail = (1.0 - confidence) / 2.0;
    if quantile > 0.5 {
        // Seen from above: exact sums are short where the counted side is the small one.
        let (lo, hi) = ranks_of_small(count, 1.0 - quantile, tail);
        let mirrored = |rank: usize| count - 1 - rank;
        (hi.map(mirrored), lo.map(mirrored))
    } else {
        ranks_of_small(count, quantile, tail)
    }
}

fn ranks_of_small(count: usize, quantile: f64, tail: f64) -> (Option<usize>, Option<usize>) {
    let n = count as f64;
    let variance = n * quantile * (1.0 - quantile);
    if variance > EXACT_UP_TO {
        let reach = normal(1.0 - 2.0 * tail) * variance.sqrt();
        let middle = n * quantile;
        let (lo, hi) = ((middle - reach).floor(), (middle + reach).ceil());
        return ((lo >= 1.0).then(|| lo as usize - 1), (hi < n).then_some(hi as usize));
    }
    if quantile <= 0.0 {
        return (None, (count > 0).then_some(0));
    }
    // Counts k below the quantile, with their probabilities, from 0 on.
    let odds = (quantile / (1.0 - quantile)).ln();
    let mut log_probability = n * (1.0 - quantile).ln();
    let (mut below, mut lo, mut hi) = (0.0, None, None);
    for k in 0..=count {
        let before = below;
        below += log_probability.exp();
        // P(fewer than k + 1) within the tail: rank k is at most the quantile.
        if below <= tail && k < count {
            lo = Some(k);
        }
        // P(k or more) within the tail: rank k is at least the quantile.
        if hi.is_none() && 1.0 - below <= tail {
            hi = (k < count).then_some(k);
            if before > tail {
                break;
            }
        }
        log_probability += ((n - k as f64) / (k as f64 + 1.0)).ln() + odds;
    }
    (lo, hi)
}

/// The value around which the measurements are densest: the half-sample mode (Robertson and Cryer,
/// *Journal of the American Statistical Association* 69, 1974), which needs no width of bins. Of
/// several that are equally dense, the least. `sorted` ascends; `None` without a measurement.
pub fn mode(sorted: &[u64]) -> Option<u64> {
    let mut rest = sorted;
    while rest.len() > 2 {
        let half = rest.len().div_ceil(2);
        let densest = rest
            .windows(half)
            .min_by_key(|window| window.last().zip(window.first()).map(|(hi, lo)| hi - lo))?;
        rest = densest;
    }
    match rest {
        [] => None,
        [first, ..] => Some(first + (rest.last()? - first) / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::super::USUAL;
    use super::*;

    /// The exact ranks for the median of small samples, from tables of the sign test: of 10, the
    /// second and the ninth; of 20, the sixth and the fifteenth; of 6, the extremes; of 5, none.
    #[test]
    fn ranks_of_the_sign_test() {
        let first = |n: u64| median(&(1..=n).collect::<Vec<_>>(), USUAL).unwrap();
        assert_eq!((first(10).lo, first(10).hi), (2.0, 9.0));
        assert_eq!((first(20).lo, first(20).hi), (6.0, 15.0));
        assert_eq!((first(6).lo, first(6).hi), (1.0, 6.0));
        assert_eq!((first(5).lo, first(5).hi), (f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!((first(5).value, first(1).value), (3.0, 1.0));
        assert_eq!(median(&[], USUAL), None);
    }

    /// 1 - 0.999^n passes 0.975 at n = 3688: below, no measurement bounds p99.9 from above.
    #[test]
    fn a_percentile_needs_enough_measurements() {
        let of = |n: u64| percentile(&(1..=n).collect::<Vec<_>>(), 0.999, USUAL).unwrap();
        assert_eq!(of(3_687).hi, f64::INFINITY);
        assert_eq!(of(3_688).hi, 3_688.0);
        assert_eq!(of(3_688).value, 3_685.0);
        assert_eq!(of(1_000).value, 999.0);
    }

    /// Normal and exact ranks agree where one goes over into the other.
    #[test]
    fn exact_and_normal_ranks_meet() {
        let (below, above) = (10_000usize, 10_002usize);
        let (a, b) = (ranks(below, 0.5, USUAL), ranks(above, 0.5, USUAL));
        let near = |x: Option<usize>, y: Option<usize>| x.unwrap().abs_diff(y.unwrap()) <= 3;
        assert!(near(a.0, b.0) && near(a.1, b.1), "{a:?} {b:?}");
    }

    /// Of 400 medians of numbers drawn evenly, about 380 intervals hold the true one.
    #[test]
    fn intervals_hold_what_they_promise() {
        let mut random = hourglass_documents::random::Stream::from_seeds(&[20_020_618]);
        let mut held = 0;
        for _ in 0..400 {
            let mut sample: Vec<u64> = (0..101).map(|_| random.below(1_000_000)).collect();
            sample.sort_unstable();
            held += u32::from(percentile(&sample, 0.9, USUAL).unwrap().holds(900_000.0));
        }
        assert!((368..=398).contains(&held), "seed 20020618: {held} of 400");
    }

    #[test]
    fn the_mode_is_the_densest_place() {
        assert_eq!(mode(&[]), None);
        assert_eq!(mode(&[7]), Some(7));
        assert_eq!(mode(&[10, 11, 11, 12, 40, 400, 900]), Some(11));
        assert_eq!(mode(&[1, 1, 1, 50, 51, 52]), Some(1));
        let tied = mode(&[1, 2, 3, 4]);
        assert_eq!(tied, Some(1), "the least of what is equally dense");
    }
}
