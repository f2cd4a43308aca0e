//! What is said about two sides besides their numbers.

use hourglass_documents::diff::Statement;
use hourglass_documents::document::{Premise, RUN_SCHEMA, RunDocument, RunResult, Warning};
use hourglass_documents::host::Host;
use hourglass_documents::manifest::{CalibrationFacts, ClockFacts, Epoch, Manifest, ThreadFacts};
use hourglass_documents::premise::PREMISE_BROKEN;
use hourglass_trace::compare::RunSample;
use hourglass_trace::{Interval, IntervalStart};

use super::side::ComparedRun;
use super::statements::RunObservation;
use super::*;

const SECOND: u64 = 1_000_000_000;

fn thread(workload: &str, gap_ns: u64) -> ThreadFacts {
    ThreadFacts {
        workload: workload.to_owned(),
        wake_up: "HR".to_owned(),
        policy_asked: "OTHER:0".to_owned(),
        policy: "OTHER:0".to_owned(),
        cpus: "0".to_owned(),
        finish_ns: SECOND,
        gap_ns,
        loop_ns: gap_ns / 2,
        records_capacity: 1_000,
        ..ThreadFacts::default()
    }
}

/// A run that began `began_s` seconds after 2001.
fn run(began_s: u64, gap_ns: u64) -> ComparedRun {
    let calibration = CalibrationFacts::default();
    let manifest = Manifest {
        hourglass: "0.1.0".to_owned(),
        command_line: ["hourglass", "-n", "1"].map(str::to_owned).to_vec(),
        epoch: Epoch { realtime_ns: began_s * SECOND, ..Epoch::default() },
        duration_ns: SECOND,
        elapsed_ns: SECOND,
        seed: 1,
        records_capacity: 1_000,
        clock: ClockFacts {
            source: "tsc".to_owned(),
            trusted: true,
            reason: String::new(),
            frequency_hz: 1e9,
            calibration_start: calibration,
            calibration_end: calibration,
        },
        threads: vec![thread("CPU", gap_ns)],
        host: Host { kernel: "6.8".to_owned(), ..Host::default() },
        ..Manifest::default()
    };
    let (sample, observed) = (RunSample::new(SECOND), RunObservation::default());
    ComparedRun {
        manifest,
        sample,
        observed,
        gates: Vec::new(),
        folder: None,
        dropped: 0,
        interrupted: false,
        premises: Vec::new(),
        without_order: false,
    }
}

