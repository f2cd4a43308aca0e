//! Limits as a script sees them: the exit code, the document, the command of a hit.

use std::fs;
use std::process::Command;

use crate::calls::{self, Line as _, command, document, ends, hourglass, hourglass_in, stderr};
use hourglass_skip::{Requirement, skip};
use serde_json::Value;

/// What no machine breaks and what every machine does.
#[test]
fn the_exit_code_says_whether_limits_were_kept() {
    for (limit, passed) in [
        (["--max-latency", "1h"], true),
        (["--max-latency", "0ns"], false),
        (["--percentile", "p50=1h"], true),
        (["--percentile", "p0.1=0ns"], false),
        (["--max-gap", "1h"], true),
        (["--max-misses", "1000"], true),
    ] {
        let words = ["-n", "1", "-d", "0.1s", "-w", "GRID", "5ms", "--json", limit[0], limit[1]];
        let output = hourglass(&words);
        assert_eq!(output.status.code(), Some(if passed { 0 } else { 1 }), "{limit:?}");
        let gate = &document(&output)["gates"][0];
        assert_eq!(gate["passed"], passed, "{gate}");
        let kept = gate["value"].as_f64().unwrap() <= gate["limit"].as_f64().unwrap();
        assert_eq!(kept, passed, "value and limit say the same as the verdict: {gate}");
    }
}

/// Lines have no place for limits: what was broken goes to stderr, also of a quiet run, since the exit code is
/// 1 for it. A run of threads that measure latency alone gets no remedy that makes room for records.
#[test]
fn broken_limits_are_reported_into_a_pipe() {
    for (limit, broken) in [("0ns", true), ("1h", false)] {
        let words = ["-n", "1", "-d", "0.1s", "-w", "GRID", "5ms", "-q", "--max-latency", limit];
        let output = hourglass(&words);
        let said = stderr(ends(&output, i32::from(broken), limit));
        match broken {
            true => assert!(
                said.starts_with("hourglass: max-latency: broken, ")
                    && said.ends_with(" found, 0 us allowed\n"),
                "{said}"
            ),
            false => assert_eq!(said, ""),
        }
    }
    let output = hourglass(&["-n", "1", "-d", "0.1s", "-w", "LAT", "5ms", "--json"]);
    let warnings = document(&output)["warnings"].to_string();
    assert!(!warnings.contains("no-records"), "{warnings}");
}

/// Any gap at all ends the run, long before its time; a busy loop of 20 s has one.
#[test]
fn the_first_gap_beyond_the_limit_ends_the_run_and_calls_the_command() {
    let home = tempfile::tempdir().unwrap();
    let (folder, output_path) = (home.path().join("kept"), home.path().join("told"));
    let command = format!("echo $HOURGLASS_HIT_KIND $HOURGLASS_HIT_NS > {}", output_path.display());
    let line = format!("-n 1 -d 20s --stop-on-gap 0ns --json -o {}", folder.display());
    let output = hourglass(&[&line.words()[..], &["--on-hit", &command]].concat());
    let document = document(ends(&output, 1, line));
    assert!(document["manifest"]["elapsed_ns"].as_u64().unwrap() < 10_000_000_000);
    assert_eq!(document["manifest"]["ring"], true);
    assert_eq!(document["interrupted"], false);
    let hit = &document["hit"];
    assert_eq!((&hit["kind"], &hit["thread"]), (&Value::from("gap"), &Value::from(0)));
    assert_eq!(document["gates"][0]["name"], "stop-on-gap");
    assert_eq!(document["gates"][0]["passed"], false);
    let content = fs::read_to_string(output_path).unwrap();
    assert_eq!(content, format!("gap {}\n", hit["value_ns"]));
    // The gap is the last of the trace, which the folder has.
    assert!(folder.join("trace.parquet").is_file());
}

#[test]
fn a_command_that_fails_is_said_and_what_is_not_hit_calls_none() {
    let base = ["-n", "1", "-d", "0.1s", "-w", "GRID", "5ms", "--json", "--on-hit", "exit 7"];
    let hit = hourglass(&[&base[..], &["--stop-on-latency", "0ns"]].concat());
    assert_eq!(hit.status.code(), Some(1));
    let warnings = document(&hit)["warnings"].to_string();
    assert!(warnings.contains("on-hit-failed") && warnings.contains("exit status: 7"));
    let kept = hourglass(&[&base[..], &["--stop-on-latency", "1h"]].concat());
    assert_eq!(kept.status.code(), Some(0));
    assert!(!document(&kept)["warnings"].to_string().contains("on-hit-failed"));
}

