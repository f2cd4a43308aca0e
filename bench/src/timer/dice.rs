//! Chance that is the same for every structure.
//!
//! Owns: the deadlines, and orders shuffled.
//! Must not: depend on the machine.

use crate::sched::XorShift;

/// Deadlines are uniform between 1 ms and 60 s from now.
const NEAREST: u64 = 1_000_000;
const RANGE: u64 = 60_000_000_000;

pub(crate) struct Dice(XorShift);

impl Dice {
    pub(crate) fn new(round: u32) -> Dice {
        Dice(XorShift(0x9e37_79b9_7f4a_7c15 ^ u64::from(round + 1)))
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next()) * u128::from(n)) >> 64) as u64
    }

    /// The time from now to a deadline, in ns.
    pub(crate) fn delay(&mut self) -> u64 {
        NEAREST + self.below(RANGE)
    }

    pub(crate) fn shuffle(&mut self, ids: &mut [u32]) {
        for i in (1..ids.len()).rev() {
            ids.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}
