//! What a task did so far: written by its thread, read by any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use super::histogram::{Distribution, Times, raise};
use super::releases::MissedReleases;

/// A task's counts, on a sequence lock of atomics.
///
/// One thread writes and never waits: it makes the version odd, stores, makes it even. Readers copy
/// and look whether the version is even and as before.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    version: AtomicU64,
    releases: AtomicU64,
    jobs: AtomicU64,
    misses: AtomicU64,
    overruns: AtomicU64,
    late: AtomicU64,
    lost: AtomicU64,
    drift_ns: AtomicU64,
    cost_overruns: AtomicU64,
    cpu_ns: AtomicU64,
    latency: Times,
    response: Times,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct JobRecord {
    pub(super) late: bool,
    pub(super) latency_ns: u64,
    pub(super) response_ns: u64,
    pub(super) cost_ns: u64,
    pub(super) missed: bool,
    pub(super) cost_overrun: bool,
    pub(super) passed: MissedReleases,
}

impl Recorder {
    /// A job begins: one store, since its body waits for it. Outside of the sequence lock: a reader
    /// of the counts of a complete job has seen it begin.
    pub(super) fn begin(&self) {
        raise(&self.releases, 1);
    }

    pub(super) fn complete(&self, done: JobRecord) {
        self.write(|this| {
            raise(&this.jobs, 1);
            raise(&this.late, u64::from(done.late));
            raise(&this.misses, u64::from(done.missed));
            raise(&this.overruns, u64::from(done.passed.overrun));
            raise(&this.lost, done.passed.lost);
            raise(&this.drift_ns, done.passed.moved_ns);
            raise(&this.cost_overruns, u64::from(done.cost_overrun));
            raise(&this.cpu_ns, done.cost_ns);
            this.latency.add(done.latency_ns);
            this.response.add(done.response_ns);
        });
    }

    fn write(&self, store: impl FnOnce(&Recorder)) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // Nothing below is seen without the odd version.
        fence(Ordering::Release);
        store(self);
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// Copies once. Returns whether no write came in between.
    fn try_read(&self, into: &mut Snapshot) -> bool {
        let before = self.version.load(Ordering::Acquire);
        if before % 2 == 1 {
            return false;
        }
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        into.releases = load(&self.releases);
        into.jobs = load(&self.jobs);
        into.misses = load(&self.misses);
        into.overruns = load(&self.overruns);
        into.late = load(&self.late);
        into.lost = load(&self.lost);
        into.drift_ns = load(&self.drift_ns);
        into.cost_overruns = load(&self.cost_overruns);
        into.cpu_ns = load(&self.cpu_ns);
        self.latency.copy_to(&mut into.latency);
        self.response.copy_to(&mut into.response);
        // The loads above are done before the version is looked at again.
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed) == before
    }
}

/// A handle on a task's counts, readable from any thread at any time, also when the task is over.
///
/// Reading takes no lock and never delays the task, which does not know of it. A copy is of one
/// moment: no field is ahead of another.
#[derive(Clone, Debug)]
pub struct TaskStatistics(Arc<Recorder>);

impl TaskStatistics {
    pub(super) fn of(recorder: Arc<Recorder>) -> TaskStatistics {
        TaskStatistics(recorder)
    }

    /// What the task did so far. Allocates some 20 KB; [`TaskStatistics::read_into`] does not.
    #[must_use]
    pub fn read(&self) -> Snapshot {
        let mut snapshot = Snapshot::new();
        self.read_into(&mut snapshot);
        snapshot
    }

    /// Reads into an older copy. A microsecond or two, and again if the task wrote meanwhile;
    /// should the task have lost its CPU in the middle of writing, the reader sleeps until it is
    /// done rather than keep the CPU from it.
    pub fn read_into(&self, into: &mut Snapshot) {
        /// Tries in a row; a writer that has its CPU is done sooner.
        const TRIES: u32 = 64;
        const PAUSE: Duration = Duration::from_micros(50);
        loop {
            for _ in 0..TRIES {
                if self.0.try_read(into) {
                    return;
                }
                std::hint::spin_loop();
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// What a periodic task did up to one moment.
///
/// Releases that were due are `releases + lost`; a job is running while `releases` is one above
/// `jobs` (or its body panicked).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Jobs that were released and begun.
    pub releases: u64,
    /// Jobs that are complete.
    pub jobs: u64,
    /// Jobs that were complete after their deadline.
    pub misses: u64,
    /// Jobs that were complete after the next release.
    pub overruns: u64,
    /// Jobs whose release had passed when the one before was complete: only with
    /// [`super::OverrunPolicy::CatchUp`].
    pub late: u64,
    /// Periods without a job: releases left out, or with [`super::OverrunPolicy::Delay`] whole
    /// periods by which the grid moved.
    pub lost: u64,
    /// By how much the grid moved so far, ns: only with [`super::OverrunPolicy::Delay`].
    pub drift_ns: u64,
    /// Jobs that took more CPU time than the budget.
    pub cost_overruns: u64,
    /// CPU time of all complete jobs, ns.
    pub cpu_ns: u64,
    /// From release to the start of the body, of all complete jobs.
    pub latency: Distribution,
    /// From release to completion, of all complete jobs.
    pub response: Distribution,
}

impl Snapshot {
    /// A copy without any job.
    #[must_use]
    pub fn new() -> Snapshot {
        Snapshot::default()
    }
}

#[cfg(test)]
#[path = "tests/statistics.rs"]
mod tests;
