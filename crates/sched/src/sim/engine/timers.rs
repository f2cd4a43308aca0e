//! One timer a slot, in fixed memory.
//!
//! Owns: [`Timers`], a tournament: each inner place holds the earlier of the two below it. Must not:
//! know what a slot stands for.

/// A timer that is not set.
pub(super) const NEVER: u64 = u64::MAX;

/// Times by slot. Of equal times the lower slot comes first.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// Times, padded to a power of two with [`NEVER`].
    times: Vec<u64>,
    /// Winners: the root at 1, the children of `i` at `2 i` and `2 i + 1`; leaves are not stored.
    winners: Vec<u32>,
}

impl Timers {
    /// So many slots, none set.
    pub(super) fn new(slots: usize) -> Timers {
        let size = slots.next_power_of_two().max(2);
        let mut timers = Timers { times: vec![NEVER; size], winners: vec![0; size] };
        for place in (1..size).rev() {
            timers.play(place);
        }
        timers
    }

    /// The earliest time and its slot.
    #[inline]
    pub(super) fn first(&self) -> (u64, usize) {
        let slot = self.winners[1] as usize;
        (self.times[slot], slot)
    }

    /// Sets a slot.
    #[inline]
    pub(super) fn set(&mut self, slot: usize, at: u64) {
        self.times[slot] = at;
        let mut place = (self.times.len() + slot) / 2;
        while place >= 1 {
            self.play(place);
            place /= 2;
        }
    }

    #[inline]
    fn play(&mut self, place: usize) {
        let size = self.times.len();
        let winner = |place: usize| {
            if place >= size { (place - size) as u32 } else { self.winners[place] }
        };
        let (left, right) = (winner(2 * place), winner(2 * place + 1));
        // Slots on the left are the lower ones.
        let left_wins = self.times[left as usize] <= self.times[right as usize];
        self.winners[place] = if left_wins { left } else { right };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a search through all slots.
    #[test]
    fn the_first_is_the_earliest_and_of_equals_the_lowest() {
        for slots in [1, 2, 3, 7, 8, 9, 33] {
            let mut timers = Timers::new(slots);
            let mut twin = vec![NEVER; slots];
            let mut state = 12_345u64;
            for _ in 0..2_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let slot = (state >> 33) as usize % slots;
                let at = if state.is_multiple_of(5) { NEVER } else { (state >> 40) % 50 };
                timers.set(slot, at);
                twin[slot] = at;
                let first = (0..slots).min_by_key(|slot| (twin[*slot], *slot)).unwrap();
                assert_eq!(timers.first().0, twin[first]);
                if twin[first] != NEVER {
                    assert_eq!(timers.first().1, first);
                }
            }
        }
    }
}
