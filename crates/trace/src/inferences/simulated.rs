//! Traces whose answers are known.

use crate::{Interval, IntervalStart};

/// Threads that take turns on CPU 0, with an interrupt of 1 µs in the middle of every tenth turn.
pub(super) struct TurnTrace {
    pub(super) threads: u32,
    pub(super) turn_ns: i64,
    pub(super) cost_ns: i64,
    pub(super) turns: u32,
}

impl TurnTrace {
    pub(super) fn records(&self, onset: IntervalStart) -> Vec<Interval> {
        let mut records = Vec::new();
        let mut now = 0;
        for turn in 0..self.turns {
            let thread = turn % self.threads;
            let first = if turn < self.threads { IntervalStart::Start } else { onset };
            let (end, middle) = (now + self.turn_ns, now + self.turn_ns / 2);
            if turn % 10 == 9 {
                records.push(Interval::new(thread, 0, now, middle, first));
                records.push(Interval::new(thread, 0, middle + 1_000, end, IntervalStart::Gap));
            } else {
                records.push(Interval::new(thread, 0, now, end, first));
            }
            now = end + self.cost_ns;
        }
        records
    }
}
