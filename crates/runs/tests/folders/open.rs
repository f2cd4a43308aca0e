//! Errors of a reader for folders and files that are damaged, incomplete or foreign.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use hourglass_dice::{Dice, seed};
use hourglass_skip::{Requirement, skip};

use crate::common::{
    folder_of_samples, folder_without_records, intervals, manifest, read_all, read_samples,
    run_folder,
};
use hourglass_documents::document::ThreadReport;
use hourglass_documents::manifest::MANIFEST_SCHEMA;
use hourglass_runs::store::{
    LATENCY_FILE, LatencyError, MANIFEST_FILE, OpenError, RowFault, RunFolder, SAMPLES_FILE,
    StoredWakeUp, TRACE_FILE, TraceError,
};
use hourglass_trace::{CounterDeltas, Evidence, Interval, IntervalStart};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

#[test]
fn folders_that_are_none() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    fs::write(&file, "").unwrap();
    let missing = parent.path().join("missing");
    assert!(matches!(RunFolder::open(&missing), Err(OpenError::NotFound(_))));
    assert!(matches!(RunFolder::open(file.join("below")), Err(OpenError::NotFound(_))));
    assert!(matches!(RunFolder::open(&file), Err(OpenError::NotAFolder(_))));
    assert!(matches!(RunFolder::open(parent.path()), Err(OpenError::NotARunFolder(_))));
    let merged = parent.path().join("merged");
    fs::create_dir(&merged).unwrap();
    fs::write(merged.join(hourglass_runs::store::merged::MERGED_FILE), "{}").unwrap();
    let refused = RunFolder::open(&merged).unwrap_err();
    assert!(matches!(refused, OpenError::Merged(_)), "{refused}");
    assert!(refused.to_string().contains("hourglass report "), "{refused}");
    let sweep = parent.path().join("sweep");
    fs::create_dir(&sweep).unwrap();
    fs::write(sweep.join(hourglass_runs::store::sweep::RESULT_FILE), "{}").unwrap();
    let refused = RunFolder::open(&sweep).unwrap_err();
    assert!(matches!(refused, OpenError::Sweep(_)), "{refused}");
    assert!(refused.to_string().contains("hourglass export "), "{refused}");
}

