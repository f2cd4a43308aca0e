//! What measurements without one beyond a limit say about those to come, and whether they may be used for it.
//!
//! Owns: a bound on the share beyond a limit, which holds for any distribution; tests of its premise, that measurements
//! are independent and of one distribution in the tail. The tests only need the order of the measurements.

use statrs::function::beta::beta_reg;
use statrs::function::gamma::gamma_lr;

use super::rank::two_sided;

/// Above so many beyond the limit the score interval is as good, and the series of the exact one converges slowly.
const EXACT_HITS: u64 = 1_000;

/// Fewer measurements do not decide about their tail.
const FEWEST: usize = 1_000;

/// Equal parts of the measurements: enough to see a trend, each with several of the largest.
const PARTS: usize = 20;

/// The largest measurements, which are the tail. Not a share of all: in a long test the tail is what lies near the limit.
const LARGEST: usize = 200;

/// The greatest share that a quantity may have of which `hits` were found in `all` independent trials: the upper end of the
/// one-sided interval of Clopper and Pearson (*Biometrika* 26, 1934). Without a hit it is `1 - (1 - confidence)^(1 / all)`,
/// which at 95 % is below `3 / all`. 1 where nothing was tried.
pub fn greatest_share(hits: u64, all: u64, confidence: f64) -> f64 {
    let doubt = (1.0 - confidence).clamp(f64::MIN_POSITIVE, 1.0);
    if hits >= all {
        return 1.0;
    }
    let n = all as f64;
    if hits == 0 {
        return -(doubt.ln() / n).exp_m1();
    }
    if hits > EXACT_HITS {
        return super::share(hits, all, 1.0 - 2.0 * doubt).map_or(1.0, |share| share.hi);
    }
    let (a, b) = (hits as f64 + 1.0, n - hits as f64);
    let (mut low, mut high) = (hits as f64 / n, 1.0_f64);
    // The probability of at most `hits` falls with the share; where it is the doubt, the bound lies.
    for _ in 0..80 {
        let middle = low + (high - low) / 2.0;
        match 1.0 - beta_reg(a, b, middle) > doubt {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// How many trials without a hit it takes to say with `confidence` that the share is below `share`; `None` where no
/// number is enough.
pub fn trials_without(share: f64, confidence: f64) -> Option<u64> {
    let trials = (1.0 - confidence).ln() / (-share).ln_1p();
    (trials.is_finite() && trials >= 0.0).then_some(trials.ceil() as u64)
}

/// Whether the largest of measurements lie among the others as if by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailTest {
    /// The probability of at least this trend of the largest if there is none.
    pub trend: f64,
    /// The probability that the largest lie so close together by chance.
    pub clusters: f64,
}

/// Tests measurements in the order in which they were made. `None` where they are too few, or too many are alike.
///
/// Trend: the test of Mann (*Econometrica* 13, 1945) and Kendall on the maxima of 20 equal parts. Clusters: the index of
/// dispersion of the number of the 200 largest in these parts, and how often two of them follow each other; the smaller
/// probability counts twice.
pub fn tail_test(measurements: &[u64]) -> Option<TailTest> {
    let all = measurements.len();
    if all < FEWEST {
        return None;
    }
    let mut sorted = measurements.to_vec();
    let wanted = LARGEST.min(all / 10);
    let (_, &mut threshold, _) = sorted.select_nth_unstable(all - wanted - 1);
    let is_large = |value: &&u64| **value > threshold;
    let large = measurements.iter().filter(is_large).count();
    if large < wanted / 2 {
        return None;
    }
    let length = all.div_ceil(PARTS);
    let parts: Vec<&[u64]> = measurements.chunks(length).collect();
    let maxima: Vec<u64> = parts.iter().filter_map(|part| part.iter().max().copied()).collect();
    let counts: Vec<(usize, usize)> =
        parts.iter().map(|part| (part.iter().filter(is_large).count(), part.len())).collect();
    let pairs =
        measurements.windows(2).filter(|pair| pair.iter().all(|value| is_large(&value))).count();
    let clusters = dispersion(&counts, large, all).min(neighbours(pairs, large, all));
    Some(TailTest { trend: mann_kendall(&maxima), clusters: (2.0 * clusters).min(1.0) })
}

/// The two-sided probability of the test of Mann and Kendall, by its normal approximation with the correction for ties.
fn mann_kendall(values: &[u64]) -> f64 {
    let n = values.len() as f64;
    let mut balance = 0_i64;
    for (at, first) in values.iter().enumerate() {
        for second in values.iter().skip(at + 1) {
            balance += i64::from(second > first) - i64::from(second < first);
        }
    }
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|tied| term(tied.len() as f64)).sum();
    // The balance moves by two, the rank sum by one: half a step more is its correction for continuity.
    two_sided((balance.abs() as f64 - 0.5).max(0.0), (term(n) - ties) / 18.0)
}

/// The probability of at least this dispersion of `large` measurements over parts, each with its number of large ones and
/// its length.
fn dispersion(counts: &[(usize, usize)], large: usize, all: usize) -> f64 {
    let (hits, n) = (large as f64, all as f64);
    let statistic: f64 = counts
        .iter()
        .map(|(count, length)| {
            let expected = hits * *length as f64 / n;
            (*count as f64 - expected).powi(2) / expected
        })
        .sum();
    // Drawn without replacement, counts vary less than the multinomial.
    let statistic = statistic * (n - 1.0) / (n - hits);
    let freedom = counts.len().saturating_sub(1) as f64;
    1.0 - gamma_lr(freedom / 2.0, (statistic / 2.0).max(f64::MIN_POSITIVE))
}

/// The probability that at least `pairs` of `large` measurements follow another large one: by Poisson, whose tail is the
/// heavier one, so that the probability is not too small.
fn neighbours(pairs: usize, large: usize, all: usize) -> f64 {
    if pairs == 0 {
        return 1.0;
    }
    let expected = large as f64 * (large as f64 - 1.0) / all as f64;
    gamma_lr(pairs as f64, expected.max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use hourglass_dice::Dice;

    use super::super::USUAL;
    use super::super::quantiles::normal_below;
    use super::*;

    /// Quantiles of the beta distribution, which the bound is (C. J. Clopper and E. S. Pearson, 1934); the closed form
    /// without a hit; and that a distribution function at the bound is the doubt.
    #[test]
    fn the_bound_of_clopper_and_pearson() {
        for (hits, all, bound) in [
            (0, 20, 0.139_108_3),
            (0, 3_000, 0.000_998_078),
            (1, 10, 0.394_163_3),
            (2, 20, 0.282_618_5),
            (5, 10, 0.777_558_9),
            (9, 10, 0.994_883_8),
        ] {
            let found = greatest_share(hits, all, USUAL);
            assert!((found - bound).abs() < 1e-6, "{hits} of {all}: {found}");
        }
        assert_eq!(greatest_share(0, 0, USUAL), 1.0);
        assert_eq!(greatest_share(7, 7, USUAL), 1.0);
        for all in [1, 10, 1_000, 1_000_000, 2_995_732_273] {
            let found = greatest_share(0, all, USUAL);
            assert!(found > 0.0 && found <= 3.0 / all as f64, "{all}: {found}");
        }
        let (exact, score) =
            (greatest_share(1_000, 1_000_000, USUAL), greatest_share(1_001, 1_000_000, USUAL));
        assert!(score > exact && score / exact < 1.002, "{exact} {score}");
    }

    #[test]
    fn how_long_a_test_must_be() {
        assert_eq!(trials_without(1e-9, USUAL), Some(2_995_732_273));
        assert_eq!(trials_without(0.05, USUAL), Some(59));
        assert_eq!(trials_without(0.0, USUAL), None);
        for share in [1e-9, 1e-6, 0.001, 0.2] {
            let trials = trials_without(share, USUAL).unwrap();
            assert!(greatest_share(0, trials, USUAL) <= share * (1.0 + 1e-6));
            assert!(greatest_share(0, trials - 2, USUAL) > share);
        }
    }

    /// S = 45 of ten that rise, variance 125, z = 44 / sqrt(125); with two pairs of ties the variance is 123.
    #[test]
    fn the_trend_of_ten() {
        let rising: Vec<u64> = (0..10).collect();
        assert!((mann_kendall(&rising) - 8.303_1e-5).abs() < 1e-8, "{}", mann_kendall(&rising));
        let tied = [1, 1, 2, 3, 4, 5, 6, 7, 8, 8];
        let wanted = 2.0 * normal_below(-42.0 / 123.0_f64.sqrt());
        assert!((mann_kendall(&tied) - wanted).abs() < 1e-12);
        assert_eq!(mann_kendall(&[5; 20]), 1.0);
    }

    /// The table of chi square: 30.144 with 19 degrees of freedom is exceeded once in 20; P(X >= 3) = 0.0803 for a
    /// Poisson mean of 1.
    #[test]
    fn tables_of_chi_square_and_poisson() {
        assert!((1.0 - gamma_lr(9.5, 30.143_527 / 2.0) - 0.05).abs() < 1e-6);
        assert!((neighbours(3, 2, 2) - 0.080_301_4).abs() < 1e-6);
        assert_eq!(neighbours(0, 200, 1_000_000), 1.0);
    }

    fn by_chance(dice: &mut Dice, count: usize) -> Vec<u64> {
        // A heavy tail: a magnitude by chance.
        (0..count).map(|_| 1_000_000_000 / (1 + dice.below(1_000_000))).collect()
    }

    /// At one in a hundred each, few of 400 sequences without trend and clusters are found to have them.
    #[test]
    fn chance_is_rarely_taken_for_more() {
        let mut dice = Dice::new(0x7a11);
        for count in [1_000, 5_000] {
            let tests: Vec<TailTest> =
                (0..400).map(|_| tail_test(&by_chance(&mut dice, count)).unwrap()).collect();
            for p in [|test: &TailTest| test.trend, |test: &TailTest| test.clusters] {
                let found = tests.iter().filter(|test| p(test) < 0.01).count();
                assert!(found <= 12, "{found} of 400, {count} each");
            }
        }
    }

    #[test]
    fn trends_and_clusters_are_found() {
        let mut dice = Dice::new(0x7a12);
        let plain = by_chance(&mut dice, 20_000);
        let rising: Vec<u64> = (0..20_000).map(|at| at + dice.below(20_000)).collect();
        assert!(tail_test(&rising).unwrap().trend < 0.001);
        // One burst of 150 late ones; and late ones in pairs, all over.
        let mut burst = plain.clone();
        burst[7_000..7_150].fill(2_000_000_000);
        assert!(tail_test(&burst).unwrap().clusters < 1e-6);
        let mut paired = plain.clone();
        for at in (0..100).map(|number| number * 197) {
            paired[at..at + 2].fill(2_000_000_000);
        }
        assert!(tail_test(&paired).unwrap().clusters < 1e-6);
        assert_eq!(tail_test(&plain[..999]), None);
        assert_eq!(tail_test(&[7; 5_000]), None);
    }
}
