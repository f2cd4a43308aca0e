//! One timer a slot, in fixed memory.
//!
//! Owns: [`TimerHeap`], a tournament: each inner place holds the earlier of the two below it. Must not:
//! know what a slot stands for.

/// A timer that is not set.
pub(super) const NEVER: u64 = u64::MAX;

/// Times by slot. Of equal times the lower slot comes first.
#[derive(Clone, Debug)]
pub(super) struct TimerHeap {
    /// Times with their slots: the root at 1, the children of `i` at `2 i` and `2 i + 1`, each the earlier of the
    /// two below it; in the second half the slots themselves, padded to a power of two with [`NEVER`].
    nodes: Vec<(u64, u32)>,
}

impl TimerHeap {
    /// A heap of `slots` slots, none set.
    pub(super) fn new(slots: usize) -> TimerHeap {
        let size = slots.next_power_of_two().max(2);
        let mut nodes = vec![(NEVER, 0); size];
        nodes.extend((0u32..).take(size).map(|slot| (NEVER, slot)));
        let mut timers = TimerHeap { nodes };
        for place in (1..size).rev() {
            timers.play(place);
        }
        timers
    }

    /// The earliest time and its slot.
    #[inline]
    pub(super) fn first(&self) -> (u64, usize) {
        let (at, slot) = self.nodes[1];
        (at, slot as usize)
    }

    #[inline]
    pub(super) fn set(&mut self, slot: usize, at: u64) {
        let mut place = self.nodes.len() / 2 + slot;
        self.nodes[place].0 = at;
        let mut least = (at, self.nodes[place].1);
        // What wins below is carried up in registers; only the other one is read.
        while place > 1 {
            let other = self.nodes[place ^ 1];
            let key = |node: (u64, u32)| (u128::from(node.0) << u32::BITS) | u128::from(node.1);
            least = if key(other) < key(least) { other } else { least };
            place /= 2;
            self.nodes[place] = least;
        }
    }

    #[inline]
    fn play(&mut self, place: usize) {
        let (left, right) = (self.nodes[2 * place], self.nodes[2 * place + 1]);
        // Slots on the left are the lower ones.
        self.nodes[place] = if left.0 <= right.0 { left } else { right };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a search through all slots.
    #[test]
    fn the_first_is_the_earliest_and_of_equals_the_lowest() {
        for slots in [1, 2, 3, 7, 8, 9, 33] {
            let mut timers = TimerHeap::new(slots);
            let mut twin = vec![NEVER; slots];
            let mut dice = hourglass_dice::Dice::new(12_345);
            for _ in 0..2_000 {
                let slot = dice.below(slots as u64) as usize;
                let at = if dice.one_in(5) { NEVER } else { dice.below(50) };
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
