//! How long one iteration of a measuring loop takes, from which GAP follows.

use std::sync::atomic::{AtomicBool, Ordering};

use hourglass_clock::Counter;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::signal;
use hourglass_time::Span;

use crate::recorder::Work;

/// Iterations measured; at 15 to 100 ns each, some milliseconds, so that the loop is seen in more
/// than one mood of the machine.
const ITERATIONS: usize = 100_000;

/// For how long the loop is measured at most, and warmed up before that at most: an iteration that copies
/// megabytes is seen often enough in it. Once begun, a doubled number of iterations is finished, so that it can
/// take twice as long.
const BUDGET_NS: u64 = 100_000_000;

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
    pub fn gap(self) -> u64 {
        self.typical.saturating_mul(2).max(1)
    }
}

/// Measures `work` between reads of `counter`. The first half of the turns warms up caches and
/// is not counted. A signal that asks for the end is heard.
pub(crate) fn measure<C: Counter>(counter: &C, work: &mut impl Work) -> LoopTime {
    let mut turns = Vec::with_capacity(ITERATIONS);
    for _ in 0..2 {
        turns.clear();
        let mut chunks = Chunks::new(BUDGET_NS);
        while let Some(chunk) = chunks.next(ITERATIONS - turns.len()) {
            let mut last = counter.read().ticks;
            for _ in 0..chunk {
                work.step();
                let now = counter.read().ticks;
                turns.push(now.saturating_sub(last));
                last = now;
            }
        }
    }
    turns.sort_unstable();
    let typical = turns.get(turns.len() * 99 / 100).copied().unwrap_or(0);
    LoopTime { typical }
}

/// Turns of the loop between two looks at the time, at most.
const TURNS: usize = 1_000;

/// How many turns of a loop to take between two looks at the time and at signals: at first one, then twice as
/// many each time, so that a loop of slow turns is not held for much longer than it has.
struct Chunks {
    end_ns: u64,
    next: usize,
}

impl Chunks {
    fn new(time_ns: u64) -> Chunks {
        Chunks { end_ns: now_ns(ClockId::Monotonic).saturating_add(time_ns), next: 1 }
    }

    /// How many turns come next, of `left` that are wanted; `None` when the time is over, none is wanted, or
    /// a signal asks for the end. One turn is always taken.
    fn next(&mut self, left: usize) -> Option<usize> {
        let begun = self.next > 1;
        if left == 0 || begun && (now_ns(ClockId::Monotonic) >= self.end_ns || is_stopped()) {
            return None;
        }
        let chunk = self.next.min(left);
        self.next = (self.next * 2).min(TURNS);
        Some(chunk)
    }
}

fn is_stopped() -> bool {
    signal::stop_asked().is_some()
}

/// Runs the loop for a while without recording anything, or until `stop`.
pub(crate) fn spin<C: Counter>(counter: &C, work: &mut impl Work, time: Span, stop: &AtomicBool) {
    let mut chunks = Chunks::new(time.nanos_or_zero());
    while !stop.load(Ordering::Relaxed)
        && let Some(chunk) = chunks.next(usize::MAX)
    {
        for _ in 0..chunk {
            work.step();
            counter.read();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    use hourglass_clock::CounterReading;

    use super::*;

    struct Ticks(Cell<u64>);

    impl Counter for Ticks {
        const NAME: &'static str = "ticks";

        fn read(&self) -> CounterReading {
            self.0.set(self.0.get() + 1);
            CounterReading { ticks: self.0.get(), cpu: 0 }
        }
    }

    struct Slow(u64);

    impl Work for Slow {
        fn step(&mut self) {
            self.0 += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// `-w CPU_MOVE 64` was measured for seven seconds, 4M for a minute: 200,000 turns however long they took.
    #[test]
    fn a_loop_of_slow_turns_is_measured_for_a_bounded_time() {
        let (counter, mut work) = (Ticks(Cell::new(0)), Slow(0));
        let took = |work: &mut Slow| {
            let begun = Instant::now();
            assert_eq!(measure(&counter, work).typical, 1);
            begun.elapsed()
        };
        // On a busy machine a turn may be late; the best of some tries is not.
        let best = (0..3).map(|_| took(&mut work)).min();
        assert!(best.is_some_and(|took| took < Duration::from_secs(2)), "{best:?}");
        assert!(work.0 >= 6, "at least one turn of each half");
    }

    #[test]
    fn a_warm_up_of_slow_turns_ends_in_time() {
        let (counter, stop) = (Ticks(Cell::new(0)), AtomicBool::new(false));
        let spun = |work: &mut Slow| {
            let begun = Instant::now();
            spin(&counter, work, Span::from_millis(20), &stop);
            begun.elapsed()
        };
        let mut work = Slow(0);
        let best = (0..3).map(|_| spun(&mut work)).min();
        assert!(best.is_some_and(|took| took < Duration::from_millis(500)), "{best:?}");
        stop.store(true, Ordering::Relaxed);
        let before = work.0;
        spin(&counter, &mut work, Span::from_secs(3600), &stop);
        assert_eq!(work.0, before);
    }
}
