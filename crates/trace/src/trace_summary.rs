//! The CPU time that each thread of a trace received, and the time taken from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::Interval;
use hourglass_documents::document::GapReport;
use hourglass_time::Span;

use crate::{CpuTimeline, GapStatistics};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSummary {
    pub thread: u32,
    pub intervals: u64,
    pub received_ns: u64,
    /// Gaps that were forced on the thread ([`crate::IntervalStart::is_gap`]); its own waits
    /// are not among them, nor is what came before its first interval in the trace.
    pub gaps: GapReport,
    /// How often two intervals in a row ran on different CPUs.
    pub migrations: u64,
    /// CPUs on which it ran, ascending.
    pub cpus_seen: Vec<u32>,
    pub first_start_ns: i64,
    pub last_end_ns: i64,
}

#[derive(Clone, Debug)]
struct Thread {
    intervals: u64,
    received_ns: u64,
    gaps: GapStatistics,
    migrations: u64,
    cpus_seen: BTreeSet<u32>,
    first_start_ns: i64,
    last_end_ns: i64,
    last_cpu: u32,
}

impl Thread {
    fn starting_with(interval: &Interval) -> Thread {
        Thread {
            intervals: 0,
            received_ns: 0,
            gaps: GapStatistics::default(),
            migrations: 0,
            cpus_seen: BTreeSet::new(),
            first_start_ns: interval.start_ns,
            last_end_ns: interval.start_ns,
            last_cpu: interval.cpu,
        }
    }

    fn push(&mut self, interval: &Interval) {
        // Before the first interval in the trace lies nothing that the trace knows the length of,
        // even where its onset says that there was a gap (a ring buffer that kept the newest).
        if self.intervals > 0 {
            if interval.onset.is_gap() {
                let gap = interval.start_ns.saturating_sub(self.last_end_ns);
                self.gaps.push(u64::try_from(gap).unwrap_or(0));
            }
            if interval.cpu != self.last_cpu {
                self.migrations = self.migrations.saturating_add(1);
            }
        }
        if self.intervals == 0 || interval.cpu != self.last_cpu {
            self.cpus_seen.insert(interval.cpu);
        }
        self.intervals = self.intervals.saturating_add(1);
        let length = u64::try_from(interval.duration_ns()).unwrap_or(0);
        self.received_ns = self.received_ns.saturating_add(length);
        self.last_end_ns = interval.end_ns;
        self.last_cpu = interval.cpu;
    }

    fn summary(&self, thread: u32) -> ThreadSummary {
        ThreadSummary {
            thread,
            intervals: self.intervals,
            received_ns: self.received_ns,
            gaps: self.gaps.report(),
            migrations: self.migrations,
            cpus_seen: self.cpus_seen.iter().copied().collect(),
            first_start_ns: self.first_start_ns,
            last_end_ns: self.last_end_ns,
        }
    }
}

/// Reads a trace once and sums it up: what a run folder without a result can still tell.
///
/// Memory: some tens of kilobytes for each thread, nothing for each interval.
#[derive(Clone, Debug, Default)]
pub struct TraceSummary {
    threads: BTreeMap<u32, Thread>,
    timeline: CpuTimeline,
}

impl TraceSummary {
    /// Takes the next interval. Intervals must come in the order of their starts.
    pub fn push(&mut self, interval: &Interval) {
        self.timeline.push(interval);
        self.threads
            .entry(interval.thread)
            .or_insert_with(|| Thread::starting_with(interval))
            .push(interval);
    }

    /// One summary for each thread that has an interval, in the order of their numbers.
    pub fn threads(&self) -> Vec<ThreadSummary> {
        self.threads.iter().map(|(&number, thread)| thread.summary(number)).collect()
    }

    /// Context switches that the trace proves; see [`CpuTimeline::switches`].
    pub fn switches(&self) -> u64 {
        self.timeline.switches()
    }

