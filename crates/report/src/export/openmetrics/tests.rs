//! The table, the text, and the two files that name its metrics.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use hdrhistogram::Histogram;
use hourglass_documents::doctor::{
    CheckEffect, CheckResult, CpuSelection, DoctorDocument, Status, StatusCounts,
};
use hourglass_documents::document::{
    CauseReport, Deadlines, GateReport, LatencyReport, RunDocument, ThreadReport,
};
use hourglass_documents::watched::{WatchedReport, WatchedThread};
use serde_json::Value;

use super::*;

const BOARD: &str = "packaging/grafana/hourglass.json";
const PAGE: &str = "docs/src/reference/metrics.md";

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn measured() -> RunDocument {
    let latency = LatencyReport { count: 3, max_ns: 20_000_000_000, lost: 2, ..Default::default() };
    let thread = ThreadReport {
        workload: "GRID \"1\\ms\"\n".to_owned(),
        cpus: vec![1, 2, 3],
        latency: Some(latency),
        deadlines: Some(Deadlines { hit: 7, missed: 1, lost: 2, completed: 7 }),
        ..Default::default()
    };
    let gate = |name: &str, unit: &str| GateReport {
        name: name.to_owned(),
        limit: 50_000.0,
        value: 3.0,
        unit: unit.to_owned(),
        passed: true,
        confidence: None,
    };
    let mut document = RunDocument {
        schema: String::new(),
        manifest: Default::default(),
        result: Default::default(),
    };
    document.result.threads = vec![thread];
    document.result.gates = vec![gate("max-latency", "ns"), gate("max-misses", "periods")];
    document.result.causes = vec![CauseReport {
        cause: "timer_tick".to_owned(),
        count: 2,
        total_ns: 1_200,
        p50_ns: 600,
        max_ns: 700,
        confidence: 1.0,
        ran: Vec::new(),
    }];
    document
}

fn run_text() -> String {
    let mut times = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    [1_000, 1_002, 20_000_000_000].into_iter().for_each(|ns| times.record(ns).unwrap());
    let own = MeasuredTimes { thread: 0, latencies: Some((&times, 20_000_002_002)), gaps: &times };
    openmetrics_run("latency", &measured(), &[own])
}

fn watch_text() -> String {
    let one = Some(1);
    let thread = WatchedThread {
        run_ns: one,
        wait_ns: one,
        voluntary_switches: one,
        migrations: one,
        major_faults: one,
        ..Default::default()
    };
    openmetrics_watch(&WatchedReport { threads: vec![thread], ..Default::default() })
}

fn doctor_text() -> String {
    let check = CheckResult {
        id: "swap".to_owned(),
        status: Status::Warn,
        found: String::new(),
        wanted: String::new(),
        remedy: String::new(),
        effect: CheckEffect::default(),
    };
    openmetrics_doctor(&DoctorDocument {
        schema: String::new(),
        cpus: [0].into_iter().collect(),
        cpus_are: CpuSelection::Online,
        counts: StatusCounts::count(std::slice::from_ref(&check)),
        checks: vec![check],
        differences: None,
    })
}

/// What OpenMetrics asks of names, and what keeps the older format and node_exporter content: none of the
/// suffixes by which a parser takes a sample for part of another metric.
#[test]
fn names_follow_the_conventions() {
    let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), METRICS.len());
    for MetricDefinition { name, kind, unit, help } in METRICS {
        assert!(name.starts_with("hourglass_"), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
        assert!(unit.is_empty() || name.ends_with(&format!("_{unit}")), "{name}");
        assert!(["gauge", "histogram"].contains(kind), "{name}");
        for suffix in ["_total", "_count", "_sum", "_bucket", "_created", "_ns"] {
            assert!(!name.ends_with(suffix), "{name}");
        }
        assert!(help.ends_with('.') && !help.contains(['"', '\\', '\n']), "{name}");
    }
}

#[test]
fn each_sample_stands_below_its_type_once() {
    for text in [run_text(), watch_text(), doctor_text()] {
        assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
        let (mut family, mut seen) = (String::new(), BTreeSet::new());
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(described) = line.strip_prefix("# HELP ") {
                family = described.split(' ').next().unwrap().to_owned();
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(series.starts_with(&family) && value.parse::<f64>().is_ok(), "{line}");
                assert!(seen.insert(series.to_owned()), "twice: {line}");
            }
        }
    }
}