#[test]
fn a_file_may_say_them_and_the_line_overrides_it() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("limits.toml");
    fs::write(
        &file,
        "duration = \"0.1s\"\nmax_latency = \"0ns\"\npercentile = [\"p50=1h\", \"p99=1h\"]\n\
         [[thread]]\nworkload = \"GRID 5ms\"\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(hourglass(&["run", file, "--json"]).status.code(), Some(1));
    let output = hourglass(&["run", file, "--json", "--max-latency", "1h"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(document(&output)["gates"].as_array().unwrap().len(), 3);
}

/// `-` is stdout wherever a file is named; a run is kept in a folder, and does not make one of that name.
#[test]
fn a_run_is_not_kept_in_stdout() {
    let home = tempfile::tempdir().unwrap();
    for words in [["run", "-n", "1"], ["latency", "-D", "1"], ["noise", "-D", "1"]] {
        let output = hourglass_in(home.path(), &[&words[..], &["-o", "-"]].concat());
        let said = stderr(ends(&output, 2, words));
        assert!(said.starts_with("hourglass: -o: - is stdout, "), "{said}");
        assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
    }
}

/// A run as metrics and as test cases; what it says about later wake-ups. A limit is needed for test cases.
#[test]
fn results_for_monitoring_and_ci() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let (metrics, cases) = (path("a.prom"), path("a.xml"));
    for (limit, code, met) in [("1h", 0, 1), ("0ns", 1, 0)] {
        let line = format!(
            "-n 1 -d 0.2s -w GRID 5ms --json --max-latency {limit} --openmetrics {metrics} --junit {cases}"
        );
        let output = hourglass(&line);
        let document = document(ends(&output, code, &line));
        let gate = &document["gates"][0]["confidence"];
        let wake_ups = gate["wake_ups"].as_u64().unwrap();
        assert_eq!(gate["stationarity"], "not_tested", "{gate}");
        let bound = gate["share_beyond"].as_f64().unwrap();
        match met {
            1 => assert!(gate["beyond"] == 0 && bound <= 3.0 / wake_ups as f64, "{gate}"),
            _ => assert!(gate["beyond"].as_u64() > Some(0) && bound > 0.5, "{gate}"),
        }
        let text = fs::read_to_string(&metrics).unwrap();
        let found = format!("hourglass_gate_met{{command=\"run\",gate=\"max-latency\"}} {met}\n");
        assert!(text.contains(&found) && text.ends_with("# EOF\n"), "{text}");
        let count = document["threads"][0]["latency"]["count"].as_u64().unwrap();
        assert!(text.contains("hourglass_latency_seconds_count{command=\"run\",thread=\"0\""));
        assert!(text.contains(&format!("le=\"+Inf\"}} {count}\n")), "{text}");
        let text = fs::read_to_string(&cases).unwrap();
        assert!(text.contains(&format!("tests=\"1\" failures=\"{}\"", 1 - met)), "{text}");
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
    for line in [
        format!("-n 1 -d 0.1s --junit {cases}"),
        format!("-n 1 -d 0.1s --openmetrics {metrics} --against -q"),
        "-n 1 -d 0.1s --openmetrics /none/a.prom".to_owned(),
    ] {
        ends(&hourglass(&line), 2, &line);
    }
}

#[test]
fn the_doctor_for_monitoring_and_ci() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let (metrics, cases) = (path("a.prom"), path("a.xml"));
    let words =
        ["doctor", "--check", "swap", "--json", "--openmetrics", &metrics, "--junit", &cases];
    let output = hourglass(&words);
    let document = document(&output);
    let status = document["checks"][0]["status"].as_str().unwrap();
    let text = fs::read_to_string(&metrics).unwrap();
    let found = format!("hourglass_doctor_check{{check=\"swap\",status=\"{status}\"}} 1\n");
    assert!(text.contains(&found), "{text}");
    assert!(fs::read_to_string(&cases).unwrap().contains("tests=\"1\""));
}

/// Started under `nice`, a user without privileges may not go back to nice 0, and no option asked for it: each kind of
/// measurement runs where it is and says so.
#[test]
fn under_nice_a_measurement_that_asks_for_no_policy_runs() {
    let drop = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"];
    let drops = |words: &[&str]| {
        Command::new(words[0])
            .args(&words[1..])
            .arg("true")
            .output()
            .is_ok_and(|o| o.status.success())
    };
    // A user may not drop what it does not have, and does not need to.
    let launcher = if drops(&drop) { &drop[..] } else { &[] };
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let nice = limits.lines().find(|line| line.starts_with("Max nice priority")).unwrap();
    if nice.split_whitespace().nth(3) != Some("0") {
        let need = Requirement::runs("no-nice-limit", "test $(bash -c 'ulimit -e') -eq 0");
        return skip(need, "this user may lower nice values");
    }
    let home = tempfile::tempdir().unwrap();
    let loops = home.path().join("loop.toml");
    fs::write(&loops, "[[thread]]\nworkload = \"PERIODIC 1ms 5ms\"\n").unwrap();
    for words in [
        "run --json -d 50ms -n 1",
        "latency --json --policy other -i 1000 -D 50ms",
        "noise --json -D 50ms --warm-up 0",
        "cache-cost --json --sizes 16K --trials 1 --duration 50ms",
        &format!("run --json -d 50ms {}", loops.display()),
    ] {
        let mut nice = Command::new("nice");
        nice.args(["-n", "5"]).args(launcher).args([calls::HOURGLASS]).args(words.split(' '));
        let output = nice.output().unwrap();
        let found = document(ends(&output, 0, words));
        assert!(found["warnings"].to_string().contains("nice-shifted"), "{words}: {found}");
    }
}

/// A full disk behind stdout is named as that, also in the midst of the records of a run, which end after a buffer of
/// 64 KiB; "hourglass: No space left on device" was all that a run said then.
#[test]
fn a_full_stdout_is_named() {
    let tasks = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/deadline-class.toml");
    let (check, simulate) = (format!("check {tasks}"), format!("simulate --json {tasks}"));
    let lines = ["-q -n 2 -d 400ms", "run -q -n 1 -d 20ms --json", "latency -D 20ms -i 2ms"];
    let texts =
        ["doctor --check swap", "clocks", "example --schema", "sweep --help", "completions bash"];
    let texts = texts.into_iter().chain([check.as_str(), &simulate, "man", "--version"]);
    for line in lines.into_iter().chain(texts) {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(line).stdout(full).output().unwrap();
        let said = stderr(ends(&output, 3, line));
        let why = "hourglass: cannot write to stdout: No space left on device";
        assert!(said.lines().last().is_some_and(|last| last.starts_with(why)), "{line}: {said}");
    }
}
