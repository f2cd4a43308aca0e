//! The terminal summary: how it looks, and that nothing from outside can take over a terminal.

use hourglass_documents::diff::{ControlReport, DiffDocument, RoundGates};
use hourglass_documents::document::{
    CauseReport, Deadlines, GapReport, GateReport, LatencyReport, OccupantReport, Premise,
    RUN_SCHEMA, RunDocument, RunResult, ThreadReport, Warning,
};
use hourglass_documents::host::Host;
use hourglass_documents::manifest::{CalibrationFacts, ClockFacts, Epoch, Manifest};
use hourglass_documents::premise::PREMISE_BROKEN;
use hourglass_report::text::{Style, diff, summary};
use hourglass_report::{export, html};

use crate::{shown, without_colours};

fn manifest() -> Manifest {
    let made = shown::manifest();
    let frequency_hz = 2_095_078_123.4;
    let calibration = CalibrationFacts { frequency_hz, ..made.clock.calibration_start };
    Manifest {
        command_line: Vec::new(),
        epoch: Epoch::default(),
        duration_ns: 10_000_000_000,
        elapsed_ns: 10_000_481_512,
        clock: ClockFacts {
            frequency_hz,
            calibration_start: calibration,
            calibration_end: calibration,
            ..made.clock
        },
        host: Host { kernel: "6.8.0-41-generic".to_owned(), ..Host::default() },
        ..made
    }
}

fn thread(id: u32, workload: &str, policy: &str) -> ThreadReport {
    ThreadReport {
        policy: policy.to_owned(),
        cpus: vec![0, 1, 2, 3],
        cpus_seen: vec![1],
        wall_ns: 8_000_000_000,
        gaps: GapReport {
            count: 11_095,
            total_ns: 31_000_000,
            p50_ns: 2_184,
            p99_ns: 9_815,
            p999_ns: 27_007,
            max_ns: 481_302,
        },
        ..shown::thread(id, workload)
    }
}

fn document(result: RunResult) -> RunDocument {
    RunDocument { schema: RUN_SCHEMA.to_owned(), manifest: manifest(), result }
}

/// The task set of section 5.5 with the outcome of its first run, and everything else that a
/// summary can say.
fn full() -> RunDocument {
    let mut modem = thread(0, "PERIODIC 3ms 8ms", "FIFO:80");
    modem.deadlines = Some(Deadlines { hit: 1001, completed: 1001, ..Deadlines::default() });
    let mut video = thread(1, "PERIODIC 17ms 33ms", "FIFO:40");
    video.deadlines = Some(Deadlines { hit: 143, missed: 142, lost: 18, completed: 285 });
    video.cpus_seen = vec![0, 2, 3];
    video.migrations = 7;
    video.emulated = Some("TICK: the 10 ms tick of Linux 2.4, by rounding up".to_owned());
    video.records_dropped = 1_200;
    let mut probe = thread(2, "LAT 5.3ms", "DEADLINE:0.1ms/5.3ms");
    probe.latency = Some(LatencyReport {
        count: 67_924,
        min_ns: 1_033,
        p50_ns: 54_101,
        p99_ns: 97_843,
        p999_ns: 612_300,
        max_ns: 4_012_345,
        mean_ns: 55_000,
        lost: 2,
    });
    probe.gaps = GapReport::default();
    let mut scan = thread(3, "CPU_SCAN 128", "OTHER");
    scan.work = Some(88_120);
    let mut game = thread(4, "CPU_PERIODIC 10ms 50ms", "OTHER");
    game.deadlines = Some(Deadlines { hit: 200, completed: 998, ..Deadlines::default() });
    let mut document = document(RunResult {
        threads: vec![modem, video, probe, scan, game],
        causes: vec![CauseReport {
            cause: "timer_tick".to_owned(),
            count: 9_990,
            total_ns: 21_000_000,
            p50_ns: 2_101,
            max_ns: 8_000,
            confidence: 0.97,
            ran: vec![
                OccupantReport {
                    thread: None,
                    tid: Some(812),
                    name: Some("stress\u{1b}[2J".to_owned()),
                    total_ns: 20_000_000,
                },
                OccupantReport { thread: Some(1), tid: None, name: None, total_ns: 1_000_000 },
            ],
        }],
        switches: 4_012,
        warnings: vec![Warning {
            id: "rt-throttling".to_owned(),
            text:
                "real-time throttling is on: real-time threads lose 50 ms of every second to the \
                   others as soon as they use it up"
                    .to_owned(),
            remedy: "sysctl -w kernel.sched_rt_runtime_us=-1".to_owned(),
        }],
        gates: vec![GateReport {
            name: "max-missed".to_owned(),
            limit: 0.0,
            value: 142.0,
            unit: "periods".to_owned(),
            passed: false,
            confidence: None,
        }],
        interrupted: true,
        ..RunResult::default()
    });
    document.manifest.elapsed_ns = 9_412_000_000;
    document
}

