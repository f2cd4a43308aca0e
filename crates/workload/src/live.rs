//! How a run goes, for somebody who looks while it does.
//!
//! Owns: one line of memory a thread, which that thread alone writes. Must not: make it wait, or
//! be a result: counts are read one by one, so that they may be one apart from each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What a thread has counted so far: wake-ups, or where it measures none, gaps.
#[derive(Debug)]
#[repr(align(128))] // a pair of cache lines, which processors fetch together
pub struct Live {
    tid: AtomicU32,
    count: AtomicU64,
    lost: AtomicU64,
    last_ns: AtomicU64,
    min_ns: AtomicU64,
    max_ns: AtomicU64,
    total_ns: AtomicU64,
}

/// What [`Live::read`] finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// The kernel's number of the thread; 0 before it is set up.
    pub tid: u32,
    /// Wake-ups or gaps.
    pub count: u64,
    /// Wake-ups that never took place because an earlier one was too late.
    pub lost: u64,
    /// The last one, ns.
    pub last_ns: u64,
    /// The least, ns; 0 where there was none.
    pub min_ns: u64,
    /// The greatest, ns.
    pub max_ns: u64,
    /// Sum, ns.
    pub total_ns: u64,
}

impl Default for Live {
    fn default() -> Live {
        Live {
            tid: AtomicU32::new(0),
            count: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            last_ns: AtomicU64::new(0),
            min_ns: AtomicU64::new(u64::MAX),
            max_ns: AtomicU64::new(0),
            total_ns: AtomicU64::new(0),
        }
    }
}

impl Live {
    pub(crate) fn set_tid(&self, tid: u32) {
        self.tid.store(tid, Ordering::Relaxed);
    }

    /// One more. Only the thread itself calls this: it loads and stores, without locked
    /// instructions.
    #[inline]
    pub(crate) fn record(&self, ns: u64) {
        let own = |word: &AtomicU64, change: &dyn Fn(u64) -> u64| {
            word.store(change(word.load(Ordering::Relaxed)), Ordering::Relaxed);
        };
        self.last_ns.store(ns, Ordering::Relaxed);
        own(&self.min_ns, &|least| least.min(ns));
        own(&self.max_ns, &|most| most.max(ns));
        own(&self.total_ns, &|sum| sum.saturating_add(ns));
        own(&self.count, &|count| count + 1);
    }

    #[inline]
    pub(crate) fn lose(&self, count: u64) {
        let lost = self.lost.load(Ordering::Relaxed);
        self.lost.store(lost.saturating_add(count), Ordering::Relaxed);
    }

    /// What was counted so far.
    #[must_use]
    pub fn read(&self) -> Glance {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let count = read(&self.count);
        Glance {
            tid: self.tid.load(Ordering::Relaxed),
            count,
            lost: read(&self.lost),
            last_ns: read(&self.last_ns),
            min_ns: if count == 0 { 0 } else { read(&self.min_ns) },
            max_ns: read(&self.max_ns),
            total_ns: read(&self.total_ns),
        }
    }
}

/// All threads of a run, by their numbers.
#[derive(Clone, Debug)]
pub struct LiveThreads(Arc<[Arc<Live>]>);

impl LiveThreads {
    /// A place for each of so many threads.
    #[must_use]
    pub fn new(threads: usize) -> LiveThreads {
        LiveThreads((0..threads).map(|_| Arc::default()).collect())
    }

    pub(crate) fn slot(&self, thread: u32) -> Option<Arc<Live>> {
        self.0.get(thread as usize).cloned()
    }

    /// How each thread is doing, in the order of their numbers.
    pub fn read(&self) -> impl Iterator<Item = Glance> + '_ {
        self.0.iter().map(|live| live.read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glance_shows_what_was_counted() {
        let live_threads = LiveThreads::new(2);
        let slot = live_threads.slot(1).unwrap();
        slot.set_tid(7);
        [30, 10, 20].into_iter().for_each(|ns| slot.record(ns));
        slot.lose(4);
        let glances: Vec<Glance> = live_threads.read().collect();
        assert_eq!(glances[0], Glance::default());
        let wanted =
            Glance { tid: 7, count: 3, lost: 4, last_ns: 20, min_ns: 10, max_ns: 30, total_ns: 60 };
        assert_eq!(glances[1], wanted);
        assert!(live_threads.slot(2).is_none());
    }
}
