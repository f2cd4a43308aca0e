//! All of a kept run at once, for a report or for the formats of others.
//!
//! Memory: 64 bytes for each record and 40 for each event of the kernel, as long as it is shown.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::store::{LatencyError, TraceError};
use hdrhistogram::Histogram;
use hourglass_documents::sites::RecordedSpan;
use hourglass_trace::cause::AttributedGap;
use hourglass_trace::wakeup::{LateWakeUp, TimedWakeUp};
use hourglass_trace::{Interval, JobRecord, KernelEvent};
use thiserror::Error;

use crate::OpenRun;
use crate::causes::{self, Explanation};
use crate::late_wake_ups::{self, LatestWakeUps};

const PS_PER_NS: u64 = 1_000;

const NS_PER_US: u64 = 1_000;

#[derive(Clone, Debug, Default)]
pub struct RunContents {
    /// The trace, in order of start.
    pub intervals: Vec<Interval>,
    /// Gaps that have a cause, in order of thread and then of end.
    pub causes: Vec<AttributedGap>,
    /// Lateness of wake-ups by thread: whole microseconds, ascending, and how many were so late.
    pub latencies_us: BTreeMap<u32, Vec<(u64, u64)>>,
    /// The same in nanoseconds to three digits.
    pub latencies_ns: BTreeMap<u32, Vec<(u64, u64)>>,
    /// The wake-ups of latency tests in order of time, by thread: where there are very many, the latest of
    /// them. Empty where their times were not kept, as in folders of earlier versions.
    pub wake_ups: BTreeMap<u32, Vec<TimedWakeUp>>,
    pub latest: Vec<LateWakeUp>,
    /// The kernel's events, in order of time.
    pub events: Vec<KernelEvent>,
    /// Spans of a program one by one, in order of their starts.
    pub spans: Vec<RecordedSpan>,
    /// Jobs of periodic threads, by thread. Empty where they were not kept one by one, as in folders of earlier versions.
    pub jobs: Vec<JobRecord>,
}

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunContentsError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Latency(#[from] LatencyError),
    #[error(
        "the trace has {found} records, and its manifest has room for {room}: it is not the trace of this \
         run; copy the folder again, or measure again"
    )]
    NotItsOwn { found: u64, room: u64 },
    #[error(
        "the folder has {found} records and events, and all of a run is shown up to {MOST_RECORDS}; draw a \
         part with hourglass render --from TIME --to TIME, or measure with -e {MOST_RECORDS} or a longer --gap"
    )]
    TooMany { found: u64 },
    #[error(
        "{found} records and events take {wanted} MiB of memory, more than there is; draw a part with \
         hourglass render --from TIME --to TIME, or measure with a smaller -e"
    )]
    Memory {
        found: u64,
        /// What they take, MiB.
        wanted: u64,
    },
}

/// Records and kernel events that are held in memory at a time. Ten million make a page of some 250 MB, which no
/// browser shows well.
const MOST_RECORDS: u64 = 10_000_000;

/// Memory for a record or an event until it is shown: itself, its cause, its columns in the page. Bytes.
const BYTES_PER_RECORD: u64 = 250;

impl OpenRun {
    /// Everything that the folder holds. `has_room` says whether the process can get a number of bytes of memory.
    ///
    /// # Errors
    /// A file of the folder is missing or damaged.
    pub fn contents(
        &self,
        has_room: impl Fn(u128) -> bool,
    ) -> Result<RunContents, RunContentsError> {
        self.check_size(has_room)?;
        let events = self.kernel_events()?.collect::<Result<Vec<_>, _>>()?;
        let intervals = self.intervals()?.collect::<Result<Vec<_>, _>>()?;
        let causes = self.causes(&intervals, &events);
        let Latencies { us, ns, wake_ups } = self.latencies()?;
        let manifest = &self.document.manifest;
        let threads = &self.document.result.threads;
        let latest =
            late_wake_ups::latest(threads, &wake_ups, &events, manifest.epoch.monotonic_ns);
        let (latencies_us, latencies_ns) = (us, ns);
        let spans = self.spans()?;
        let jobs = self.jobs()?.take(most_records()).collect::<Result<Vec<_>, _>>()?;
        Ok(RunContents {
            intervals,
            causes,
            latencies_us,
            latencies_ns,
            wake_ups,
            latest,
            events,
            spans,
            jobs,
        })
    }

