//! The memory that a recorder writes into, allocated and touched before anything is measured.

use hdrhistogram::Histogram;
use hourglass_time::Span;

use crate::buckets::{Buckets, Steps};
use crate::buffer::{Record, TraceBuffer};
use crate::guard::LimitCounts;
use crate::jobs::{JobLog, JobTerms};
use crate::long_gaps::LongGaps;
use crate::marker::Marker;
use crate::timeline::Timeline;
use crate::wake_times::WakeTimes;

/// Lateness of wake-ups: every sample in the histogram, the first ones also one by one.
#[derive(Debug)]
pub struct LatencyRecorder {
    pub histogram: Histogram<u64>,
    room: Vec<u64>,
    taken: usize,
    ring: bool,
    /// The least and the greatest, ticks.
    extremes: (u64, u64),
    /// Samples that are in the histogram only.
    pub dropped: u64,
    pub total_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    pub last_ns: u64,
    /// Equal steps, where they were wanted.
    pub buckets: Option<Buckets>,
    pub excess: LimitCounts,
}

impl LatencyRecorder {
    /// Room for `capacity` single samples, its pages written; in a ring the newest are kept.
    pub fn new(capacity: usize, ring: bool) -> LatencyRecorder {
        LatencyRecorder {
            histogram: histogram(),
            room: vec![u64::MAX; capacity],
            taken: 0,
            ring,
            extremes: (u64::MAX, 0),
            dropped: 0,
            total_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            last_ns: 0,
            buckets: None,
            excess: LimitCounts::default(),
        }
    }

    pub fn record(&mut self, ticks: u64, ns: u64) {
        self.histogram.saturating_record(ns);
        self.total_ns = self.total_ns.saturating_add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.last_ns = ns;
        self.extremes = (self.extremes.0.min(ticks), self.extremes.1.max(ticks));
        if let Some(buckets) = &mut self.buckets {
            buckets.record(ns);
        }
        self.excess.record(ns);
        let place = match self.room.len() {
            capacity if self.ring && capacity > 0 => self.taken % capacity,
            _ => self.taken,
        };
        self.dropped += u64::from(self.taken >= self.room.len());
        if let Some(place) = self.room.get_mut(place) {
            *place = ticks;
        }
        self.taken += 1;
    }

    /// Converts the least and the greatest by the rate that was measured over the whole run, as
    /// single samples are: by the first rate, an extreme of 4 ms was 1 ns off its own sample.
    pub(crate) fn settle(&mut self, timeline: &Timeline) {
        if self.taken > 0 {
            let (least, greatest) = self.extremes;
            (self.min_ns, self.max_ns) = (timeline.ns_in(least), timeline.ns_in(greatest));
        }
    }

    /// Single samples in ticks, in order.
    pub fn samples(&self) -> impl Iterator<Item = u64> + '_ {
        let stored = self.taken.min(self.room.len());
        let oldest = if self.ring && self.taken > stored { self.taken % stored.max(1) } else { 0 };
        let (newer, older) = self.room[..stored].split_at(oldest);
        older.iter().chain(newer).copied()
    }

    pub fn capacity(&self) -> usize {
        self.room.len()
    }

    fn room(&self) -> &[u64] {
        &self.room
    }
}

/// Three digits from 1 ns to an hour; never resizes, so that recording never allocates.
fn histogram() -> Histogram<u64> {
    const HOUR_NS: u64 = 3_600_000_000_000;
    // The bounds are constants that the constructor accepts; the alternative has the same digits
    // and would grow, which is better than a panic.
    let mut histogram = Histogram::new_with_bounds(1, HOUR_NS, 3)
        .or_else(|_| Histogram::new(3))
        .unwrap_or_else(|_| unreachable!("three digits are valid"));
    // Writes every count, so that no page of them is touched for the first time while measuring.
    histogram.reset();
    histogram
}

#[derive(Debug)]
pub struct Gaps {
    pub histogram: Histogram<u64>,
    pub total_ticks: u64,
    pub longest_ticks: u64,
    /// Equal steps, where they were wanted and no wake-ups are measured.
    pub buckets: Option<Buckets>,
    pub excess: LimitCounts,
}

impl Gaps {
    fn new() -> Gaps {
        Gaps {
            histogram: histogram(),
            total_ticks: 0,
            longest_ticks: 0,
            buckets: None,
            excess: LimitCounts::default(),
        }
    }

    pub(crate) fn record(&mut self, ticks: u64, ns: u64) {
        self.histogram.saturating_record(ns);
        self.total_ticks = self.total_ticks.saturating_add(ticks);
        self.longest_ticks = self.longest_ticks.max(ticks);
        if let Some(buckets) = &mut self.buckets {
            buckets.record(ns);
        }
        self.excess.record(ns);
    }
}

#[derive(Debug)]
pub struct Memory {
    pub trace: TraceBuffer,
    /// Wake-ups, for models that measure them; those write no trace.
    pub lateness: Option<LatencyRecorder>,
    pub jobs: Option<JobLog>,
    /// When the wake-ups in `lateness` took place, where that is wanted.
    pub wakes: Option<WakeTimes>,
    /// Marks its latest wake-ups, where the kernel is traced.
    pub marker: Option<Marker>,
    /// Long gaps that the trace has no room for.
    pub long_gaps: LongGaps,
    pub(crate) gaps: Gaps,
}

