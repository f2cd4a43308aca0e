//! What several tests need: a manifest, records, a complete run folder.

use std::path::{Path, PathBuf};

use hourglass_documents::document::RunResult;
use hourglass_documents::manifest::{ClockFacts, Epoch, Manifest, ThreadFacts};
use hourglass_runs::store::{
    LatencyError, NewRunFolder, RunFolder, StoredWakeUp, Trace, TraceError,
};
use hourglass_trace::{CounterDeltas, Evidence, Interval, IntervalStart};
use tempfile::TempDir;

pub(crate) fn manifest() -> Manifest {
    Manifest {
        hourglass: "0.1.0".to_owned(),
        command_line: vec!["hourglass".to_owned(), "-d".to_owned(), "1s".to_owned()],
        epoch: Epoch {
            monotonic_ns: 5_000_000_000,
            realtime_ns: 1_700_000_000_123_000_000,
            ticks: 12_000_000_000,
        },
        duration_ns: 1_000_000_000,
        elapsed_ns: 1_000_000_321,
        seed: 7,
        records_capacity: 1000,
        clock: ClockFacts {
            source: "tsc".to_owned(),
            trusted: true,
            reason: "constant and synchronous".to_owned(),
            frequency_hz: 2.4e9,
            ..ClockFacts::default()
        },
        threads: vec![ThreadFacts {
            workload: "CPU".to_owned(),
            wake_up: "HR".to_owned(),
            policy_asked: "NORMAL".to_owned(),
            policy: "OTHER:0".to_owned(),
            cpus: "0-1".to_owned(),
            finish_ns: 1_000_000_000,
            gap_ns: 500,
            loop_ns: 20,
            records_capacity: 1000,
            ..ThreadFacts::default()
        }],
        result: Some(RunResult::default()),
        ..Manifest::default()
    }
}

/// Every kind of evidence in turn, none among them.
fn evidence(row: u64) -> Evidence {
    let count = |shift: u32| (row.wrapping_mul(0x9e37_79b9) >> shift) as u8;
    let counted = CounterDeltas { involuntary: count(3), voluntary: count(9), faults: count(17) };
    Evidence {
        cleared: [None, Some(false), Some(true)][usize::try_from(row / 5 % 3).unwrap()],
        counted: (row % 4 > 1).then_some(counted),
    }
}

/// `count` records of three threads in order of start, with every onset and every kind of evidence.
pub(crate) fn intervals(count: u64) -> Vec<Interval> {
    (0..count)
        .map(|row| {
            let ticks = (1 << 63) + row * 240;
            let ns = i64::try_from(row).unwrap() * 100;
            Interval {
                thread: u32::try_from(row % 3).unwrap(),
                cpu: u32::try_from(row / 7 % 2).unwrap(),
                start_ns: ns,
                end_ns: ns + 150 + i64::try_from(row * row % 50).unwrap(),
                start_ticks: ticks,
                end_ticks: ticks + 360,
                onset: IntervalStart::ALL[usize::try_from(row % 5).unwrap()],
                evidence: evidence(row),
            }
        })
        .collect()
}

/// A run folder that has an empty trace and nothing else, in a folder of its own.
pub(crate) fn folder_without_records() -> (TempDir, NewRunFolder) {
    let parent = tempfile::tempdir().unwrap();
    let mut folder = RunFolder::create(parent.path().join("run")).unwrap();
    folder.trace().unwrap().finish().unwrap();
    (parent, folder)
}

/// Makes a complete run folder of `intervals` in `parent`.
pub(crate) fn run_folder(parent: &Path, intervals: &[Interval]) -> PathBuf {
    let path = parent.join("run");
    let mut folder = RunFolder::create(&path).unwrap();
    let mut trace = folder.trace().unwrap();
    for interval in intervals {
        trace.write(interval).unwrap();
    }
    assert_eq!(trace.finish().unwrap(), intervals.len() as u64);
    folder.finish(&manifest()).unwrap();
    path
}

/// Wake-ups that were so late, a microsecond apart; of every second one the time is not known.
pub(crate) fn late(all: &[u64]) -> Vec<StoredWakeUp> {
    let wake_up = |(at, ps): (i64, &u64)| StoredWakeUp {
        woke_ns: (at % 2 == 0).then_some(at * 1_000 - 1),
        lateness_ps: *ps,
    };
    (0_i64..).zip(all).map(wake_up).collect()
}

/// A complete run folder of single latencies, and no records.
pub(crate) fn folder_of_samples(threads: &[(u32, Vec<u64>)]) -> (TempDir, RunFolder) {
    let (parent, mut folder) = folder_without_records();
    folder.write_samples(threads.iter().map(|(id, ps)| (*id, late(ps)))).unwrap();
    (parent, folder.finish(&manifest()).unwrap())
}

/// The single latencies of a thread, or the first error; `None` where there is no file.
pub(crate) fn read_samples(
    folder: &RunFolder,
    thread: u32,
) -> Result<Option<Vec<u64>>, LatencyError> {
    folder.lateness_ps(thread)?.map(Iterator::collect).transpose()
}

/// All records of the trace at `path`, or the first error.
pub(crate) fn read_all(path: &Path) -> Result<Vec<Interval>, TraceError> {
    Trace::open(path)?.intervals()?.collect()
}