#[test]
fn everything_that_a_summary_says() {
    let text = summary(&full(), Style::Plain);
    let expected = include_str!("../data/summary.txt");
    assert_eq!(text, expected, "\n{text}");
}

/// A quiet run of one thread: the paper's default, one CPU-bound thread (Appendix A).
#[test]
fn one_quiet_thread() {
    let text = summary(
        &document(RunResult { threads: vec![thread(0, "CPU", "OTHER")], ..RunResult::default() }),
        Style::Plain,
    );
    assert_eq!(
        text,
        "\
1 thread, 10.0 s, Linux 6.8.0-41-generic

Threads
thread  workload  policy  CPU share  CPUs  intervals
     0  CPU       OTHER      37.5 %  1         12345

Gaps, us
thread   gaps  median  p99  p99.9    max
     0  11095     2.2  9.8   27.0  481.3

Clock        tsc, 2.095078 GHz within 9 ppb, each reading within 24 ns
Verdict      longest gap 481 us (thread 0)
"
    );
}

fn verdict(deadlines: &[(u64, u64, u64)]) -> String {
    let with = |(id, &(hit, missed, lost)): (usize, &(u64, u64, u64))| {
        let mut thread = thread(id as u32, "PERIODIC 3ms 8ms", "FIFO:80");
        thread.deadlines = Some(Deadlines { hit, missed, lost, completed: hit });
        thread
    };
    let text = summary(
        &document(RunResult {
            threads: deadlines.iter().enumerate().map(with).collect(),
            ..RunResult::default()
        }),
        Style::Plain,
    );
    let (_, below) = text.split_once("\nVerdict").unwrap();
    let mut lines = below.lines();
    let first = lines.next().unwrap();
    let rest = lines.take_while(|line| line.starts_with(' '));
    let lines: Vec<&str> = [first].into_iter().chain(rest).map(str::trim).collect();
    lines.join(" ")
}

/// A control beside the load says its sentence, and has no part in the verdict on the load.
#[test]
fn a_control_is_not_the_load() {
    let mut control = thread(1, "PERIODIC 8ms 10ms", "FIFO:80");
    control.deadlines = Some(Deadlines { hit: 0, missed: 9, lost: 0, completed: 0 });
    let report = ControlReport {
        thread: Some(1),
        statement: "it is the platform".to_owned(),
        ..ControlReport::default()
    };
    let text = summary(
        &document(RunResult {
            threads: vec![thread(0, "CPU", "FIFO:80"), control],
            control: Some(report),
            ..RunResult::default()
        }),
        Style::Plain,
    );
    assert!(text.contains("Verdict      longest gap"), "{text}");
    assert!(text.contains("(thread 0)\nControl      it is the platform\n"), "{text}");
}

