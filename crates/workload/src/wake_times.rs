//! When single wake-ups took place, for models that keep no intervals.
//!
//! Owns: room for them, made before the start. Must not: allocate while a thread is measured.

/// Times of wake-ups on the counter: the first ones, or in a ring the newest.
#[derive(Debug)]
pub struct WakeTimes {
    room: Vec<u64>,
    taken: usize,
    ring: bool,
}

impl WakeTimes {
    /// Room for `capacity` times, its pages written.
    pub fn new(capacity: usize, ring: bool) -> WakeTimes {
        WakeTimes { room: vec![u64::MAX; capacity], taken: 0, ring }
    }

    pub(crate) fn record(&mut self, ticks: u64) {
        let place = match self.room.len() {
            capacity if self.ring && capacity > 0 => self.taken % capacity,
            _ => self.taken,
        };
        if let Some(place) = self.room.get_mut(place) {
            *place = ticks;
        }
        self.taken += 1;
    }

    /// The times, in order, ticks.
    pub fn times(&self) -> impl Iterator<Item = u64> + '_ {
        let stored = self.taken.min(self.room.len());
        let oldest = if self.ring && self.taken > stored { self.taken % stored.max(1) } else { 0 };
        let (newer, older) = self.room[..stored].split_at(oldest);
        older.iter().chain(newer).copied()
    }

    pub(crate) fn room(&self) -> &[u64] {
        &self.room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_times_or_in_a_ring_the_newest() {
        for (ring, kept) in [(false, [1, 2, 3]), (true, [3, 4, 5])] {
            let mut wakes = WakeTimes::new(3, ring);
            (1..=5).for_each(|ticks| wakes.record(ticks));
            assert_eq!(wakes.times().collect::<Vec<_>>(), kept);
        }
        let mut none = WakeTimes::new(0, true);
        none.record(1);
        assert_eq!(none.times().count(), 0);
    }
}
