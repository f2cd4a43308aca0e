//! Jobs of periodic threads for the page's script.

use std::collections::BTreeMap;

use hourglass_trace::JobRecord;
use serde_json::{Value, json};

use super::columns::ColumnEncoder;
use crate::run::RunView;

/// Jobs that a page has at most. Where there are more, those that were in time are left out first.
const MOST_JOBS: usize = 200_000;

/// Bits of what is known about a job; the script has the same.
const STARTED: u8 = 1;
const FINISHED: u8 = 2;
const LOST: u8 = 4;
const MISSED: u8 = 8;

#[derive(Default)]
struct Chain {
    records: u64,
    all: u64,
    last_ns: i64,
    release: ColumnEncoder,
    due: ColumnEncoder,
    start: ColumnEncoder,
    end: ColumnEncoder,
    flags: ColumnEncoder,
}

impl Chain {
    /// Release since the one before, then the other times since the release.
    fn push(&mut self, job: &JobRecord, missed: bool) {
        self.records += 1;
        self.release.signed(job.release_ns.saturating_sub(self.last_ns));
        self.last_ns = job.release_ns;
        let since = |ns: i64| ns.saturating_sub(job.release_ns);
        self.due.signed(since(job.deadline_ns));
        job.started_ns.into_iter().for_each(|ns| self.start.signed(since(ns)));
        job.finished_ns.into_iter().for_each(|ns| self.end.signed(since(ns)));
        let flag = |holds: bool, bit: u8| if holds { bit } else { 0 };
        self.flags.byte(
            flag(job.started_ns.is_some(), STARTED)
                | flag(job.finished_ns.is_some(), FINISHED)
                | flag(job.lost, LOST)
                | flag(missed, MISSED),
        );
    }
}

/// The jobs by thread, in order of release.
pub(super) fn json(run: &RunView<'_>) -> Value {
    let end_ns = i64::try_from(run.document.manifest.elapsed_ns).unwrap_or(i64::MAX);
    let bad = |job: &JobRecord| job.lost || job.is_missed(end_ns);
    let all_fit = run.jobs.len() <= MOST_JOBS;
    let kept = run.jobs.iter().filter(|job| all_fit || bad(job)).take(MOST_JOBS);
    let mut jobs: Vec<&JobRecord> = kept.collect();
    jobs.sort_by_key(|job| (job.thread, job.release_ns));
    let mut chains: BTreeMap<u32, Chain> = BTreeMap::new();
    for job in run.jobs {
        chains.entry(job.thread).or_default().all += 1;
    }
    for job in jobs {
        chains.entry(job.thread).or_default().push(job, job.is_missed(end_ns));
    }
    let value = |(thread, chain): (u32, Chain)| {
        json!({
            "thread": thread,
            "all": chain.all,
            "records": chain.records,
            "release": chain.release.text(),
            "due": chain.due.text(),
            "start": chain.start.text(),
            "end": chain.end.text(),
            "flags": chain.flags.text(),
        })
    };
    chains.into_iter().map(value).collect()
}
