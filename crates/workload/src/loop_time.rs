//! How long one iteration of a measuring loop takes, from which GAP follows.

use std::sync::atomic::{AtomicBool, Ordering};

use hourglass_clock::Counter;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_time::Span;

use crate::recorder::Work;

/// Iterations measured; at 15 to 100 ns each, some milliseconds, so that the loop is seen in more
/// than one mood of the machine.
const ITERATIONS: usize = 100_000;

/// A loop's iterations, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopTime {
    /// The typical iteration: 99 of 100 take no longer. The median would take the loop's own
    /// slow turns (a new page, a late cache line) for gaps.
    pub typical: u64,
}

impl LoopTime {
    /// The threshold above which a difference between two reads counts as a gap: twice the
    /// typical iteration (Hourglass paper, section 3.1).
    #[must_use]
    pub fn gap(self) -> u64 {
        self.typical.saturating_mul(2).max(1)
    }
}

/// Measures `work` between reads of `counter`. The first half of the turns warms up caches and
/// is not counted.
pub(crate) fn measure<C: Counter>(counter: &C, work: &mut impl Work) -> LoopTime {
    let mut turns = Vec::with_capacity(ITERATIONS);
    for _ in 0..2 {
        turns.clear();
        let mut last = counter.read().ticks;
        for _ in 0..ITERATIONS {
            work.step();
            let now = counter.read().ticks;
            turns.push(now.saturating_sub(last));
            last = now;
        }
    }
    turns.sort_unstable();
    let typical = turns.get(ITERATIONS * 99 / 100).copied().unwrap_or(0);
    LoopTime { typical }
}

/// Turns of the loop between two looks at the time.
const TURNS: usize = 1_000;

/// Runs the loop for a while without recording anything, or until `stop`.
pub(crate) fn spin<C: Counter>(counter: &C, work: &mut impl Work, time: Span, stop: &AtomicBool) {
    let end = now_ns(ClockId::Monotonic).saturating_add(time.nanos_or_zero());
    while now_ns(ClockId::Monotonic) < end && !stop.load(Ordering::Relaxed) {
        for _ in 0..TURNS {
            work.step();
            counter.read();
        }
    }
}
