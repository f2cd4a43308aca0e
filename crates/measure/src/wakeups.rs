//! The wake-ups of a run, taken apart by the kernel's events of the same run.
//!
//! Owns: which moments of a run are wake-ups, and the summary of each thread's. Must not: join
//! them with events (`trace` does).

use std::collections::BTreeMap;

use hourglass_documents::wakeup::{WakeUpReport, WakeUpStage};
use hourglass_trace::wakeup::{self, ObservedWakeUp, UnmatchedWakeUp, WakeUp};
use hourglass_trace::{IntervalStart, KernelEvent};
use hourglass_workload::run::{RunMeasurement, ThreadOutcome};

pub(crate) fn of_run(
    measured: &RunMeasurement,
    events: impl Iterator<Item = KernelEvent>,
) -> Vec<WakeUpReport> {
    let mut woke: Vec<ObservedWakeUp> = measured
        .threads
        .iter()
        .flat_map(|thread| {
            times(thread)
                .map(|ticks| ObservedWakeUp { tid: thread.tid, ns: measured.timeline.ns_at(ticks) })
        })
        .collect();
    woke.sort_by_key(|woke| woke.ns);
    let epoch_ns = measured.timeline.epoch.monotonic_ns;
    let threads = measured.threads.iter().map(|thread| (thread.tid, thread.id)).collect();
    reports(wakeup::decompose(events, woke, epoch_ns), &threads)
}

/// When a thread came back from its own waits, on the counter, as far as that was stored.
fn times(thread: &ThreadOutcome) -> impl Iterator<Item = u64> + '_ {
    let waits = thread.recorded.trace.iter().filter(|record| record.onset() == IntervalStart::Wait);
    let samples = thread.recorded.wakes.iter().flat_map(|wakes| wakes.times());
    waits.map(|record| record.start).chain(samples)
}

/// What was joined of each thread, by the threads' numbers; `threads` has these by the kernel's.
fn reports(
    all: impl Iterator<Item = Result<WakeUp, UnmatchedWakeUp>>,
    threads: &BTreeMap<u32, u32>,
) -> Vec<WakeUpReport> {
    let mut found: BTreeMap<u32, (Vec<[i64; 6]>, u64)> = BTreeMap::new();
    for one in all {
        let tid = one.map_or_else(|unjoined| unjoined.tid, |up| up.tid);
        let Some(thread) = threads.get(&tid) else { continue };
        let (joined, unjoined) = found.entry(*thread).or_default();
        match one {
            Ok(up) => joined.push(up.stages_ns()),
            Err(_) => *unjoined += 1,
        }
    }
    let report = |(thread, (joined, unjoined)): (u32, (Vec<[i64; 6]>, u64))| WakeUpReport {
        thread,
        joined: joined.len() as u64,
        unjoined,
        stages: stages(&joined),
    };
    found.into_iter().map(report).collect()
}

fn stages(joined: &[[i64; 6]]) -> Vec<WakeUpStage> {
    let names = WakeUp::STAGES.iter().enumerate();
    names
        .filter_map(|(place, name)| {
            let mut lengths: Vec<i64> =
                joined.iter().filter_map(|stages| stages.get(place).copied()).collect();
            lengths.sort_unstable();
            Some(WakeUpStage {
                stage: (*name).to_owned(),
                min_ns: *lengths.first()?,
                p50_ns: nearest(&lengths, 500)?,
                p99_ns: nearest(&lengths, 990)?,
                p999_ns: nearest(&lengths, 999)?,
                max_ns: *lengths.last()?,
            })
        })
        .collect()
}

/// The least of the sorted `lengths` that `of_a_thousand` of a thousand do not exceed.
fn nearest(lengths: &[i64], of_a_thousand: usize) -> Option<i64> {
    let rank = lengths.len().checked_mul(of_a_thousand)?.div_ceil(1000);
    lengths.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up(tid: u32, total: i64) -> Result<WakeUp, UnmatchedWakeUp> {
        Ok(WakeUp {
            tid,
            expiry_ns: 0,
            interrupt_ns: -3,
            handler_ns: 1,
            waking_ns: 2,
            switch_ns: 9,
            cpu: 0,
            user_ns: total,
        })
    }

    #[test]
    fn percentiles_by_thread() {
        let all = (1..=1000).map(|n| up(70, 10 + n)).chain([
            Err(UnmatchedWakeUp { tid: 70 }),
            Err(UnmatchedWakeUp { tid: 71 }),
            up(99, 1),
        ]);
        let reports = reports(all, &BTreeMap::from([(70, 0), (71, 1)]));
        assert_eq!(reports.len(), 2);
        let first = &reports[0];
        assert_eq!((first.thread, first.joined, first.unjoined), (0, 1000, 1));
        assert_eq!((first.stages[0].min_ns, first.stages[0].max_ns), (-3, -3));
        let whole = WakeUpStage {
            stage: "expiry_to_user".to_owned(),
            min_ns: 11,
            p50_ns: 510,
            p99_ns: 1000,
            p999_ns: 1009,
            max_ns: 1010,
        };
        assert_eq!(first.stages[5], whole);
        assert_eq!((reports[1].joined, reports[1].unjoined), (0, 1));
        assert_eq!(reports[1].stages, []);
    }
}
