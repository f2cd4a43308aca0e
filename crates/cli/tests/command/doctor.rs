//! `hourglass doctor` as a script sees it: the document, exit codes, what is refused.

use std::process::Output;

use crate::calls::{document, hourglass, is_refused, refuses, text};

fn doctor(line: &str) -> Output {
    hourglass(&format!("doctor {line}"))
}

/// CONTRACT, `hourglass.doctor/1`: the keys, and the exit code that follows from them.
#[test]
fn the_document_and_the_exit_code_agree() {
    let output = doctor("--json");
    let document = document(&output);
    assert_eq!(document["schema"], "hourglass.doctor/1");
    let checks = document["checks"].as_array().unwrap();
    assert!(checks.len() > 40, "{}", checks.len());
    for check in checks {
        for key in ["id", "status", "found", "wanted", "remedy"] {
            assert!(check[key].is_string(), "{key}: {check}");
        }
        let status = check["status"].as_str().unwrap();
        assert!(["ok", "warn", "fail", "unknown"].contains(&status), "{check}");
        assert_eq!(check["remedy"] == "", status == "ok", "{check}");
    }
    let fails = checks.iter().filter(|check| check["status"] == "fail").count();
    assert_eq!(document["counts"]["fail"], fails);
    assert_eq!(output.status.code(), Some(i32::from(fails > 0)));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn the_text_has_every_check_and_counts_them() {
    let listed = document(&doctor("--json"));
    let output = doctor("");
    let printed = text(&output.stdout);
    assert!(!printed.contains('\u{1b}'), "a pipe gets no colour");
    for check in listed["checks"].as_array().unwrap() {
        let id = check["id"].as_str().unwrap();
        let named = |line: &str| line.split_whitespace().nth(1) == Some(id);
        assert!(printed.lines().any(named), "{id}");
    }
    let last = printed.lines().last().unwrap();
    let count = listed["checks"].as_array().unwrap().len();
    assert!(last.starts_with(&format!("{count} checks: ")), "{last}");
    assert!(matches!(output.status.code(), Some(0 | 1)));
}

#[test]
fn only_the_checks_that_are_asked_for() {
    let output = doctor("--json --check swap --check governor,mitigations");
    let document = document(&output);
    let checks = document["checks"].as_array().unwrap().iter();
    let ids: Vec<&str> = checks.map(|check| check["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["governor", "swap", "mitigations"]);
    assert_eq!(output.status.code(), Some(0), "none of these can fail");
}

#[test]
fn cpus_of_the_work() {
    let document = document(&doctor("--json --cpus 0"));
    assert_eq!((&document["cpus"], &document["cpus_are"]), (&"0".into(), &"asked".into()));
}

/// Exit code 2, nothing on stdout, one line on stderr that names the culprit.
#[test]
fn strangers_are_refused() {
    for (line, message) in [
        ("--check goveror", "--check: unknown check 'goveror'; did you mean 'governor'?"),
        ("--check xyzzy", "--check: unknown check 'xyzzy'; hourglass doctor --help lists them"),
        ("--cpus 8191", "--cpus: CPUs 8191 are not online; there are "),
        ("--cpus 3-1", "invalid value '3-1' for '--cpus <LIST>'"),
        ("--verbose", "--verbose: unknown option; hourglass doctor --help lists them"),
    ] {
        refuses(&format!("doctor {line}"), message);
    }
}

/// Issue 33, 4: a gate on warnings, as `--fail-on` of comparisons.
#[test]
fn warnings_end_with_1_where_that_is_asked_for() {
    for (word, statuses) in [
        ("fail", &["fail"][..]),
        ("warn", &["fail", "warn"]),
        ("unknown", &["fail", "warn", "unknown"]),
    ] {
        // Of one look: what runs beside this changes the check of the load.
        let output = doctor(&format!("--fail-on {word} --json"));
        let counts = &document(&output)["counts"];
        let bad: u64 = statuses.iter().map(|status| counts[status].as_u64().unwrap()).sum();
        assert_eq!(output.status.code(), Some(i32::from(bad > 0)), "{word}");
    }
    is_refused(&doctor("--fail-on ok"), 2, "--fail-on", "ok");
}

/// Issue 33, 4: expected values of a fleet. This machine is as it was a moment ago, but for what is made up.
#[test]
fn a_profile_names_what_differs() {
    let home = tempfile::tempdir().unwrap();
    let checks = "rtprio,ksm,tsc,virtual-machine";
    let mut expected = document(&doctor(&format!("--json --check {checks}")));
    let path = home.path().join("good.json");
    let compare = |expected: &serde_json::Value| {
        std::fs::write(&path, expected.to_string()).unwrap();
        doctor(&format!("--profile {} --json", path.display()))
    };
    let same = compare(&expected);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stdout));
    assert_eq!(document(&same)["differences"], serde_json::json!([]));
    expected["checks"][1]["found"] = "made up".into();
    let other = compare(&expected);
    assert_eq!(other.status.code(), Some(1));
    let differences = &document(&other)["differences"];
    assert_eq!(differences.as_array().map(Vec::len), Some(1), "{differences}");
    assert_eq!(
        (&differences[0]["id"], &differences[0]["expected"]),
        (&expected["checks"][1]["id"], &"made up".into())
    );
    let shown = doctor(&format!("--profile {}", path.display()));
    let shown = text(&shown.stdout);
    assert!(shown.contains("made up") && shown.ends_with("1 of 4 checks differ\n"), "{shown}");
    let missing = doctor("--profile /does/not/exist");
    is_refused(&missing, 2, "no such file; `hourglass doctor --json > FILE`", "missing");
    // "missing field `checks` at line 798" was said of a run, "expected value at line 1 column 1" of a TOML file.
    for (content, wanted) in [
        ("{", "this is no JSON ("),
        ("[[task]]\n", "this is no JSON ("),
        (
            r#"{"schema": "hourglass.run/1", "threads": []}"#,
            "this is a hourglass.run/1 document, not hourglass.doctor/1; make one with `hourglass doctor --json`",
        ),
        ("{}", "missing field `checks`"),
    ] {
        std::fs::write(&path, content).unwrap();
        let refused = doctor(&format!("--profile {}", path.display()));
        is_refused(&refused, 2, wanted, content);
    }
}

/// The remedies as a script that a shell accepts; what no script can do is a comment.
#[test]
fn the_script_is_one_for_the_shell() {
    let output = doctor("--script");
    let script = text(&output.stdout);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("fix.sh");
    std::fs::write(&path, &script).unwrap();
    let checked = std::process::Command::new("sh").arg("-n").arg(&path).status().unwrap();
    assert!(checked.success() && script.starts_with("#!/bin/sh\n"), "{script}");
    let listed = document(&doctor("--json"));
    // These change from one look to the next.
    let varies =
        |id: &serde_json::Value| ["load", "steal-time", "thermal"].iter().any(|of| id == of);
    for check in listed["checks"].as_array().unwrap().iter().filter(|one| !varies(&one["id"])) {
        let bad = ["fail", "warn"].contains(&check["status"].as_str().unwrap());
        let id = check["id"].as_str().unwrap();
        assert_eq!(script.contains(&format!("# {id}: ")), bad, "{id}");
    }
    is_refused(&doctor("--script --json"), 2, "--script", "json");
}
