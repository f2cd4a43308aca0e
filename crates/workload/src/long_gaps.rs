//! Long gaps of a thread, kept for as long as a run takes: those whose intervals found no room in the
//! trace.
//!
//! Owns: a table of fixed size in which the longest gaps stay. Must not: say why they were there.
//!
//! A trace fills within seconds where short gaps are many. What stops a thread for long (throttling, a
//! quota, another thread) comes seldom and matters most, so it has room of its own. Where that is full
//! too, a gap makes room for one that is longer, compared by powers of two, so that each costs the same
//! few steps.

use hourglass_time::Span;
use hourglass_trace::{Evidence, IntervalStart};

use crate::buffer::Record;

/// Gaps at least this long have a place, ns: 131 us. Ticks and other interrupts are shorter.
pub const LONG_NS: u64 = 1 << SHORTEST_CLASS;

/// The class of a gap is the power of two at or below its length in ns; from the last one on (73 min)
/// all are one.
const SHORTEST_CLASS: u32 = 17;
const CLASSES: usize = 26;

/// Room for gaps: in each second, at least, and at most.
const PER_SECOND: u64 = 4;
const FEWEST: u64 = 4_096;
const MOST: u64 = 1 << 20;
const NOWHERE: u32 = u32::MAX;

/// A gap on the raw counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongGap {
    /// Last moment at which the thread was seen to run.
    pub start: u64,
    /// First moment at which it was seen to run again.
    pub end: u64,
    pub cpu_before: u32,
    pub cpu_after: u32,
    pub onset: IntervalStart,
    pub evidence: Evidence,
}

#[derive(Clone, Copy, Debug)]
struct LongGapSlot {
    /// Start, end, CPU afterwards, onset and evidence.
    gap: Record,
    cpu_before: u32,
    next: u32,
}

/// The longest gaps that found no room in the trace.
#[derive(Debug)]
pub struct LongGaps {
    places: Vec<LongGapSlot>,
    used: usize,
    /// The first place of each class.
    classes: [u32; CLASSES],
    /// The longest class of which one had no room or lost it.
    lost_class: Option<usize>,
    lost: u64,
}

impl LongGaps {
    /// A table of `room` gaps whose pages have all been written.
    pub fn new(room: usize) -> LongGaps {
        let gap = Record::new(0, 0, u32::MAX, IntervalStart::Gap, Evidence::NONE);
        let room = room.min(NOWHERE as usize);
        LongGaps {
            places: vec![LongGapSlot { gap, cpu_before: u32::MAX, next: NOWHERE }; room],
            used: 0,
            classes: [NOWHERE; CLASSES],
            lost_class: None,
            lost: 0,
        }
    }

