//! The records of a run on its time line: intervals of all threads in order, long gaps beside them, single
//! latencies.
//!
//! Owns: ticks turned into nanoseconds from the run's start. Must not: judge.

use std::iter;

use crate::experiment::Finished;
use hourglass_runs::run_contents::in_order;
use hourglass_runs::store::{StoredWakeUp, merge_by_start};
use hourglass_time::Span;
use hourglass_trace::CpuTimeline;
use hourglass_trace::cause::AttributedGap;
use hourglass_trace::{Evidence, Interval, IntervalStart, JobRecord};
use hourglass_workload::jobs::{JobLog, JobTiming};
use hourglass_workload::run::{RunMeasurement, ThreadOutcome};
use hourglass_workload::spec::RunSpec;
use hourglass_workload::{LongGap, Timeline};
use std::convert::Infallible;

/// The execution trace, in order of start.
pub(crate) fn merged(measured: &RunMeasurement) -> impl Iterator<Item = Interval> + '_ {
    merge_by_start(measured.threads.iter().map(|thread| of_thread(measured, thread)).collect())
}

fn of_thread<'a>(
    measured: &'a RunMeasurement,
    thread: &'a ThreadOutcome,
) -> impl Iterator<Item = Interval> + use<'a> {
    let timeline = &measured.timeline;
    thread.recorded.trace.iter().map(move |record| Interval {
        thread: thread.id,
        cpu: record.cpu,
        start_ns: timeline.ns_at(record.start),
        end_ns: timeline.ns_at(record.end),
        start_ticks: record.start,
        end_ticks: record.end,
        onset: record.onset(),
        evidence: record.evidence(),
    })
}

pub(crate) fn lateness_ps(
    measured: &RunMeasurement,
) -> impl Iterator<Item = (u32, impl Iterator<Item = u64> + use<'_>)> {
    let rate = measured.timeline.calibration.rate;
    measured.threads.iter().filter_map(move |thread| {
        let samples = thread.recorded.lateness.as_ref()?.samples();
        Some((thread.id, samples.map(move |ticks| rate.ps_floor(ticks))))
    })
}

/// The same, each with the time at which its thread saw it, as far as that was kept.
pub(crate) fn wake_ups(
    measured: &RunMeasurement,
) -> impl Iterator<Item = (u32, impl Iterator<Item = StoredWakeUp> + use<'_>)> {
    let rate = measured.timeline.calibration.rate;
    measured.threads.iter().filter_map(move |thread| {
        let samples = thread.recorded.lateness.as_ref()?.samples();
        // Both have room for as many, and keep the same ones.
        let times = thread.recorded.wakes.iter().flat_map(|wakes| wakes.times()).map(Some);
        let all = samples.zip(times.chain(iter::repeat(None)));
        let wake_up = move |(ticks, woke): (u64, Option<u64>)| StoredWakeUp {
            woke_ns: woke.map(|woke| measured.timeline.ns_at(woke)),
            lateness_ps: rate.ps_floor(ticks),
        };
        Some((thread.id, all.map(wake_up)))
    })
}

pub(crate) fn switches(measured: &RunMeasurement) -> u64 {
    let mut timeline = CpuTimeline::default();
    for interval in merged(measured) {
        timeline.push(&interval);
    }
    timeline.switches()
}

/// Jobs that a thread has room for one by one, if the run asks for none.
pub(crate) const MOST_JOBS: usize = 100_000;

/// The same of a run that is not stored: enough for its latest jobs.
const MOST_JOBS_UNSTORED: usize = 10_000;

/// Lost periods in a row that are kept one by one.
const MOST_LOST: i64 = 10_000;

/// Room for what a run that is `kept` needs: times of wake-ups. Room for the jobs of threads that have deadlines, as
/// many as the run can have; fewer where it is not kept.
pub(crate) fn make_room(spec: &mut RunSpec, trace: bool, kept: bool) {
    spec.wake_times = trace || kept;
    let duration = spec.duration.nanos_or_zero();
    let most = if kept { MOST_JOBS } else { MOST_JOBS_UNSTORED };
    for thread in spec.threads.iter_mut().filter(|thread| thread.jobs == 0) {
        let demand = thread.model.demand();
        let Some(period) = demand.period.filter(|_| demand.jobs.deadline.is_some()) else {
            continue;
        };
        let all = (duration / period.nanos_or_zero().max(1)).saturating_add(2);
        thread.jobs = usize::try_from(all).map_or(most, |all| all.min(most));
    }
}

