//! A run folder from its creation to its end, also when something gets in the way.

use std::fs;
use std::path::Path;

use crate::common::{folder_without_records, intervals, late, manifest};
use hourglass_runs::store::{
    CreateError, LATENCY_FILE, MANIFEST_FILE, OpenError, RowFault, RunFolder, SAMPLES_FILE,
    TRACE_FILE, WriteError,
};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn refuses_what_exists() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    fs::write(&file, "mine").unwrap();
    for path in [parent.path(), &file] {
        let refused = RunFolder::create(path).unwrap_err();
        assert!(matches!(&refused, CreateError::Exists(p) if p == path), "{refused}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn refuses_a_missing_parent() {
    let parent = tempfile::tempdir().unwrap();
    let refused = RunFolder::create(parent.path().join("a/b")).unwrap_err();
    assert!(
        matches!(&refused, CreateError::ParentMissing { parent: p, .. } if *p == parent.path().join("a")),
        "{refused}"
    );
}

#[test]
fn refuses_a_parent_that_is_a_file() {
    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join("file"), "").unwrap();
    let refused = RunFolder::create(parent.path().join("file/run")).unwrap_err();
    assert!(matches!(refused, CreateError::ParentNotAFolder { .. }), "{refused}");
}

#[test]
fn refuses_an_empty_name() {
    assert!(matches!(RunFolder::create(""), Err(CreateError::Io { .. })));
}

#[cfg(unix)]
#[test]
fn refuses_a_folder_that_may_not_be_written() {
    use std::os::unix::fs::PermissionsExt;

    let parent = tempfile::tempdir().unwrap();
    fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o555)).unwrap();
    match RunFolder::create(parent.path().join("run")) {
        Err(refused) => assert!(matches!(refused, CreateError::NotWritable { .. }), "{refused}"),
        // Root may write everywhere; then the unit test of the error's mapping must do.
        Ok(folder) => folder.abandon().unwrap(),
    }
    fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_run_called_off_leaves_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("run");

    drop(RunFolder::create(&path).unwrap());
    assert!(!path.exists());

    RunFolder::create(&path).unwrap().abandon().unwrap();
    assert!(!path.exists());

    let mut folder = RunFolder::create(&path).unwrap();
    let mut trace = folder.trace().unwrap();
    trace.write(&intervals(1)[0]).unwrap();
    drop(trace);
    drop(folder);
    assert!(!path.exists());

    let mut folder = RunFolder::create(&path).unwrap();
    folder.trace().unwrap().finish().unwrap();
    folder.abandon().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_foreign_file_is_not_removed() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("run");
    let folder = RunFolder::create(&path).unwrap();
    fs::write(path.join("notes.txt"), "mine").unwrap();
    assert!(folder.abandon().is_err());
    assert_eq!(names(&path), ["notes.txt"]);
}

#[test]
fn what_was_measured_is_kept_and_called_half_written() {
    let (_parent, folder) = folder_without_records();
    let path = folder.path().to_path_buf();
    drop(folder);
    assert_eq!(names(&path), [TRACE_FILE]);
    assert!(matches!(RunFolder::open(&path), Err(OpenError::HalfWritten(_))));
}

/// A run that is killed while it measures leaves the folder as it is made.
#[test]
fn a_folder_just_made_is_half_written() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("run");
    let folder = RunFolder::create(&path).unwrap();
    assert_eq!(names(&path), ["trace.parquet.partial"]);
    assert!(matches!(RunFolder::open(&path), Err(OpenError::HalfWritten(_))));
    // The run may still go on: the message does not advise to measure again.
    let message = RunFolder::open(&path).unwrap_err().to_string();
    assert!(
        message.contains("its run goes on, or ended") && message.contains("; wait for"),
        "{message}"
    );
    drop(folder);
}

#[test]
fn a_complete_folder_holds_nothing_else() {
    let parent = tempfile::tempdir().unwrap();
    let path = crate::common::run_folder(parent.path(), &intervals(10));
    assert_eq!(names(&path), [MANIFEST_FILE, TRACE_FILE]);
}

