//! What is written is read again.

use std::thread;

use crate::common::{
    folder_of_samples, folder_without_records, intervals, late, manifest, read_all, read_samples,
    run_folder,
};
use hdrhistogram::Histogram;
use hourglass_documents::manifest::ThreadFacts;
use hourglass_runs::store::{LATENCY_FILE, RunFolder, SAMPLES_FILE, TRACE_FILE, TraceError};
use hourglass_trace::{
    CounterDeltas, Evidence, Interval, IntervalStart, KernelEvent, KernelEventKind,
};
use proptest::prelude::*;

#[test]
fn an_empty_trace() {
    let parent = tempfile::tempdir().unwrap();
    let folder = RunFolder::open(run_folder(parent.path(), &[])).unwrap();
    assert_eq!(folder.trace().rows(), 0);
    assert!(folder.trace().intervals().unwrap().next().is_none());
}

/// More than a row group (256 Ki rows), and more than a batch that does not divide it.
#[test]
fn several_row_groups() {
    let parent = tempfile::tempdir().unwrap();
    let written = intervals(300_001);
    let folder = RunFolder::open(run_folder(parent.path(), &written)).unwrap();
    assert_eq!(folder.trace().rows(), 300_001);
    let read: Vec<Interval> = folder.trace().intervals().unwrap().map(Result::unwrap).collect();
    assert!(read == written);
}

#[test]
fn the_manifest() {
    let parent = tempfile::tempdir().unwrap();
    let folder = RunFolder::open(run_folder(parent.path(), &intervals(3))).unwrap();
    assert_eq!(*folder.manifest(), manifest());
}

/// Readers on several threads must not move each other's place in the file.
#[test]
fn two_readers_at_once() {
    let parent = tempfile::tempdir().unwrap();
    let written = intervals(100_000);
    let folder = RunFolder::open(run_folder(parent.path(), &written)).unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let read: Vec<Interval> =
                    folder.trace().intervals().unwrap().map(Result::unwrap).collect();
                assert!(read == written);
            });
        }
    });
}

#[test]
fn latencies_by_thread() {
    let (_parent, mut folder) = folder_without_records();
    let mut first = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    for latency in [0, 1_200, 3_400, 3_400, 5_000_000_000] {
        first.record(latency).unwrap();
    }
    let nothing = Histogram::<u64>::new(3).unwrap();
    let mut manifest = manifest();
    let twelfth = ThreadFacts { id: 12, ..manifest.threads[0].clone() };
    manifest.threads.push(twelfth);
    folder
        .write_latencies(&manifest.epoch, manifest.elapsed_ns, &[(0, &first), (12, &nothing)])
        .unwrap();
    let folder = folder.finish(&manifest).unwrap();

    let read = folder.latencies().unwrap();
    assert_eq!(read.keys().copied().collect::<Vec<_>>(), [0, 12]);
    assert_eq!(read[&0], first);
    assert_eq!(read[&0].count_at(3_400), 2);
    assert!(read[&12].is_empty());

    let log = std::fs::read_to_string(folder.path().join(LATENCY_FILE)).unwrap();
    assert!(log.contains("#[StartTime: 1700000000.123 (seconds since epoch)]\n"), "{log}");
    assert!(log.contains("\nTag=thread-0,0.000,1.000,"), "{log}");
    // The word with which compressed histograms of version 2 begin.
    assert!(log.contains(",HISTFAAA"), "{log}");
}

#[test]
fn no_latencies_no_log() {
    let (_parent, mut folder) = folder_without_records();
    let manifest = manifest();
    folder.write_latencies(&manifest.epoch, manifest.elapsed_ns, &[]).unwrap();
    let folder = folder.finish(&manifest).unwrap();
    assert!(!folder.path().join(LATENCY_FILE).exists());
    assert!(folder.latencies().unwrap().is_empty());
}

