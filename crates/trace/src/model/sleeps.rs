//! Waits of one length among others: a thread that sleeps for a time within its jobs.
//!
//! The kernel's record does not name what a thread waits for. A sleep lasts equally long whatever ran before it, while a timer or a
//! message ends a wait at a time of its own.

use super::activity::{Burst, length};
use super::jobs::spread;

/// Lengths of a sleep differ by this, ns, or by this part of it: the timer's slack and the way into the wait.
const NEAR_NS: u64 = 100_000;
const NEAR_PART: u64 = 32;
/// Sleeps are at least one in so many waits, and as many are none.
const SOME: usize = 5;
/// Around lengths of sleeps there are this many times fewer.
const APART: usize = 4;

/// Lengths of waits, both among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SleepLength {
    from_ns: u64,
    to_ns: u64,
}

impl SleepLength {
    pub(super) fn has(self, burst: &Burst) -> bool {
        waited(burst).is_some_and(|wait| (self.from_ns..=self.to_ns).contains(&wait))
    }
}

/// The length of which many waits are and others are not; `None` without one, or where equal distances of wakings may be the
/// reason.
pub(super) fn find(bursts: &[Burst]) -> Option<SleepLength> {
    let mut waits: Vec<u64> = bursts.iter().filter_map(waited).collect();
    waits.sort_unstable();
    let number = |from: u64, to: u64| {
        let below = |limit: u64| waits.partition_point(|wait| *wait < limit);
        below(to.saturating_add(1)).saturating_sub(below(from))
    };
    let near = |from: u64| NEAR_NS.max(from / NEAR_PART);
    let from_ns =
        *waits.iter().max_by_key(|from| number(**from, from.saturating_add(near(**from))))?;
    let width = near(from_ns);
    let found = SleepLength { from_ns, to_ns: from_ns.saturating_add(width) };
    let inside = number(found.from_ns, found.to_ns);
    let before = match from_ns.checked_sub(width) {
        Some(from) => number(from, from_ns - 1),
        // What is shorter than a wait can be told from nothing.
        None => return None,
    };
    let behind = number(found.to_ns + 1, found.to_ns.saturating_add(width));
    let rest = waits.len() - inside;
    let some = waits.len() / SOME;
    if inside < some.max(1) || rest < some.max(1) || (before + behind) * APART > inside {
        return None;
    }
    let of_sleeps = || bursts.windows(2).filter(|pair| found.has(&pair[1]));
    let distances = spread(of_sleeps().map(|pair| length(pair[0].at_ns, pair[1].at_ns)).collect());
    let lengths = spread(of_sleeps().filter_map(|pair| waited(&pair[1])).collect());
    (distances >= NEAR_NS && lengths.saturating_mul(2) <= distances).then_some(found)
}

fn waited(burst: &Burst) -> Option<u64> {
    Some(length(burst.slept?.0, burst.at_ns))
}
