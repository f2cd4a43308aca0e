//! `hourglass diff` and `run --against` as a script sees them. What was measured is judged only where
//! the two sides differ by far.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::calls::{Line as _, command, document, ends, hourglass, is_refused, stderr, warning};
use crate::processes::{send, within};
use serde_json::Value;

/// Runs into `home`/`name` and gives its path.
fn kept(home: &Path, name: &str, options: &str) -> String {
    let path = home.join(name).display().to_string();
    let mut line: Vec<&str> = options.split(' ').collect();
    line.extend(["-q", "--json", "-o", &path]);
    let output = hourglass(&line);
    assert!(output.status.success(), "{output:?}");
    path
}

fn refused(line: &[&str], said: &str) {
    is_refused(&hourglass(line), 2, said, line);
}

/// CONTRACT, `hourglass.diff/1`: keys, verdicts, and that the interval holds the change.
fn check(document: &Value) {
    assert_eq!(document["schema"], "hourglass.diff/1");
    let metrics = document["metrics"].as_array().unwrap();
    assert!(!metrics.is_empty(), "{document}");
    for metric in metrics {
        for key in ["name", "a", "b", "change", "ci_lo", "ci_hi", "verdict"] {
            assert!(metric.get(key).is_some(), "{key}: {metric}");
        }
        let verdict = metric["verdict"].as_str().unwrap();
        assert!(["same", "better", "worse", "unknown"].contains(&verdict), "{metric}");
        if let (Some(lo), Some(hi)) = (metric["ci_lo"].as_f64(), metric["ci_hi"].as_f64()) {
            let change = metric["change"].as_f64().unwrap();
            assert!(lo <= change && change <= hi, "{metric}");
        }
    }
}

/// rt-tests' users lay two histograms over each other.
#[test]
fn two_runs_are_drawn() {
    let home = tempfile::tempdir().unwrap();
    let place = |name: &str| home.path().join(name).display().to_string();
    let late = |name: &str| kept(home.path(), name, "-n 1 -d 0.3s -w LAT 2ms");
    let (a, b) = (late("a"), late("b"));
    let ran = kept(home.path(), "ran", "-n 1 -d 0.3s");
    let (svg, page) = (place("x.svg"), place("x.html"));
    let code = |output: &std::process::Output| output.status.code();
    let plain = hourglass(&["diff", &a, &b]);
    let drawn = hourglass(&["diff", &a, &b, "-o", &svg]);
    assert_eq!((code(&drawn), &drawn.stdout), (code(&plain), &plain.stdout));
    assert!(stderr(&drawn).contains("wrote "), "{}", stderr(&drawn));
    let picture = fs::read_to_string(&svg).unwrap();
    for part in [">wake-up latency, us<", ">A</text>", ">B</text>", &format!("B: {b}, ")] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    let paged = hourglass(&["diff", &a, &b, "-o", &page, "--json"]);
    assert_eq!(
        (code(&paged), document(&paged)["schema"].as_str()),
        (code(&plain), Some("hourglass.diff/1"))
    );
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("<pre>A  ") && page.contains(">wake-up latency, us<"), "{page}");
    assert!(page.contains("latency.p50_ns"), "{page}");
    let runs = [kept(home.path(), "other", "-n 1 -d 0.3s"), ran.clone()];
    let gaps = hourglass(&["diff", &runs[0], &runs[1], "-o", &svg, "-q"]);
    assert!(matches!(code(&gaps), Some(0 | 1 | 4)), "{gaps:?}");
    assert!(fs::read_to_string(&svg).unwrap().contains(">gap length, us<"));
    for name in ["x.jpg", "x", "-"] {
        refused(&["diff", &a, &b, "-o", name], "does not end with .svg, .png, .pdf or .html");
    }
    refused(&["diff", &a, &ran, "-o", &place("y.svg")], "neither wake-ups nor gaps of both");
    assert!(!home.path().join("y.svg").exists());
}

