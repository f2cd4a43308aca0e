//! The records of each CPU in a row, of all threads.

use std::collections::BTreeMap;

use crate::{Interval, IntervalStart};

/// The time between the end of a CPU's previous record and the start of the next: the last column
/// of the paper's record lines (section 5.1).
///
/// Negative where two records of one CPU overlap, which an honest trace does not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuGap {
    pub ns: i64,
    /// Length on the raw counter, in ticks.
    pub ticks: i64,
}

#[derive(Clone, Copy, Debug)]
struct LastRecord {
    thread: u32,
    end_ns: i64,
    end_ticks: u64,
}

/// Follows every CPU through a trace: how long after its previous record each record began, and
/// how often two threads of the run followed each other.
///
/// Memory: one entry for each CPU.
#[derive(Clone, Debug, Default)]
pub struct CpuTimeline {
    last: BTreeMap<u32, LastRecord>,
    switches: u64,
}

impl CpuTimeline {
    /// Takes the next record and gives the gap before it on its CPU; `None` for the first record
    /// of a CPU. Records must come in the order of their starts.
    pub fn push(&mut self, interval: &Interval) -> Option<CpuGap> {
        let now = LastRecord {
            thread: interval.thread,
            end_ns: interval.end_ns,
            end_ticks: interval.end_ticks,
        };
        // The edge of a gap at an end of the run, where another thread had the CPU.
        let edge = interval.start_ns == interval.end_ns;
        let inside = |last: &LastRecord| last.end_ns > interval.start_ns;
        let within = self.last.get(&interval.cpu).is_some_and(inside);
        if edge && (interval.onset == IntervalStart::Start || within) {
            return None;
        }
        let before = self.last.insert(interval.cpu, now)?;
        if before.thread != interval.thread {
            self.switches = self.switches.saturating_add(1);
        }
        Some(CpuGap {
            ns: interval.start_ns.saturating_sub(before.end_ns),
            ticks: ticks_between(before.end_ticks, interval.start_ticks),
        })
    }

    /// How often a record followed one of a different thread on the same CPU. Each of these is a
    /// context switch that the trace proves (section 4, first rule).
    pub fn switches(&self) -> u64 {
        self.switches
    }
}

/// `to - from` on the counter, held at the ends of the range.
fn ticks_between(from: u64, to: u64) -> i64 {
    if to >= from {
        i64::try_from(to - from).unwrap_or(i64::MAX)
    } else {
        i64::try_from(from - to).map_or(i64::MIN, |ticks| -ticks)
    }
}

/// An adapter over intervals sorted by start that adds to each the gap before it on its CPU.
///
/// Use [`CpuTimeline`] where the intervals come from something that can fail.
#[derive(Clone, Debug)]
pub struct CpuGaps<I> {
    intervals: I,
    timeline: CpuTimeline,
}

impl<I> CpuGaps<I> {
    /// The gaps of `intervals`, which must come in the order of their starts.
    pub fn new<T>(intervals: T) -> CpuGaps<I>
    where
        T: IntoIterator<IntoIter = I, Item = Interval>,
    {
        CpuGaps { intervals: intervals.into_iter(), timeline: CpuTimeline::default() }
    }

    /// The switches among the records yielded so far; see [`CpuTimeline::switches`].
    pub fn switches(&self) -> u64 {
        self.timeline.switches()
    }
}

impl<I: Iterator<Item = Interval>> Iterator for CpuGaps<I> {
    type Item = (Interval, Option<CpuGap>);

    fn next(&mut self) -> Option<Self::Item> {
        let interval = self.intervals.next()?;
        let gap = self.timeline.push(&interval);
        Some((interval, gap))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.intervals.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(thread: u32, cpu: u32, start_ns: i64, end_ns: i64) -> Interval {
        Interval {
            start_ticks: start_ns.unsigned_abs() * 2,
            end_ticks: end_ns.unsigned_abs() * 2,
            ..Interval::new(thread, cpu, start_ns, end_ns, IntervalStart::Gap)
        }
    }

    /// The three record lines of section 5.1: their last columns follow from the others.
    #[test]
    fn the_papers_last_column() {
        let records = [
            interval(0, 0, 442_323_192, 443_222_287),
            interval(1, 0, 443_224_485, 444_123_644),
            interval(9, 0, 444_125_827, 445_024_925),
        ];
        let mut gaps = CpuGaps::new(records);
        assert_eq!(gaps.next().unwrap().1, None);
        assert_eq!(gaps.next().unwrap().1, Some(CpuGap { ns: 2_198, ticks: 4_396 }));
        assert_eq!(gaps.next().unwrap().1.unwrap().ns, 2_183);
        assert!(gaps.next().is_none());
        assert_eq!(gaps.switches(), 2);
    }

    #[test]
    fn each_cpu_has_a_row_of_its_own() {
        let records = [
            interval(0, 0, 0, 10),
            interval(1, 1, 5, 20),
            interval(0, 0, 13, 30),
            interval(0, 1, 31, 40),
        ];
        let mut gaps = CpuGaps::new(records);
        let lengths: Vec<_> = gaps.by_ref().map(|(_, gap)| gap.map(|g| g.ns)).collect();
        assert_eq!(lengths, [None, None, Some(3), Some(11)]);
        assert_eq!(gaps.switches(), 1, "only CPU 1 changed its thread");
    }

    #[test]
    fn the_ends_of_the_range_do_not_wrap() {
        let mut timeline = CpuTimeline::default();
        let mut first = interval(0, u32::MAX, 0, 0);
        first.end_ns = i64::MIN;
        first.end_ticks = u64::MAX;
        let mut second = interval(1, u32::MAX, 0, 0);
        second.start_ns = i64::MAX;
        second.start_ticks = 0;
        assert_eq!(timeline.push(&first), None);
        let gap = timeline.push(&second).unwrap();
        assert_eq!((gap.ns, gap.ticks), (i64::MAX, i64::MIN));
        assert_eq!(ticks_between(0, u64::MAX), i64::MAX);
        assert_eq!(ticks_between(7, 3), -4);
    }
}