#[test]
fn another_version_of_the_manifest() {
    let parent = tempfile::tempdir().unwrap();
    let path = run_folder(parent.path(), &intervals(3));
    fs::write(path.join(MANIFEST_FILE), r#"{"schema": "hourglass.manifest/9", "new": 1}"#).unwrap();
    match RunFolder::open(&path) {
        Err(OpenError::ManifestVersion { found, wanted, .. }) => {
            assert_eq!((found.as_str(), wanted), ("hourglass.manifest/9", MANIFEST_SCHEMA));
        }
        other => panic!("{other:?}"),
    }
    fs::write(path.join(MANIFEST_FILE), "[1]").unwrap();
    assert!(matches!(
        RunFolder::open(&path),
        Err(OpenError::ManifestVersion { found, .. }) if found.is_empty()
    ));
}

#[test]
fn a_malformed_manifest_is_reported_with_its_place() {
    let parent = tempfile::tempdir().unwrap();
    let path = run_folder(parent.path(), &intervals(3));
    let file = path.join(MANIFEST_FILE);
    let text = fs::read_to_string(&file).unwrap();

    fs::write(&file, text.replace("\"seed\": 7", "\"seed\": \"seven\"")).unwrap();
    let expected = text.lines().position(|line| line.contains("\"seed\"")).unwrap() + 1;
    match RunFolder::open(&path) {
        Err(error @ OpenError::ManifestMalformed { line, column, .. }) => {
            assert_eq!(line, expected);
            assert!(column > 0);
            let message = error.to_string();
            assert!(message.contains(&format!("manifest.json:{expected}:{column}: ")), "{message}");
            assert!(!message.contains(" at line "), "{message}");
        }
        other => panic!("{other:?}"),
    }

    for broken in ["", "{", "\u{0}", &text[..text.len() / 2], &"[".repeat(100_000)] {
        fs::write(&file, broken).unwrap();
        assert!(matches!(RunFolder::open(&path), Err(OpenError::ManifestMalformed { .. })));
    }
}

/// A bit that changed in the name or the number of a thread made another model, without a word.
#[test]
fn a_bit_that_changed_in_a_manifest_is_noticed() {
    let parent = tempfile::tempdir().unwrap();
    let path = run_folder(parent.path(), &intervals(3));
    let file = path.join(MANIFEST_FILE);
    let text = fs::read(&file).unwrap();
    let whole = RunFolder::open(&path).unwrap().manifest().clone();
    let mut dice = Dice::new(seed());
    for at in 0..text.len() {
        let mut damaged = text.clone();
        damaged[at] ^= 1 << dice.below(8);
        fs::write(&file, &damaged).unwrap();
        let same = RunFolder::open(&path).map(|folder| *folder.manifest() == whole);
        assert!(same.unwrap_or(true), "byte {at}: {}", String::from_utf8_lossy(&damaged));
    }
    // Other programs write it with other blanks, and an older one had no checksum.
    let mut value: serde_json::Value = serde_json::from_slice(&text).unwrap();
    fs::write(&file, value.to_string()).unwrap();
    assert!(RunFolder::open(&path).is_ok());
    value["seed"] = 8.into();
    fs::write(&file, value.to_string()).unwrap();
    let error = RunFolder::open(&path).unwrap_err().to_string();
    assert!(error.ends_with("take its key 'crc32' away if you changed it yourself"), "{error}");
    value.as_object_mut().unwrap().remove("crc32").unwrap();
    fs::write(&file, value.to_string()).unwrap();
    assert!(RunFolder::open(&path).is_ok());
}

/// What was cut off says so; a pipe is not waited for.
#[test]
fn a_manifest_cut_off_or_no_file_at_all() {
    let parent = tempfile::tempdir().unwrap();
    let path = run_folder(parent.path(), &intervals(3));
    let file = path.join(MANIFEST_FILE);
    let text = fs::read_to_string(&file).unwrap();
    for cut in [0, 10, text.len() / 2] {
        fs::write(&file, &text[..cut]).unwrap();
        let message = RunFolder::open(&path).unwrap_err().to_string();
        assert!(message.contains("truncated") && message.ends_with("; copy it again"), "{message}");
    }
    fs::remove_file(&file).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    if !made.is_ok_and(|status| status.success()) {
        return skip(Requirement::program("mkfifo"), "no mkfifo");
    }
    let message = RunFolder::open(&path).unwrap_err().to_string();
    assert!(message.contains("not a regular file"), "{message}");
}

#[test]
fn a_manifest_without_result() {
    let parent = tempfile::tempdir().unwrap();
    let path = run_folder(parent.path(), &intervals(3));
    let file = path.join(MANIFEST_FILE);
    let mut value: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    value.as_object_mut().unwrap().remove("result");
    fs::write(&file, value.to_string()).unwrap();
    assert!(matches!(RunFolder::open(&path), Err(OpenError::NoResult(_))));
}

#[test]
fn a_trace_that_is_missing_or_cut() {
    let parent = tempfile::tempdir().unwrap();
    let path = run_folder(parent.path(), &intervals(100));
    let file = path.join(TRACE_FILE);
    let bytes = fs::read(&file).unwrap();
    for length in [0, 3, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&file, &bytes[..length]).unwrap();
        let opened = RunFolder::open(&path);
        assert!(matches!(opened, Err(OpenError::Trace(TraceError::Truncated(_)))), "{opened:?}");
    }
    fs::remove_file(&file).unwrap();
    assert!(matches!(RunFolder::open(&path), Err(OpenError::Trace(TraceError::Missing(_)))));
}

#[test]
fn a_log_that_is_missing_or_broken() {
    let (_parent, folder) = folder_without_records();
    let mut manifest = manifest();
    let thread: ThreadReport = serde_json::from_value(serde_json::json!({
        "id": 0, "workload": "PERIODIC 1ms 2ms", "policy": "OTHER:0", "cpus": [0],
        "cpu_time_ns": 1, "wall_ns": 1, "intervals": 1,
        "gaps": {"count": 0, "total_ns": 0, "p50_ns": 0, "p99_ns": 0, "p999_ns": 0, "max_ns": 0},
        "deadlines": null, "work": null, "records_dropped": 0,
        "latency": {"count": 1, "min_ns": 1, "p50_ns": 1, "p99_ns": 1, "p999_ns": 1, "max_ns": 1,
                    "mean_ns": 1, "lost": 0}
    }))
    .unwrap();
    manifest.result.as_mut().unwrap().threads.push(thread);
    let folder = folder.finish(&manifest).unwrap();
    assert!(matches!(folder.latencies(), Err(LatencyError::Missing(_))));

    for broken in ["hello", "Tag=thread-0,0.0,1.0,1.0,@@\n", "Tag=thread-0,0.0,1.0,1.0,HISTFA==\n"]
    {
        fs::write(folder.path().join(LATENCY_FILE), broken).unwrap();
        let read = folder.latencies();
        assert!(matches!(read, Err(LatencyError::Damaged { .. })), "{read:?}");
    }
}

/// Values of a column of a trace made by others.
enum Values<'a> {
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
    /// A nullable column, with the level 1 where there is a value.
    Nullable(&'a [i32], &'a [i16]),
}

