//! Tests that failed are run once more, alone.
//!
//! Tests run side by side on as many threads as there are CPUs, on machines whose CPUs the host takes away at will.
//! What fails only then is not what was tested; but it is not nothing either, so each such test is named in the
//! last lines, and more than [`MOST`] of them are a failure.
//!
//! Owns: the reading of what cargo's harness and pytest print of failed tests. Must not: run a second time what is
//! not a single test (a program that crashed, a doc-test, code that does not compile); run anything a third time.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};

use crate::failure::StepFailure;

/// If more tests than this fail, none is run again.
const MOST: usize = 3;

/// What may pass only when run again alone, by words of the names, and why. Anything else fails the run, since what fails
/// beside others fails for users. To be shortened, not to be added to.
const EXPLAINED: [(&str, &str); 2] = [
    (
        "bed linux7",
        "beside load an emulated guest's accounts are off by more than intervals leave room for",
    ),
    ("test_fleet_ray.py", "four raylets and their agents on two CPUs"),
];

/// Prints the tests that passed only alone; returns a line for each without an explanation.
pub(crate) fn shown_and_unexplained(alone: &[String]) -> Vec<String> {
    println!("tests that passed only when run again alone: {}", alone.len());
    let mut unexplained = Vec::new();
    for test in alone {
        let why = EXPLAINED.iter().find(|(name, _)| test.contains(name)).map(|(_, why)| *why);
        println!("  {test}: {}", why.unwrap_or("unexplained"));
        if why.is_none() {
            unexplained.push(format!("{test}: passed only when run again alone"));
        }
    }
    unexplained
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FailedTests {
    /// What tells cargo the program: `--lib`, `--test NAME`. Empty for pytest.
    pub(crate) program: Vec<String>,
    pub(crate) tests: BTreeSet<String>,
}

pub(crate) fn shown(command: &mut Command) -> Result<(ExitStatus, Vec<String>), StepFailure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let unable = |error: std::io::Error| StepFailure::start(&name, &error);
    // Both streams in one pipe, or it would not be known after which tests cargo names the program.
    let (reader, writer) = std::io::pipe().map_err(unable)?;
    command.stdout(writer.try_clone().map_err(unable)?).stderr(writer).stdin(Stdio::null());
    let mut child = command.spawn().map_err(unable)?;
    // The command keeps the writing ends; the reader would wait for ever for them to close.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut lines = Vec::new();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(unable)? > 0 {
        let mut out = std::io::stdout().lock();
        out.write_all(&line).and_then(|()| out.flush()).map_err(unable)?;
        lines.push(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned());
        line.clear();
    }
    Ok((child.wait().map_err(unable)?, lines))
}

/// What failed in a run of `cargo test --no-fail-fast -- --quiet`; `None` where that is not some tests.
pub(crate) fn of_cargo(lines: &[String]) -> Option<Vec<FailedTests>> {
    const RERUN: &str = "error: test failed, to rerun pass `";
    let mut programs = Vec::new();
    let mut tests = BTreeSet::new();
    let mut listed = false;
    for line in lines {
        let test = line.strip_prefix("    ").filter(|name| !name.contains(char::is_whitespace));
        if let Some(program) = line.strip_prefix(RERUN) {
            let words = program.trim_end_matches('`').split_whitespace().map(str::to_owned);
            // The package is left out: built alone, it would be built with other features.
            let program: Vec<String> = words.skip_while(|word| word == "-p").skip(1).collect();
            let doc = program.iter().any(|word| word == "--doc");
            if doc || program.is_empty() || tests.is_empty() {
                return None;
            }
            programs.push(FailedTests { program, tests: std::mem::take(&mut tests) });
        } else if line == "failures:" {
            listed = true;
        } else if let (true, Some(name)) = (listed, test) {
            tests.insert(name.to_owned());
        } else if !line.is_empty() || !tests.is_empty() {
            listed = false;
        }
    }
    accepted(programs)
}