fn compared(a: Vec<ComparedRun>, b: Vec<ComparedRun>) -> DiffDocument {
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
    let with_latencies = |began_s: u64| {
        let mut run = run(began_s, 100);
        run.sample.push_latencies(&[1_000_000, 2_000_000, 3_000_000]);
        run
    };
    let in_turn = compared([1, 4].map(with_latencies).into(), [2, 3].map(with_latencies).into());
    assert_eq!(warning(&in_turn, "sequential"), None);
    assert!(warning(&in_turn, "few-rounds").is_some());
    let apart = compared(vec![run(1, 100), run(2, 100)], vec![run(3, 100), run(4, 100)]);
    assert!(warning(&apart, "sequential").unwrap().text.contains("all runs of one side"));
    let many = |first: u64| (0..10).map(|round| run(first + 2 * round, 100)).collect::<Vec<_>>();
    let enough = compared(many(1), many(2));
    assert_eq!(enough.warnings, [], "ten rounds in turn of one machine");
    assert_eq!((enough.rounds, enough.method.as_str()), (10, "rounds"));
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
            run.sample.push(&Interval::new(0, 0, start_ns, end_ns, IntervalStart::Gap));
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

/// A run of 4 s whose thread 0 has a gap of 20 us every `every_us`; with a second thread if `beside` names one.
fn with_gaps(began_s: u64, every_us: i64, beside: Option<&str>) -> ComparedRun {
    let mut run = run(began_s, 100);
    run.manifest.elapsed_ns = 4 * SECOND;
    let other = beside.map(|workload| ThreadFacts { id: 1, ..thread(workload, 100) });
    run.manifest.threads.extend(other);
    observe(&mut run);
    let every = every_us * 1_000;
    let count = 4 * SECOND as i64 / every;
    // Not quite regular, so that slices differ.
    let at = |k: i64| k * every + (k * k * 7_919) % (every / 2);
    for k in 0..count {
        let (start_ns, end_ns) = (at(k) + 20_000, at(k + 1).max(at(k) + 30_000));
        run.observed.push(&Interval::new(0, 0, start_ns, end_ns, IntervalStart::Gap));
    }
    run
}

fn observe(run: &mut ComparedRun) {
    let (schema, result) = (RUN_SCHEMA.to_owned(), RunResult::default());
    let document = RunDocument { schema, manifest: run.manifest.clone(), result };
    run.observed = RunObservation::of(&document);
}

/// A round of which a thread lost its CPU was compared as any other, and `--against` ended with 0 or 1.
#[test]
fn a_premise_that_broke_in_any_round_leaves_nothing_decided() {
    let side = |began_s: u64, every_us: i64| -> Vec<ComparedRun> {
        (0..10).map(|round| with_gaps(began_s + round, every_us, None)).collect()
    };
    for broken in [None, Some((7, 'A')), Some((2, 'B'))] {
        let (mut a, mut b) = (side(1, 40_000), side(20, 4_000));
        if let Some((round, letter)) = broken {
            let runs = if letter == 'A' { &mut a } else { &mut b };
            let text = "thread 0 was moved".to_owned();
            runs[round - 1].premises = vec![Premise { id: "pinning-lost".into(), text, at_ns: 1 }];
        }
        let document = compared(a, b);
        let said = warning(&document, PREMISE_BROKEN).map(|warning| warning.text.clone());
        let wanted = broken
            .map(|(round, side)| format!("no verdict, round {round}, {side}: thread 0 was moved"));
        assert_eq!(said, wanted);
        if broken.is_some() {
            assert_eq!(document.verdict, DiffVerdict::Unknown);
            assert!(document.metrics.iter().all(|m| m.verdict == DiffVerdict::Unknown));
            assert_eq!(document.statements, []);
        }
    }
}

/// Section 4: few gaps in an idle run, many beside a load: the load causes them. Of threads that are not on
/// both sides nothing is said, and a trace with holes decides nothing.
#[test]
fn a_load_that_causes_gaps_is_said() {
    let said = |a: ComparedRun, b: ComparedRun| compared(vec![a], vec![b]).statements;
    let found = said(with_gaps(1, 4_000, None), with_gaps(2, 2_000, Some("CPU_YIELD 1ms")));
    assert_eq!(found.len(), 1, "{found:?}");
    let load = &found[0];
    assert_eq!((load.name.as_str(), load.subject.as_str()), (Statement::LOAD, "b"));
    assert_eq!(load.answer, "yes");
    assert!(load.confidence >= 0.99 && load.text.contains("% of them"), "{load:?}");
    let back = said(with_gaps(1, 2_000, None), with_gaps(2, 4_000, None));
    assert_eq!((back[0].subject.as_str(), back[0].answer.as_str()), ("a", "yes"));
    let equal = said(with_gaps(1, 4_000, None), with_gaps(2, 4_000, None));
    assert_eq!(equal[0].answer, "no", "{equal:?}");
    let mut holes = with_gaps(2, 2_000, None);
    holes.dropped = 5;
    let unsure = said(with_gaps(1, 4_000, None), holes);
    assert_eq!((unsure[0].answer.as_str(), unsure[0].confidence), ("unknown", 0.0));
    let mut other = with_gaps(2, 2_000, None);
    other.manifest.threads[0].workload = "CPU_YIELD 1ms".to_owned();
    assert!(said(with_gaps(1, 4_000, None), other).is_empty());
}

/// Section 4: high latencies with one kind of timer but not with another.
#[test]
fn an_inaccurate_timer_is_said() {
    let by = |timer: &str, one_in: u64| {
        let mut run = run(1, 100);
        let waiting = ThreadFacts { wake_up: timer.to_owned(), ..thread("LAT 2ms", 100) };
        run.manifest.threads = vec![waiting];
        observe(&mut run);
        let late = |k: u64| if k.is_multiple_of(one_in) { 9_000_000_000 } else { 60_000_000 };
        let late: Vec<u64> = (0..2_000).map(late).collect();
        run.observed.push_latencies(0, 60_000, &late);
        run
    };
    let found = compared(vec![by("HR", 2_000)], vec![by("TICK:100", 50)]).statements;
    let timer = found.iter().find(|found| found.name == Statement::TIMER).unwrap();
    assert_eq!((timer.subject.as_str(), timer.answer.as_str()), ("b", "yes"), "{timer:?}");
    // Twice the median, and then the next column of Table 1.
    assert!(
        timer.text.contains("2.00 % of the wake-ups by TICK:100 are later than 1ms"),
        "{timer:?}"
    );
    let same = compared(vec![by("HR", 50)], vec![by("HR", 2_000)]).statements;
    assert!(same.iter().all(|found| found.name != Statement::TIMER), "{same:?}");
}
