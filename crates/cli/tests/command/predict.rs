//! `hourglass predict` as a script sees it. What was measured is not judged but for what must hold.

use std::path::Path;
use std::process::Output;

use crate::calls::{document, ends, hourglass, is_refused, printed};
use serde_json::Value;

/// Section 5.5 of the Hourglass paper.
const TASKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tasks.toml");

fn predict(line: &str) -> Output {
    hourglass(&format!("predict {line}"))
}

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// CONTRACT, `hourglass.predict/1`; on paper 3 ms and 29 ms.
#[test]
fn bounds_without_a_run() {
    let output = predict(&format!("{TASKS} --no-run --json"));
    let document = document(&output);
    assert_eq!(document["schema"], "hourglass.predict/1");
    let tasks = document["tasks"].as_array().unwrap();
    let bounds: Vec<_> = tasks.iter().map(|task| task["bound_ns"].as_u64().unwrap()).collect();
    assert_eq!(bounds, [3_000_000, 29_000_000]);
    // The tick is simulated, and makes video late.
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(tasks[0]["simulated_ns"], 3_000_000);
    let keys =
        ["name", "bound_ns", "simulated_ns", "measured_ns", "deadline_ns", "missed", "explanation"];
    for key in keys {
        assert!(tasks[1].get(key).is_some(), "{key}");
    }
    assert!(tasks[1]["measured_ns"].is_null() && tasks[1]["missed"].is_null());
    assert_eq!(document["run"], Value::Null);
}

/// Exit codes: 0 yes, 1 no, 2 cannot read or run; one line that names the culprit.
#[test]
fn exit_codes() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| written(home.path(), name, text);
    let task =
        |wcet: &str| format!("[[task]]\nname = \"a\"\nwcet = \"{wcet}\"\nperiod = \"10ms\"\n");
    let light = file("light.toml", &task("1ms"));
    assert_eq!(predict(&format!("{light} --no-run")).status.code(), Some(0));
    let heavy = file("heavy.toml", &task("11ms"));
    assert_eq!(predict(&format!("{heavy} --no-run")).status.code(), Some(1));
    let forked = format!(
        "{}phases = [{{ steps = [\"run 1ms\", \"fork b\", \"timer t 10ms\"] }}]\n",
        task("1ms")
    );
    for (wrong, said) in [
        (file("forked.toml", &forked), "fork b"),
        (file("endless.toml", &forked.replace(", \"timer t 10ms\"", "")), "never wait"),
        (file("edf.toml", &format!("scheduler = \"edf\"\n{}", task("1ms"))), "edf"),
        (file("empty.toml", ""), "empty.toml"),
        ("not-there.toml".to_owned(), "not-there.toml"),
    ] {
        is_refused(&predict(&wrong), 2, said, wrong);
    }
}

/// A run that is kept can be shown again, and what a job executes is never less than asked for.
#[test]
fn a_run_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let text = "[[task]]\nname = \"a\"\nwcet = \"300us\"\nperiod = \"10ms\"\n";
    let file = written(home.path(), "light.toml", text);
    let kept = home.path().join("kept");
    let line = format!("{file} -d 200ms --best-effort --json -o {}", kept.display());
    let output = predict(&line);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let document = document(&output);
    assert_eq!(document["run"]["folder"], kept.display().to_string());
    let task = &document["tasks"][0];
    assert!(task["measured_ns"].as_u64().is_some_and(|ns| ns >= 300_000), "{task}");
    printed(&["show", "--json", kept.to_str().unwrap()]);
}

/// A record without the kernel's trace shows no response, which is no verdict; what is no record is refused.
#[test]
fn a_record_that_shows_no_bound_leaves_no_verdict() {
    let home = tempfile::tempdir().unwrap();
    let kept = home.path().join("kept").display().to_string();
    ends(&hourglass(&format!("-q -n 1 -d 100ms -o {kept}")), 0, "a run");
    let output = predict(&format!("{TASKS} --against {kept} --json"));
    let document = document(ends(&output, 4, "against"));
    let against = &document["against"];
    assert_eq!(
        (&against["held"], &against["broken"], &against["unknown"]),
        (&0.into(), &0.into(), &2.into())
    );
    for task in document["tasks"].as_array().unwrap() {
        assert!(task["held"].is_null() && task["not_held"].is_string(), "{task}");
    }
    assert_eq!(document["run"], Value::Null);
    for (line, said) in [
        (format!("{TASKS} --against {TASKS}"), "is not a folder"),
        (format!("{TASKS} --against {kept}-not"), "does not exist"),
        (format!("{TASKS} --against {kept} --no-run"), "cannot be used with"),
    ] {
        is_refused(&predict(&line), 2, said, line);
    }
}
