//! What a person at a terminal sees of a run; script(1) has the terminal.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::calls::{HOURGLASS, command, ends, stderr, text};
use crate::processes::{catches, send, until};
use hourglass_skip::{Requirement, skip};

const SIGUSR1: u32 = 10;

/// What `hourglass WORDS` writes to a terminal; nothing without script(1).
fn on_terminal(words: &str) -> Option<String> {
    let line = format!("{HOURGLASS} {words}");
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
    let output = script.output().ok()?;
    Some(text(&ends(&output, 0, words).stdout))
}

/// A run on every CPU showed nothing until its end but that it would not.
#[test]
fn a_run_on_every_cpu_says_when_it_ends_and_that_it_did() {
    let Some(said) = on_terminal("run -n 1 -d 300ms") else {
        return skip(Requirement::program("script"), "script");
    };
    let at = |part: &str| said.find(part).unwrap_or_else(|| panic!("{part}: {said}"));
    let before = at("hourglass: measuring for 300ms, until ");
    let after = at("hourglass: measured; ");
    assert!(at(" prints it") > before && after > before, "{said}");
    assert!(at("1 thread, ") > after, "{said}");
    for words in ["run -q -n 1 -d 50ms", "latency -q --policy other -S -D 1"] {
        let said = on_terminal(words).unwrap();
        assert!(!said.contains("measuring") && !said.contains("measured;"), "{words}: {said}");
    }
    let said = on_terminal("latency --policy other -S -D 1").unwrap();
    assert!(said.contains("hourglass: measuring for 1s, until "), "{said}");
    assert!(said.contains("--mainaffinity leave a CPU for status lines"), "{said}");
}

/// Nothing is said into a pipe, unless SIGUSR1 asks.
#[test]
fn a_run_answers_how_far_it_is() {
    let line = "run --summary -n 1 -d 1500ms";
    let child = command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the signal is caught", || catches(child.id(), SIGUSR1));
    std::thread::sleep(Duration::from_millis(500));
    send("-USR1", child.id().into()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = stderr(ends(&output, 0, line));
    let (_, passed) = said.split_once("hourglass: measuring: ").unwrap_or_else(|| panic!("{said}"));
    assert!(passed.contains(" of 1.5s"), "{said}");
    assert!(!said.contains("until"), "{said}");
}