fn verdict<'a>(document: &'a Value, name: &str) -> &'a str {
    let metrics = document["metrics"].as_array().unwrap();
    metrics.iter().find(|m| m["name"] == name).unwrap()["verdict"].as_str().unwrap()
}

/// One run each: the warning with its remedy, the seed, and the same answer again.
#[test]
fn one_run_each_is_compared_with_a_warning() {
    let home = tempfile::tempdir().unwrap();
    let a = kept(home.path(), "a", "-n 1 -d 0.6s -w PERIODIC 50us 50ms");
    // Cannot be in time: two threads that want nearly all of one CPU each.
    let b = kept(home.path(), "b", "-n 2 -d 0.6s -w PERIODIC 49ms 50ms --cpu 0");
    let output = hourglass(&["diff", &a, &b, "--json"]);
    let document = document(&output);
    check(&document);
    assert_eq!((&document["method"], &document["seed"]), (&"blocks".into(), &1.into()));
    assert_eq!(verdict(&document, "deadlines.failed_percent"), "worse");
    assert_eq!((output.status.code(), &document["verdict"]), (Some(1), &"worse".into()));
    let remedy = warning(&document, "sequential")["remedy"].as_str().unwrap();
    assert!(remedy.contains("--against"));
    let named = warning(&document, "other-workload")["text"].as_str().unwrap();
    assert!(named.ends_with("PERIODIC 50us 50ms against 2 x PERIODIC 49ms 50ms"), "{named}");
    assert_eq!(output.stdout, hourglass(&["diff", &a, &b, "--json"]).stdout);
    let back = self::document(&hourglass(&["diff", &b, &a, "--json"]));
    assert_eq!(verdict(&back, "deadlines.failed_percent"), "better");
    let text = String::from_utf8(hourglass(&["diff", &b, &a]).stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with("deadlines.failed_percent ")), "{text}");
}

/// Below six rounds: numbers, no verdict, exit code 4 unless --fail-on says otherwise.
#[test]
fn few_rounds_have_no_verdict() {
    let home = tempfile::tempdir().unwrap();
    let run = |name: &str| kept(home.path(), name, "-n 1 -d 0.1s -w LAT 2ms");
    let (a1, b1, a2, b2) = (run("a1"), run("b1"), run("a2"), run("b2"));
    let line = ["diff", &a1, &a2, "--with", &b1, &b2];
    let output = hourglass(&[&line[..], &["--json"]].concat());
    let found = document(&output);
    check(&found);
    assert_eq!((&found["method"], &found["rounds"]), (&"rounds".into(), &2.into()));
    assert_eq!((output.status.code(), &found["verdict"]), (Some(4), &"unknown".into()));
    assert_eq!(verdict(&found, "latency.p50_ns"), "unknown");
    let metric = &found["metrics"][0];
    assert_eq!((&metric["leads"], &metric["rounds_needed"]), (&true.into(), &6.into()), "{metric}");
    assert_eq!(hourglass(&[&line[..], &["--fail-on", "doubt"]].concat()).status.code(), Some(4));
    let lenient = hourglass(&[&line[..], &["--fail-on", "worse"]].concat());
    assert_eq!(lenient.status.code(), Some(0));
    let text = String::from_utf8(lenient.stdout).unwrap();
    assert!(text.contains("2 rounds cannot decide anything"), "{text}");
}