impl Memory {
    /// The buffers that must not be paged out.
    pub(crate) fn lock(&self) -> (usize, std::io::Result<()>) {
        let locked = hourglass_sys::memory::lock(self.trace.memory()).and_then(|()| {
            self.lateness.as_ref().map_or(Ok(()), |l| hourglass_sys::memory::lock(l.room()))
        });
        let locked = locked.and_then(|()| {
            self.jobs.as_ref().map_or(Ok(()), |jobs| hourglass_sys::memory::lock(jobs.memory()))
        });
        let locked = locked.and_then(|()| {
            self.wakes.as_ref().map_or(Ok(()), |w| hourglass_sys::memory::lock(w.room()))
        });
        let (gaps, gaps_locked) = self.long_gaps.lock();
        let locked = locked.and(gaps_locked);
        let jobs = self.jobs.as_ref().map_or(0, |jobs| size_of_val(jobs.memory()));
        let wakes = self.wakes.as_ref().map_or(0, |w| size_of_val(w.room()));
        let samples = self.lateness.as_ref().map_or(0, |l| size_of_val(l.room()));
        (size_of_val(self.trace.memory()) + samples + jobs + wakes + gaps, locked)
    }

    /// Adds room for this many jobs; stores none for 0.
    pub fn with_jobs(self, room: usize, terms: JobTerms) -> Memory {
        Memory { jobs: (room > 0).then(|| JobLog::new(room, terms)), ..self }
    }

    /// Adds room for this many long gaps beside the trace, for a model that writes one.
    pub fn with_long_gaps(self, room: usize) -> Memory {
        let room = if self.lateness.is_none() { room } else { 0 };
        Memory { long_gaps: LongGaps::new(room), ..self }
    }

    /// Adds room for the time of each wake-up whose lateness is kept one by one, if `wanted`.
    pub fn with_wake_times(self, wanted: bool) -> Memory {
        let lateness = self.lateness.as_ref().filter(|_| wanted);
        let wakes = lateness.map(|late| WakeTimes::new(late.capacity(), late.ring));
        Memory { wakes, ..self }
    }

    /// The same, marking the latest wake-ups in the kernel's trace.
    pub fn marking(self, marker: Option<Marker>) -> Memory {
        Memory { marker, ..self }
    }

    /// The same with exact counts of what is beyond `limits`; `period_ns` is that of wake-ups on a
    /// grid.
    pub fn counting(mut self, limits: &[Span], period_ns: Option<u64>) -> Memory {
        self.gaps.excess = LimitCounts::new(limits, None);
        if let Some(lateness) = &mut self.lateness {
            lateness.excess = LimitCounts::new(limits, period_ns);
        }
        self
    }

    /// The same with a histogram of equal steps: of wake-ups, or where none are measured, of gaps.
    pub fn with_steps(mut self, steps: Option<Steps>) -> Memory {
        let buckets = steps.map(Buckets::new);
        match &mut self.lateness {
            Some(lateness) => lateness.buckets = buckets,
            None => self.gaps.buckets = buckets,
        }
        self
    }

    /// Room for `records` intervals, or for a model that measures `latency`, for samples in the
    /// same number of bytes.
    pub fn new(records: usize, ring: bool, latency: bool) -> Memory {
        const SAMPLES_PER_RECORD: usize = size_of::<Record>() / size_of::<u64>();
        let gaps = Gaps::new();
        if latency {
            let samples = records.saturating_mul(SAMPLES_PER_RECORD);
            Memory {
                trace: TraceBuffer::new(0, false),
                lateness: Some(LatencyRecorder::new(samples, ring)),
                jobs: None,
                wakes: None,
                marker: None,
                long_gaps: LongGaps::new(0),
                gaps,
            }
        } else {
            let trace = TraceBuffer::new(records, ring);
            let long_gaps = LongGaps::new(0);
            let (lateness, jobs, wakes, marker) = (None, None, None, None);
            Memory { trace, lateness, jobs, wakes, marker, long_gaps, gaps }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The extremes are those of the samples, by whichever rate the run ends with.
    #[test]
    fn extremes_are_those_of_the_samples() {
        let timeline = crate::simulated::timeline();
        let mut lateness = LatencyRecorder::new(3, false);
        // Converted by the first rate, these were 1 ns off.
        [(3_903_844, 3_903_845), (61_357, 61_356)]
            .iter()
            .for_each(|(late, ns)| lateness.record(*late, *ns));
        lateness.settle(&timeline);
        let samples: Vec<u64> = lateness.samples().map(|ticks| timeline.ns_in(ticks)).collect();
        assert_eq!(samples.iter().min(), Some(&lateness.min_ns));
        assert_eq!(samples.iter().max(), Some(&lateness.max_ns));
    }

    #[test]
    fn single_samples_are_the_first_or_in_a_ring_the_last() {
        for (ring, kept) in [(false, vec![1, 2, 3]), (true, vec![3, 4, 5])] {
            let mut lateness = LatencyRecorder::new(3, ring);
            (1..=5).for_each(|late| lateness.record(late, late));
            assert_eq!(lateness.samples().collect::<Vec<_>>(), kept);
            assert_eq!((lateness.dropped, lateness.histogram.len()), (2, 5));
        }
        let mut none = LatencyRecorder::new(0, true);
        none.record(1, 1);
        assert_eq!((none.samples().count(), none.dropped), (0, 1));
    }
}
