//! The jobs of a run that missed their deadlines by the most, and where their time went.
//!
//! Owns: which jobs are reported one by one, and the parts of their time. Must not: find the cause of a gap (`trace`
//! does).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hourglass_documents::document::{OccupantReport, RunDocument};
use hourglass_documents::late_jobs::{LateJob, LateJobGaps};
use hourglass_trace::JobRecord;
use hourglass_trace::cause::{AttributedGap, Successor};

/// Late jobs of a run that are reported one by one, at most.
const MAX_REPORTED: usize = 5;

/// Occupants that are named for each cause.
const MAX_NAMED: usize = 3;

/// Whether a job of the run was late, so that there is something to report.
pub fn has_late_jobs(document: &RunDocument) -> bool {
    let mut deadlines = document.result.threads.iter().filter_map(|thread| thread.deadlines);
    deadlines.any(|deadlines| deadlines.missed > 0 || deadlines.lost > 0)
}

/// The latest jobs of all threads, the latest first. `jobs` by thread and in order of release, as far as they were
/// stored; `gaps` in any order.
pub fn latest(
    document: &RunDocument,
    jobs: impl IntoIterator<Item = JobRecord>,
    gaps: impl IntoIterator<Item = AttributedGap>,
) -> Vec<LateJob> {
    let end_ns = i64::try_from(document.manifest.elapsed_ns).unwrap_or(i64::MAX);
    let mut late = select(jobs, end_ns);
    if late.is_empty() {
        return late;
    }
    let mut causes = vec![BTreeMap::new(); late.len()];
    for gap in gaps {
        for (job, causes) in late.iter().zip(&mut causes) {
            add(causes, job, &gap, end_ns);
        }
    }
    for (job, causes) in late.iter_mut().zip(causes) {
        job.gaps = reports(causes, document);
        let in_gaps = job.gaps.iter().fold(0, |sum: u64, gaps| sum.saturating_add(gaps.total_ns));
        job.own_ns =
            span(job, end_ns).map_or(0, |(from, to)| since(from, to)).saturating_sub(in_gaps);
    }
    late
}

fn since(from: i64, to: i64) -> u64 {
    to.saturating_sub(from).max(0).unsigned_abs()
}

/// From the start of a job to its end.
fn span(job: &LateJob, end_ns: i64) -> Option<(i64, i64)> {
    Some((job.started_ns?, job.finished_ns.unwrap_or(end_ns)))
}

fn select(jobs: impl IntoIterator<Item = JobRecord>, end_ns: i64) -> Vec<LateJob> {
    let mut latest: Vec<LateJob> = Vec::new();
    let mut keep = |job: LateJob| {
        if job.late_ns > 0 || job.lost_behind > 0 {
            let rank = |job: &LateJob| Reverse((job.late_ns, job.lost_behind));
            let place = latest.partition_point(|known| rank(known) <= rank(&job));
            latest.insert(place, job);
            latest.truncate(MAX_REPORTED);
        }
    };
    let mut last: Option<LateJob> = None;
    for job in jobs {
        let before = last.as_mut().filter(|before| before.thread == job.thread);
        if job.lost {
            before.into_iter().for_each(|before| before.lost_behind += 1);
            continue;
        }
        let before_ns = before.and_then(|before| before.finished_ns);
        let begin_ns = job.started_ns.unwrap_or(end_ns);
        let free_ns = before_ns
            .map_or(job.release_ns, |ns| ns.clamp(job.release_ns, begin_ns.max(job.release_ns)));
        let done_ns = job.finished_ns.unwrap_or(end_ns);
        let late_ns =
            if job.is_missed(end_ns) { since(job.deadline_ns, done_ns).max(1) } else { 0 };
        let next = LateJob {
            thread: job.thread,
            release_ns: job.release_ns,
            deadline_ns: job.deadline_ns,
            started_ns: job.started_ns,
            finished_ns: job.finished_ns,
            late_ns,
            behind_ns: since(job.release_ns, free_ns),
            wake_up_ns: since(free_ns, begin_ns),
            ..LateJob::default()
        };
        last.replace(next).into_iter().for_each(&mut keep);
    }
    last.into_iter().for_each(keep);
    latest
}

/// Gaps and occupants of one cause.
#[derive(Clone, Debug, Default)]
struct OfCause {
    count: u64,
    total_ns: u64,
    ran: BTreeMap<Successor, u64>,
}

fn add(
    causes: &mut BTreeMap<&'static str, OfCause>,
    job: &LateJob,
    gap: &AttributedGap,
    end_ns: i64,
) {
    let Some((from, to)) = span(job, end_ns).filter(|_| gap.thread == job.thread) else { return };
    let within_ns = since(gap.start_ns.max(from), gap.end_ns.min(to));
    if within_ns == 0 {
        return;
    }
    let of = causes.entry(gap.cause.name()).or_default();
    of.count += 1;
    of.total_ns = of.total_ns.saturating_add(within_ns);
    let shares = gap.occupants.iter().map(|share| (share.who, share.ns.min(within_ns)));
    let only = gap.to_thread.filter(|_| gap.occupants.longest().is_none());
    for (who, ns) in shares.chain(only.map(|who| (who, within_ns))) {
        let sum = of.ran.entry(who).or_default();
        *sum = sum.saturating_add(ns);
    }
}