#[test]
fn a_run_as_metrics() {
    let text = run_text();
    for line in [
        "# TYPE hourglass_latency_seconds histogram",
        "# UNIT hourglass_latency_seconds seconds",
        "hourglass_latency_seconds_bucket{command=\"latency\",thread=\"0\",cpus=\"1-3\",le=\"5e-07\"} 0",
        // To three digits: 1,002 ns is one step above 1 us.
        "hourglass_latency_seconds_bucket{command=\"latency\",thread=\"0\",cpus=\"1-3\",le=\"1e-06\"} 1",
        "hourglass_latency_seconds_bucket{command=\"latency\",thread=\"0\",cpus=\"1-3\",le=\"2e-06\"} 2",
        "hourglass_latency_seconds_bucket{command=\"latency\",thread=\"0\",cpus=\"1-3\",le=\"10.0\"} 2",
        "hourglass_latency_seconds_bucket{command=\"latency\",thread=\"0\",cpus=\"1-3\",le=\"+Inf\"} 3",
        "hourglass_latency_seconds_count{command=\"latency\",thread=\"0\",cpus=\"1-3\"} 3",
        "hourglass_latency_seconds_sum{command=\"latency\",thread=\"0\",cpus=\"1-3\"} 20.000002002",
        "hourglass_latency_max_seconds{command=\"latency\",thread=\"0\",cpus=\"1-3\"} 20",
        "hourglass_thread_info{command=\"latency\",thread=\"0\",cpus=\"1-3\",workload=\"GRID \\\"1\\\\ms\\\" \",policy=\"\"} 1",
        "hourglass_periods{command=\"latency\",thread=\"0\",cpus=\"1-3\",result=\"missed\"} 1",
        "hourglass_cause_time_seconds{command=\"latency\",cause=\"timer_tick\"} 0.0000012",
        "hourglass_gate_met{command=\"latency\",gate=\"max-latency\"} 1",
        "hourglass_gate_limit_seconds{command=\"latency\",gate=\"max-latency\"} 0.00005",
        "hourglass_gate_misses{command=\"latency\",gate=\"max-misses\"} 3",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let doctor = doctor_text();
    assert!(
        doctor.contains("hourglass_doctor_check{check=\"swap\",status=\"warn\"} 1\n"),
        "{doctor}"
    );
    assert!(
        doctor.contains("hourglass_doctor_check{check=\"swap\",status=\"ok\"} 0\n"),
        "{doctor}"
    );
}

/// The queries of a board, wherever they stand.
fn queries(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("expr" | "query" | "definition", Value::String(text)) => {
                        out.push(text.clone())
                    }
                    _ => queries(value, out),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| queries(value, out)),
        _ => {}
    }
}

#[test]
fn the_board_asks_for_metrics_of_the_table() {
    let text = fs::read_to_string(root().join(BOARD)).unwrap();
    let mut found = Vec::new();
    queries(&serde_json::from_str(&text).unwrap(), &mut found);
    let mut asked = BTreeSet::new();
    for query in &found {
        let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        for word in words.filter(|word| word.starts_with("hourglass_")) {
            let metric = METRICS.iter().find(|metric| match word.strip_prefix(metric.name) {
                Some("") => metric.kind == "gauge",
                Some("_bucket" | "_count" | "_sum") => metric.kind == "histogram",
                _ => false,
            });
            asked.insert(metric.unwrap_or_else(|| panic!("{word} in {query}")).name);
        }
    }
    assert!(asked.len() >= 12, "{asked:?}");
}

/// `HOURGLASS_WRITE=1` writes the table of the page anew.
#[test]
fn the_page_has_the_table() {
    let mut wanted = String::from("| metric | type | |\n|---|---|---|\n");
    for MetricDefinition { name, kind, help, .. } in METRICS {
        let _ = writeln!(wanted, "| `{name}` | {kind} | {help} |");
    }
    let path = root().join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let before = page.split("| metric |").next().unwrap();
    let written = format!("{before}{wanted}");
    if env::var_os("HOURGLASS_WRITE").is_some() {
        fs::write(&path, &written).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), written, "HOURGLASS_WRITE=1 writes {PAGE}");
}