    pub fn room_for(duration: Span) -> usize {
        let seconds = duration.nanos_or_zero().div_ceil(1_000_000_000);
        let room = seconds.saturating_mul(PER_SECOND).clamp(FEWEST, MOST);
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    /// What a table of `room` gaps takes, bytes.
    pub fn bytes(room: usize) -> u64 {
        (room as u64).saturating_mul(size_of::<LongGapSlot>() as u64)
    }

    /// Keeps a gap of `ns`, if it is long, and there is room or a shorter one.
    pub(crate) fn keep(&mut self, gap: LongGap, ns: u64) {
        let Some(class) = class_of(ns) else { return };
        let place = if self.used < self.places.len() {
            self.used += 1;
            self.used - 1
        } else {
            match self.make_room(class) {
                Some(place) => place,
                None => return self.lose(class),
            }
        };
        let LongGap { start, end, cpu_before, cpu_after, onset, evidence } = gap;
        let gap = Record::new(start, end, cpu_after, onset, evidence);
        if let (Some(slot), Some(first)) = (self.places.get_mut(place), self.classes.get_mut(class))
        {
            *slot = LongGapSlot { gap, cpu_before, next: *first };
            *first = u32::try_from(place).unwrap_or(NOWHERE);
        }
    }

    /// Takes the place of one of the shortest class below `class`.
    fn make_room(&mut self, class: usize) -> Option<usize> {
        let shortest = self.classes.iter().take(class).position(|first| *first != NOWHERE)?;
        let place = usize::try_from(self.classes[shortest]).ok()?;
        self.classes[shortest] = self.places.get(place)?.next;
        self.lose(shortest);
        Some(place)
    }

    fn lose(&mut self, class: usize) {
        self.lost = self.lost.saturating_add(1);
        self.lost_class = self.lost_class.max(Some(class));
    }

    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// All gaps at least this long that the trace has not are here, ns.
    pub fn complete_from_ns(&self) -> u64 {
        let classes = self.lost_class.map_or(0, |lost| lost as u32 + 1);
        1u64.checked_shl(SHORTEST_CLASS.saturating_add(classes)).unwrap_or(u64::MAX)
    }

    /// The gaps, in order of their starts. Allocates.
    pub fn in_order(&self) -> Vec<LongGap> {
        let of = |place: &LongGapSlot| LongGap {
            start: place.gap.start,
            end: place.gap.end,
            cpu_before: place.cpu_before,
            cpu_after: place.gap.cpu,
            onset: place.gap.onset(),
            evidence: place.gap.evidence(),
        };
        let mut gaps: Vec<LongGap> = self.places.iter().take(self.used).map(of).collect();
        gaps.sort_by_key(|gap| (gap.start, gap.end));
        gaps
    }

    /// The memory that must not be paged out.
    pub(crate) fn lock(&self) -> (usize, std::io::Result<()>) {
        (size_of_val(&self.places[..]), hourglass_sys::memory::lock(&self.places))
    }
}

/// `None` for a gap that is not long.
fn class_of(ns: u64) -> Option<usize> {
    let class = ns.checked_ilog2()?.checked_sub(SHORTEST_CLASS)?;
    Some((class as usize).min(CLASSES - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(start: u64, ns: u64) -> LongGap {
        let (cpu_before, cpu_after) = (1, 2);
        let evidence = Evidence { cleared: Some(true), counted: None };
        LongGap {
            start,
            end: start + ns,
            cpu_before,
            cpu_after,
            onset: IntervalStart::Yield,
            evidence,
        }
    }

    fn record_all(lengths: &[u64], room: usize) -> (LongGaps, Vec<u64>) {
        let mut table = LongGaps::new(room);
        (0..).zip(lengths).for_each(|(at, ns)| table.keep(gap(at * 1_000_000_000, *ns), *ns));
        let found = table.in_order().iter().map(|gap| gap.end - gap.start).collect();
        (table, found)
    }

    #[test]
    fn a_gap_comes_back_as_it_was() {
        let mut table = LongGaps::new(2);
        let long = gap(7, LONG_NS);
        table.keep(gap(1, LONG_NS - 1), LONG_NS - 1);
        table.keep(long, LONG_NS);
        assert_eq!(table.in_order(), [long]);
        assert_eq!((table.lost(), table.complete_from_ns()), (0, LONG_NS));
        assert_eq!(size_of::<LongGapSlot>(), 32);
    }

    /// Throttlings of 50 ms stay, however many gaps of a millisecond come before and after.
    #[test]
    fn the_longest_stay() {
        let mut lengths = Vec::new();
        for _ in 0..10 {
            lengths.extend([1_000_000; 50]);
            lengths.push(50_000_000);
        }
        let (table, found) = record_all(&lengths, 16);
        assert_eq!(found.iter().filter(|ns| **ns == 50_000_000).count(), 10);
        assert_eq!((found.len(), table.lost()), (16, 494));
        assert_eq!(table.complete_from_ns(), 1 << 20, "from a mebinanosecond on none is missing");
    }

    /// Against a sorted list: what is kept of a random sequence is as long as what is not.
    #[test]
    fn against_a_sorted_list() {
        for seed in 1..200u64 {
            let mut dice = hourglass_dice::Dice::new(seed);
            let lengths: Vec<u64> = (0..100).map(|_| LONG_NS << dice.below(12)).collect();
            let (table, mut found) = record_all(&lengths, 30);
            let mut wanted = lengths.clone();
            wanted.sort_unstable_by_key(|ns| std::cmp::Reverse(*ns));
            wanted.truncate(30);
            found.sort_unstable_by_key(|ns| std::cmp::Reverse(*ns));
            assert_eq!(found, wanted, "seed {seed}");
            let complete = lengths.iter().filter(|ns| **ns >= table.complete_from_ns()).count();
            let there = found.iter().filter(|ns| **ns >= table.complete_from_ns()).count();
            assert_eq!((complete, table.lost()), (there, 70), "seed {seed}");
        }
    }

    #[test]
    fn no_room_counts_and_a_day_has_room_for_throttling() {
        let (table, found) = record_all(&[LONG_NS, u64::MAX / 2], 0);
        assert_eq!((found.len(), table.lost()), (0, 2));
        assert!(LongGaps::room_for(Span::from_secs(86_400)) >= 86_400);
        assert_eq!(LongGaps::room_for(Span::ZERO), FEWEST as usize);
    }
}
