//! What the tests of the queue share.

#![allow(dead_code, reason = "each test uses its part")]

/// A small generator (splitmix64), so that a printed seed replays a run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.roll()) * u128::from(n)) >> 64) as u64
    }

    /// A number below `2^bits`, of any magnitude alike.
    pub(crate) fn magnitude(&mut self, bits: u64) -> i64 {
        let bits = self.below(bits);
        self.below(1 << bits) as i64
    }
}
