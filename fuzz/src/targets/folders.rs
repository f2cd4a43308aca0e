//! Run folders of which one file is changed: read, explained and drawn as `hourglass report` does.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use hourglass_documents::manifest::Manifest;
use hourglass_runs::open_run;
use hourglass_runs::store::{
    KERNEL_FILE, LATENCY_FILE, MANIFEST_FILE, RunFolder, SAMPLES_FILE, StoredWakeUp, TRACE_FILE,
};
use hourglass_trace::{
    CounterDeltas, Evidence, Interval, IntervalStart, KernelEvent, KernelEventKind,
};

use super::pictures;
use crate::{Answer, Body, Target, answer};

/// As the command wrote it: two threads, one a latency test.
const SOUND: &[u8] = include_bytes!("../../corpus/manifest/small.json");

pub(super) fn sound(parent: &Path) -> PathBuf {
    let manifest: Manifest =
        pictures::manifest(SOUND).expect("the manifest of the corpus is sound");
    let path = parent.join("run");
    let made = "a run folder can be made";
    let mut folder = RunFolder::create(&path).expect(made);
    let mut trace = folder.trace().expect(made);
    intervals().iter().for_each(|interval| trace.write(interval).expect(made));
    trace.finish().expect(made);
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).expect(made);
    (1..40_u64).for_each(|at| histogram.record(at * at * 700).expect(made));
    folder.write_latencies(&manifest.epoch, manifest.elapsed_ns, &[(1, &histogram)]).expect(made);
    let late = (1..40_u64).map(|at| StoredWakeUp {
        woke_ns: (at % 3 > 0).then_some(at as i64 * 2_000_000),
        lateness_ps: at * at * 700_000,
    });
    folder.write_samples([(1, late)]).expect(made);
    folder.write_kernel_events(events()).expect(made);
    folder.finish(&manifest).expect(made);
    path
}

fn intervals() -> Vec<Interval> {
    let record = |row: u64| Interval {
        thread: (row % 2) as u32,
        cpu: (row / 7 % 2) as u32,
        start_ns: row as i64 * 100_000,
        end_ns: row as i64 * 100_000 + 70_000 + (row * row % 50) as i64,
        start_ticks: (1 << 40) + row * 240_000,
        end_ticks: (1 << 40) + row * 240_000 + 168_000,
        onset: IntervalStart::ALL[(row % 5) as usize],
        evidence: Evidence {
            cleared: [None, Some(false), Some(true)][(row % 3) as usize],
            counted: (row % 4 > 1).then_some(CounterDeltas {
                involuntary: 1,
                voluntary: 0,
                faults: 2,
            }),
        },
    };
    (0..60).map(record).collect()
}

fn events() -> Vec<KernelEvent> {
    let event = |row: u64| KernelEvent {
        ns: row as i64 * 90_000,
        ticks: (1 << 40) + row * 216_000,
        value: row % 3,
        cpu: (row % 2) as u32,
        a: (100 + row % 4) as u32,
        b: (100 + row % 3) as u32,
        kind: KernelEventKind::ALL[row as usize % KernelEventKind::ALL.len()],
    };
    (0..60).map(event).collect()
}

fn file(name: &str) -> Vec<u8> {
    let home = tempfile::tempdir().expect("a folder for tests");
    fs::read(sound(home.path()).join(name)).expect("a complete folder has it")
}

fn with(name: &'static str) -> Body {
    let home = tempfile::tempdir().expect("a folder for tests");
    let path = sound(home.path());
    Box::new(move |bytes| {
        // What the loop has of the folder lives as long as it.
        let _ = &home;
        fs::write(path.join(name), bytes).expect("a folder for tests");
        read(&path)
    })
}

fn read(path: &Path) -> Answer {
    let mut run = match open_run(path) {
        Ok(run) => run,
        Err(error) => return answer(1, &error.to_string()),
    };
    let singly = run.wake_ups(1).and_then(|mut all| all.try_for_each(|one| one.map(drop)));
    let mut said: BTreeMap<u32, String> = BTreeMap::new();
    said.insert(0, singly.map_or_else(|error| error.to_string(), |_| String::new()));
    match run.contents(hourglass_measure::has_room) {
        Ok(contents) => {
            run.find_causes();
            run.infer();
            pictures::draw(&run, contents);
        }
        Err(error) => drop(said.insert(1, error.to_string())),
    }
    let warnings = &run.document.result.warnings;
    said.extend(warnings.iter().zip(2..).map(|(warning, at)| (at, warning.id.clone())));
    said.into_iter()
        .fold(2, |sum: Answer, (at, text)| sum.rotate_left(5) ^ answer(u64::from(at), &text))
}

pub(super) const MANIFEST: Target = Target {
    name: "manifest",
    purpose: "manifest.json of a run folder; what can be read is drawn",
    examples: super::no_examples,
    start: || with(MANIFEST_FILE),
};

pub(super) const TRACE: Target = Target {
    name: "trace",
    purpose: "trace.parquet of a run folder",
    examples: || {
        vec![
            file(TRACE_FILE),
            include_bytes!("../../../crates/runs/tests/data/pyarrow.parquet").to_vec(),
        ]
    },
    start: || with(TRACE_FILE),
};

pub(super) const SAMPLES: Target = Target {
    name: "samples",
    purpose: "latency.parquet of a run folder",
    examples: || vec![file(SAMPLES_FILE)],
    start: || with(SAMPLES_FILE),
};

pub(super) const KERNEL: Target = Target {
    name: "kernel",
    purpose: "kernel.parquet of a run folder",
    examples: || vec![file(KERNEL_FILE)],
    start: || with(KERNEL_FILE),
};

pub(super) const HDR_LOG: Target = Target {
    name: "hdr-log",
    purpose: "latency.hlog of a run folder",
    examples: || vec![file(LATENCY_FILE)],
    start: || with(LATENCY_FILE),
};
