//! Whether work wanted a CPU and had none, by the counts of its threads.
//!
//! Owns: [`Demand`], sums over samples. Must not: take a sample.
//!
//! The kernel adds a thread's wait to its count when the wait ends. A wait that goes on is known from two samples
//! between which a runnable thread did not get a CPU. Threads of one group also wait for each other: a thread that
//! waited longer than all others ran was denied at least the difference by a thread outside. So the result is never too
//! high.

use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) tid: u32,
    /// Time on a CPU since it began, ns.
    pub(crate) run_ns: u64,
    /// Time in finished waits for a CPU, ns.
    pub(crate) wait_ns: u64,
    pub(crate) slices: u64,
    pub(crate) runnable: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    seen: HashMap<u32, DemandState>,
    last: Option<(u64, u64)>,
    denied_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct DemandState {
    sample: Sample,
    /// Known wait that is not in the thread's count yet, ns.
    pending_ns: u64,
    at_ns: u64,
}

impl Demand {
    /// Takes samples of the threads at `now_ns`, of a group that has used `used_ns` in all. Returns the
    /// time that it was denied since the first observation, ns.
    pub(crate) fn observe(&mut self, now_ns: u64, used_ns: u64, samples: &[Sample]) -> u64 {
        let (last_ns, last_used) = self.last.unwrap_or((now_ns, used_ns));
        let used = used_ns.saturating_sub(last_used);
        let window = now_ns.saturating_sub(last_ns);
        let mut denied = 0;
        for sample in samples {
            let before = self.seen.get(&sample.tid).copied();
            let mut seen = DemandState { sample: *sample, pending_ns: 0, at_ns: now_ns };
            if let Some(before) = before {
                let (waited, pending) = waited(&before, sample, window);
                seen.pending_ns = pending;
                let ran = sample.run_ns.saturating_sub(before.sample.run_ns);
                let by_own = used.saturating_sub(ran);
                denied = denied.max(waited.saturating_sub(by_own));
            }
            self.seen.insert(sample.tid, seen);
        }
        self.seen.retain(|_, seen| seen.at_ns == now_ns);
        self.denied_ns = self.denied_ns.saturating_add(denied.min(window));
        self.last = Some((now_ns, used_ns));
        self.denied_ns
    }
}

/// Time that the thread waited in the window, and the part of it that is not in its count yet.
fn waited(before: &DemandState, now: &Sample, window: u64) -> (u64, u64) {
    let counted = now.wait_ns.saturating_sub(before.sample.wait_ns);
    let stood = now.slices == before.sample.slices && now.run_ns == before.sample.run_ns;
    if stood && now.runnable && before.sample.runnable {
        return (window, before.pending_ns.saturating_add(window));
    }
    // Earlier pending time has now been counted.
    (counted.saturating_sub(before.pending_ns), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(tid: u32, run_ns: u64, wait_ns: u64, slices: u64) -> Sample {
        Sample { tid, run_ns, wait_ns, slices, runnable: true }
    }

    #[test]
    fn a_thread_that_waits_was_denied() {
        let mut demand = Demand::default();
        assert_eq!(demand.observe(0, 0, &[sample(1, 0, 0, 0)]), 0);
        assert_eq!(demand.observe(10, 6, &[sample(1, 6, 4, 1)]), 4);
        // Not on a CPU in the whole window: known before it is counted, and counted once.
        assert_eq!(demand.observe(30, 6, &[sample(1, 6, 4, 1)]), 24);
        assert_eq!(demand.observe(40, 9, &[sample(1, 9, 31, 2)]), 31);
    }

    #[test]
    fn a_sleeping_thread_is_not_denied() {
        let mut demand = Demand::default();
        let asleep = |run_ns| Sample { runnable: false, ..sample(1, run_ns, 0, 1) };
        demand.observe(0, 0, &[asleep(0)]);
        assert_eq!(demand.observe(50, 0, &[asleep(0)]), 0);
        assert_eq!(demand.observe(60, 5, &[asleep(5)]), 0);
    }

    /// Two threads of a group take turns on one CPU: each waits for the other, neither for threads outside.
    #[test]
    fn waits_for_each_other_do_not_count() {
        let mut demand = Demand::default();
        demand.observe(0, 0, &[sample(1, 0, 0, 0), sample(2, 0, 0, 0)]);
        assert_eq!(demand.observe(10, 10, &[sample(1, 5, 5, 3), sample(2, 5, 5, 3)]), 0);
        // Now a stranger takes 4 of the 10.
        assert_eq!(demand.observe(20, 16, &[sample(1, 8, 12, 6), sample(2, 8, 12, 6)]), 4);
    }

    #[test]
    fn a_new_thread_is_not_charged_with_its_past() {
        let mut demand = Demand::default();
        demand.observe(0, 0, &[]);
        assert_eq!(demand.observe(10, 0, &[sample(3, 0, 900, 1)]), 0);
    }
}