/// Writes a Parquet file as other programs may.
fn foreign(path: &Path, columns: &[(&str, Values<'_>)]) {
    let end = |field: &str| if field.ends_with('}') { "" } else { ";" };
    let fields: String =
        columns.iter().map(|(field, _)| format!("{field}{} ", end(field))).collect();
    let schema = parse_message_type(&format!("message other {{ {fields} }}")).unwrap();
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for (_, values) in columns {
        let mut column = group.next_column().unwrap().unwrap();
        match values {
            Values::Narrow(values) => column.typed::<Int32Type>().write_batch(values, None, None),
            Values::Wide(values) => column.typed::<Int64Type>().write_batch(values, None, None),
            Values::Nullable(values, levels) => {
                column.typed::<Int32Type>().write_batch(values, Some(levels), None)
            }
        }
        .unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

/// What is read of a trace that another program wrote.
fn read_foreign(columns: &[(&str, Values<'_>)]) -> Result<Vec<Interval>, TraceError> {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join(TRACE_FILE);
    foreign(&path, columns);
    read_all(&path)
}

const THREAD: &str = "required int32 thread";
const CPU: &str = "required int32 cpu";
const START_NS: &str = "required int64 start_ns";
const END_NS: &str = "required int64 end_ns";
const START_TICKS: &str = "required int64 start_ticks (INTEGER(64,false))";
const END_TICKS: &str = "required int64 end_ticks (INTEGER(64,false))";

/// The six columns of CONTRACT, two rows.
fn six() -> Vec<(&'static str, Values<'static>)> {
    vec![
        (THREAD, Values::Narrow(&[0, 1])),
        (CPU, Values::Narrow(&[0, 0])),
        (START_NS, Values::Wide(&[0, 20])),
        (END_NS, Values::Wide(&[10, 30])),
        (START_TICKS, Values::Wide(&[0, -20])),
        (END_TICKS, Values::Wide(&[10, -10])),
    ]
}

#[test]
fn six_columns_are_enough_and_others_are_ignored() {
    let mut columns = six();
    columns.reverse();
    columns.insert(2, ("required int64 mine", Values::Wide(&[1, 2])));
    columns
        .insert(0, ("required group nested { required int32 thread; }", Values::Narrow(&[7, 7])));
    let read = read_foreign(&columns).unwrap();
    assert_eq!(read.len(), 2);
    assert_eq!((read[0].thread, read[1].thread), (0, 1));
    assert_eq!(read[1].start_ticks, u64::MAX - 19);
    assert!(read.iter().all(|interval| interval.onset == IntervalStart::Gap));
}

#[test]
fn onsets_of_a_later_version_are_gaps() {
    for codes in [[0, 6], [0, 256], [0, -1], [0, i32::MIN]] {
        let mut columns = six();
        columns.push(("required int32 onset", Values::Narrow(&codes)));
        let onsets: Vec<IntervalStart> =
            read_foreign(&columns).unwrap().iter().map(|i| i.onset).collect();
        assert_eq!(onsets, [IntervalStart::Start, IntervalStart::Gap]);
    }
}

/// Counts beyond a record's are the most that it can say; what is not all there, or of a later version,
/// is not known.
/// Folders written before have `rseq` with -1 where these have `cleared` with null.
#[test]
fn evidence_that_is_not_all_there() {
    let mut columns = six();
    columns.extend([
        ("required int32 rseq", Values::Narrow(&[1, 2])),
        ("required int32 involuntary", Values::Narrow(&[300, 1])),
        ("required int32 voluntary", Values::Narrow(&[0, 1])),
        ("required int32 faults", Values::Narrow(&[7, -1])),
    ]);
    let counted = CounterDeltas { involuntary: 255, voluntary: 0, faults: 7 };
    let known = Evidence { cleared: Some(true), counted: Some(counted) };
    let read: Vec<Evidence> = read_foreign(&columns).unwrap().iter().map(|i| i.evidence).collect();
    assert_eq!(read, [known, Evidence::NONE]);

    // As it is written now.
    let mut nullable = six();
    nullable.extend([
        ("optional int32 cleared", Values::Nullable(&[1], &[1, 0])),
        ("optional int32 involuntary", Values::Nullable(&[300], &[1, 0])),
        ("optional int32 voluntary", Values::Nullable(&[0], &[1, 0])),
        ("optional int32 faults", Values::Nullable(&[7], &[1, 0])),
    ]);
    let read: Vec<Evidence> = read_foreign(&nullable).unwrap().iter().map(|i| i.evidence).collect();
    assert_eq!(read, [known, Evidence::NONE]);

    columns.remove(8);
    let read = read_foreign(&columns).unwrap();
    assert_eq!(read[0].evidence, Evidence { cleared: Some(true), counted: None });

    columns[6] = ("required int64 rseq", Values::Wide(&[0, 1]));
    match read_foreign(&columns) {
        Err(TraceError::WrongType { column, .. }) => assert_eq!(column, "cleared"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn missing_columns_are_named() {
    for (index, name) in
        ["thread", "cpu", "start_ns", "end_ns", "start_ticks", "end_ticks"].iter().enumerate()
    {
        let mut columns = six();
        columns.remove(index);
        match read_foreign(&columns) {
            Err(TraceError::MissingColumn { column, .. }) => assert_eq!(column, *name),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn wrong_types_are_named() {
    for (index, field, values, found, wanted) in [
        (0, "required int64 thread", Values::Wide(&[0, 1]), "int64", "int32"),
        (2, "required int32 start_ns", Values::Narrow(&[0, 1]), "int32", "int64"),
        (4, "required int64 start_ticks", Values::Wide(&[0, 1]), "int64", "uint64"),
        (3, "required int64 end_ns (INTEGER(64,false))", Values::Wide(&[0, 1]), "uint64", "int64"),
    ] {
        let mut columns = six();
        columns[index] = (field, values);
        match read_foreign(&columns) {
            Err(TraceError::WrongType { found: f, wanted: w, .. }) => {
                assert_eq!((f.as_str(), w), (found, wanted));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn bad_rows_are_reported_after_the_good_ones() {
    for (index, field, values, fault) in [
        (0, THREAD, Values::Narrow(&[0, -1]), RowFault::Thread),
        (1, CPU, Values::Narrow(&[0, -1]), RowFault::Cpu),
        (3, END_NS, Values::Wide(&[10, 19]), RowFault::Reversed),
        (2, START_NS, Values::Wide(&[0, -1]), RowFault::OutOfOrder),
    ] {
        let mut columns = six();
        columns[index] = (field, values);
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join(TRACE_FILE);
        foreign(&path, &columns);
        let mut rows = hourglass_runs::store::Trace::open(&path).unwrap().intervals().unwrap();
        assert!(matches!(rows.next(), Some(Ok(_))));
        match rows.next() {
            Some(Err(TraceError::Row { row: 1, fault: found, .. })) => assert_eq!(found, fault),
            other => panic!("{other:?}"),
        }
        assert!(rows.next().is_none());
    }
}

#[test]
fn a_row_without_a_value() {
    let mut columns = six();
    columns[1] = ("optional int32 cpu", Values::Nullable(&[3, 4], &[1, 1]));
    assert_eq!(read_foreign(&columns).unwrap()[1].cpu, 4);

    columns[1] = ("optional int32 cpu", Values::Nullable(&[3], &[1, 0]));
    assert!(matches!(read_foreign(&columns), Err(TraceError::Damaged { .. })));
}

/// `data/pyarrow.parquet` was written by pyarrow 26 (`write_table(table, compression="none")`):
/// nullable columns, a text column before ours, no onset, ticks above 2^63.
#[test]
fn a_trace_written_by_pyarrow() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pyarrow.parquet");
    let read = read_all(&path).unwrap();
    assert_eq!(read.len(), 5);
    assert_eq!(
        read[4],
        Interval {
            start_ticks: (1 << 63) + 305,
            end_ticks: u64::MAX,
            ..Interval::new(0, 1, 300, 300, IntervalStart::Gap)
        }
    );
    assert_eq!(read[0].start_ns, -5);
}

#[test]
fn samples_that_are_none() {
    let (_parent, folder) = folder_of_samples(&[(0, vec![1, 2])]);
    let path = folder.path().join(SAMPLES_FILE);
    let lateness = "required int64 lateness_ps (INTEGER(64,false))";

    foreign(&path, &[(THREAD, Values::Narrow(&[4, 5])), (lateness, Values::Wide(&[1, -1]))]);
    assert_eq!(read_samples(&folder, 5).unwrap(), Some(vec![u64::MAX]));
    // Folders of earlier versions lack the time.
    let old: Vec<_> = folder.wake_ups(5).unwrap().unwrap().map(Result::unwrap).collect();
    assert_eq!(old, [StoredWakeUp { woke_ns: None, lateness_ps: u64::MAX }]);

    for (threads, fault) in [([4, 3], RowFault::ThreadOrder), ([0, -1], RowFault::Thread)] {
        foreign(&path, &[(THREAD, Values::Narrow(&threads)), (lateness, Values::Wide(&[1, 2]))]);
        match read_samples(&folder, 9) {
            Err(LatencyError::Samples(TraceError::Row { row: 1, fault: found, .. })) => {
                assert_eq!(found, fault);
            }
            other => panic!("{other:?}"),
        }
    }

    foreign(&path, &[(THREAD, Values::Narrow(&[0]))]);
    match read_samples(&folder, 0) {
        Err(LatencyError::Samples(TraceError::MissingColumn { column, .. })) => {
            assert_eq!(column, "lateness_ps");
        }
        other => panic!("{other:?}"),
    }
}