    /// From the start of the first interval to the end of the last, counted from the run's start;
    /// `None` for a trace without intervals.
    pub fn extent(&self) -> Option<(Span, Span)> {
        let from = self.threads.values().map(|t| t.first_start_ns).min()?;
        let to = self.threads.values().map(|t| t.last_end_ns).max()?;
        Some((Span::from_nanos(from), Span::from_nanos(to)))
    }
}

impl Extend<Interval> for TraceSummary {
    fn extend<T: IntoIterator<Item = Interval>>(&mut self, intervals: T) {
        for interval in intervals {
            self.push(&interval);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntervalStart;

    fn summary(intervals: &[Interval]) -> TraceSummary {
        let mut summary = TraceSummary::default();
        summary.extend(intervals.iter().copied());
        summary
    }

    /// Section 3.2: a periodic thread blocks by its own will at the end of its work, so that only
    /// what interrupts the work is a gap.
    #[test]
    fn a_wait_is_no_gap() {
        let trace = summary(&[
            Interval::new(3, 1, 0, 2_000, IntervalStart::Start),
            Interval::new(3, 1, 2_010, 4_000, IntervalStart::Gap),
            Interval::new(3, 0, 4_300, 5_000, IntervalStart::Migration),
            Interval::new(3, 0, 10_000, 14_000, IntervalStart::Wait),
            Interval::new(3, 0, 14_030, 15_000, IntervalStart::Yield),
        ]);
        let [thread] = trace.threads().try_into().unwrap();
        assert_eq!((thread.thread, thread.intervals), (3, 5));
        assert_eq!(thread.received_ns, 2_000 + 1_990 + 700 + 4_000 + 970);
        assert_eq!((thread.gaps.count, thread.gaps.total_ns), (3, 340));
        assert_eq!((thread.gaps.p50_ns, thread.gaps.max_ns), (30, 300));
        assert_eq!((thread.migrations, thread.cpus_seen.as_slice()), (1, &[0, 1][..]));
        assert_eq!(trace.extent(), Some((Span::ZERO, Span::from_nanos(15_000))));
    }

    /// Section 4, first rule: thread 1 runs, a gap occurs, thread 2 runs.
    #[test]
    fn a_thread_waits_while_another_runs() {
        let trace = summary(&[
            Interval::new(0, 0, 0, 100, IntervalStart::Start),
            Interval::new(1, 0, 102, 200, IntervalStart::Start),
            Interval::new(0, 0, 202, 300, IntervalStart::Gap),
        ]);
        assert_eq!(trace.switches(), 2);
        let threads = trace.threads();
        assert_eq!(threads[0].gaps.max_ns, 102);
        assert_eq!(threads[1].gaps.count, 0);
    }

    /// A ring buffer keeps the newest records: the first one left may begin with a gap.
    #[test]
    fn the_first_record_has_no_gap() {
        let trace = summary(&[Interval::new(0, 0, 500, 600, IntervalStart::Gap)]);
        assert_eq!(trace.threads()[0].gaps, GapReport::default());
    }

    #[test]
    fn an_empty_trace_says_nothing() {
        let trace = summary(&[]);
        assert!(trace.threads().is_empty());
        assert_eq!((trace.switches(), trace.extent()), (0, None));
    }

    #[test]
    fn the_ends_of_the_range_do_not_wrap() {
        let trace = summary(&[
            Interval::new(u32::MAX, 0, i64::MIN, i64::MAX, IntervalStart::Gap),
            Interval::new(u32::MAX, 0, i64::MIN, i64::MIN, IntervalStart::Gap),
            Interval::new(u32::MAX, 0, i64::MAX, i64::MIN, IntervalStart::Gap),
        ]);
        let threads = trace.threads();
        assert_eq!(threads[0].received_ns, i64::MAX as u64);
        assert_eq!(threads[0].gaps.max_ns, i64::MAX as u64);
    }
}