/// The jobs of all threads, by thread, with those that are lost between them, as far as they were kept.
pub(crate) fn jobs(measured: &RunMeasurement) -> impl Iterator<Item = JobRecord> + '_ {
    measured.threads.iter().flat_map(|thread| {
        let log = thread.recorded.jobs.as_ref();
        log.and_then(|log| jobs_of(&measured.timeline, thread, log)).into_iter().flatten()
    })
}

fn jobs_of<'a>(
    timeline: &'a Timeline,
    thread: &'a ThreadOutcome,
    log: &'a JobLog,
) -> Option<impl Iterator<Item = JobRecord> + use<'a>> {
    let deadline_ns = log.terms.deadline?.nanos();
    let grid_ns = log.terms.grid.map_or(0, Span::nanos);
    let unfinished = log.unfinished.iter().filter(|_| log.dropped == 0).map(|job| (job, false));
    let all = log.jobs().iter().map(|job| (job, true)).chain(unfinished);
    let record = move |release_ns: i64, ran: Option<(&JobTiming, bool)>| JobRecord {
        thread: thread.id,
        release_ns,
        deadline_ns: release_ns.saturating_add(deadline_ns),
        started_ns: ran.map(|(job, _)| timeline.ns_at(job.started)),
        finished_ns: ran.and_then(|(job, ended)| ended.then(|| timeline.ns_at(job.finished))),
        lost: ran.is_none(),
    };
    let lost_from = move |first_ns: i64, count: i64| {
        let release = move |place: i64| first_ns.saturating_add(place.saturating_mul(grid_ns));
        (0..count.clamp(0, MOST_LOST)).map(move |place| record(release(place), None))
    };
    // A loop's clock drifts by less than half of a period.
    let points = move |ns: i64| ns.saturating_add(grid_ns / 2).checked_div(grid_ns).unwrap_or(0);
    let last = all
        .clone()
        .last()
        .map(|(job, ended)| record(timeline.ns_at(job.arrival), Some((job, ended))));
    let periods = WholePeriods::of(timeline, thread, log);
    let behind = last.zip(periods).filter(|_| log.dropped == 0).map(move |(last, periods)| {
        let first_ns = last.release_ns.saturating_add(grid_ns);
        let all = lost_from(first_ns, periods.behind(points(last.release_ns - periods.start_ns)));
        // The first that no earlier job kept from running was released, and did not get the CPU.
        let waits = move |job: &JobRecord| {
            let done_ns = last.finished_ns.unwrap_or(i64::MAX);
            job.release_ns >= done_ns && job.release_ns.saturating_sub(grid_ns) < done_ns
        };
        all.map(move |job| JobRecord { lost: !waits(&job), ..job })
    });
    let mut before = None;
    let all = all.flat_map(move |(job, ended)| {
        let release_ns = timeline.ns_at(job.arrival);
        let off = before.replace(release_ns).map_or(0, |before| release_ns.saturating_sub(before));
        let lost = points(off).saturating_sub(1).min(MOST_LOST);
        let first_ns = release_ns.saturating_sub(lost.max(0).saturating_mul(grid_ns));
        lost_from(first_ns, lost).chain([record(release_ns, Some((job, ended)))])
    });
    let all = all.chain(behind.into_iter().flatten());
    let place = move |job: &JobRecord, start_ns: i64| points(job.release_ns - start_ns);
    Some(all.map(move |job| match periods {
        Some(periods) => periods.agreed(job, place(&job, periods.start_ns)),
        None => job,
    }))
}

/// The periods that the thread counted as over, by the rate that it knew. The rate over the whole run is another one, and
/// may put the last deadline to the other side of the end: what was counted holds.
#[derive(Clone, Copy)]
struct WholePeriods {
    start_ns: i64,
    end_ns: i64,
    count: i64,
}

impl WholePeriods {
    fn of(timeline: &Timeline, thread: &ThreadOutcome, log: &JobLog) -> Option<WholePeriods> {
        let all = thread.recorded.tally.deadlines.filter(|_| log.terms.until_end)?;
        let count = all.hit.saturating_add(all.missed).saturating_add(all.lost);
        Some(WholePeriods {
            start_ns: timeline.ns_at(thread.start),
            end_ns: timeline.ns_at(thread.finish.min(thread.recorded.end)),
            count: i64::try_from(count).unwrap_or(i64::MAX),
        })
    }

    /// How many there are behind the one at `place`, counted from 0.
    fn behind(self, place: i64) -> i64 {
        self.count.saturating_sub(place.saturating_add(1))
    }

