//! Progress by processor time.
//!
//! Owns: what of it counts. Must not: count more than is proven: beside co-runners, a thread that has a
//! processor may stand still on it.

use super::{ProgressErrors, ProgressSource};
use hourglass_sim::slack::ProgressRate;

/// Processor time counts fully while co-runners stand, and times a proven alpha while they run.
pub struct CpuTime<F> {
    /// Processor time so far, ns; `None` once the thread has ended.
    read: F,
    alpha: ProgressRate,
    /// How long co-runners may still run after they were ordered to stop, ns.
    settle_ns: u64,
    reserved_ns: u64,
    last_ns: Option<u64>,
    /// The counted time of this job, in parts of a nanosecond as alpha has them.
    counted: u128,
    running: bool,
    /// Processor time that still counts times alpha, since co-runners may not stand yet.
    unsettled_ns: u64,
    fell: bool,
    moved: bool,
    begun: bool,
    doubts: ProgressErrors,
}

impl<F: FnMut() -> Option<u64> + Send> CpuTime<F> {
    /// Progress by this clock. `alpha` MUST be proven, or zero; `settle_ns` is the longest time from an order to stop
    /// until no co-runner runs any more.
    #[must_use]
    pub fn new(read: F, alpha: ProgressRate, settle_ns: u64) -> CpuTime<F> {
        CpuTime {
            read,
            alpha,
            settle_ns,
            reserved_ns: 0,
            last_ns: None,
            counted: 0,
            running: true,
            unsettled_ns: 0,
            fell: false,
            moved: false,
            begun: false,
            doubts: ProgressErrors::default(),
        }
    }

    fn account(&mut self) {
        let Some(now) = (self.read)() else { return };
        let last = *self.last_ns.get_or_insert(now);
        self.last_ns = Some(now);
        self.fell |= now < last;
        let used = now.saturating_sub(last);
        self.moved |= used > 0;
        let (part, whole) = self.alpha.parts();
        let slowed = if self.running { used } else { used.min(self.unsettled_ns) };
        self.unsettled_ns -= slowed.min(self.unsettled_ns);
        self.counted += u128::from(slowed) * u128::from(part);
        self.counted += u128::from(used - slowed) * u128::from(whole);
    }
}

impl<F: FnMut() -> Option<u64> + Send> ProgressSource for CpuTime<F> {
    fn name(&self) -> &'static str {
        "cpu_time"
    }

    fn begin(&mut self, reserved_ns: u64) {
        self.account();
        self.doubts.backwards += u64::from(self.begun && self.fell);
        self.doubts.unmoved += u64::from(self.begun && !self.fell && !self.moved);
        (self.begun, self.fell, self.moved) = (true, false, false);
        self.reserved_ns = reserved_ns;
        self.counted = 0;
    }

    fn done_ns(&mut self) -> u64 {
        self.account();
        if self.fell {
            return 0;
        }
        let (_, whole) = self.alpha.parts();
        let done = self.counted / u128::from(whole);
        u64::try_from(done).unwrap_or(u64::MAX).min(self.reserved_ns)
    }

    fn restart(&mut self) {
        self.account();
        self.counted = 0;
    }

    fn co_runners(&mut self, running: bool) {
        if running == self.running {
            return;
        }
        self.account();
        self.running = running;
        self.unsettled_ns = if running { 0 } else { self.settle_ns };
    }

    fn errors(&self) -> ProgressErrors {
        self.doubts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn beside_co_runners_only_what_is_proven_counts() {
        let clock = Arc::new(AtomicU64::new(7_000));
        let read = Arc::clone(&clock);
        let alpha = ProgressRate::new(1, 4).unwrap();
        let mut source = CpuTime::new(move || Some(read.load(Ordering::Relaxed)), alpha, 10);
        let used = |ns| clock.fetch_add(ns, Ordering::Relaxed);
        source.begin(500);
        used(402);
        assert_eq!(source.done_ns(), 100, "a quarter, rounded down");
        source.co_runners(false);
        source.co_runners(false);
        used(4);
        assert_eq!(source.done_ns(), 101, "they may not stand yet: a quarter of 406");
        used(106);
        assert_eq!(source.done_ns(), 203, "a quarter of 412 and 100");
        used(10_000);
        assert_eq!(source.done_ns(), 500);
        source.begin(500);
        assert_eq!(source.done_ns(), 0);
        used(30);
        source.restart();
        assert_eq!(source.done_ns(), 0, "that was before the job began");
        source.co_runners(true);
        used(40);
        assert_eq!(source.done_ns(), 10);
        assert_eq!(source.errors(), ProgressErrors::default());
    }

    #[test]
    fn without_proof_nothing_counts_until_they_stand() {
        let clock = Arc::new(AtomicU64::new(0));
        let read = Arc::clone(&clock);
        let mut source =
            CpuTime::new(move || Some(read.load(Ordering::Relaxed)), ProgressRate::ZERO, 0);
        source.begin(100);
        clock.store(90, Ordering::Relaxed);
        assert_eq!(source.done_ns(), 0);
        source.co_runners(false);
        clock.store(95, Ordering::Relaxed);
        assert_eq!(source.done_ns(), 5);
        clock.store(94, Ordering::Relaxed);
        assert_eq!(source.done_ns(), 0, "a clock that falls is not believed");
        source.begin(100);
        source.begin(100);
        assert_eq!(source.errors(), ProgressErrors { backwards: 1, unmoved: 1 });
    }
}
