//! Random task sets as the literature makes them.
//!
//! Owns: UUniFast (Bini and Buttazzo, RTSJ 2005), log-uniform periods of 10 ms to 1 s (Emberson,
//! Stafford and Davis, WATERS 2010), in nanoseconds. The same seed gives the same sets.
//! Must not: depend on the machine.

use hourglass_sched::{Task, TaskSet};

/// The shortest period, ns.
const SHORTEST: f64 = 10e6;
/// The longest period in shortest ones.
const RANGE: f64 = 100.0;

/// xorshift64*: what is drawn need not be good, only the same everywhere.
pub(crate) struct XorShift(pub(crate) u64);

impl XorShift {
    pub(crate) fn new(seed: u64) -> XorShift {
        XorShift(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Cheap enough to be drawn while a clock runs.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A set of `count` tasks that use about `utilisation`, in rate-monotonic order. Deadlines lie
/// between `shortest_deadline` (a share of the period) and the period.
pub(crate) fn set(
    dice: &mut XorShift,
    count: usize,
    utilisation: f64,
    shortest_deadline: f64,
) -> TaskSet {
    let mut left = utilisation;
    let mut tasks = Vec::with_capacity(count);
    for index in 0..count {
        let others = (count - 1 - index) as f64;
        let rest = if others == 0.0 { 0.0 } else { left * dice.unit().powf(1.0 / others) };
        let share = left - rest;
        left = rest;
        let period = SHORTEST * RANGE.powf(dice.unit());
        let deadline = period * (shortest_deadline + (1.0 - shortest_deadline) * dice.unit());
        // Rounded to whole nanoseconds; no task needs less than one.
        let whole = |value: f64| (value as u64).max(1);
        tasks.extend(Task::new(whole(period * share), whole(period), whole(deadline)));
    }
    tasks.sort_by_key(Task::period);
    TaskSet::in_order(tasks)
}
