//! What is said about two sides besides their numbers.

use hourglass_infer::compare::Sample;
use hourglass_model::document::Warning;
use hourglass_model::host::Host;
use hourglass_model::manifest::{
    CalibrationFacts, ClockFacts, Epoch, MANIFEST_SCHEMA, Manifest, MemoryFacts, ThreadFacts,
};
use hourglass_model::{Evidence, Interval, Onset};

use super::side::Run;
use super::*;

const SECOND: u64 = 1_000_000_000;

fn thread(workload: &str, gap_ns: u64) -> ThreadFacts {
    ThreadFacts {
        id: 0,
        workload: workload.to_owned(),
        wake_up: "HR".to_owned(),
        policy_asked: "OTHER:0".to_owned(),
        policy: "OTHER:0".to_owned(),
        reservation: None,
        cpus: "0".to_owned(),
        start_ns: 0,
        finish_ns: SECOND,
        gap_ns,
        loop_ns: gap_ns / 2,
        records_capacity: 1_000,
    }
}

/// A run that began so many seconds after 2001.
fn run(began_s: u64, gap_ns: u64) -> Run {
    let calibration = CalibrationFacts::default();
    let manifest = Manifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        hourglass: "0.1.0".to_owned(),
        command_line: ["hourglass", "-n", "1"].map(str::to_owned).to_vec(),
        epoch: Epoch { realtime_ns: began_s * SECOND, ..Epoch::default() },
        duration_ns: SECOND,
        elapsed_ns: SECOND,
        seed: 1,
        records_capacity: 1_000,
        ring: false,
        clock: ClockFacts {
            source: "tsc".to_owned(),
            trusted: true,
            reason: String::new(),
            frequency_hz: 1e9,
            calibration_start: calibration,
            calibration_end: calibration,
        },
        threads: vec![thread("CPU", gap_ns)],
        memory: MemoryFacts::default(),
        dma_latency_us: None,
        host: Host { kernel: "6.8".to_owned(), ..Host::default() },
        simulation: None,
        evidence: Vec::new(),
        kernel: None,
        result: None,
    };
    let sample = Sample::new(SECOND);
    Run { manifest, sample, folder: None, dropped: 0, interrupted: false, without_order: false }
}

fn compared(a: Vec<Run>, b: Vec<Run>) -> DiffDocument {
    document(a, b, &Rules::default(), 0)
}

fn warning<'a>(document: &'a DiffDocument, id: &str) -> Option<&'a Warning> {
    document.warnings.iter().find(|warning| warning.id == id)
}

/// Facts, section 2: sequential A then B is no valid comparison on a shared machine.
#[test]
fn runs_one_after_the_other_are_warned_of() {
    let one_each = compared(vec![run(1, 100)], vec![run(2, 100)]);
    let remedy = &warning(&one_each, "sequential").unwrap().remedy;
    assert!(remedy.contains("--against"), "{remedy}");
    let in_turn = compared(vec![run(1, 100), run(4, 100)], vec![run(2, 100), run(3, 100)]);
    assert_eq!(warning(&in_turn, "sequential"), None);
    assert!(warning(&in_turn, "few-rounds").is_some());
    let apart = compared(vec![run(1, 100), run(2, 100)], vec![run(3, 100), run(4, 100)]);
    assert!(warning(&apart, "sequential").unwrap().text.contains("all runs of one side"));
    let many = |first: u64| (0..5).map(|round| run(first + 2 * round, 100)).collect::<Vec<_>>();
    let enough = compared(many(1), many(2));
    assert_eq!(enough.warnings, [], "five rounds in turn of one machine");
    assert_eq!((enough.rounds, enough.method.as_str()), (5, "rounds"));
}

/// Different workloads, machines or counters are compared with a warning that names the difference.
#[test]
fn what_differs_is_named() {
    let mut other = run(2, 100);
    let manifest = &mut other.manifest;
    manifest.clock.source = "monotonic".to_owned();
    manifest.host.kernel = "6.9".to_owned();
    manifest.host.cpu.model = Some("Another".to_owned());
    manifest.hourglass = "0.2.0".to_owned();
    manifest.elapsed_ns = 3 * SECOND;
    manifest.threads = vec![thread("LAT 1ms", 100); 2];
    manifest.dma_latency_us = Some(0);
    (other.dropped, other.interrupted, other.without_order) = (7, true, true);
    let document = compared(vec![run(1, 100)], vec![other]);
    for (id, text) in [
        ("other-counter", "tsc against monotonic"),
        ("other-machine", "kernel 6.8 against 6.9; processor (unknown) against Another"),
        ("other-version", "0.1.0 against 0.2.0"),
        ("other-workload", "CPU against 2 x LAT 1ms"),
        ("other-duration", "1.000 s and the other for 3.000 s"),
        ("trace-incomplete", "a run"),
        ("interrupted", "a run"),
        ("latency-without-order", "histogram"),
    ] {
        let found = warning(&document, id).unwrap_or_else(|| panic!("{id}"));
        assert!(found.text.contains(text), "{found:?}");
    }
    let differs = |what: &str| document.differences.iter().any(|d| d.what == what);
    assert!(differs("threads") && differs("thread 0: workload"), "{:?}", document.differences);
    assert!(differs("/dev/cpu_dma_latency") && !differs("thread 0: policy"));
}

/// GAP is measured anew for each run: what only one of two could see is left out on both sides.
#[test]
fn gaps_count_above_the_larger_threshold() {
    let with_gaps = |began: u64, gap_ns: u64, gaps: &[i64]| {
        let mut run = run(began, gap_ns);
        let mut at = 0;
        for gap in gaps {
            at += gap;
            let (start_ns, end_ns) = (at, at + 1_000);
            run.sample.push(&Interval {
                thread: 0,
                cpu: 0,
                start_ns,
                end_ns,
                start_ticks: 0,
                end_ticks: 0,
                onset: Onset::Gap,
                evidence: Evidence::NONE,
            });
            at = end_ns;
        }
        run
    };
    let a = with_gaps(1, 100, &[0, 150, 150, 500]);
    let b = with_gaps(2, 200, &[0, 500]);
    let document = compared(vec![a], vec![b]);
    assert_eq!(document.gap_ns, 200);
    let p50 = document.metrics.iter().find(|metric| metric.name == "gaps.p50_ns").unwrap();
    assert_eq!((p50.a, p50.b), (Some(500.0), Some(500.0)));
}