#[test]
fn a_second_trace_replaces_only_an_unfinished_one() {
    let parent = tempfile::tempdir().unwrap();
    let mut folder = RunFolder::create(parent.path().join("run")).unwrap();
    let mut first = folder.trace().unwrap();
    for interval in intervals(300_000) {
        first.write(&interval).unwrap();
    }
    drop(first);
    let mut second = folder.trace().unwrap();
    second.write(&intervals(1)[0]).unwrap();
    second.finish().unwrap();
    assert!(matches!(folder.trace(), Err(WriteError::TraceComplete(_))));
    let folder = folder.finish(&manifest()).unwrap();
    assert_eq!(folder.trace().rows(), 1);
}

#[test]
fn finishing_needs_a_trace_and_a_result() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("run");
    let folder = RunFolder::create(&path).unwrap();
    assert!(matches!(folder.finish(&manifest()), Err(WriteError::TraceMissing(_))));
    assert!(!path.exists());

    let mut folder = RunFolder::create(&path).unwrap();
    folder.trace().unwrap().finish().unwrap();
    let mut without_result = manifest();
    without_result.result = None;
    assert!(matches!(folder.finish(&without_result), Err(WriteError::NoResult)));
    assert_eq!(names(&path), [TRACE_FILE]);
}

/// JSON writes infinity as null, which no reader takes for a number.
#[test]
fn a_manifest_that_could_not_be_read_is_not_written() {
    let (_parent, folder) = folder_without_records();
    let path = folder.path().to_path_buf();
    let mut infinite = manifest();
    infinite.clock.frequency_hz = f64::INFINITY;
    assert!(matches!(folder.finish(&infinite), Err(WriteError::Manifest(_))));
    assert_eq!(names(&path), [TRACE_FILE]);
}

#[test]
fn records_that_no_reader_takes_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    let mut folder = RunFolder::create(parent.path().join("run")).unwrap();
    let good = intervals(2);
    let mut trace = folder.trace().unwrap();
    trace.write(&good[1]).unwrap();

    let mut next = good[1];
    next.end_ns = next.start_ns - 1;
    let mut far = good[1];
    far.thread = u32::MAX;
    let mut nowhere = good[1];
    nowhere.cpu = 1 << 31;
    let mut earlier = good[1];
    earlier.start_ticks -= 1;
    for (record, expected) in [
        (next, RowFault::Reversed),
        (good[0], RowFault::OutOfOrder),
        (earlier, RowFault::OutOfOrder),
        (far, RowFault::Thread),
        (nowhere, RowFault::Cpu),
    ] {
        match trace.write(&record) {
            Err(WriteError::Record { row: 1, fault, .. }) => assert_eq!(fault, expected),
            other => panic!("{other:?} for {expected:?}"),
        }
    }
    // Refused records leave no trace in the columns.
    trace.write(&good[1]).unwrap();
    assert_eq!(trace.finish().unwrap(), 2);
    let folder = folder.finish(&manifest()).unwrap();
    assert_eq!(
        folder.trace().intervals().unwrap().map(Result::unwrap).collect::<Vec<_>>(),
        [good[1]; 2]
    );
}

#[test]
fn latencies_without_trace_go_with_the_folder() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("run");
    let mut folder = RunFolder::create(&path).unwrap();
    let histogram = hdrhistogram::Histogram::<u64>::new(2).unwrap();
    folder.write_latencies(&manifest().epoch, 1, &[(0, &histogram)]).unwrap();
    folder.write_samples([(0, late(&[1]))]).unwrap();
    assert_eq!(names(&path), [LATENCY_FILE, SAMPLES_FILE, "trace.parquet.partial"]);
    drop(folder);
    assert!(!path.exists());

    let mut folder = RunFolder::create(&path).unwrap();
    folder.write_samples([(0, late(&[1]))]).unwrap();
    folder.abandon().unwrap();
    assert!(!path.exists());
}

#[test]
fn samples_that_no_reader_takes_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("run");
    let mut folder = RunFolder::create(&path).unwrap();
    for (threads, expected) in [
        ([(3, late(&[1])), (2, late(&[1]))], RowFault::ThreadOrder),
        ([(0, late(&[1])), (1 << 31, late(&[1]))], RowFault::Thread),
    ] {
        match folder.write_samples(threads) {
            Err(WriteError::Record { row: 1, fault, path: failed }) => {
                assert_eq!((fault, failed), (expected, path.join(SAMPLES_FILE)));
            }
            other => panic!("{other:?} for {expected:?}"),
        }
    }
    assert_eq!(names(&path), ["trace.parquet.partial"]);
}
