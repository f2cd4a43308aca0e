//! `hourglass model` and `watch --tasks` as a script sees them: what is written is a file of tasks.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::calls::{command, document, ends, hourglass, hourglass_in, is_refused, stderr};
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
    let said = stderr(ends(&nothing, 4, "no task"));
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("-o nothing.toml is not written") && lines.len() == 2, "{said}");
    assert!(lines[1].contains("seldom: no task: 4 jobs are too few"), "{said}");
    assert!(!at.join("nothing.toml").exists() && !said.contains("removed"), "{said}");
    // The file of an earlier call stayed, and `check` had a verdict on it.
    fs::write(at.join("nothing.toml"), set).unwrap();
    let nothing = hourglass_in(at, "model only -o nothing.toml");
    let said = stderr(ends(&nothing, 4, "an old file"));
    assert!(said.contains("the file that was there is removed"), "{said}");
    assert!(!at.join("nothing.toml").exists());
    ends(&hourglass_in(at, "model only -o /dev/null"), 4, "a device");
    assert!(std::path::Path::new("/dev/null").exists());
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

/// Ends the thread, also where its test fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs for a millisecond of its time in every ten, until the test is over; by its number and with the jobs that it did.
fn with_thread_of_known_jobs<R>(test: impl FnOnce(u32, &AtomicU64, &AtomicU64) -> R) -> R {
    let (is_over, jobs, longest_ns) =
        (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let tid = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let _ending = Ending(&is_over);
        scope.spawn(|| {
            let own = hourglass_sys::thread::id();
            tid.store(own.into(), Ordering::SeqCst);
            let used_ns = || hourglass_sys::clock::own_thread_ns(own).unwrap();
            let begun = Instant::now();
            let mut last_ns = used_ns();
            for period in 1.. {
                let from_ns = used_ns();
                while used_ns() - from_ns < 1_000_000 {}
                let now_ns = used_ns();
                longest_ns.fetch_max(now_ns - last_ns, Ordering::SeqCst);
                last_ns = now_ns;
                jobs.fetch_add(1, Ordering::SeqCst);
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                let next = Duration::from_millis(10 * period);
                std::thread::sleep(
                    next.saturating_sub(begun.elapsed()).max(Duration::from_micros(1)),
                );
            }
        });
        until("the thread is there", || jobs.load(Ordering::SeqCst) > 2);
        test(tid.load(Ordering::SeqCst) as u32, &jobs, &longest_ns)
    })
}

/// A thread of this program with jobs of a millisecond of its time: no bound of theirs is below that.
#[test]
fn counts_alone_bound_the_jobs_of_a_known_thread() {
    with_thread_of_known_jobs(|tid, jobs, longest_ns| {
        let before = jobs.load(Ordering::SeqCst);
        let line = format!("model --pid {tid} -d 1s --json");
        let output = hourglass(&line);
        let done = jobs.load(Ordering::SeqCst) - before;
        let found = document(ends(&output, 4, &line));
        assert_eq!(
            (&found["schema"], &found["source"]),
            (&"hourglass.model/1".into(), &"counts".into())
        );
        let thread = &found["threads"][0];
        assert_eq!(
            (&thread["tid"], &thread["activation"]["class"]),
            (&tid.into(), &"unknown".into())
        );
        let counts = &thread["counts"];
        let activations = &counts["activations"];
        let ended = activations["ended"].as_u64().unwrap();
        // Each job ends with a wait; the thread may also wait for a page.
        assert!(activations["min"].as_u64().unwrap() < ended && ended > 0, "{found}");
        if counts["run_ns"].is_null() {
            return assert!(found["warnings"].to_string().contains("no-schedstat"), "{found}");
        }
        let longest = &counts["longest_activation"];
        let bound_ns = longest["at_most_ns"].as_u64().unwrap();
        assert!(longest["bounded"].as_u64().unwrap() > 0 && bound_ns >= 1_000_000, "{found}");
        // From reading to reading of its own clock; a job may have begun since the last one.
        let most_ns = longest_ns.load(Ordering::SeqCst);
        assert!(longest["at_least_ns"].as_u64().unwrap() <= most_ns + 1_000_000, "{found}");
        let run_ns = counts["run_ns"].as_u64().unwrap();
        assert!(run_ns <= (done + 2) * most_ns, "{done} jobs: {found}");
    });
}

