//! `hourglass model` and `watch --tasks` as a script sees them: what is written is a file of tasks.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::calls::{command, document, ends, hourglass_in, is_refused, stderr};
use crate::processes::{Killed, until};
use hourglass_skip::{Requirement, skip};
use hourglass_tasks::{Activation, TaskSet};
use hourglass_time::Span;

const TRIES: usize = 4;
const INSTANCES: &str = "/sys/kernel/tracing/instances";

fn tasks(file: &Path) -> TaskSet {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(" jobs seen"), "{text}");
    TaskSet::from_toml(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The way from a program to a proof and back: a set is simulated, its record modelled, and the model is that set again,
/// which the other commands read.
#[test]
fn a_simulated_set_is_modelled_as_itself() {
    let home = tempfile::tempdir().unwrap();
    let at = home.path();
    let set = "[[task]]\nname = \"audio\"\nperiod = \"8ms\"\nwcet = \"1ms\"\npriority = 80\n\
               [[task]]\nname = \"video\"\nperiod = \"33ms\"\nwcet = \"5ms\"\npriority = 40\n";
    fs::write(at.join("set.toml"), set).unwrap();
    ends(&hourglass_in(at, "simulate set.toml --horizon 4s -o kept"), 0, "simulate");
    ends(&hourglass_in(at, "model kept -o found.toml"), 0, "model");
    let found = tasks(&at.join("found.toml"));
    let facts: Vec<_> =
        found.tasks.iter().map(|task| (task.name.as_str(), task.period, task.wcet)).collect();
    let ms = Span::from_millis;
    assert_eq!(facts, [("audio", ms(8), ms(1)), ("video", ms(33), ms(5))]);
    for line in ["check", "simulate --horizon 1s", "predict --no-run"] {
        let output = hourglass_in(at, &format!("{line} found.toml"));
        assert!(matches!(output.status.code(), Some(0 | 1)), "{line}: {}", stderr(&output));
    }
    let model = document(ends(&hourglass_in(at, "model kept --json"), 0, "--json"));
    assert_eq!(model["schema"], "hourglass.model/1");
    assert_eq!(model["threads"][0]["activation"]["class"], "periodic");
    assert_eq!(model["threads"][0]["fit"]["jobs"], 500);
}

/// Too few jobs to state a law: exit code 4, and no verdict for those below.
#[test]
fn a_thread_that_is_no_task_leaves_no_verdict() {
    let home = tempfile::tempdir().unwrap();
    let at = home.path();
    let set = "[[task]]\nname = \"seldom\"\nperiod = \"1s\"\nwcet = \"1ms\"\npriority = 80\n\
               [[task]]\nname = \"video\"\nperiod = \"33ms\"\nwcet = \"5ms\"\npriority = 40\n";
    fs::write(at.join("set.toml"), set).unwrap();
    ends(&hourglass_in(at, "simulate set.toml --horizon 4s -o kept"), 0, "simulate");
    let output = hourglass_in(at, "model kept -o found.toml");
    let said = ends(&output, 4, "model");
    assert!(stderr(said).contains("seldom: no task: 4 jobs are too few"), "{}", stderr(said));
    assert_eq!(tasks(&at.join("found.toml")).background.len(), 1);
    let checked = document(&hourglass_in(at, "check found.toml --json"));
    assert_eq!(checked["tasks"][0]["verdict"], "unknown", "{checked}");
    let alone: String = set.split_inclusive("priority = 80\n").take(1).collect();
    fs::write(at.join("alone.toml"), alone).unwrap();
    ends(&hourglass_in(at, "simulate alone.toml --horizon 4s -o only"), 0, "simulate");
    let nothing = hourglass_in(at, "model only -o nothing.toml");
    is_refused(&nothing, 4, "-o nothing.toml is not written", "no task");
    assert!(!at.join("nothing.toml").exists());
    is_refused(&hourglass_in(at, "model set.toml"), 2, "set.toml", "no folder");
}

/// A program of known period, watched from outside: its period within a thousandth, its time not below what it took.
#[test]
fn a_watched_program_is_modelled() {
    if let Err(error) = fs::read_dir(INSTANCES) {
        return skip(
            Requirement::TRACEFS,
            format_args!("{INSTANCES}: {error}; mount tracefs and be root"),
        );
    }
    let home = tempfile::tempdir().unwrap();
    let at = home.path();
    let work = "run -n 1 -d 60s -q -t 0 -w PERIODIC 1ms 5ms -i HR";
    let mut started = command(work);
    started.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let worker = Killed(started.spawn().unwrap());
    let threads = format!("/proc/{}/task", worker.pid());
    until("its thread is there", || fs::read_dir(&threads).is_ok_and(|all| all.count() > 1));
    let line = format!("watch {} --trace -d 3s --tasks found.toml -o kept", worker.pid());
    // Beside other tests the kernel may lose so many events that no thread is a task, which is exit code 4.
    for _ in 0..TRIES {
        let output = hourglass_in(at, &line);
        // The thread that waits for the end may run seldom, or not at all.
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", stderr(&output));
        if at.join("found.toml").exists() {
            break;
        }
        println!("{}", stderr(&output));
        fs::remove_dir_all(at.join("kept")).unwrap();
    }
    let found = tasks(&at.join("found.toml"));
    let task = found.tasks.iter().find(|task| task.name.starts_with("hourglass")).unwrap();
    let away = task.period.nanos().abs_diff(5_000_000);
    assert!(task.activation == Activation::Periodic && away <= 5_000, "{task:?}");
    assert!(task.wcet >= Span::from_micros(990), "{task:?}");
    let again = hourglass_in(at, "check kept --json");
    assert!(matches!(again.status.code(), Some(0 | 1)), "{}", stderr(&again));
    let checked = hourglass_in(at, "check found.toml --json");
    assert_eq!(document(&again)["tasks"], document(&checked)["tasks"]);
    assert!(
        !fs::read_dir(at)
            .unwrap()
            .any(|entry| { entry.unwrap().file_name().to_string_lossy().contains("record-") })
    );
}
