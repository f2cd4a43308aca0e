//! The uncertainty of any statistic, from the measurements themselves.

use hourglass_documents::random::Stream;

use super::Estimate;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resampling {
    /// How often the statistic is computed: 2,000 suffice for an interval.
    pub rounds: u32,
    /// Measurements that are drawn together, as they followed each other: more than one where
    /// neighbours resemble each other (moving blocks, H. R. Künsch, *Annals of Statistics* 17, 1989).
    pub block: usize,
    /// Start of the random sequence; equal seeds give equal intervals.
    pub seed: u64,
}

impl Default for Resampling {
    fn default() -> Resampling {
        Resampling { rounds: 2_000, block: 1, seed: 1 }
    }
}

/// A statistic of several sets of measurements, each in the order of time, with the percentile
/// interval of the bootstrap (B. Efron and R. Tibshirani, *An Introduction to the Bootstrap*, 1993,
/// chapter 13). The sets are drawn anew independently of each other.
///
/// The statistic may put the measurements into another order. `None` if a set is empty, no round is
/// asked for, or the statistic is not finite.
pub fn bootstrap(
    sets: &[&[u64]],
    mut statistic: impl FnMut(&mut [Vec<u64>]) -> f64,
    resampling: Resampling,
    confidence: f64,
) -> Option<Estimate> {
    if sets.iter().any(|set| set.is_empty()) || resampling.rounds == 0 {
        return None;
    }
    let mut drawn: Vec<Vec<u64>> = sets.iter().map(|set| set.to_vec()).collect();
    let value = statistic(&mut drawn);
    let mut random = Stream::from_seeds(&[resampling.seed]);
    let mut found = Vec::with_capacity(resampling.rounds as usize);
    for _ in 0..resampling.rounds {
        for (set, drawn) in sets.iter().zip(&mut drawn) {
            draw(set, resampling.block, &mut random, drawn);
        }
        found.push(statistic(&mut drawn));
    }
    if !value.is_finite() || found.iter().any(|value| !value.is_finite()) {
        return None;
    }
    found.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    let last = found.len() - 1;
    let at = |share: f64| found.get((share * last as f64).round() as usize).copied();
    let count = sets.iter().map(|set| set.len() as u64).min()?;
    Some(Estimate { value, lo: at(tail)?, hi: at(1.0 - tail)?, count })
}

/// As many measurements as `set` has, in blocks that begin anywhere and go on at the front.
fn draw(set: &[u64], block: usize, random: &mut Stream, drawn: &mut Vec<u64>) {
    let block = block.clamp(1, set.len());
    drawn.clear();
    while drawn.len() < set.len() {
        let from = random.below(set.len() as u64) as usize;
        let room = set.len() - drawn.len();
        drawn.extend(set.iter().cycle().skip(from).take(block.min(room)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::USUAL;
    use super::*;

    fn mean_of(sets: &mut [Vec<u64>]) -> f64 {
        sets[0].iter().sum::<u64>() as f64 / sets[0].len() as f64
    }

    /// For a mean, the bootstrap comes to what Student's t says, less its correction for few.
    #[test]
    fn it_agrees_with_t() {
        let mut random = Stream::from_seeds(&[7]);
        let set: Vec<u64> = (0..200).map(|_| 1_000 + random.below(500)).collect();
        let found = bootstrap(&[&set], mean_of, Resampling::default(), USUAL).unwrap();
        let floats: Vec<f64> = set.iter().map(|value| *value as f64).collect();
        let t = super::super::mean(&floats, USUAL).unwrap();
        assert!((found.value - t.value).abs() < 1e-9);
        assert!((found.half_width() / t.half_width() - 1.0).abs() < 0.1, "seed 7: {found:?} {t:?}");
    }

    #[test]
    fn a_seed_gives_the_same_again() {
        let set: Vec<u64> = (0..40).collect();
        let with = |seed| {
            let how = Resampling { seed, rounds: 200, block: 1 };
            bootstrap(&[&set], mean_of, how, USUAL).unwrap()
        };
        assert_eq!(with(3), with(3));
        assert_ne!(with(3), with(4));
    }

    /// Neighbours that are equal count as one: blocks of ten make the interval wider.
    #[test]
    fn blocks_keep_neighbours_together() {
        let set: Vec<u64> = (0..400).map(|n| (n / 10 * 7_919) % 1_000).collect();
        let width = |block| {
            let how = Resampling { block, ..Resampling::default() };
            bootstrap(&[&set], mean_of, how, USUAL).unwrap().half_width()
        };
        assert!(width(10) > 2.0 * width(1));
        assert_eq!(bootstrap(&[&[]], mean_of, Resampling::default(), USUAL), None);
    }
}
