//! The last part of a sleep: looking at the clock until it is time.

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::Timebase;

use super::interrupt::Interrupt;
use super::mechanism::Mechanism;

/// A spin that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spun {
    /// The reading that ended it, ns.
    pub(super) ended_ns: u64,
    pub(super) interrupted: bool,
    /// The longest time between two readings, ns.
    pub(super) longest_step_ns: u64,
    /// The time between the last two, ns.
    pub(super) last_step_ns: u64,
}

/// Spins until `read` is at the deadline or the word is set. `read` gives the time, and what counts
/// against the deadline if that is another one.
#[inline]
pub(super) fn spin<B: Timebase, M: Mechanism>(
    clock: &Clock<B>,
    mechanism: &mut M,
    word: &Interrupt,
    read: impl Fn(&Clock<B>) -> (u64, Option<u64>),
    from: u64,
    deadline: u64,
) -> Spun {
    let (mut last, mut longest_step_ns) = (from, 0);
    loop {
        let (now, counts) = read(clock);
        let last_step_ns = now.saturating_sub(last);
        longest_step_ns = last_step_ns.max(longest_step_ns);
        let ended =
            |interrupted| Spun { ended_ns: now, interrupted, longest_step_ns, last_step_ns };
        let counts = counts.unwrap_or(now);
        if counts >= deadline {
            return ended(false);
        }
        if word.is_set() {
            return ended(true);
        }
        last = now;
        mechanism.relax(deadline - counts);
    }
}