/// What failed in a run of `pytest -ra`; `None` where that is not some tests.
pub(crate) fn of_pytest(lines: &[String]) -> Option<Vec<FailedTests>> {
    if lines.iter().any(|line| line.starts_with("ERROR ")) {
        return None;
    }
    let names = lines.iter().filter_map(|line| line.strip_prefix("FAILED ")?.split(' ').next());
    let tests: BTreeSet<String> = names.map(str::to_owned).collect();
    accepted(vec![FailedTests { program: Vec::new(), tests }])
}

fn accepted(programs: Vec<FailedTests>) -> Option<Vec<FailedTests>> {
    let tests: usize = programs.iter().map(|program| program.tests.len()).sum();
    (1..=MOST).contains(&tests).then_some(programs)
}

pub(crate) fn passed(lines: &[String]) -> usize {
    let counts = lines.iter().filter_map(|line| {
        line.strip_prefix("test result: ok. ")?.split_once(" passed")?.0.parse::<usize>().ok()
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    /// As cargo 1.95 prints it.
    const CARGO: &str = "\
     Running unittests src/lib.rs (target/debug/deps/hourglass_time-1)

running 3 tests
.
failures:

---- sleep::late stdout ----

thread 'sleep::late' panicked at crates/time/src/lib.rs:1:1:
    indented text

failures:
    sleep::late
    sleep::never

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass `-p hourglass-time --lib`
     Running tests/first.rs (target/debug/deps/first-1)
failures:

failures:
    a_read

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass `-p hourglass-clock --test first`
error: 2 targets failed:
    `-p hourglass-time --lib`
    `-p hourglass-clock --test first`
";

    #[test]
    fn failed_tests_are_known_by_program() {
        let of = |program: &[&str], tests: &[&str]| FailedTests {
            program: program.iter().map(|word| (*word).to_owned()).collect(),
            tests: tests.iter().map(|test| (*test).to_owned()).collect(),
        };
        let expected = vec![
            of(&["--lib"], &["sleep::late", "sleep::never"]),
            of(&["--test", "first"], &["a_read"]),
        ];
        assert_eq!(of_cargo(&lines(CARGO)), Some(expected));
    }

    #[test]
    fn what_is_not_some_tests_is_not_run_again() {
        let crashed = "error: test failed, to rerun pass `-p a --lib`\n";
        assert_eq!(of_cargo(&lines(crashed)), None);
        let document = "failures:\n    a\n\nerror: test failed, to rerun pass `-p a --doc`\n";
        assert_eq!(of_cargo(&lines(document)), None);
        assert_eq!(of_cargo(&lines("error: could not compile `a`\n")), None);
        let many = "failures:\n    a\n    b\n    c\n    d\n\n";
        let many = format!("{many}error: test failed, to rerun pass `-p a --lib`\n");
        assert_eq!(of_cargo(&lines(&many)), None);
        let crashed_too = format!("{CARGO}{crashed}");
        assert_eq!(of_cargo(&lines(&crashed_too)), None);
    }

    #[test]
    fn pytest_names_each_failed_test() {
        let text = "FAILED ../python/tests/a.py::b - assert (0 >= 1)\n1 failed, 2 passed\n";
        let failed = of_pytest(&lines(text)).unwrap();
        assert_eq!(failed[0].tests, BTreeSet::from(["../python/tests/a.py::b".to_owned()]));
        assert_eq!(of_pytest(&lines("ERROR a.py - SyntaxError\nFAILED b.py::c\n")), None);
        assert_eq!(of_pytest(&lines("Segmentation fault\n")), None);
    }

    #[test]
    fn passed_tests_are_counted_over_programs() {
        let text = "test result: ok. 0 passed; 0 failed\ntest result: ok. 2 passed; 0 failed\n";
        assert_eq!(passed(&lines(text)), 2);
        assert_eq!(passed(&lines("test result: FAILED. 2 passed; 1 failed\n")), 0);
    }
}
