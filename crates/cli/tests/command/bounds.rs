//! What would take the machine's memory or hours is refused before it does, with a line that says which number
//! is too large and what helps; and CPUs that the kernel allows may be named.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::calls::{HOURGLASS, document, ends, is_refused};
use crate::processes::{allowed_cpus, has_taskset};
use hourglass_skip::{Requirement, skip};

/// `hourglass WORDS` behind what a shell does first.
fn under(setup: &str, words: &str, home: &Path) -> Output {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{setup} {HOURGLASS} {words}"));
    shell.current_dir(home).stdin(Stdio::null()).output().unwrap()
}

/// `taskset -c 0 hourglass noise -c 1` was refused, and with it isolated CPUs, for which `noise` and `latency`
/// are made. A CPU that is not there still is.
#[test]
fn cpus_outside_of_the_affinity_may_be_named() {
    let home = tempfile::tempdir().unwrap();
    let cpus = allowed_cpus();
    let (mut cpus, has_taskset) = (cpus.iter(), has_taskset());
    let (Some(first), Some(last), true) = (cpus.next(), cpus.last(), has_taskset) else {
        return skip(Requirement::SECOND_CPU, "a second CPU, and taskset");
    };
    let setup = format!("taskset -c {first}");
    for words in [
        format!("noise -c {last} -D 50ms --warm-up 0 -q"),
        format!("latency --policy other -a {last} -l 3 -q"),
        format!("run -n 1 -d 20ms -w CPU --cpu {last} -q"),
        format!("cache-cost --cpu {last} --sizes 4K --trials 2 --duration 20ms --threads 2 -q"),
    ] {
        ends(&under(&setup, &words, home.path()), 0, words);
    }
    for words in ["noise -c 4000", "latency -a 4000", "run -n 1 --cpu 4000"] {
        is_refused(&under(&setup, words, home.path()), 2, "CPU 4000", words);
    }
}

/// A limit of addresses below the buffers ended the process by SIGABRT, with a backtrace.
#[test]
fn memory_that_the_process_may_not_have_is_refused() {
    let home = tempfile::tempdir().unwrap();
    for words in [
        "run -n 1 -d 20ms -w CPU -e 20000000 -q -o kept",
        "run -n 1 -d 20ms -w CPU_SCAN 400M -q -o kept",
        "noise -D 20ms --warm-up 0 --records 20000000 -q",
    ] {
        let output = under("ulimit -v 300000;", words, home.path());
        let text = is_refused(&output, 3, "lower -e", words);
        assert!(text.contains("RLIMIT_AS"), "{words}: {text}");
        assert!(!home.path().join("kept").exists());
    }
    ends(&under("ulimit -v 300000;", "run -n 1 -d 20ms -w CPU -q", home.path()), 0, "it fits");
}

/// The thread's sleeps had the slack of its wake-up method, also those before and behind the run.
#[test]
fn timer_slack_of_hours_does_not_hold_a_run_up() {
    let home = tempfile::tempdir().unwrap();
    for method in ["NATIVE:9h", "FUTEX:9h"] {
        let words = format!("run -n 2 -d 20ms -w LAT 1ms -i {method} -q");
        let begun = Instant::now();
        ends(&under("timeout -s KILL 60", &words, home.path()), 0, &words);
        assert!(begun.elapsed() < Duration::from_secs(50), "{words}");
    }
}

/// 200,000 turns of a loop that copies 4 MB took a minute before anything was measured, in which Ctrl-C
/// was not heard.
#[test]
fn a_slow_loop_is_measured_for_a_bounded_time() {
    let home = tempfile::tempdir().unwrap();
    let words = "run -n 1 -d 1ms -w CPU_MOVE 16M -q";
    ends(&under("timeout -s KILL 30", words, home.path()), 0, words);
}

fn tasks(count: usize) -> String {
    let task = |at: usize| {
        let priority = 1 + at % 99;
        format!(
            "[[task]]\nname = \"t{at}\"\nwcet = \"1us\"\nperiod = \"10s\"\npriority = {priority}\n"
        )
    };
    (0..count).map(task).collect()
}

/// 20,000 tasks were simulated for minutes, 600,000 analysed until the kernel killed a process.
#[test]
fn too_many_tasks_are_refused_at_once() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("many.toml"), tasks(20_000)).unwrap();
    for words in ["simulate many.toml --horizon 10ms", "check many.toml"] {
        let output = under("", words, home.path());
        is_refused(&output, 2, "20000 tasks, and at most 10000", words);
    }
    // On one processor; on several they may be enough for each.
    fs::write(home.path().join("crowd.toml"), tasks(2_001)).unwrap();
    let output = under("", "check crowd.toml --json", home.path());
    let document = document(ends(&output, 1, "crowd.toml"));
    assert_eq!(document["verdict"], "unknown");
    let why = document["reason"].as_str().unwrap();
    assert!(why.contains("2001 tasks run on CPUs 0, and at most 2000"), "{why}");
}
