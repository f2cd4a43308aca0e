//! Fair shares by lag and virtual deadline.
//!
//! Owns: weights, virtual time, who is eligible: earliest eligible virtual deadline first (Stoica and
//! Abdel-Wahab 1995), with the lag kept while a thread sleeps, as the kernel has done since 6.6. One
//! virtual time for all CPUs of a domain; balancing of load among them is ideal. Must not: know other
//! classes.
//!
//! Virtual time counts in 2^-22 ns at nice 0. Its pace is rounded down once a weight, so that what
//! is charged does not depend on when it is accounted.

use super::SimState;

/// Weight at nice 0.
const UNIT: u64 = 1024;

/// The weight of `SCHED_IDLE`.
const LEAST: u64 = 3;

/// Virtual time a ns at nice 0.
const PACE: u64 = 1 << 22;

/// A lag is limited to this number of slices.
const LAG_SLICES: i128 = 2;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    pub(super) weight: u64,
    /// Virtual time a ns.
    pub(super) pace: u64,
    pub(super) time: i128,
    pub(super) due: i128,
    /// How far it was behind when it went.
    pub(super) lag: i128,
    /// The remaining part of its slice, ns.
    pub(super) slice: u64,
    pub(super) counts: bool,
}

impl Share {
    /// The share of a nice value: a step is a factor of 1.25. `None` is `SCHED_IDLE`.
    pub(super) fn new(nice: Option<i8>, slice: u64) -> Share {
        let weight = nice.map_or(LEAST, weight);
        Share { weight, pace: PACE * UNIT / weight, slice, ..Share::default() }
    }
}

/// 1024 / 1.25^nice, to the nearest integer.
fn weight(nice: i8) -> u64 {
    let steps = u32::from(nice.unsigned_abs().min(20));
    // The weight is at most 5^20 x 2^10.
    let (five, four) = (5u64.pow(steps), 4u64.pow(steps));
    let (above, below) = if nice < 0 { (five, four) } else { (four, five) };
    let whole = u128::from(UNIT) * u128::from(above);
    let rounded = (2 * whole + u128::from(below)) / (2 * u128::from(below));
    // 88 818 at most.
    rounded as u64
}

/// The sums that say who is eligible.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    weight: i128,
    weighted: i128,
}

impl Sums {
    /// A thread is eligible that is not ahead of the average.
    pub(super) fn eligible(self, time: i128) -> bool {
        time * self.weight <= self.weighted
    }

    fn average(self) -> Option<i128> {
        (self.weight > 0).then(|| self.weighted.div_euclid(self.weight))
    }
}

impl<const TELL: bool> SimState<TELL> {
    pub(super) fn sums(&self, domain: usize) -> Sums {
        let mut sums = Sums::default();
        for at in &self.domains[domain].rekeyed {
            let share = &self.runners[*at].share;
            if share.counts {
                sums.weight += i128::from(share.weight);
                sums.weighted += share.time * i128::from(share.weight);
            }
        }
        sums
    }

    /// Whether a thread is to have a fair share now: by its class, or as what is left to it by a
    /// soft reserve that is spent.
    pub(super) fn wants_share(&self, at: usize) -> bool {
        let runner = &self.runners[at];
        runner.ready
            && !runner.stopped
            && match runner.server {
                None => runner.is_fair(),
                Some(server) => self.is_spent_and_soft(server),
            }
    }

    /// Lets a thread join or leave the fair ones, after something about it has changed.
    pub(super) fn update_share(&mut self, at: usize) {
        let wanted = self.wants_share(at);
        if wanted == self.runners[at].share.counts {
            return;
        }
        let domain = self.runners[at].domain;
        // The average includes the thread when it leaves, and excludes it when it comes.
        let average = self.sums(domain).average();
        let average = average.unwrap_or(self.domains[domain].virtual_time);
        self.domains[domain].virtual_time = average;
        let slice = self.slice;
        let share = &mut self.runners[at].share;
        let span = i128::from(slice) * i128::from(share.pace);
        if wanted {
            share.time = average - share.lag;
            share.due = share.time + span;
            share.slice = slice;
            self.domains[domain].sharing += 1;
        } else {
            share.lag = (average - share.time).clamp(-LAG_SLICES * span, LAG_SLICES * span);
            self.domains[domain].sharing -= 1;
        }
        self.runners[at].share.counts = wanted;
    }

    pub(super) fn renew_slice(&mut self, at: usize) {
        let slice = self.slice;
        let share = &mut self.runners[at].share;
        share.due = share.time + i128::from(slice) * i128::from(share.pace);
        share.slice = slice;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// sched(7): "each increment in the nice value changes the weight by a factor of about 1.25".
    #[test]
    fn weights_step_by_a_quarter() {
        assert_eq!((weight(0), weight(-1), weight(1)), (1024, 1280, 819));
        assert_eq!((weight(-20), weight(19)), (88_818, 15));
    }
}