/// What counts make is a file that holds no task, and of which nothing is said to hold.
#[test]
fn a_file_by_counts_is_never_feasible() {
    with_thread_of_known_jobs(|tid, _, _| {
        let home = tempfile::tempdir().unwrap();
        let at = home.path();
        let output = hourglass_in(at, &format!("model --pid {tid} -d 300ms -o found.toml"));
        let said = stderr(ends(&output, 4, "model"));
        assert!(
            said.contains("wrote found.toml") && said.contains("no thread is a task"),
            "{said}"
        );
        let text = fs::read_to_string(at.join("found.toml")).unwrap();
        let set = TaskSet::from_toml(&text).unwrap();
        assert_eq!((set.tasks.len(), set.background.len()), (0, 1), "{text}");
        let checked = document(ends(&hourglass_in(at, "check found.toml --json"), 1, "check"));
        assert_eq!(checked["verdict"], "unknown", "{checked}");
        // What it may hold up has no verdict, either.
        let task =
            "[[task]]\nname = \"mine\"\nperiod = \"1s\"\nwcet = \"1ms\"\npolicy = \"FIFO:10\"\n";
        let urgent = |line: &str| match line.starts_with("policy = ") {
            true => "policy = \"FIFO:50\"\n".to_owned(),
            false => format!("{line}\n"),
        };
        let above: String = text.lines().map(urgent).collect();
        fs::write(at.join("both.toml"), above + task).unwrap();
        let checked = document(ends(&hourglass_in(at, "check both.toml --json"), 1, "check"));
        assert_eq!(checked["verdict"], "unknown", "{checked}");
        let printed = hourglass(&format!("model --pid {tid} -d 300ms"));
        let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
        for part in ["by the kernel's counts", "longest is from", "no thread is a task"] {
            assert!(printed.contains(part), "{printed}");
        }
    });
}

/// A program that ends meanwhile is counted until its end.
#[test]
fn counts_end_with_the_program() {
    let mut child = Command::new("sleep").arg("0.5").spawn().unwrap();
    let output = hourglass(&format!("model --pid {} -d 1m --json", child.id()));
    child.wait().unwrap();
    let found = document(ends(&output, 4, "model"));
    assert!(found["elapsed_ns"].as_u64().unwrap() < 60_000_000_000, "{found}");
    let is_idle = found["never_ran"] == serde_json::json!(["sleep"]);
    assert!(is_idle || found["threads"][0]["counts"]["ended"] == true, "{found}");
}

#[test]
fn who_is_not_there_cannot_be_counted() {
    let home = tempfile::tempdir().unwrap();
    for (line, said) in [
        ("--pid 4194399 -d 1s -o x.toml", "no process 4194399; it may have ended"),
        ("--pid audio", "a PID is a number"),
        ("--pid 1 kept", "--pid"),
        ("kept -d 1s", "DIR"),
        ("kept --interval 20ms", "DIR"),
        ("--pid 1 --interval 1ms", "at least 10ms apart"),
        ("-o x.toml", "DIR"),
    ] {
        is_refused(&hourglass_in(home.path(), &format!("model {line}")), 2, said, line);
    }
    assert!(!home.path().join("x.toml").exists());
}

/// What only an upper bound makes late is not called late by any command.
#[test]
fn an_upper_bound_is_no_definite_no() {
    let home = tempfile::tempdir().unwrap();
    let at = home.path();
    let set =
        "[[task]]\nname = \"t\"\nperiod = \"1ms\"\nwcet = \"47ms\"\nwcet_at_least = \"120us\"\n";
    fs::write(at.join("set.toml"), set).unwrap();
    let found = hourglass_in(at, "check set.toml --json");
    ends(&found, 1, "check");
    assert_eq!(document(&found)["verdict"], "unknown");
    ends(&hourglass_in(at, "simulate set.toml --horizon 100ms"), 4, "simulate");
    ends(&hourglass_in(at, "predict set.toml --no-run"), 4, "predict");
}