fn reports(causes: BTreeMap<&'static str, OfCause>, document: &RunDocument) -> Vec<LateJobGaps> {
    let name_of = |who: Successor| match who {
        Successor::OfRun(id) => {
            let mut threads = document.result.threads.iter();
            threads.find(|thread| thread.id == id).and_then(|thread| thread.name.clone())
        }
        Successor::Kernel(tid) => document
            .manifest
            .kernel
            .as_ref()
            .and_then(|kernel| kernel.names.threads.get(&tid).cloned()),
    };
    let report = |(who, total_ns): (Successor, u64)| {
        let (thread, tid) = match who {
            Successor::OfRun(id) => (Some(id), None),
            Successor::Kernel(tid) => (None, Some(tid)),
        };
        OccupantReport { thread, tid, name: name_of(who), total_ns }
    };
    let of_cause = |(cause, of): (&str, OfCause)| {
        let mut ran: Vec<OccupantReport> = of.ran.into_iter().map(report).collect();
        ran.sort_by_key(|ran| Reverse(ran.total_ns));
        ran.truncate(MAX_NAMED);
        LateJobGaps { cause: cause.to_owned(), count: of.count, total_ns: of.total_ns, ran }
    };
    let mut gaps: Vec<LateJobGaps> = causes.into_iter().map(of_cause).collect();
    gaps.sort_by_key(|gaps| Reverse(gaps.total_ns));
    gaps
}

#[cfg(test)]
mod tests {
    use hourglass_documents::Cause;
    use hourglass_documents::document::ThreadReport;
    use hourglass_documents::manifest::Manifest;
    use hourglass_trace::cause::{CauseBasis, GapOccupants, IndicationSet};

    use super::*;

    fn job(thread: u32, release: i64, started: i64, finished: i64) -> JobRecord {
        JobRecord {
            thread,
            release_ns: release,
            deadline_ns: release + 10,
            started_ns: Some(started),
            finished_ns: Some(finished),
            lost: false,
        }
    }

    fn lost(thread: u32, release: i64) -> JobRecord {
        JobRecord { started_ns: None, finished_ns: None, lost: true, ..job(thread, release, 0, 0) }
    }

    fn gap(
        thread: u32,
        start_ns: i64,
        end_ns: i64,
        cause: Cause,
        who: Option<Successor>,
    ) -> AttributedGap {
        AttributedGap {
            thread,
            cpu_before: 0,
            cpu_after: 0,
            start_ns,
            end_ns,
            cause,
            basis: CauseBasis::Seen,
            evidence: IndicationSet::NONE,
            to_thread: who,
            occupants: GapOccupants::default(),
            composition: None,
        }
    }

    fn document() -> RunDocument {
        let mut document = RunDocument {
            schema: String::new(),
            manifest: Manifest::default(),
            result: Default::default(),
        };
        document.manifest.elapsed_ns = 1_000;
        let name = Some("other".to_owned());
        document.result.threads = vec![ThreadReport { id: 7, name, ..ThreadReport::default() }];
        document
    }

    /// Thread, release, times and gaps of a job.
    fn shown(job: &LateJob) -> (u32, i64, [u64; 5], Vec<(&str, u64)>) {
        let gaps = job.gaps.iter().map(|gaps| (&*gaps.cause, gaps.total_ns)).collect();
        let times = [job.late_ns, job.lost_behind, job.behind_ns, job.wake_up_ns, job.own_ns];
        (job.thread, job.release_ns, times, gaps)
    }

    /// The list that `show` lacked: when, how late, why, who; and which jobs were lost behind.
    #[test]
    fn the_latest_jobs_have_all_their_time_explained() {
        let jobs = [
            job(0, 0, 1, 9),
            job(0, 10, 12, 45),
            lost(0, 20),
            lost(0, 30),
            job(0, 40, 46, 55),
            job(1, 0, 0, 15),
            job(1, 900, 990, 995),
            JobRecord { finished_ns: None, ..job(1, 910, 996, 0) },
        ];
        let other = Some(Successor::OfRun(7));
        let gaps = [
            gap(0, 15, 30, Cause::ContextSwitchInvoluntary, other),
            gap(0, 31, 32, Cause::TimerTick, None),
            gap(0, 44, 48, Cause::ContextSwitch, Some(Successor::Kernel(9))),
            gap(1, 15, 30, Cause::Irq, None),
        ];
        let found = latest(&document(), jobs, gaps);
        let found_as: Vec<_> = found.iter().map(shown).collect();
        let switched = ("context_switch_involuntary", 15);
        assert_eq!(
            found_as,
            [
                (1, 900, [85, 0, 0, 90, 5], vec![]),
                (1, 910, [80, 0, 85, 1, 4], vec![]),
                (
                    0,
                    10,
                    [25, 2, 0, 2, 16],
                    vec![switched, ("context_switch", 1), ("timer_tick", 1)]
                ),
                (0, 40, [5, 0, 5, 1, 7], vec![("context_switch", 2)]),
                (1, 0, [5, 0, 0, 0, 15], vec![]),
            ]
        );
        let ran = &found[2].gaps[0].ran[0];
        assert_eq!((ran.thread, ran.name.as_deref(), ran.total_ns), (Some(7), Some("other"), 15));
        assert_eq!(found[3].gaps[0].ran[0].tid, Some(9));
        assert!(latest(&document(), [job(0, 0, 1, 9)], []).is_empty());
    }

    #[test]
    fn the_worst_of_many_are_kept() {
        let all = (0..100).map(|n| job(0, n * 100, n * 100, n * 100 + 10 + (n * 37) % 60));
        let late: Vec<u64> = latest(&document(), all, []).iter().map(|job| job.late_ns).collect();
        assert_eq!(late, [59, 58, 58, 57, 57]);
    }
}
