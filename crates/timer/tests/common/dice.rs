//! Random numbers of all tests, those of the library itself too.

#![allow(dead_code, reason = "each program uses its part")]

/// A small generator (SplitMix64), so that a printed seed replays a run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.roll()) * u128::from(n)) >> 64) as u64
    }

    /// A number below `2^bits`, of any magnitude alike.
    pub(crate) fn magnitude(&mut self, bits: u64) -> i64 {
        let bits = self.below(bits);
        self.below(1 << bits) as i64
    }
}

/// The seed in `HOURGLASS_SEED`, or another one each time; printed.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("HOURGLASS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64)
    });
    println!("HOURGLASS_SEED={seed}");
    seed
}
