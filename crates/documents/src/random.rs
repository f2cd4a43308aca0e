//! Random numbers from seeds.
//!
//! Owns: the derivation of a sequence from the numbers that name it. Must not: take a seed from anywhere else.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// A random sequence (PCG, whose sequence is promised to stay).
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The sequence that these numbers name, whatever they mean.
    #[must_use]
    pub fn from_seeds(names: &[u64]) -> Stream {
        let (mut low, mut high) = (0x243f_6a88_85a3_08d3_u64, 0x1319_8a2e_0370_7344_u64);
        for name in names {
            low = mixed(low ^ name);
            high = mixed(high.wrapping_add(*name).rotate_left(32) ^ low);
        }
        let mut state = [0; 16];
        state[..8].copy_from_slice(&low.to_le_bytes());
        state[8..].copy_from_slice(&high.to_le_bytes());
        Stream(Pcg64Mcg::from_seed(state))
    }

    /// From above 0 to 1, in steps of 2^-53.
    pub fn share(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A number below `limit`, each equally likely; 0 for a limit of 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 {
            return 0;
        }
        // Of the numbers that do not fill a whole multiple none is taken; each try takes at least
        // half, so that 64 fail less often than a machine does.
        let spare = (u64::MAX % limit + 1) % limit;
        let taken = (0..64).map(|_| self.0.next_u64()).find(|drawn| *drawn <= u64::MAX - spare);
        taken.unwrap_or(0) % limit
    }

    /// A number from `low` to `high`, both of them possible.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)))
    }

    /// Puts the values into an order of which each is equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_have_nothing_in_common() {
        let first = |names: [u64; 3]| Stream::from_seeds(&names).0.next_u64();
        let mut seen: Vec<u64> = Vec::new();
        for seed in 0..10 {
            for point in 0..10 {
                seen.extend((0..10).map(|set| first([seed, point, set])));
            }
        }
        assert_eq!(first([3, 4, 5]), first([3, 4, 5]));
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all);
        let ones: u32 = seen.iter().map(|word| word.count_ones()).sum();
        assert!((31_000..33_000).contains(&ones), "{ones} of 64000 bits are set");
    }

    #[test]
    fn numbers_below_a_limit_are_equally_likely() {
        let mut stream = Stream::from_seeds(&[7]);
        let mut counts = [0u32; 6];
        (0..60_000).for_each(|_| counts[stream.below(6) as usize] += 1);
        // Chi-square with 5 degrees of freedom is over 25.7 once in 10 000 (seed 7).
        let chi: f64 = counts.iter().map(|c| (f64::from(*c) - 1e4).powi(2) / 1e4).sum();
        assert!(chi < 25.7, "{counts:?}");
        assert_eq!((stream.below(0), stream.below(1), stream.between(3, 3)), (0, 0, 3));
        assert!((0..100).all(|_| stream.below(u64::MAX) < u64::MAX));
    }
}