    /// Latencies of wake-ups in nanoseconds to three digits, ascending, with their counts, by thread.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn latency_counts(&self) -> Result<BTreeMap<u32, Vec<(u64, u64)>>, LatencyError> {
        Ok(self.latencies()?.ns)
    }

    fn spans(&self) -> Result<Vec<RecordedSpan>, RunContentsError> {
        let spans = self.folder.spans()?.into_iter().flatten();
        let most = most_records();
        let spans = spans.take(most.saturating_add(1)).collect::<Result<Vec<_>, _>>()?;
        match spans.len() > most {
            true => Err(RunContentsError::TooMany { found: spans.len() as u64 }),
            false => Ok(spans),
        }
    }

    /// That there is room for everything, before any of it is read.
    /// # Errors
    /// [`RunContentsError`].
    pub fn check_size(&self, has_room: impl Fn(u128) -> bool) -> Result<(), RunContentsError> {
        let room = self.document.manifest.records_capacity;
        let events = self.folder.kernel_events()?.map_or(0, |events| events.rows());
        check_size(self.folder.trace().rows(), room, events, has_room)
    }

    fn causes(&self, intervals: &[Interval], events: &[KernelEvent]) -> Vec<AttributedGap> {
        if self.document.manifest.simulation.is_some() {
            return causes::of_simulation(&self.document, intervals);
        }
        // What is in memory can be read.
        let sound = |interval: &Interval| Ok::<_, Infallible>(*interval);
        let Ok(explanation) = Explanation::new(&self.document, intervals.iter().map(sound));
        let events = events.iter().map(|event| Ok(*event));
        let Ok(gaps) = in_order(explanation.gaps(intervals.iter().map(sound), events));
        gaps
    }

    /// The gaps of the trace with their causes, in order of thread and then of end.
    ///
    /// # Errors
    /// The trace or the kernel's events cannot be read.
    pub fn gaps(&self) -> Result<Vec<AttributedGap>, TraceError> {
        if self.document.manifest.simulation.is_some() {
            let intervals = self.intervals()?.collect::<Result<Vec<_>, _>>()?;
            return Ok(causes::of_simulation(&self.document, &intervals));
        }
        in_order(self.explanation()?.gaps(self.intervals()?, self.kernel_events()?))
    }

    /// Histograms of the threads' latencies in nanoseconds, by the threads' numbers.
    ///
    /// # Errors
    /// The log is missing although the manifest tells of latencies, or is damaged.
    pub fn latency_histograms(&self) -> Result<BTreeMap<u32, Histogram<u64>>, LatencyError> {
        self.folder.latencies()
    }

    /// The wake-ups, by thread. From single latencies where all were kept; else their counts are from the
    /// histogram, whose steps are a thousandth wide.
    fn latencies(&self) -> Result<Latencies, LatencyError> {
        let (mut all, mut histograms) = (Latencies::default(), None);
        let reports = &self.document.result.threads;
        let tested = reports.iter().filter(|thread| thread.latency.is_some()).count();
        for thread in &self.document.result.threads {
            let Some(report) = thread.latency else { continue };
            let mut counts = LatencyHistograms::default();
            let (mut found, mut timed) = (0, LatestWakeUps::of_threads(tested));
            if let Some(single) = self.folder.wake_ups(thread.id)? {
                for one in single {
                    let one = one?;
                    counts.add(one.lateness_ps / PS_PER_NS, 1);
                    found += 1;
                    let late_ns = one.lateness_ps / PS_PER_NS;
                    let at =
                        one.woke_ns.map(|woke_ns| TimedWakeUp { woke_ns, latency_ns: late_ns });
                    at.into_iter().for_each(|at| timed.push(at));
                }
            }
            if found != report.count {
                // The log is read once for all threads.
                let histograms = match &mut histograms {
                    Some(histograms) => histograms,
                    none => none.insert(self.folder.latencies()?),
                };
                counts = histograms.get(&thread.id).map(LatencyHistograms::of).unwrap_or_default();
            }
            all.us.insert(thread.id, counts.us.into_iter().collect());
            all.ns.insert(thread.id, counts.ns.into_iter().collect());
            let timed = timed.finish();
            if !timed.is_empty() {
                all.wake_ups.insert(thread.id, timed);
            }
        }
        Ok(all)
    }
}

fn most_records() -> usize {
    usize::try_from(MOST_RECORDS).unwrap_or(usize::MAX)
}

