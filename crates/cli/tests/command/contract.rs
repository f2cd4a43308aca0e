//! The keys that CONTRACT names, in every document of runs, comparisons, costs and papers. Their values are
//! other tests' business.

use std::path::Path;

use crate::calls::{self, hourglass};
use crate::programs::with_paper;
use hourglass_documents::Cause;
use serde_json::Value;

/// The document that a command prints.
fn document(line: &str) -> Value {
    let output = hourglass(line);
    // Limits may be broken and comparisons undecided.
    assert!(matches!(output.status.code(), Some(0 | 1 | 4)), "{line}: {output:?}");
    calls::document(&output)
}

/// That `value` is an object with these keys, each `key`, or `key?` where it may be null.
fn has(value: &Value, keys: &str, of: &str) {
    for key in keys.split_whitespace() {
        let (name, may_be_null) = match key.strip_suffix('?') {
            Some(name) => (name, true),
            None => (key, false),
        };
        let found = value.get(name).unwrap_or_else(|| panic!("{of}: {name} is missing: {value}"));
        assert!(may_be_null || !found.is_null(), "{of}: {name} is null: {value}");
        let is_time = name.ends_with("_ns") && !found.is_null();
        assert!(!is_time || found.is_number(), "{of}: {name} is no number: {found}");
    }
}

/// The same for each element of an array; how many there are.
fn each(value: &Value, array: &str, keys: &str, of: &str) -> usize {
    let elements = value[array].as_array().unwrap_or_else(|| panic!("{of}: {array} is no array"));
    elements.iter().for_each(|element| has(element, keys, &format!("{of}: {array}")));
    elements.len()
}

/// `hourglass.run/1`, whichever command made it.
fn is_a_run(run: &Value, of: &str) {
    assert_eq!(run["schema"], "hourglass.run/1", "{of}");
    has(run, "manifest threads causes switches warnings gates interrupted", of);
    has(&run["manifest"]["epoch"], "monotonic_ns realtime_ns ticks", of);
    let threads = "id workload policy cpus cpu_time_ns wall_ns intervals gaps deadlines? latency? \
                   work? records_dropped";
    assert!(each(run, "threads", threads, of) > 0, "{of}");
    for thread in run["threads"].as_array().unwrap() {
        has(&thread["gaps"], "count total_ns p50_ns p99_ns p999_ns max_ns", of);
        if !thread["deadlines"].is_null() {
            has(&thread["deadlines"], "hit missed lost", of);
        }
        if !thread["latency"].is_null() {
            has(&thread["latency"], "count min_ns p50_ns p99_ns p999_ns max_ns mean_ns lost", of);
        }
    }
    each(run, "causes", "cause count total_ns p50_ns max_ns confidence", of);
    for cause in run["causes"].as_array().unwrap() {
        let name = cause["cause"].as_str().unwrap();
        assert!(Cause::from_name(name).is_some(), "{of}: no cause is called {name}");
    }
    each(run, "warnings", "id text remedy", of);
    each(run, "gates", "name limit value passed", of);
}

/// A run with periods, work, latencies, gaps that have causes, and a limit.
const MIXED: &str = "-n 4 -d 200ms -w CPU_SCAN 16 -t 1 -w PERIODIC 1ms 10ms -t 2 -w LAT 5ms -t 3 -w CPU \
                     --max-gap 1h -q --json";

fn kept(home: &Path, name: &str) -> String {
    home.join(name).display().to_string()
}

