//! Random numbers and seeds of tests.

use hourglass_time::Span;

/// Numbers after each other from a seed (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + (z ^ (z >> 31)) % (high - low + 1)
    }

    pub(crate) fn one_in(&mut self, parts: u64) -> bool {
        self.between(1, parts) == 1
    }
}

pub(crate) fn us(number: u64) -> Span {
    Span::from_nanos(i64::try_from(number * 1_000).unwrap())
}

/// How many sets `HOURGLASS_SETS` asks for.
pub(crate) fn sets() -> Option<u64> {
    std::env::var("HOURGLASS_SETS").ok().and_then(|text| text.parse().ok())
}

/// The first `usual` seeds, or the number that the environment requests.
pub(crate) fn seeds(usual: u64) -> std::ops::Range<u64> {
    0..sets().unwrap_or(usual)
}
