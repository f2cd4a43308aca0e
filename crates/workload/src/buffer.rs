//! Where records go while a thread is measured.

use hourglass_trace::{CounterDeltas, Evidence, IntervalStart};

/// An interval on the raw counter: 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// First read of the interval.
    pub start: u64,
    /// Last read of the interval.
    pub end: u64,
    pub cpu: u32,
    /// [`Onset`] code and what is known of the evidence ([`ONSET`] and the bits below).
    what: u8,
    /// [`Counted`], if it was asked.
    involuntary: u8,
    voluntary: u8,
    faults: u8,
}

const _: () = assert!(size_of::<Record>() <= 24, "records of at most 24 bytes");

/// The bits of `what` that hold the [`Onset`] code.
const ONSET: u8 = 0x0f;
/// The critical section was looked at.
const LOOKED: u8 = 0x10;
const CLEARED: u8 = 0x20;
const ASKED: u8 = 0x40;

impl Record {
    /// What an unused place holds. Not all zero, so that making the buffer writes its pages.
    const EMPTY: Record = Record {
        start: 0,
        end: 0,
        cpu: u32::MAX,
        what: 0,
        involuntary: 0,
        voluntary: 0,
        faults: 0,
    };

    pub fn new(start: u64, end: u64, cpu: u32, onset: IntervalStart, evidence: Evidence) -> Record {
        let looked = match evidence.cleared {
            None => 0,
            Some(false) => LOOKED,
            Some(true) => LOOKED | CLEARED,
        };
        let asked = if evidence.counted.is_some() { ASKED } else { 0 };
        let CounterDeltas { involuntary, voluntary, faults } = evidence.counted.unwrap_or_default();
        let what = onset.code() & ONSET | looked | asked;
        Record { start, end, cpu, what, involuntary, voluntary, faults }
    }

    pub fn onset(&self) -> IntervalStart {
        IntervalStart::from_code(self.what & ONSET).unwrap_or(IntervalStart::Gap)
    }

    pub fn evidence(&self) -> Evidence {
        let Record { involuntary, voluntary, faults, .. } = *self;
        let counted = CounterDeltas { involuntary, voluntary, faults };
        Evidence {
            cleared: (self.what & LOOKED != 0).then_some(self.what & CLEARED != 0),
            counted: (self.what & ASKED != 0).then_some(counted),
        }
    }
}

/// A buffer of records that never grows. When it is full it keeps either the oldest or the
/// newest, and counts the others.
#[derive(Debug)]
pub struct TraceBuffer {
    records: Vec<Record>,
    pushed: usize,
    ring: bool,
}

impl TraceBuffer {
    /// A buffer of `capacity` records whose pages have all been written.
    pub fn new(capacity: usize, ring: bool) -> TraceBuffer {
        TraceBuffer { records: vec![Record::EMPTY; capacity], pushed: 0, ring }
    }

    /// The memory that must not be paged out.
    pub fn memory(&self) -> &[Record] {
        &self.records
    }

    pub fn capacity(&self) -> usize {
        self.records.len()
    }

    /// Stores a record if there is room, or in a ring in the place of the oldest.
    #[inline]
    pub fn push(&mut self, record: Record) {
        let place = if self.ring && !self.records.is_empty() {
            self.pushed % self.records.len()
        } else {
            self.pushed
        };
        if let Some(slot) = self.records.get_mut(place) {
            *slot = record;
        }
        self.pushed += 1;
    }

    /// Whether the next record will not be there at the end, or may not: it finds no room, or a ring
    /// makes room again.
    pub fn is_passing(&self) -> bool {
        self.ring || self.pushed >= self.records.len()
    }

    /// Records that were pushed and are not there.
    pub fn dropped(&self) -> u64 {
        self.pushed.saturating_sub(self.records.len()) as u64
    }

    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        let stored = self.pushed.min(self.records.len());
        let oldest = if self.ring { self.pushed.checked_rem(self.records.len()) } else { None };
        let oldest = oldest.filter(|_| self.pushed > stored).unwrap_or(0);
        let (newer, older) = self.records[..stored].split_at(oldest);
        older.iter().chain(newer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(buffer: &TraceBuffer) -> Vec<u64> {
        buffer.iter().map(|record| record.start).collect()
    }

    fn filled(capacity: usize, ring: bool, records: u64) -> TraceBuffer {
        let mut buffer = TraceBuffer::new(capacity, ring);
        for start in 0..records {
            buffer.push(Record::new(start, start, 0, IntervalStart::Gap, Evidence::NONE));
        }
        buffer
    }

    #[test]
    fn onset_and_evidence_come_back() {
        let counted = [
            None,
            Some(CounterDeltas::default()),
            Some(CounterDeltas { involuntary: 1, voluntary: 255, faults: 7 }),
        ];
        for onset in IntervalStart::ALL {
            for cleared in [None, Some(false), Some(true)] {
                for counted in counted {
                    let evidence = Evidence { cleared, counted };
                    let record = Record::new(1, 2, 3, onset, evidence);
                    assert_eq!((record.onset(), record.evidence()), (onset, evidence));
                }
            }
        }
        assert_eq!(size_of::<Record>(), 24);
    }

    #[test]
    fn a_full_buffer_keeps_the_oldest() {
        let buffer = filled(3, false, 5);
        assert_eq!(starts(&buffer), [0, 1, 2]);
        assert_eq!(buffer.dropped(), 2);
    }

    #[test]
    fn a_full_ring_keeps_the_newest_in_order() {
        for (pushed, kept) in
            [(2, vec![0, 1]), (3, vec![0, 1, 2]), (5, vec![2, 3, 4]), (6, vec![3, 4, 5])]
        {
            let buffer = filled(3, true, pushed);
            assert_eq!(starts(&buffer), kept);
            assert_eq!(buffer.dropped(), pushed.saturating_sub(3));
        }
    }

    #[test]
    fn no_room_at_all_counts() {
        for ring in [false, true] {
            let buffer = filled(0, ring, 2);
            assert_eq!(starts(&buffer), [0u64; 0]);
            assert_eq!(buffer.dropped(), 2);
        }
    }
}
