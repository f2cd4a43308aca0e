//! The jobs that were late by the most: when, how late, and where their time went.

use std::cmp::Reverse;

use hourglass_documents::Cause;
use hourglass_documents::late_jobs::{LateJob, LateJobGaps};

use super::occupants::who;
use crate::units::rounded;

/// Parts of a job's time smaller than the whole divided by this are left out.
const LEAST_PART: u64 = 20;

/// A line for each: `at 1.230000 s, thread 0, 2.31 ms late: 3.10 ms in timer ticks, 3.00 ms its own execution and
/// waits; 2 behind it lost`.
pub(super) fn lines(jobs: &[LateJob]) -> Vec<String> {
    jobs.iter().map(line).collect()
}

fn line(job: &LateJob) -> String {
    let us = job.release_ns.max(0).unsigned_abs() / 1_000;
    // As `render --from` needs it.
    let at = format!("{}.{:06} s", us / 1_000_000, us % 1_000_000);
    let late = match (job.late_ns, job.finished_ns) {
        (0, _) => "in time".to_owned(),
        (ns, Some(_)) => format!("{} late", rounded(ns)),
        (ns, None) => format!("not done, {} late when the run ended", rounded(ns)),
    };
    let mut parts = Vec::new();
    let mut part = |ns: u64, text: &str| {
        if ns > 0 {
            parts.push((ns, format!("{} {text}", rounded(ns))));
        }
    };
    part(job.behind_ns, "behind the job before it");
    let started = job.started_ns.is_some();
    part(job.wake_up_ns, if started { "until it started" } else { "without a start" });
    part(job.own_ns, "its own execution and waits");
    for gaps in &job.gaps {
        part(gaps.total_ns, &took(gaps));
    }
    let all = parts.iter().fold(0, |sum: u64, (ns, _)| sum.saturating_add(*ns));
    parts.retain(|(ns, _)| *ns >= all / LEAST_PART);
    parts.sort_by_key(|(ns, _)| Reverse(*ns));
    let parts: Vec<String> = parts.into_iter().map(|(_, text)| text).collect();
    let mut text = format!("at {at}, thread {}, {late}: {}", job.thread, parts.join(", "));
    if job.lost_behind > 0 {
        text.push_str(&format!("; {} behind it lost", job.lost_behind));
    }
    text
}

/// `in 2 context switches (stress (812))`.
fn took(gaps: &LateJobGaps) -> String {
    let cause = match Cause::from_name(&gaps.cause) {
        Some(cause) => cause.words(),
        None => &gaps.cause,
    };
    let ran: Vec<String> = gaps.ran.iter().map(who).collect();
    match ran.is_empty() {
        true => format!("in {cause}"),
        false => format!("in {cause} (ran: {})", ran.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use hourglass_documents::document::OccupantReport;

    use super::*;

    /// "1 of 3 missed deadlines are due to gaps", and nothing of the other two.
    #[test]
    fn every_late_job_says_why() {
        let ran = OccupantReport {
            thread: None,
            tid: Some(812),
            name: Some("stress\u{1b}".to_owned()),
            total_ns: 3_000_000,
        };
        let gaps = |cause: &str, total_ns, ran| LateJobGaps {
            cause: cause.to_owned(),
            count: 1,
            total_ns,
            ran,
        };
        let job = LateJob {
            thread: 1,
            release_ns: 1_580_000_000,
            deadline_ns: 1_590_000_000,
            started_ns: Some(1_580_400_000),
            finished_ns: Some(1_592_000_000),
            late_ns: 2_000_000,
            lost_behind: 1,
            behind_ns: 0,
            wake_up_ns: 400_000,
            own_ns: 8_300_000,
            gaps: vec![
                gaps("context_switch_involuntary", 3_200_000, vec![ran]),
                gaps("timer_tick", 100_000, Vec::new()),
            ],
        };
        let cut = LateJob {
            finished_ns: None,
            own_ns: 0,
            gaps: Vec::new(),
            lost_behind: 0,
            ..job.clone()
        };
        let never = LateJob { started_ns: None, behind_ns: 7_000_000, ..cut.clone() };
        let said = lines(&[job, cut, never]);
        assert!(!said[0].contains('\u{1b}'), "{said:?}");
        assert!(
            said[0].starts_with(
                "at 1.580000 s, thread 1, 2.00 ms late: 8.30 ms its own execution and waits, \
                 3.20 ms in involuntary context switches (ran: stress"
            ) && said[0].ends_with("(812)); 1 behind it lost"),
            "{said:?}"
        );
        assert_eq!(
            said[1],
            "at 1.580000 s, thread 1, not done, 2.00 ms late when the run ended: 400 us until it started"
        );
        assert!(
            said[2].ends_with("7.00 ms behind the job before it, 400 us without a start"),
            "{said:?}"
        );
    }
}
