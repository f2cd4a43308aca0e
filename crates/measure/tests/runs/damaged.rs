//! Folders of which a part is damaged: the rest is read, and what is wrong is said.

use std::fs;
use std::path::Path;

use hourglass_documents::document::Warning;
use hourglass_measure::RunOptions;
use hourglass_runs::{OpenRun, open_run};
use hourglass_time::Span;
use hourglass_workload::models;
use hourglass_workload::spec::{RunSpec, ThreadSpec};

/// A short latency test, kept in `folder`.
fn latencies_in(folder: &Path) {
    let model = models::parse(&["LAT", "2ms"]).unwrap();
    let thread = ThreadSpec { model, ..ThreadSpec::default() };
    let spec = RunSpec { duration: Span::from_millis(100), ..RunSpec::new(vec![thread]) };
    let request = RunOptions { folder: Some(folder.to_owned()), ..RunOptions::new(spec) };
    hourglass_measure::run(request, &mut ()).unwrap();
}

fn said(recalled: &OpenRun) -> Vec<&Warning> {
    let warnings = &recalled.document.result.warnings;
    warnings.iter().filter(|warning| warning.id == "latency-log").collect()
}

/// Issue 6, bad input: beside a sound latency.parquet a garbled, foreign or missing log is noticed, and what
/// does not need it is read.
#[test]
fn a_damaged_log_of_latencies_is_noticed() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("run");
    latencies_in(&folder);
    let sound = open_run(&folder).unwrap();
    assert!(said(&sound).is_empty(), "{:?}", said(&sound));
    let contents = sound.contents(|_| true).unwrap();
    let log = folder.join("latency.hlog");
    let text = fs::read_to_string(&log).unwrap();
    // The line with the histogram; those above it are comments and the legend.
    let (above, last) = text.trim_end().rsplit_once('\n').unwrap();
    let half = &last[..last.len() / 2];
    for damaged in [format!("{above}\n{half}\n"), format!("{above}\n"), "x".to_owned()] {
        fs::write(&log, &damaged).unwrap();
        let recalled = open_run(&folder).unwrap();
        assert_eq!(said(&recalled).len(), 1, "{damaged}");
        assert!(said(&recalled)[0].text.contains("latency.hlog"), "{:?}", said(&recalled));
        assert_eq!(recalled.contents(|_| true).unwrap().latencies_us, contents.latencies_us);
    }
    fs::remove_file(&log).unwrap();
    assert_eq!(said(&open_run(&folder).unwrap()).len(), 1);
}