#[test]
fn runs_however_they_are_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let folder = kept(home.path(), "run");
    let ran = document(&format!("{MIXED} -o {folder}"));
    is_a_run(&ran, "run");
    assert!(!ran["causes"].as_array().unwrap().is_empty());
    assert_eq!(ran["gates"][0]["name"], "max-gap");
    let threads = ran["threads"].as_array().unwrap();
    for key in ["deadlines", "latency", "work"] {
        let there = threads.iter().filter(|thread| !thread[key].is_null()).count();
        assert!((1..4).contains(&there), "{key}: where it means something, and else null");
    }
    let shown = document(&format!("show {folder} --json"));
    is_a_run(&shown, "show");
    for key in ["threads", "causes", "switches", "gates", "interrupted"] {
        assert_eq!(shown[key], ran[key], "{key}");
    }
    for name in ["manifest.json", "trace.parquet", "latency.hlog"] {
        assert!(home.path().join("run").join(name).is_file(), "{name}");
    }
    is_a_run(&document("latency --policy other -i 2000 -l 50 -q --json"), "latency");
    is_a_run(&document("noise -D 200ms -q --json"), "noise");
}

/// A run explains itself also when the file that its execution times came from has gone: they are kept.
#[test]
fn execution_times_from_a_file_are_kept() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("times.csv");
    std::fs::write(&file, "work\n100us\n300us\n200us\n").unwrap();
    let run = document(&format!("-n 1 -d 30ms -w PERIODIC table:{} 5ms --json", file.display()));
    let amounts = &run["manifest"]["threads"][0]["amounts"];
    assert_eq!(amounts["first_ns"], serde_json::json!([100_000, 300_000, 200_000]));
    assert_eq!((&amounts["count"], &amounts["longest_ns"]), (&3.into(), &300_000.into()));
    assert_eq!(amounts["total_ns"], 600_000);
    let fixed = document("-n 1 -d 30ms -w PERIODIC 100us 5ms --json");
    assert!(fixed["manifest"]["threads"][0].get("amounts").is_none());
}

#[test]
fn comparisons() {
    let home = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| {
        let folder = kept(home.path(), name);
        document(&format!("-n 1 -d 200ms -q --json -o {folder}"));
        folder
    });
    let rounds = "-n 1 -d 100ms --max-gap 1h --rounds 2 -q --json --against";
    for (line, of) in
        [(format!("diff {a} {b} --json"), "diff"), (format!("{rounds} --gap=1us"), "rounds")]
    {
        let diff = document(&line);
        assert_eq!(diff["schema"], "hourglass.diff/1", "{of}");
        has(&diff, "metrics verdict a b warnings", of);
        assert!(each(&diff, "metrics", "name a? b? change? ci_lo? ci_hi? verdict", of) > 0);
        let words = ["same", "better", "worse", "unknown"];
        for metric in diff["metrics"].as_array().unwrap() {
            assert!(words.iter().any(|word| metric["verdict"] == *word), "{of}: {metric}");
        }
        each(&diff, "warnings", "id text remedy", of);
        if of == "rounds" {
            assert_eq!(each(&diff, "gates", "round side gates", of), 4);
        }
        for statement in diff["statements"].as_array().into_iter().flatten() {
            has(statement, "name subject answer confidence text", of);
        }
    }
}

#[test]
fn costs_and_papers() {
    with_paper();
    let cost = document("cache-cost --sizes 8K --trials 2 --duration 20ms --json -q");
    assert_eq!(cost["schema"], "hourglass.cache-cost/1");
    let keys = "bytes penalty_ns? ci_lo_ns? ci_hi_ns? trials";
    assert_eq!(each(&cost, "sizes", keys, "cache-cost"), 1);
    let paper = document("paper hourglass-2002 --quick --table figure-4 --json -q");
    assert_eq!(paper["schema"], "hourglass.paper/1");
    has(&paper, "paper tables", "paper");
    assert_eq!(each(&paper, "tables", "id title rows", "paper"), 1);
    let rows = each(&paper["tables"][0], "rows", "name paper? measured? unit how", "paper");
    assert!(rows > 0);
    for row in paper["tables"][0]["rows"].as_array().unwrap() {
        let how = ["measured", "emulated", "simulated"];
        assert!(how.iter().any(|how| row["how"] == *how), "{row}");
    }
}
