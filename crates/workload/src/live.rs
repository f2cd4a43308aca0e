//! Progress of a run, for an observer while it lasts.
//!
//! Owns: a few lines of memory a thread, which that thread alone writes. Must not: make it wait, or
//! be a result: counts are read one by one, so that they may be one apart from each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use hourglass_trace::{CounterDeltas, Evidence};

/// Places of the histogram: place N has what takes less than 2^N ns and not less than half of that, the last
/// one all that is longer (4.6 min).
pub const OCTAVES: usize = 40;

fn octave(ns: u64) -> usize {
    let place = u64::BITS - ns.leading_zeros();
    (place as usize).min(OCTAVES - 1)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorstEvent {
    /// Latency of a wake-up, or length of a gap, ns.
    pub ns: u64,
    /// When it was over, ns of `CLOCK_MONOTONIC`.
    pub end_ns: u64,
    /// CPU on which the thread ran before.
    pub cpu: u32,
    /// What the thread found out about a gap; none of a wake-up.
    pub evidence: Evidence,
}

/// A [`WorstEvent`] that another thread may read while it is written: an odd version is half-written.
#[derive(Debug, Default)]
struct WorstWords {
    version: AtomicU32,
    cpu: AtomicU32,
    ns: AtomicU64,
    over_ns: AtomicU64,
    evidence: AtomicU32,
}

/// How often a reader looks again that found it half-written.
const LOOKS: usize = 8;

impl WorstWords {
    /// Writes without waiting for a reader. Only the thread itself calls this.
    fn write(&self, worst: WorstEvent) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.cpu.store(worst.cpu, Ordering::Relaxed);
        self.ns.store(worst.ns, Ordering::Relaxed);
        self.over_ns.store(worst.end_ns, Ordering::Relaxed);
        self.evidence.store(packed(worst.evidence), Ordering::Relaxed);
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// `None` before there was one, and where it is written at this very moment.
    fn read(&self) -> Option<WorstEvent> {
        for _ in 0..LOOKS {
            let before = self.version.load(Ordering::Acquire);
            if before == 0 {
                return None;
            }
            let worst = WorstEvent {
                cpu: self.cpu.load(Ordering::Relaxed),
                ns: self.ns.load(Ordering::Relaxed),
                end_ns: self.over_ns.load(Ordering::Relaxed),
                evidence: unpacked(self.evidence.load(Ordering::Relaxed)),
            };
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && before == self.version.load(Ordering::Relaxed) {
                return Some(worst);
            }
        }
        None
    }
}

/// In the lowest byte what is known, in the others the counts.
fn packed(evidence: Evidence) -> u32 {
    let cleared = evidence.cleared.map_or(0, |cleared| 1 | u8::from(cleared) << 1);
    let asked = u8::from(evidence.counted.is_some()) << 2;
    let CounterDeltas { involuntary, voluntary, faults } = evidence.counted.unwrap_or_default();
    u32::from_le_bytes([cleared | asked, involuntary, voluntary, faults])
}

fn unpacked(word: u32) -> Evidence {
    let [known, involuntary, voluntary, faults] = word.to_le_bytes();
    Evidence {
        cleared: (known & 1 != 0).then_some(known & 2 != 0),
        counted: (known & 4 != 0).then_some(CounterDeltas { involuntary, voluntary, faults }),
    }
}

/// What a thread has counted so far: wake-ups, or where it measures none, gaps.
#[derive(Debug)]
#[repr(align(128))] // a pair of cache lines, which processors fetch together
pub struct LiveCounters {
    tid: AtomicU32,
    count: AtomicU64,
    lost: AtomicU64,
    last_ns: AtomicU64,
    min_ns: AtomicU64,
    max_ns: AtomicU64,
    total_ns: AtomicU64,
    worst: WorstWords,
    counts: [AtomicU64; OCTAVES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveSnapshot {
    /// The kernel's number of the thread; 0 before it is set up.
    pub tid: u32,
    pub count: u64,
    /// Wake-ups that never took place because an earlier one was too late.
    pub lost: u64,
    pub last_ns: u64,
    /// The least, ns; 0 where there was none.
    pub min_ns: u64,
    pub max_ns: u64,
    pub total_ns: u64,
    /// What is known of the greatest, unless it is noted at this very moment.
    pub worst: Option<WorstEvent>,
    /// How many of each length, by [`OCTAVES`].
    pub counts: [u64; OCTAVES],
}

impl Default for LiveSnapshot {
    fn default() -> LiveSnapshot {
        LiveCounters::default().read()
    }
}

impl Default for LiveCounters {
    fn default() -> LiveCounters {
        LiveCounters {
            tid: AtomicU32::new(0),
            count: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            last_ns: AtomicU64::new(0),
            min_ns: AtomicU64::new(u64::MAX),
            max_ns: AtomicU64::new(0),
            total_ns: AtomicU64::new(0),
            worst: WorstWords::default(),
            counts: [const { AtomicU64::new(0) }; OCTAVES],
        }
    }
}

impl LiveCounters {
    pub(crate) fn set_tid(&self, tid: u32) {
        self.tid.store(tid, Ordering::Relaxed);
    }

    /// One more; `worst` tells of it, if none was greater. Only the thread itself calls this: it loads and
    /// stores, without locked instructions.
    #[inline]
    pub(crate) fn record(&self, ns: u64, worst: impl FnOnce() -> WorstEvent) {
        let own = |word: &AtomicU64, change: &dyn Fn(u64) -> u64| {
            word.store(change(word.load(Ordering::Relaxed)), Ordering::Relaxed);
        };
        self.last_ns.store(ns, Ordering::Relaxed);
        if ns > self.max_ns.load(Ordering::Relaxed) {
            self.worst.write(worst());
        }
        if let Some(place) = self.counts.get(octave(ns)) {
            own(place, &|count| count + 1);
        }
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

    pub fn read(&self) -> LiveSnapshot {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let count = read(&self.count);
        LiveSnapshot {
            tid: self.tid.load(Ordering::Relaxed),
            count,
            lost: read(&self.lost),
            last_ns: read(&self.last_ns),
            min_ns: if count == 0 { 0 } else { read(&self.min_ns) },
            max_ns: read(&self.max_ns),
            total_ns: read(&self.total_ns),
            worst: self.worst.read(),
            counts: std::array::from_fn(|place| self.counts.get(place).map_or(0, &read)),
        }
    }
}

#[derive(Clone, Debug)]
pub struct LiveThreads(Arc<[Arc<LiveCounters>]>);

impl LiveThreads {
    pub fn new(threads: usize) -> LiveThreads {
        LiveThreads((0..threads).map(|_| Arc::default()).collect())
    }

    pub(crate) fn slot(&self, thread: u32) -> Option<Arc<LiveCounters>> {
        self.0.get(thread as usize).cloned()
    }

    /// How each thread is doing, in the order of their numbers.
    pub fn read(&self) -> impl Iterator<Item = LiveSnapshot> + '_ {
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
        let evidence = Evidence {
            cleared: Some(true),
            counted: Some(CounterDeltas { involuntary: 3, voluntary: 0, faults: 255 }),
        };
        let worst = |ns| WorstEvent { ns, end_ns: 1_000 + ns, cpu: 5, evidence };
        [30, 10, 20].into_iter().for_each(|ns| slot.record(ns, || worst(ns)));
        slot.lose(4);
        let glances: Vec<LiveSnapshot> = live_threads.read().collect();
        assert_eq!(glances[0], LiveSnapshot::default());
        let mut counts = [0; OCTAVES];
        (counts[4], counts[5]) = (1, 2);
        let wanted = LiveSnapshot {
            tid: 7,
            count: 3,
            lost: 4,
            last_ns: 20,
            min_ns: 10,
            max_ns: 30,
            total_ns: 60,
            worst: Some(worst(30)),
            counts,
        };
        assert_eq!(glances[1], wanted);
        assert!(live_threads.slot(2).is_none());
    }
    #[test]
    fn every_length_has_a_place() {
        let places = [0, 1, 2, 3, 4, 1 << 38, (1 << 39) - 1, 1 << 39, u64::MAX].map(octave);
        assert_eq!(places, [0, 1, 2, 2, 3, 39, 39, 39, 39]);
        for cleared in [None, Some(false), Some(true)] {
            for counted in [None, Some(CounterDeltas { involuntary: 1, voluntary: 2, faults: 3 })] {
                let evidence = Evidence { cleared, counted };
                assert_eq!(unpacked(packed(evidence)), evidence);
            }
        }
    }

    /// The words of one are never seen beside those of another.
    #[test]
    fn a_worst_is_whole() {
        let words = WorstWords::default();
        let worst = |n: u64| WorstEvent {
            ns: n,
            end_ns: n,
            cpu: (n % 1_000) as u32,
            evidence: Evidence::NONE,
        };
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (1..200_000).for_each(|n| words.write(worst(n))));
            while !writer.is_finished() {
                if let Some(seen) = words.read() {
                    assert_eq!(seen, worst(seen.ns));
                }
            }
        });
        assert_eq!(words.read(), Some(worst(199_999)));
    }
}
