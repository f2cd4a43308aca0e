//! What the threads of a set share: locks, events, barriers, timers, counts of finished jobs.
//!
//! Owns: their words. Must not: wait on them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hourglass_sys::futex;

use super::lock::Lock;

#[derive(Debug, Default)]
pub(super) struct ReplayShared {
    pub(super) locks: Vec<Lock>,
    pub(super) events: Vec<Event>,
    pub(super) semaphores: Vec<Semaphore>,
    pub(super) barriers: Vec<Barrier>,
    pub(super) timers: Vec<Timer>,
    pub(super) done: Vec<JobCounter>,
    pub(super) forks: Vec<JobCounter>,
}

/// A condition, or the name under which threads suspend themselves.
#[derive(Debug, Default)]
pub(super) struct Event {
    pub(super) times: AtomicU32,
    /// When the job arrived, on the counter, that signalled it last.
    pub(super) arrival: AtomicU64,
}

impl Event {
    /// Wakes at most `most` waiting threads. `arrival` is that of the job that does so.
    pub(super) fn signal(&self, arrival: u64, most: u32) {
        self.arrival.store(arrival, Ordering::Relaxed);
        self.times.fetch_add(1, Ordering::Release);
        futex::wake(&self.times, most);
    }
}

#[derive(Debug, Default)]
pub(super) struct Semaphore {
    pub(super) left: AtomicU32,
    /// When the job arrived, on the counter, that added to it last.
    pub(super) arrival: AtomicU64,
}

impl Semaphore {
    /// Adds one. `arrival` is that of the job that does so.
    pub(super) fn post(&self, arrival: u64) {
        self.arrival.store(arrival, Ordering::Relaxed);
        // Posts beyond what the word holds can never be taken, and are not counted.
        let more = |left: u32| left.checked_add(1);
        let _ = self.left.fetch_update(Ordering::Release, Ordering::Relaxed, more);
        futex::wake(&self.left, 1);
    }

    pub(super) fn take(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.left.fetch_update(Ordering::Acquire, Ordering::Relaxed, less).is_ok()
    }
}

#[derive(Debug, Default)]
pub(super) struct Barrier {
    pub(super) parties: u32,
    pub(super) waiting: AtomicU32,
    pub(super) times: AtomicU32,
}

impl Barrier {
    /// Comes to the barrier: `None` if that opens it, else how often it had been passed.
    pub(super) fn arrive(&self) -> Option<u32> {
        // It is not passed before this thread has come, so it cannot change in between.
        let seen = self.times.load(Ordering::Acquire);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 < self.parties {
            return Some(seen);
        }
        self.waiting.store(0, Ordering::Relaxed);
        self.times.fetch_add(1, Ordering::Release);
        futex::wake(&self.times, u32::MAX);
        None
    }
}

/// A timer of phases: when it last fired, ns from the run's start.
#[derive(Debug)]
pub(super) struct Timer(AtomicU64);

/// No run lasts until then.
const NEVER_FIRED: u64 = u64::MAX;

impl Default for Timer {
    fn default() -> Timer {
        Timer(AtomicU64::new(NEVER_FIRED))
    }
}

impl Timer {
    /// The next expiry. A timer that has not fired yet counts from `start_ns`.
    pub(super) fn next(&self, start_ns: u64, period_ns: u64) -> u64 {
        let _ =
            self.0.compare_exchange(NEVER_FIRED, start_ns, Ordering::Relaxed, Ordering::Relaxed);
        self.0.fetch_add(period_ns, Ordering::Relaxed).saturating_add(period_ns)
    }

    pub(super) fn restart(&self, now_ns: u64) {
        self.0.store(now_ns, Ordering::Relaxed);
    }
}

/// How many jobs of a task are done, or how often threads were started.
#[derive(Debug, Default)]
pub(super) struct JobCounter {
    pub(super) jobs: AtomicU32,
    pub(super) is_waited_for: bool,
}

impl JobCounter {
    pub(super) fn of_forks() -> JobCounter {
        JobCounter { is_waited_for: true, ..JobCounter::default() }
    }

    pub(super) fn count(&self) {
        self.jobs.fetch_add(1, Ordering::Release);
        if self.is_waited_for {
            futex::wake(&self.jobs, u32::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_opens_for_the_last() {
        let barrier = Barrier { parties: 3, ..Barrier::default() };
        let turns: Vec<Option<u32>> = (0..6).map(|_| barrier.arrive()).collect();
        assert_eq!(turns, [Some(0), Some(0), None, Some(1), Some(1), None]);
    }

    /// rt-app's tutorial: what is posted before any wait is remembered.
    #[test]
    fn a_semaphore_remembers() {
        let semaphore = Semaphore::default();
        assert!(!semaphore.take());
        semaphore.post(7);
        semaphore.post(9);
        assert_eq!([(); 3].map(|()| semaphore.take()), [true, true, false]);
        assert_eq!(semaphore.arrival.into_inner(), 9);
    }

    /// rt-app's tutorial: an absolute timer catches up, a relative one counts from the late end.
    #[test]
    fn a_timer_counts_from_its_last_expiry() {
        let timer = Timer::default();
        assert_eq!([timer.next(100, 8), timer.next(100, 8)], [108, 116]);
        timer.restart(130);
        assert_eq!(timer.next(100, 8), 138);
    }
}