    /// A job in the period at `place`: without an end, it is late if that period is over, and else not.
    fn agreed(self, job: JobRecord, place: i64) -> JobRecord {
        let beyond_ns = job.deadline_ns.saturating_sub(self.end_ns);
        let by_ns = match place < self.count {
            true => beyond_ns.max(0),
            false => beyond_ns.saturating_sub(1).min(0),
        };
        if job.finished_ns.is_some() || by_ns == 0 {
            return job;
        }
        JobRecord {
            release_ns: job.release_ns.saturating_sub(by_ns),
            deadline_ns: job.deadline_ns.saturating_sub(by_ns),
            ..job
        }
    }
}

/// The trace with an interval of no length before and behind each long gap that it has no room for.
pub(crate) fn with_long_gaps(measured: &RunMeasurement) -> impl Iterator<Item = Interval> + '_ {
    let of_threads = measured.threads.iter().map(|thread| {
        let edges = edges(&measured.timeline, thread);
        // A ring has lost what was before its records, a full trace lacks what came behind them.
        let begun = of_thread(measured, thread).next().map(|first| first.start_ns);
        let older = edges.iter().filter(|e| begun.is_some_and(|first| e.end_ns <= first)).count();
        let (older, newer) = edges.split_at(older);
        let (older, newer) = (older.to_vec(), newer.to_vec());
        older.into_iter().chain(of_thread(measured, thread)).chain(newer)
    });
    merge_by_start(of_threads.collect())
}

/// What is known of a thread's long gaps that the trace does not have, in order of time.
fn edges(timeline: &Timeline, thread: &ThreadOutcome) -> Vec<Interval> {
    let records = &thread.recorded.trace;
    let (first, last) = (records.iter().next(), records.iter().last());
    let known = |gap: &LongGap| {
        // The records before and behind the gap.
        first.is_some_and(|first| first.start < gap.end)
            && last.is_some_and(|last| gap.end <= last.start)
    };
    let missing = thread.recorded.long_gaps.in_order().into_iter().filter(|gap| !known(gap));
    let edge = |at: u64, cpu: u32, onset: IntervalStart, evidence: Evidence| {
        let ns = timeline.ns_at(at);
        let (start_ns, end_ns, start_ticks, end_ticks) = (ns, ns, at, at);
        Interval {
            thread: thread.id,
            cpu,
            start_ns,
            end_ns,
            start_ticks,
            end_ticks,
            onset,
            evidence,
        }
    };
    let mut edges: Vec<Interval> = Vec::new();
    for gap in missing {
        edges.push(edge(gap.start, gap.cpu_before, IntervalStart::Wait, Evidence::NONE));
        edges.push(edge(gap.end, gap.cpu_after, gap.onset, gap.evidence));
    }
    // What was between the last of them and a ring's first record is not a gap.
    if let (Some(first), Some(before)) = (first, edges.last())
        && before.end_ticks < first.start
    {
        edges.push(edge(first.start, first.cpu, IntervalStart::Wait, Evidence::NONE));
    }
    edges
}
impl Finished {
    /// The gaps with their causes, also long ones that the trace had no room for, in order of thread and
    /// then of end.
    pub fn gaps(&self) -> Vec<AttributedGap> {
        let intervals = self.intervals_and_long_gaps().map(Ok::<_, Infallible>);
        let Ok(gaps) = in_order(self.explanation().gaps(intervals, self.kernel_events().map(Ok)));
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bug: a run of 60 ms whose last job did not get the CPU had one more missed deadline than jobs that missed it,
    /// as the rate over the whole run put its end some ns before 30 periods of 2 ms.
    #[test]
    fn what_the_thread_counted_as_over_is_over() {
        const PERIOD_NS: i64 = 2_000_000;
        let periods = WholePeriods { start_ns: 0, end_ns: 59_999_983, count: 30 };
        let job = |place: i64, finished_ns| JobRecord {
            thread: 0,
            release_ns: place * PERIOD_NS,
            deadline_ns: (place + 1) * PERIOD_NS,
            started_ns: None,
            finished_ns,
            lost: false,
        };
        assert_eq!([28, 29, 30].map(|place| periods.behind(place)), [1, 0, -1]);
        let last = periods.agreed(job(29, None), 29);
        assert!(last.is_missed(periods.end_ns), "{last:?}");
        assert_eq!(last.deadline_ns - last.release_ns, PERIOD_NS);
        // One that is still to come, by the same count, has not missed its deadline yet.
        let earlier = WholePeriods { end_ns: 60_000_021, count: 29, ..periods };
        assert!(!earlier.agreed(job(29, None), 29).is_missed(earlier.end_ns));
        let done = job(29, Some(59_000_000));
        assert_eq!(periods.agreed(done, 29), done);
    }
}