#[test]
fn bad_folders_get_one_line() {
    let home = tempfile::tempdir().unwrap();
    let run = kept(home.path(), "run", "-n 1 -d 0.1s -w LAT 2ms");
    let other = kept(home.path(), "other", "-n 1 -d 0.1s -w LAT 2ms");
    let path = |name: &str| home.path().join(name).display().to_string();
    refused(&["diff", &run, &path("missing")], "does not exist");
    fs::create_dir(path("empty")).unwrap();
    refused(&["diff", &run, &path("empty")], "is not a run folder");
    refused(&["diff", &path("empty")], "holds no rounds");
    refused(&["diff", &run], "holds no rounds");
    fs::create_dir(path("half")).unwrap();
    fs::write(path("half/trace.parquet"), "").unwrap();
    refused(&["diff", &run, &path("half")], "is half-written");
    refused(&["diff", &run, &run], "is given on both sides");
    refused(&["diff", &run, &other, &run], "3 folders: which with which?");
    refused(&["diff", &run, &other, "--with", &run], "2 runs before --with and 1 run behind it");
    refused(&["diff", &run, &other, "--margin", "-3"], "--margin");
    // Without single latencies there is the histogram, which has no order in time.
    fs::remove_file(format!("{other}/latency.parquet")).unwrap();
    let found = document(&hourglass(&["diff", &run, &other, "--json"]));
    assert_eq!(verdict(&found, "latency.p50_ns"), "unknown");
    fs::remove_file(format!("{other}/latency.hlog")).unwrap();
    refused(&["diff", &run, &other], "latency.hlog is missing");
}

/// Rounds in turn: each run is kept under its name, and the folder can be compared again. Seven rounds that agree
/// on missed deadlines decide, whatever the gaps do.
#[test]
fn rounds_in_turn_are_kept_and_compared() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("rounds").display().to_string();
    let line: Vec<&str> = "-n 1 -d 0.2s -w PERIODIC 50us 20ms --rounds 7 --json --seed 5".words();
    let other = "-n 2 -w 'PERIODIC' 19ms 20ms --cpu 0";
    let more = ["--against", other, "--fail-on", "worse", "-o", &folder];
    let output = hourglass(&[&line[..], &more].concat());
    let ran = document(&output);
    check(&ran);
    let said = stderr(&output);
    assert!(said.contains("7 rounds of two runs in turn: 2.8s of measuring"), "{said}");
    assert_eq!((&ran["rounds"], &ran["seed"]), (&7.into(), &5.into()));
    assert_eq!(verdict(&ran, "deadlines.failed_percent"), "worse", "{ran}");
    assert_eq!((output.status.code(), &ran["verdict"]), (Some(1), &"worse".into()));
    assert!(ran["b"]["what"].as_str().unwrap().contains("PERIODIC 19ms 20ms"), "{ran}");
    for name in ["a-01", "b-01", "a-07", "b-07"] {
        assert!(Path::new(&folder).join(name).join("manifest.json").is_file(), "{name}");
    }
    let again = document(&hourglass(&["diff", &folder, "--seed", "5", "--json"]));
    assert_eq!(again["metrics"], ran["metrics"]);
    let kept: Value =
        serde_json::from_slice(&fs::read(format!("{folder}/diff.json")).unwrap()).unwrap();
    assert_eq!(kept, ran);
    refused(&["-n", "1", "-d", "9s", "--against", "", "-o", &folder], "exists already");
    fs::remove_dir_all(format!("{folder}/b-03")).unwrap();
    let six = document(&hourglass(&["diff", &folder, "--json"]));
    assert_eq!(six["rounds"], 6);
    assert!(six["warnings"].to_string().contains("a-03"), "{six}");
}

/// Limits are judged in each run of each round, and said; one that is broken makes the exit code 1 whatever the
/// comparison says. Two rounds have no verdict, so that nothing else decides.
#[test]
fn limits_are_judged_in_each_round() {
    for (limit, passed) in [("0s", false), ("1h", true)] {
        let line = ["-n", "1", "-d", "100ms", "--max-gap", limit, "--against", "-p LOW"];
        let output = hourglass(
            &[&line[..], &["--rounds", "2", "--fail-on", "worse", "--json", "-q"]].concat(),
        );
        let document = document(&output);
        let gates = document["gates"].as_array().unwrap();
        let sides: Vec<(u64, &str)> = gates
            .iter()
            .map(|of| (of["round"].as_u64().unwrap(), of["side"].as_str().unwrap()))
            .collect();
        assert_eq!(sides, [(1, "a"), (1, "b"), (2, "a"), (2, "b")]);
        for gate in gates.iter().map(|of| &of["gates"][0]) {
            assert_eq!((&gate["name"], &gate["passed"]), (&"max-gap".into(), &passed.into()));
        }
        assert_eq!(output.status.code(), Some(if passed { 0 } else { 1 }), "{document}");
    }
    let lat = ["-n", "1", "-w", "LAT", "1ms", "--max-latency", "1s", "--against"];
    refused(&[&lat[..], &["-n 1 --max-latency 1s"]].concat(), "no thread of this run measures");
}

