//! What is drawn.
//!
//! Owns: the streams of a simulation: one a thread and purpose, so that what one thread draws does
//! not depend on the others. Must not: decide anything.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Execution times.
    Cost = 1,
    Jitter = 2,
    /// Gaps of sporadic arrivals.
    Gap = 3,
}

/// splitmix64 (Steele, Lea and Flood 2014): the next state's mixed value.
fn mixed(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub(super) fn seed_of(seed: u64, stream: u64, purpose: Purpose) -> u64 {
    mixed(mixed(mixed(seed) ^ stream) ^ purpose as u64)
}

/// A stream of whole numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimRng(u64);

impl SimRng {
    pub(super) fn new(seed: u64) -> SimRng {
        SimRng(seed)
    }

    /// A number from 0 to `most`: the upper half of a product, whose unevenness is below 1 in
    /// 2^64 / `most`.
    pub(super) fn next_at_most(&mut self, most: u64) -> u64 {
        let drawn = mixed(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let scaled = (u128::from(drawn) * (u128::from(most) + 1)) >> 64;
        // Below 2^64, since the drawn number is.
        scaled as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_in_their_range_and_reach_both_ends() {
        let mut dice = SimRng::new(seed_of(7, 1, Purpose::Gap));
        let drawn: Vec<u64> = (0..1_000).map(|_| dice.next_at_most(3)).collect();
        assert!((0..=3).all(|value| drawn.contains(&value)) && drawn.iter().all(|v| *v <= 3));
        assert_eq!(SimRng::new(1).next_at_most(0), 0);
        SimRng::new(1).next_at_most(u64::MAX);
    }

    #[test]
    fn streams_differ_by_seed_number_and_purpose() {
        let seeds = [
            seed_of(0, 0, Purpose::Cost),
            seed_of(0, 0, Purpose::Gap),
            seed_of(0, 1, Purpose::Cost),
            seed_of(1, 0, Purpose::Cost),
        ];
        for (index, seed) in seeds.iter().enumerate() {
            assert!(!seeds[..index].contains(seed));
        }
    }
}
