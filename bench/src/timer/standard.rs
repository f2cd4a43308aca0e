//! What one builds from the standard library.
//!
//! Owns: the two usual constructions.
//! Must not: be better than they usually are, nor worse.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::workload::TimerBackend;

/// A map from deadline and id; to cancel, the deadline of each id is kept.
pub(crate) struct Map {
    map: BTreeMap<(u64, u64), u64>,
    deadlines: Vec<u64>,
}

impl TimerBackend for Map {
    const NAME: &'static str = "BTreeMap";
    type Fired = u32;

    fn with_room(ids: usize) -> Map {
        Map { map: BTreeMap::new(), deadlines: vec![0; ids] }
    }

    fn insert(&mut self, id: u32, _now: u64, deadline: u64) {
        self.deadlines[id as usize] = deadline;
        self.map.insert((deadline, id.into()), id.into());
    }

    fn cancel(&mut self, id: u32) {
        self.map.remove(&(self.deadlines[id as usize], id.into()));
    }

    fn rearm(&mut self, id: u32, now: u64, deadline: u64) {
        self.insert(id, now, deadline);
    }

    fn next(&mut self) -> Option<u64> {
        self.map.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    fn poll(&mut self, now: u64, fired: &mut Vec<u32>) {
        while let Some(entry) = self.map.first_entry() {
            if entry.key().0 > now {
                break;
            }
            fired.push(entry.remove() as u32);
        }
    }
}

/// A heap whose cancelled entries stay until they come up or outnumber the live ones; to tell, each
/// id has a generation.
pub(crate) struct LazyHeap {
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    generations: Vec<u32>,
    dead: usize,
}

impl LazyHeap {
    fn drop_the_dead(&mut self) {
        while let Some(Reverse((_, id, generation))) = self.heap.peek() {
            if self.generations[*id as usize] == *generation {
                break;
            }
            self.heap.pop();
            self.dead -= 1;
        }
    }
}

impl TimerBackend for LazyHeap {
    const NAME: &'static str = "BinaryHeap";
    type Fired = u32;

    fn with_room(ids: usize) -> LazyHeap {
        LazyHeap { heap: BinaryHeap::with_capacity(ids), generations: vec![0; ids], dead: 0 }
    }

    fn insert(&mut self, id: u32, _now: u64, deadline: u64) {
        self.heap.push(Reverse((deadline, id, self.generations[id as usize])));
    }

    fn cancel(&mut self, id: u32) {
        self.generations[id as usize] = self.generations[id as usize].wrapping_add(1);
        self.dead += 1;
        if self.dead > 64 && self.dead * 2 > self.heap.len() {
            let generations = &self.generations;
            self.heap
                .retain(|Reverse((_, id, generation))| generations[*id as usize] == *generation);
            self.dead = 0;
        }
    }

    fn rearm(&mut self, id: u32, now: u64, deadline: u64) {
        self.insert(id, now, deadline);
    }

    fn next(&mut self) -> Option<u64> {
        self.drop_the_dead();
        self.heap.peek().map(|Reverse((deadline, _, _))| *deadline)
    }

    fn poll(&mut self, now: u64, fired: &mut Vec<u32>) {
        loop {
            self.drop_the_dead();
            let Some(Reverse((deadline, id, _))) = self.heap.peek().copied() else { return };
            if deadline > now {
                return;
            }
            self.heap.pop();
            self.generations[id as usize] = self.generations[id as usize].wrapping_add(1);
            fired.push(id);
        }
    }
}
