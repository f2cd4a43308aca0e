//! One time a lane, and the least of them.
//!
//! Owns: [`Keys`]. Must not: know what the times mean.

use super::ready::WORD;

/// No time.
pub(super) const NEVER: u64 = u64::MAX;

/// Keys are compared four at a time, which the processor does side by side.
const ABREAST: usize = 4;

/// Times by lane. A key is a time with its lane behind it, so that the least one says both, and of equal times
/// the first lane comes first. A few are all looked at; of many, a tournament keeps the least.
#[derive(Debug)]
pub(super) struct Keys {
    /// Binary digits of a key that say which lane it is.
    bits: u32,
    /// A key a lane, padded with [`NEVER`]. Of many the second half; the root is at 1, the children of `i` at
    /// `2 i` and `2 i + 1`, each the lesser of the two below it.
    keys: Vec<u64>,
    /// The index of lane 0.
    first: usize,
}

/// Binary digits that number `lanes` lanes, and no fewer than those of a word.
pub(super) fn lane_bits(lanes: usize) -> u32 {
    lanes.max(WORD).next_power_of_two().trailing_zeros()
}

impl Keys {
    /// Keys of `lanes` lanes, none with a time.
    pub(super) fn new(lanes: usize) -> Keys {
        let bits = lane_bits(lanes);
        if lanes <= WORD {
            let keys = vec![NEVER; lanes.next_multiple_of(ABREAST)];
            return Keys { bits, keys, first: 0 };
        }
        let size = lanes.next_power_of_two();
        Keys { bits, keys: vec![NEVER; 2 * size], first: size }
    }

    #[inline]
    fn bits<const MANY: bool>(&self) -> u32 {
        if MANY { self.bits } else { WORD.trailing_zeros() }
    }

    /// Sets the time of a lane; it leaves room for the lane, or is [`NEVER`].
    pub(super) fn set(&mut self, lane: usize, time: u64) {
        if self.first > 0 { self.put::<true>(lane, time) } else { self.put::<false>(lane, time) }
    }

    /// The same where it is known whether there are many.
    #[inline]
    pub(super) fn put<const MANY: bool>(&mut self, lane: usize, time: u64) {
        let key = match time {
            NEVER => NEVER,
            _ => (time << self.bits::<MANY>()) | lane as u64,
        };
        let mut place = if MANY { self.first + lane } else { lane };
        self.keys[place] = key;
        while MANY && place > 1 {
            let least = self.keys[place].min(self.keys[place ^ 1]);
            place /= 2;
            self.keys[place] = least;
        }
    }

    #[inline]
    pub(super) fn least<const MANY: bool>(&self) -> (u64, usize) {
        if MANY {
            return self.split::<true>(self.keys[1]);
        }
        let mut found = [NEVER; ABREAST];
        for keys in self.keys.chunks_exact(ABREAST) {
            for (least, key) in found.iter_mut().zip(keys) {
                *least = (*least).min(*key);
            }
        }
        self.split::<false>(found.iter().fold(NEVER, |least, key| least.min(*key)))
    }

    /// The least time of a lane and of those that have a bit, of a few.
    #[inline]
    pub(super) fn least_of(&self, lane: usize, bits: u64) -> (u64, usize) {
        let (mut found, mut bits) = (self.keys[lane], bits);
        while bits != 0 {
            found = found.min(self.keys[bits.trailing_zeros() as usize]);
            bits &= bits - 1;
        }
        self.split::<false>(found)
    }

    /// The time of a lane; that of no time is longer than any other.
    #[inline]
    pub(super) fn time(&self, lane: usize) -> u64 {
        self.keys[self.first + lane] >> self.bits
    }

    /// A key as time and lane; no time is longer than any other.
    #[inline]
    fn split<const MANY: bool>(&self, key: u64) -> (u64, usize) {
        let bits = self.bits::<MANY>();
        (key >> bits, (key & ((1 << bits) - 1)) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::random::SimRng;
    use super::*;

    /// Against a search through all lanes, few and many.
    #[test]
    fn the_least_is_the_earliest_and_of_equals_the_first() {
        for lanes in [1, 3, 4, 63, 64, 65, 128, 129, 1_000] {
            let mut dice = SimRng::new(lanes as u64);
            let mut keys = Keys::new(lanes);
            let mut twin = vec![NEVER; lanes];
            for _ in 0..2_000 {
                let lane = dice.next_at_most(lanes as u64 - 1) as usize;
                let time = if dice.next_at_most(4) == 0 { NEVER } else { dice.next_at_most(40) };
                keys.set(lane, time);
                twin[lane] = time;
                let first = (0..lanes).min_by_key(|lane| (twin[*lane], *lane)).unwrap();
                let found = if lanes > WORD { keys.least::<true>() } else { keys.least::<false>() };
                if twin[first] == NEVER {
                    assert!(found.0 > 40);
                } else {
                    assert_eq!(found, (twin[first], first), "{lanes} lanes");
                    assert_eq!(keys.time(first), twin[first]);
                }
            }
        }
    }
}