/// That a thread had lost its CPU stood among the warnings only, below "all 40 periods on time".
#[test]
fn a_premise_that_broke_is_the_first_line() {
    let text = "thread 0: its CPUs were changed from outside".to_owned();
    let premises = vec![Premise { id: "pinning-lost".to_owned(), text: text.clone(), at_ns: 1 }];
    let threads = vec![thread(0, "CPU", "OTHER:0")];
    let broken = document(RunResult { threads, premises, ..RunResult::default() });
    let printed = summary(&broken, Style::Plain);
    assert_eq!(printed.lines().next(), Some(&*format!("No verdict: {text}")));
    assert!(printed.contains(&format!("Verdict      none: {text}")), "{printed}");
}

type Writer<'a> = &'a dyn Fn(&RunDocument) -> String;

/// Exit code 4, and `Gate max-gap: kept` on stdout: no writer says of a limit that it was kept where a premise broke.
#[test]
fn no_limit_is_called_kept_where_a_premise_broke() {
    let premise = || Premise { id: "pinning-lost".to_owned(), text: "moved".to_owned(), at_ns: 1 };
    let gate = |passed| GateReport {
        name: "max-gap".to_owned(),
        limit: 2e6,
        value: 1e6,
        unit: "ns".to_owned(),
        passed,
        confidence: None,
    };
    let page = |run: &RunDocument| {
        let mut made = shown::full(1, 1, 1);
        made.document.result.gates = run.result.gates.clone();
        made.document.result.premises = run.result.premises.clone();
        let page = html::page(&made.run(), "");
        let gates = page.split_once("<ul class=\"gates\">").unwrap().1;
        gates.split_once("</ul>").unwrap().0.to_owned()
    };
    let compared = |run: &RunDocument| {
        let warnings = run.result.premises.iter().map(|premise| Warning {
            id: PREMISE_BROKEN.to_owned(),
            text: premise.text.clone(),
            remedy: String::new(),
        });
        let gates = run.result.gates.clone();
        let gates = RoundGates { round: 1, side: "a".to_owned(), gates };
        let warnings = warnings.collect();
        let document = DiffDocument { warnings, gates: vec![gates], ..DiffDocument::default() };
        diff(&document, Style::Plain)
    };
    let writers: [(&str, Writer<'_>); 4] = [
        ("summary", &|run| summary(run, Style::Plain)),
        ("page", &page),
        ("junit", &|run| export::junit_run("run", run)),
        ("diff", &compared),
    ];
    for (name, writer) in writers {
        let text = |passed, premises| {
            let gates = vec![gate(passed)];
            writer(&document(RunResult { gates, premises, ..RunResult::default() }))
        };
        assert!(text(true, Vec::new()).contains("kept"), "{name}");
        let undecided = text(true, vec![premise()]);
        assert!(
            undecided.contains("no verdict") && !undecided.contains("kept"),
            "{name}: {undecided}"
        );
        assert!(text(false, vec![premise()]).contains("broken"), "{name}");
    }
}

/// The outcomes of sections 5.5 and 5.6.
#[test]
fn verdicts_on_the_papers_task_sets() {
    assert_eq!(verdict(&[(1003, 0, 0), (304, 0, 0)]), "all 1307 periods on time");
    assert_eq!(verdict(&[(1001, 0, 0), (143, 142, 0)]), "thread 1 missed 142 of 285 periods");
    assert_eq!(
        verdict(&[(12, 985, 0), (197, 106, 0)]),
        "2 of 2 periodic threads missed 1091 of 1300 periods, thread 0 the most: 985 of 997"
    );
    assert_eq!(verdict(&[(1, 2, 3)]), "thread 0 missed 2 and lost 3 of 6 periods");
    assert_eq!(verdict(&[(0, 0, 0)]), "no period ended during the run");
}

#[test]
fn many_threads_fit_the_page() {
    let mut threads: Vec<_> = (0..64)
        .map(|id| {
            let mut thread =
                thread(id, "CPU_SCAN_YIELD 262144 900.000001us with words", "DEADLINE:3.1ms/8ms+");
            thread.cpus_seen = (0..64).step_by(2).collect();
            thread.work = Some(1_234_567_890);
            thread.migrations = 123_456_789;
            thread.deadlines = Some(Deadlines::default());
            thread.latency = Some(LatencyReport::default());
            thread
        })
        .collect();
    threads[63].gaps.p50_ns = 7;
    threads[62].gaps.max_ns = u64::from(u32::MAX) * 1_000_000;
    let text = summary(&document(RunResult { threads, ..RunResult::default() }), Style::Plain);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // What does not fit goes on in the next line; nothing of it is lost.
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().position(|line| line.starts_with("    63  CPU_SCAN")).unwrap();
    assert!(lines[last + 1].starts_with("        YIELD"), "{text}");
    assert!(text.contains("  32 CPUs  "), "{text}");
}

#[test]
fn colour_changes_nothing_but_colour() {
    let coloured = summary(&full(), Style::Colour);
    assert!(coloured.contains('\u{1b}'));
    assert_eq!(without_colours(&coloured), summary(&full(), Style::Plain));
}

#[test]
fn text_from_outside_cannot_take_over_the_terminal() {
    let evil = "a\u{1b}]0;owned\u{7}\u{9b}2J\nb\u{202e}";
    let mut document = full();
    document.manifest.host.kernel = evil.to_owned();
    document.manifest.clock.source = evil.to_owned();
    document.manifest.clock.reason = evil.to_owned();
    document.manifest.clock.trusted = false;
    for thread in &mut document.result.threads {
        thread.workload = evil.to_owned();
        thread.policy = evil.to_owned();
        thread.emulated = Some(evil.to_owned());
    }
    document.result.causes[0].cause = evil.to_owned();
    document.result.gates[0].name = evil.to_owned();
    document.result.warnings[0].text = evil.to_owned();
    document.result.warnings[0].remedy = evil.to_owned();
    let text = summary(&document, Style::Plain);
    assert!(!text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'));
    // Words of others begin no line at its edge but within their cell or behind their label.
    let labels = |text: &str| text.lines().filter(|line| !line.starts_with(' ')).count();
    assert_eq!(labels(&text), labels(&summary(&full(), Style::Plain)), "{text}");
}

/// Numbers at the ends of their ranges, as a damaged file may hold them.
#[test]
fn extremes_are_printed() {
    let mut thread = thread(u32::MAX, "", "");
    thread.cpu_time_ns = u64::MAX;
    thread.wall_ns = 1;
    thread.cpus_seen = vec![u32::MAX, 0, u32::MAX];
    thread.gaps = GapReport {
        count: u64::MAX,
        total_ns: u64::MAX,
        p50_ns: u64::MAX,
        p99_ns: u64::MAX,
        p999_ns: u64::MAX,
        max_ns: u64::MAX,
    };
    thread.deadlines =
        Some(Deadlines { hit: u64::MAX, missed: u64::MAX, lost: u64::MAX, completed: u64::MAX });
    thread.records_dropped = u64::MAX;
    let mut document =
        document(RunResult { threads: vec![thread.clone(), thread], ..RunResult::default() });
    document.manifest.clock.frequency_hz = f64::NAN;
    let text = summary(&document, Style::Plain);
    assert!(text.contains("18446744073.7"), "{text}");
    document.result.threads.clear();
    assert!(summary(&document, Style::Plain).contains("no threads"));
}

/// Found with a LAT thread that preempts a busy one a thousand times a second: "0 switches" is untrue where only
/// one thread writes a trace.
#[test]
fn switches_are_reported_only_of_threads_with_a_trace() {
    let mut probe = thread(1, "LAT 1ms", "FIFO:80");
    probe.latency = Some(LatencyReport::default());
    let of = |threads: Vec<ThreadReport>| {
        let document = document(RunResult { threads, ..RunResult::default() });
        summary(&document, Style::Plain)
    };
    assert!(!of(vec![thread(0, "CPU", "OTHER:0"), probe]).contains("Switches"));
    assert!(
        of(vec![thread(0, "CPU", "OTHER:0"), thread(1, "CPU", "OTHER:0")]).contains("Switches")
    );
}