/// By thread and in order of waking; more than a row group, so that a thread begins in one and
/// ends in another.
#[test]
fn single_latencies_by_thread() {
    let many: Vec<u64> = (0..300_001_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let threads = [(1, vec![97_843_206, 0, u64::MAX, 7]), (3, many), (4, Vec::new()), (9, vec![5])];
    let (_parent, folder) = folder_of_samples(&threads);
    for (thread, written) in threads {
        let read = read_samples(&folder, thread).unwrap().unwrap();
        assert!(read == written, "thread {thread}");
        let read = folder.wake_ups(thread).unwrap().unwrap().collect::<Result<Vec<_>, _>>();
        assert!(read.unwrap() == late(&written), "thread {thread}: times, and those not known");
    }
    for thread in [0, 2, 10, u32::MAX] {
        assert_eq!(read_samples(&folder, thread).unwrap(), Some(Vec::new()));
    }
}

/// A latency test that was ended before its first waking has a file without rows.
#[test]
fn no_samples_and_no_file_are_two_things() {
    let (_parent, folder) = folder_of_samples(&[(0, Vec::new())]);
    assert_eq!(read_samples(&folder, 0).unwrap(), Some(Vec::new()));
    std::fs::remove_file(folder.path().join(SAMPLES_FILE)).unwrap();
    assert_eq!(read_samples(&folder, 0).unwrap(), None);
    assert_eq!(read_samples(&folder_of_samples(&[]).1, 0).unwrap(), None);
}

fn any_evidence() -> impl Strategy<Value = Evidence> {
    let counted = any::<Option<(u8, u8, u8)>>();
    (any::<Option<bool>>(), counted).prop_map(|(cleared, counted)| Evidence {
        cleared,
        counted: counted.map(|(involuntary, voluntary, faults)| CounterDeltas {
            involuntary,
            voluntary,
            faults,
        }),
    })
}

fn any_intervals() -> impl Strategy<Value = Vec<Interval>> {
    let times = (any::<i64>(), any::<i64>(), any::<u64>(), any::<u64>());
    let number = 0..=u32::try_from(i32::MAX).unwrap();
    let interval =
        (number.clone(), number, times, 0_usize..IntervalStart::ALL.len(), any_evidence())
            .prop_map(|(thread, cpu, (ns, other_ns, ticks, other_ticks), onset, evidence)| {
                Interval {
                    thread,
                    cpu,
                    start_ns: ns.min(other_ns),
                    end_ns: ns.max(other_ns),
                    start_ticks: ticks.min(other_ticks),
                    end_ticks: ticks.max(other_ticks),
                    onset: IntervalStart::ALL[onset],
                    evidence,
                }
            });
    prop::collection::vec(interval, 0..200).prop_map(|mut intervals| {
        // Both starts must rise, and they were drawn apart: sort by one, then deal out the other
        // by size, with ends that stay behind them.
        intervals.sort_by_key(|interval| interval.start_ns);
        let mut ticks: Vec<(u64, u64)> =
            intervals.iter().map(|interval| (interval.start_ticks, interval.end_ticks)).collect();
        ticks.sort_unstable();
        for (interval, (start, end)) in intervals.iter_mut().zip(ticks) {
            (interval.start_ticks, interval.end_ticks) = (start, end);
        }
        intervals
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every record that the model allows, to the ends of its number ranges.
    #[test]
    fn any_trace(written in any_intervals()) {
        let parent = tempfile::tempdir().unwrap();
        let path = run_folder(parent.path(), &written);
        prop_assert_eq!(read_all(&path.join(TRACE_FILE)).unwrap(), written);
    }
}

/// serde_json's fast parser reads this frequency one bit too high, so that a run shown again was
/// not the run that was kept.
#[test]
fn a_number_of_the_manifest_comes_back_to_the_last_bit() {
    let mut written = manifest();
    written.clock.calibration_start.frequency_hz = 2_299_998_073.072_765_4;
    let (_parent, folder) = folder_without_records();
    let path = folder.path().to_path_buf();
    folder.finish(&written).unwrap();
    assert_eq!(*RunFolder::open(&path).unwrap().manifest(), written);
}

/// `count` events of two CPUs, of every kind.
fn kernel_events(count: u64) -> Vec<KernelEvent> {
    (0..count)
        .map(|row| KernelEvent {
            ns: i64::try_from(row * 3).unwrap() - 50,
            ticks: (1 << 63) + row / 2 * 7,
            value: u64::MAX - row,
            cpu: u32::try_from(row % 2).unwrap(),
            a: u32::MAX - u32::try_from(row).unwrap(),
            b: u32::try_from(row).unwrap(),
            kind: KernelEventKind::ALL[usize::try_from(row).unwrap() % 15],
        })
        .collect()
}

#[test]
fn kernel_events_come_back() {
    let (_parent, mut folder) = folder_without_records();
    let written = kernel_events(20_000);
    assert_eq!(folder.write_kernel_events(written.iter().copied()).unwrap(), 20_000);
    let folder = folder.finish(&manifest()).unwrap();
    let mut events = folder.kernel_events().unwrap().unwrap();
    assert_eq!(events.rows(), 20_000);
    let read: Vec<KernelEvent> = events.by_ref().map(Result::unwrap).collect();
    assert!(read == written);
    assert_eq!(events.left_out(), 0);
}

/// A run that did not trace has none; one that says it did must have them.
#[test]
fn missing_kernel_events() {
    let parent = tempfile::tempdir().unwrap();
    let folder = RunFolder::open(run_folder(parent.path(), &[])).unwrap();
    assert!(folder.kernel_events().unwrap().is_none());

    let mut traced = manifest();
    traced.kernel = Some(Default::default());
    let (_parent, folder) = folder_without_records();
    let folder = folder.finish(&traced).unwrap();
    assert!(matches!(folder.kernel_events(), Err(TraceError::Missing(_))));
}

#[test]
fn kernel_events_out_of_order_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    let mut folder = RunFolder::create(parent.path().join("run")).unwrap();
    let mut events = kernel_events(4);
    events.reverse();
    let error = folder.write_kernel_events(events).unwrap_err();
    assert!(error.to_string().contains("happened before the one above it"), "{error}");
}