#[derive(Debug, Default)]
struct Latencies {
    us: BTreeMap<u32, Vec<(u64, u64)>>,
    ns: BTreeMap<u32, Vec<(u64, u64)>>,
    wake_ups: BTreeMap<u32, Vec<TimedWakeUp>>,
}

/// How many wake-ups were how late: in whole microseconds, and in nanoseconds to three digits.
#[derive(Debug, Default)]
struct LatencyHistograms {
    us: BTreeMap<u64, u64>,
    ns: BTreeMap<u64, u64>,
}

impl LatencyHistograms {
    fn add(&mut self, ns: u64, count: u64) {
        *self.us.entry(ns / NS_PER_US).or_default() += count;
        *self.ns.entry(three_digits(ns)).or_default() += count;
    }

    fn of(histogram: &Histogram<u64>) -> LatencyHistograms {
        let mut counts = LatencyHistograms::default();
        for step in histogram.iter_recorded() {
            // The middle of the step, since its bounds are powers of two and seldom whole microseconds.
            let ns = histogram.median_equivalent(step.value_iterated_to());
            counts.add(ns, step.count_since_last_iteration());
        }
        counts
    }
}

fn three_digits(number: u64) -> u64 {
    let digits = number.checked_ilog10().unwrap_or(0);
    let unit = 10_u64.pow(digits.saturating_sub(2));
    number / unit * unit
}

/// Checks that these records, of a run with `room` for records, and these events fit into memory.
fn check_size(
    rows: u64,
    room: u64,
    events: u64,
    has_room: impl Fn(u128) -> bool,
) -> Result<(), RunContentsError> {
    if rows > room {
        return Err(RunContentsError::NotItsOwn { found: rows, room });
    }
    let found = rows.saturating_add(events);
    if found > MOST_RECORDS {
        return Err(RunContentsError::TooMany { found });
    }
    let wanted = found * BYTES_PER_RECORD;
    if !has_room(u128::from(wanted)) {
        return Err(RunContentsError::Memory { found, wanted: wanted >> 20 });
    }
    Ok(())
}

/// Gaps in order of thread and then of end.
///
/// # Errors
/// The first that could not be read.
pub fn in_order<E>(
    gaps: impl Iterator<Item = Result<AttributedGap, E>>,
) -> Result<Vec<AttributedGap>, E> {
    let mut gaps = gaps.collect::<Result<Vec<_>, _>>()?;
    gaps.sort_by_key(|gap| (gap.thread, gap.end_ns));
    Ok(gaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_keeps_its_microseconds() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for ns in [999, 1_000, 1_999, 2_000, 50_000, 50_999] {
            histogram.record(ns).unwrap();
        }
        let counts = LatencyHistograms::of(&histogram);
        let us: Vec<(u64, u64)> = counts.us.into_iter().collect();
        assert_eq!(us, [(0, 1), (1, 2), (2, 1), (50, 2)]);
        let ns: Vec<u64> = counts.ns.into_keys().collect();
        assert_eq!(ns, [999, 1_000, 1_990, 2_000, 50_000, 50_900]);
        let digits = [0, 9, 999, 1_001, 123_456, u64::MAX].map(three_digits);
        assert_eq!(digits, [0, 9, 999, 1_000, 123_000, 18_400_000_000_000_000_000]);
    }

    /// A file of 1 MB with 60 million equal records took `report` 2.8 GB and minutes.
    #[test]
    fn a_trace_that_no_memory_holds_is_refused_before_it_is_read() {
        let check = |rows, room, events| check_size(rows, room, events, |bytes| bytes < 1 << 30);
        assert!(check(300_000, 300_000, 1_000_000).is_ok());
        let text = check(60_000_000, 300_000, 0).unwrap_err().to_string();
        assert!(text.contains("60000000 records, and its manifest has room for 300000"), "{text}");
        for (rows, events) in [(60_000_000, 0), (1, 10_000_000)] {
            let text = check(rows, u64::MAX, events).unwrap_err().to_string();
            assert!(text.contains("up to 10000000"), "{text}");
            assert!(text.contains("--from TIME --to TIME"), "{text}");
        }
        let text = check(6_000_000, 6_000_000, 0).unwrap_err().to_string();
        assert!(text.contains("take 1430 MiB of memory, more than there is"), "{text}");
    }
}
