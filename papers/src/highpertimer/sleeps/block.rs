//! Blocks of sleeps of one length by one way, with the thesis' four measuring points.

use std::ops::Deref;

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::Timebase;
use hourglass_timer::sleep::{Mechanism, SleepOutcome, Sleeper};

use super::SleepMethod;

/// A way to sleep. Implementations are inlined, so that each returns straight into the loop that reads the clock.
pub(crate) trait Sleeps {
    fn sleep(&mut self, length_ns: u64) -> Option<SleepOutcome>;

    fn usage(&mut self) -> Usage;
}

impl<B: Timebase, C: Deref<Target = Clock<B>>, M: Mechanism> Sleeps for Sleeper<C, M> {
    #[inline(always)]
    fn sleep(&mut self, length_ns: u64) -> Option<SleepOutcome> {
        Some(self.sleep_ns(length_ns))
    }

    fn usage(&mut self) -> Usage {
        let wall_ns = self.now_ns();
        let mechanism = self.mechanism();
        Usage {
            cpu_ns: mechanism.cpu_time_ns(),
            wall_ns,
            preemptions: mechanism.preemptions(),
            split: None,
        }
    }
}

/// The same behind a call (Table 5.7).
#[derive(Debug)]
pub(crate) struct OutOfLineSleep<S>(pub(crate) S);

impl<S: Sleeps> Sleeps for OutOfLineSleep<S> {
    #[inline(never)]
    fn sleep(&mut self, length_ns: u64) -> Option<SleepOutcome> {
        self.0.sleep(length_ns)
    }

    fn usage(&mut self) -> Usage {
        self.0.usage()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// By the thread's CPU clock, ns.
    pub(crate) cpu_ns: u64,
    pub(crate) wall_ns: u64,
    pub(crate) preemptions: u64,
    /// In user and in system mode, ns, where that is reported.
    pub(crate) split: Option<(u64, u64)>,
}

impl Usage {
    pub(super) fn since(self, before: Usage) -> Usage {
        let split = self.split.zip(before.split);
        Usage {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            wall_ns: self.wall_ns.saturating_sub(before.wall_ns),
            preemptions: self.preemptions.saturating_sub(before.preemptions),
            split: split
                .map(|(now, then)| (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1))),
        }
    }

    pub(super) fn and(self, more: Usage) -> Usage {
        let split = match (self.split, more.split) {
            (Some(a), Some(b)) => Some((a.0.saturating_add(b.0), a.1.saturating_add(b.1))),
            (one, other) => one.or(other),
        };
        Usage {
            cpu_ns: self.cpu_ns.saturating_add(more.cpu_ns),
            wall_ns: self.wall_ns.saturating_add(more.wall_ns),
            preemptions: self.preemptions.saturating_add(more.preemptions),
            split,
        }
    }
}

/// One sleep by the measuring points of the thesis' Figure 5.7: T1 before the call, T2 once the
/// deadline is computed, T3 the reading that ends the sleep, T4 after the call. Times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// T4 - T1 less the length: the miss as a user has it.
    pub(crate) miss: i64,
    pub(crate) parts: Option<MissParts>,
}

/// Parts of a miss, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissParts {
    /// T2 - T1.
    pub(crate) entry: i64,
    /// T3 - T2 less the length.
    pub(crate) inside: i64,
    /// T4 - T3.
    pub(crate) exit: i64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub(crate) samples: Vec<Sample>,
    pub(crate) usage: Usage,
}

pub(crate) trait BlockSleeper {
    fn block(&mut self, way: SleepMethod, length_ns: u64, times: usize) -> Result<Block, String>;
}

#[inline(always)]
pub(crate) fn block<B: Timebase>(
    clock: &Clock<B>,
    sleeper: &mut impl Sleeps,
    length_ns: u64,
    times: usize,
) -> Block {
    let mut samples = Vec::with_capacity(times);
    let before = sleeper.usage();
    for _ in 0..times {
        let first = clock.now_ordered();
        let slept = sleeper.sleep(length_ns);
        let fourth = clock.now_ordered();
        samples.push(sample(first, slept, fourth, length_ns));
    }
    let usage = sleeper.usage().since(before);
    Block { samples, usage }
}

fn sample(first: u64, slept: Option<SleepOutcome>, fourth: u64, length_ns: u64) -> Sample {
    let length = signed(length_ns);
    let apart = |later: u64, earlier: u64| signed(later).saturating_sub(signed(earlier));
    let parts = slept.map(|slept| {
        // The deadline is a reading of the clock and the length.
        let second = slept.deadline_ns.saturating_sub(length_ns);
        MissParts {
            entry: apart(second, first),
            inside: apart(slept.woke_ns, slept.deadline_ns),
            exit: apart(fourth, slept.woke_ns),
        }
    });
    Sample { miss: apart(fourth, first).saturating_sub(length), parts }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
