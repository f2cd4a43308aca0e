//! `hourglass example`: help texts named files that users did not have.

use crate::calls::{ends, hourglass_in, is_refused, text};

/// Each listed example is written, is not written over, and is accepted by the command that the list names.
#[test]
fn every_example_is_accepted_by_its_command() {
    let home = tempfile::tempdir().unwrap();
    let list = text(&hourglass_in(home.path(), &["example", "--list"]).stdout);
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines.len() >= 12, "{list}");
    for pair in lines.chunks(2) {
        let name = pair[0].split_whitespace().next().unwrap();
        ends(&hourglass_in(home.path(), &["example", name]), 0, name);
        let again = hourglass_in(home.path(), &["example", name]);
        is_refused(&again, 2, "exists already and is left as it is", name);
        let mut words: Vec<&str> = pair[1].split_whitespace().skip(1).collect();
        if words[0] == "run" {
            // Not for its whole time, and where real-time priorities are not allowed.
            words.extend(["-d", "50ms", "--best-effort"]);
        }
        let used = hourglass_in(home.path(), &words);
        let said = text(&used.stderr);
        assert!(matches!(used.status.code(), Some(0 | 1)), "{words:?}: {said}");
    }
}

#[test]
fn examples_are_printed_and_named() {
    let home = tempfile::tempdir().unwrap();
    let printed = hourglass_in(home.path(), &["example", "audio.toml", "-o", "-"]);
    assert!(text(&printed.stdout).contains("[[thread]]"), "{printed:?}");
    let named = hourglass_in(home.path(), &["example", "smt", "-o", "mine.toml"]);
    assert!(
        text(&named.stderr).contains("hourglass simulate mine.toml --smt monitor"),
        "{named:?}"
    );
    assert!(home.path().join("mine.toml").is_file());
    for (line, said) in [
        (&["example", "adio"][..], "unknown example 'adio'; did you mean 'audio'?"),
        (&["example"], "were not provided"),
        (&["example", "audio", "-o", "missing/audio.toml"], "make the folder missing first"),
        (&["example", "--list", "--json"], "--json: example prints a file"),
    ] {
        is_refused(&hourglass_in(home.path(), line), 2, said, line);
    }
}

#[test]
fn the_schema_of_task_files_is_printed_and_written() {
    let home = tempfile::tempdir().unwrap();
    let printed = text(&ends(&hourglass_in(home.path(), &["example", "--schema"]), 0, "").stdout);
    let schema: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    assert_eq!(schema["properties"]["scheduler"]["enum"][1], "edf");
    let line = ["example", "--schema", "-o", "keys.json"];
    let said = text(&hourglass_in(home.path(), &line).stderr);
    assert!(said.contains("begin files of tasks with #:schema ./keys.json"), "{said}");
    assert_eq!(std::fs::read_to_string(home.path().join("keys.json")).unwrap(), printed);
    is_refused(&hourglass_in(home.path(), &line), 2, "exists already", "again");
    let both = hourglass_in(home.path(), &["example", "tasks", "--schema"]);
    is_refused(&both, 2, "cannot be used with", "both");
}

/// `-q -o DIR` in a pipe wrote a line for every interval; without `-n` nothing was run.
#[test]
fn a_run_says_what_it_is_asked_to_say() {
    let home = tempfile::tempdir().unwrap();
    let run = |line: &[&str]| {
        let ran = hourglass_in(home.path(), &[&["run", "-d", "50ms", "-q"], line].concat());
        text(&ends(&ran, 0, line).stdout)
    };
    assert_eq!(run(&["-o", "kept"]), "");
    assert!(run(&["-o", "other", "--records"]).contains("0 0.0"));
    let lines = run(&[]);
    assert!(lines.lines().all(|line| line.starts_with("0 ")), "one thread: {lines}");
    let summary = run(&["--summary"]);
    assert!(summary.contains("Verdict"), "{summary}");
    let shown = hourglass_in(home.path(), &["show", "kept", "--summary", "-q"]);
    assert!(text(&shown.stdout).contains("Verdict"), "{shown:?}");
}
