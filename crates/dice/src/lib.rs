//! Random numbers of all tests: the same numbers from the same seed, on every machine.
//!
//! Must not: be a dependency of anything but tests; depend on anything.

#![forbid(unsafe_code)]

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Any number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `n`, without `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.roll()) * u128::from(n)) >> 64) as u64
    }

    /// From `low` to `high`, both among them.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// From `low` to `high`, without `high`.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low).unsigned_abs()) as i64
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A number below `2^bits`, of any magnitude alike.
    pub fn magnitude(&mut self, bits: u64) -> i64 {
        let bits = self.below(bits);
        self.below(1 << bits) as i64
    }
}

/// The seed in `HOURGLASS_SEED`, or another one each time; printed.
pub fn seed() -> u64 {
    let given = env::var("HOURGLASS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64)
    });
    println!("HOURGLASS_SEED={seed}");
    seed
}
