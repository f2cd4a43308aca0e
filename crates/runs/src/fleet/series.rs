//! The histograms of one run.

use std::collections::BTreeMap;
use std::path::Path;

use crate::store::{OpenError, RunFolder};
use hdrhistogram::Histogram;
use hourglass_documents::Cause;
use hourglass_documents::document::{LatencyReport, RUN_SCHEMA, RunDocument};
use hourglass_documents::histogram_steps::{SIGNIFICANT_DIGITS, step_of};
use hourglass_documents::merged::{MergedSeries, Metric};
use hourglass_trace::Interval;

use super::FleetError;
use crate::causes::Explanation;

const PS_PER_NS: u64 = 1_000;

/// A series, and how often values of each step were seen, by the least value of the step.
pub(super) type SeriesHistogram = (MergedSeries, BTreeMap<u64, u64>);

#[derive(Default)]
struct Counter {
    steps: BTreeMap<u64, u64>,
    count: u64,
    total_ns: u64,
    max_ns: u64,
    max_at_ns: Option<i64>,
}

impl Counter {
    fn add(&mut self, ns: u64, at_ns: i64) {
        *self.steps.entry(step_of(ns).0).or_default() += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        if ns > self.max_ns || self.count == 0 {
            (self.max_ns, self.max_at_ns) = (ns, Some(at_ns));
        }
        self.count += 1;
    }
}

#[derive(Default)]
struct ShortGaps {
    longest_ns: u64,
    ends: BTreeMap<u32, i64>,
    gaps: BTreeMap<u32, Counter>,
}

impl ShortGaps {
    fn look_at(&mut self, interval: &Interval) {
        let before = self.ends.insert(interval.thread, interval.end_ns);
        let Some(from_ns) = before.filter(|_| interval.onset.is_gap()) else { return };
        let length_ns = length_ns(from_ns, interval.start_ns);
        if length_ns <= self.longest_ns {
            self.gaps.entry(interval.thread).or_default().add(length_ns, from_ns);
        }
    }
}

fn length_ns(from_ns: i64, to_ns: i64) -> u64 {
    u64::try_from(to_ns.saturating_sub(from_ns)).unwrap_or(0)
}

/// The series of the run in `path`, in order of thread, metric and cause. The folder is gone through; of its
/// records nothing is kept.
pub(super) fn of_folder(path: &Path) -> Result<Vec<SeriesHistogram>, FleetError> {
    let folder = RunFolder::open(path)?;
    let mut manifest = folder.manifest().clone();
    let result = manifest.result.take().ok_or_else(|| OpenError::NoResult(path.to_path_buf()))?;
    let document = RunDocument { schema: RUN_SCHEMA.to_owned(), manifest, result };
    let mut all = gaps(&folder, &document)?;
    let latencies = folder.latencies()?;
    for thread in &document.result.threads {
        if let Some(report) = &thread.latency {
            all.extend(latency(&folder, thread.id, report, latencies.get(&thread.id))?);
        }
    }
    // By name, as the table has them, and not by how causes are numbered here.
    all.sort_by_key(|(series, _)| {
        (series.thread, series.metric, series.cause.map_or("", |cause| cause.name()))
    });
    Ok(all)
}

/// A series for each thread and cause of gaps, and one for those that are too short for a cause.
fn gaps(folder: &RunFolder, document: &RunDocument) -> Result<Vec<SeriesHistogram>, FleetError> {
    let explanation = Explanation::new(document, folder.trace().intervals()?)?;
    let mut short =
        ShortGaps { longest_ns: explanation.facts().reported_ns, ..ShortGaps::default() };
    let intervals = folder.trace().intervals()?.inspect(|interval| {
        if let Ok(interval) = interval {
            short.look_at(interval);
        }
    });
    let events = folder.kernel_events()?.into_iter().flatten();
    let mut counters: BTreeMap<(u32, Option<Cause>), Counter> = BTreeMap::new();
    for gap in explanation.gaps(intervals, events) {
        let gap = gap?;
        let length_ns = length_ns(gap.start_ns, gap.end_ns);
        counters.entry((gap.thread, Some(gap.cause))).or_default().add(length_ns, gap.start_ns);
    }
    let short = short.gaps.into_iter().map(|(thread, counter)| ((thread, None), counter));
    let series = short.chain(counters).map(|((thread, cause), counter)| {
        let series = MergedSeries {
            thread,
            metric: Metric::Gap,
            cause,
            rows: counter.steps.len() as u64,
            count: counter.count,
            total_ns: Some(counter.total_ns),
            max_ns: counter.max_ns,
            max_at_ns: counter.max_at_ns,
        };
        (series, counter.steps)
    });
    Ok(series.collect())
}

/// The series of a thread's wake-ups: all are in its histogram, and the moment of the latest and their sum in the
/// table of single ones, as far as it has all.
fn latency(
    folder: &RunFolder,
    thread: u32,
    report: &LatencyReport,
    histogram: Option<&Histogram<u64>>,
) -> Result<Option<SeriesHistogram>, FleetError> {
    let path = || folder.path().to_path_buf();
    let (found, counted) = (histogram.map_or(0, Histogram::len), report.count);
    if found != counted {
        return Err(FleetError::Latencies { path: path(), thread, found, counted });
    }
    let Some(histogram) = histogram.filter(|_| counted > 0) else { return Ok(None) };
    let (digits, low_ns) = (histogram.sigfig(), histogram.low());
    if u32::from(digits) < SIGNIFICANT_DIGITS || low_ns > 1 {
        return Err(FleetError::Steps { path: path(), thread, digits, low_ns });
    }
    let mut steps: BTreeMap<u64, u64> = BTreeMap::new();
    for step in histogram.iter_recorded() {
        let low = step_of(step.value_iterated_to()).0;
        *steps.entry(low).or_default() += step.count_at_value();
    }
    let mut single = Counter::default();
    for wake_up in folder.wake_ups(thread)?.into_iter().flatten() {
        let wake_up = wake_up?;
        // Those of earlier versions have no moment, which no run has.
        single.add(wake_up.lateness_ps / PS_PER_NS, wake_up.woke_ns.unwrap_or(i64::MIN));
    }
    let all = single.count == counted;
    let at_ns = single.max_at_ns.filter(|at_ns| *at_ns != i64::MIN);
    let series = MergedSeries {
        thread,
        metric: Metric::Latency,
        cause: None,
        rows: steps.len() as u64,
        count: counted,
        total_ns: all.then_some(single.total_ns),
        max_ns: report.max_ns,
        max_at_ns: at_ns.filter(|_| single.max_ns.abs_diff(report.max_ns) <= 1),
    };
    Ok(Some((series, steps)))
}