/// Ctrl-C: whole rounds are compared and kept, exit code 130.
#[test]
fn whole_rounds_survive_an_interrupt() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("rounds");
    let path = folder.display().to_string();
    let line = "-n 1 -d 0.3s -w LAT 2ms --rounds 500 -q --json".words();
    let line = [&line[..], &["--against", "", "-o", &path]].concat();
    let child = command(&line).stdout(Stdio::piped()).spawn().unwrap();
    within(Duration::from_secs(60), || folder.join("b-02").join("manifest.json").is_file());
    send("-INT", child.id().into()).unwrap();
    let output = child.wait_with_output().unwrap();
    let found = document(ends(&output, 130, "rounds"));
    let rounds = found["rounds"].as_u64().unwrap();
    assert!(rounds >= 1 && found["interrupted"] == true, "{found}");
    let again = document(&hourglass(&["diff", &path, "--json"]));
    assert_eq!(again["rounds"], rounds, "only whole rounds have names of rounds");
    assert_eq!(again["warnings"].to_string().matches("half-round").count(), 0);
}

/// What is not decided has an exit code of its own.
fn answered(control: &Value) -> Option<i32> {
    Some(if control["verdict"] == "unknown" { 4 } else { 0 })
}

/// A against A ended with 1 in 22 of 23, as if B were worse, and 6 rounds, which could not decide, did not say so.
/// What so few rounds can decide is said before the first of them and stands in the document; a gate tells
/// "no verdict" from "worse".
#[test]
fn a_against_a_differs_from_worse() {
    for (rounds, before, warned) in [
        ("5", "warning: 5 rounds cannot decide anything", true),
        ("6", "warning: 6 rounds can decide latency.p50_ns only if all of them agree", true),
        ("8", "they can decide every metric", false),
    ] {
        let line = ["-n", "1", "-d", "40ms", "-w", "LAT", "1ms", "--against", ""];
        let output = hourglass(&[&line[..], &["--rounds", rounds, "--json"]].concat());
        let found = document(&output);
        let code = match found["verdict"].as_str().unwrap() {
            "worse" => 1,
            "unknown" => 4,
            _ => 0,
        };
        assert_eq!(output.status.code(), Some(code), "{found}");
        let said = stderr(&output);
        assert!(said.contains(before), "{said}");
        assert_eq!(found["warnings"].to_string().contains("few-rounds"), warned, "{found}");
        if rounds == "5" {
            assert_eq!(code, 4, "{found}");
        }
    }
}

/// A control on a CPU of its own, where there are two; else in turn.
#[test]
fn a_control_says_what_the_platform_takes() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("run").display().to_string();
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus > 1 {
        let line = format!("-n 1 -d 0.4s --cpu 0 --control --json -o {folder}");
        let output = hourglass(&line);
        let ran = document(&output);
        let control = &ran["control"];
        assert_eq!(output.status.code(), answered(control), "{output:?}");
        assert_eq!((&control["method"], &control["thread"]), (&"beside".into(), &1.into()));
        assert_eq!(ran["threads"][1]["name"], "control");
        let statement = control["statement"].as_str().unwrap();
        assert!(statement.contains("idle control"), "{statement}");
        let shown = document(&hourglass(&["show", &folder, "--json"]));
        assert_eq!(shown["control"], *control);
    }
    let output = hourglass(&["-n", "1", "-d", "0.1s", "--control", "--rounds", "5", "--json"]);
    let found = document(&output);
    // Five rounds decide nothing.
    assert_eq!(found["control"]["verdict"], "unknown");
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(found["schema"], "hourglass.diff/1");
    assert_eq!((&found["control"]["method"], &found["rounds"]), (&"rounds".into(), &5.into()));
}
