//! `hourglass watch` as a script sees it: children of the test are held back or stopped, and the command says so.
//! One-sided: a child that a competitor holds back waits at least a known time; further waiting is the machine's.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::calls::{self, command, ends, hourglass, hourglass_in, is_refused, printed, stderr};
use crate::processes::{Killed, has_taskset, last_allowed_cpu, received_ms, until};
use hourglass_skip::{Requirement, skip};
use serde_json::Value;

/// A process that computes, on the CPU `cpu` if one is given.
fn busy(cpu: Option<u32>) -> Killed {
    let mut command = match cpu {
        Some(cpu) => {
            let mut command = Command::new("taskset");
            command.args(["-c", &cpu.to_string(), "sh"]);
            command
        }
        None => Command::new("sh"),
    };
    command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
    let child = command.spawn().unwrap();
    until("it computes", || received_ms(child.id()) > 0);
    Killed(child)
}

fn watch(line: &str) -> Output {
    hourglass(&format!("watch {line}"))
}

fn document(line: &str) -> Value {
    let output = watch(&format!("{line} --json"));
    calls::document(ends(&output, 0, line))
}

/// A CPU on which two processes may be put; nothing without taskset.
fn shared_cpu() -> Option<u32> {
    has_taskset().then(last_allowed_cpu)
}

/// A process that shares a CPU with another waits for it about half of the time; the test asks for a tenth. The
/// competitor is among those named, with its own number: what else the machine runs may have had more.
#[test]
fn a_child_that_a_competitor_holds_back_waits() {
    let Some(cpu) = shared_cpu() else { return skip(Requirement::program("taskset"), "taskset") };
    let (child, other) = (busy(Some(cpu)), busy(Some(cpu)));
    let found = document(&format!("{} -d 2s", child.pid()));
    assert_eq!((&found["schema"], &found["how"]), (&"hourglass.watch/1".into(), &"proc".into()));
    let thread = &found["threads"][0];
    assert_eq!(thread["tid"], child.pid());
    let Some(wait_ns) = thread["wait_ns"].as_u64() else {
        return assert!(found["warnings"].to_string().contains("no-schedstat"), "{found}");
    };
    let elapsed_ns = found["elapsed_ns"].as_u64().unwrap();
    assert!(wait_ns > elapsed_ns / 10, "{found}");
    let run_ns = thread["run_ns"].as_u64().unwrap();
    assert!(wait_ns + run_ns <= elapsed_ns + elapsed_ns / 10, "{found}");
    assert!(thread["worst_interval"]["wait_ns"].as_u64().unwrap() <= wait_ns, "{found}");
    let named = |found: &Value| {
        let ran = found["threads"][0]["ran"].as_array().cloned().unwrap_or_default();
        ran.iter().any(|ran| ran["tid"] == other.pid())
    };
    // On a machine that others use as well, a second look may be needed.
    let again = || (0..5).any(|_| named(&document(&format!("{} -d 2s", child.pid()))));
    assert!(named(&found) || again(), "{found}");
}

#[test]
fn a_stop_is_seen_and_is_no_wait() {
    let child = busy(None);
    child.signal("-STOP");
    until("it is stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.pid())).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('T')
    });
    let found = document(&format!("{} -d 500ms --interval 20ms", child.pid()));
    let thread = &found["threads"][0];
    assert_eq!(thread["state"], "T", "{found}");
    // All of the time, but for what lies around the looks.
    let stopped_ns = thread["stopped_ns"].as_u64().unwrap();
    assert!(stopped_ns >= found["elapsed_ns"].as_u64().unwrap() / 2, "{found}");
    assert!(thread["wait_ns"].is_null() || thread["wait_ns"] == 0, "{found}");
}

#[test]
fn it_ends_with_the_program() {
    let mut child = Command::new("sleep").arg("0.5").spawn().unwrap();
    let home = tempfile::tempdir().unwrap();
    let metrics = home.path().join("a.prom");
    let line = format!("{} --interval 20ms -d 1m --openmetrics {}", child.id(), metrics.display());
    let found = document(&line);
    child.wait().unwrap();
    // The last counts, not those of the first sample.
    let text = std::fs::read_to_string(&metrics).unwrap();
    let samples = format!("hourglass_watch_samples {}\n", found["looks"]);
    assert!(text.contains(&samples) && text.ends_with("# EOF\n"), "{text}");
    assert_eq!(found["threads"][0]["ended"], true, "{found}");
    assert_eq!(found["processes"][0]["ended"], true, "{found}");
    assert!(found["elapsed_ns"].as_u64().unwrap() < Duration::from_secs(60).as_nanos() as u64);
}

#[test]
fn a_target_must_be_named() {
    is_refused(&watch(""), 2, "--comm NAME", "");
}

#[test]
fn who_is_not_there_is_named_and_nothing_is_left() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("run");
    for (line, said) in [
        ("4194399", "no process 4194399; it may have ended"),
        ("--pid 4194399", "no process 4194399; it may have ended"),
        ("--pid 1 --comm x", "--comm"),
        ("--comm no-such-thread", "no thread is called 'no-such-thread'; ps -eLo"),
        ("1 --comm x", "--comm"),
        ("", "PID"),
        ("1 --interval 1ms", "at least 10ms apart"),
    ] {
        let output = watch(&format!("{line} -d 1s -o {}", folder.display()));
        is_refused(&output, 2, said, line);
        assert!(!folder.exists());
    }
}

/// Every thread of the name, of whichever process.
#[test]
fn all_threads_of_a_name_are_watched() {
    let name = format!("hgw-{}", std::process::id());
    let script = format!("printf {name} > /proc/$$/comm; read nothing");
    let start = || {
        let mut command = Command::new("sh");
        let child = command.args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
        let path = format!("/proc/{}/comm", child.id());
        until("it has its name", || {
            std::fs::read_to_string(&path).is_ok_and(|comm| comm.trim() == name)
        });
        Killed(child)
    };
    let mut pids = [start(), start()].map(|child| (child.pid(), child));
    pids.sort_by_key(|(pid, _)| *pid);
    let found = document(&format!("--comm {name} -d 200ms"));
    let mut tids: Vec<u64> =
        found["threads"].as_array().unwrap().iter().map(|t| t["tid"].as_u64().unwrap()).collect();
    tids.sort_unstable();
    assert_eq!(tids, pids.iter().map(|(pid, _)| u64::from(*pid)).collect::<Vec<u64>>());
    assert_eq!(found["processes"].as_array().unwrap().len(), 2);
}

#[test]
fn a_folder_is_shown_and_becomes_a_page() {
    let home = tempfile::tempdir().unwrap();
    let child = busy(None);
    let folder = home.path().join("kept");
    let text = printed(&format!("watch {} -d 300ms -o {}", child.pid(), folder.display()));
    assert!(text.contains("Run-queue delay") && text.contains("by the kernel's counts"), "{text}");
    let shown = hourglass_in(home.path(), "show kept --summary");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.starts_with(text.lines().next().unwrap()), "{shown}");
    let kept = calls::document(&hourglass_in(home.path(), "show kept --json"));
    assert_eq!(kept["schema"], "hourglass.run/1");
    assert_eq!(kept["watched"]["threads"][0]["tid"], child.pid());
    assert!(hourglass_in(home.path(), "report kept -o page.html").status.success());
    let page = std::fs::read_to_string(home.path().join("page.html")).unwrap();
    assert!(page.contains("Watched from outside"));
    // It has no switches; that its threads did not run would be untrue.
    let task = "[[task]]\nname = \"sh\"\nperiod = \"20ms\"\nwcet = \"1ms\"\n";
    std::fs::write(home.path().join("set.toml"), task).unwrap();
    for line in ["model kept", "check kept", "simulate kept", "predict set.toml --against kept"] {
        let output = hourglass_in(home.path(), line);
        is_refused(&output, 2, "kept has no switches of threads", line);
    }
    // Every look was kept: one at the beginning and one each 100 ms, whose counts only grow.
    let looks =
        hourglass_runs::store::RunFolder::open(&folder).unwrap().watch_samples().unwrap().unwrap();
    let looks: Vec<_> = looks.map(Result::unwrap).filter(|look| look.tid == child.pid()).collect();
    assert!(looks.len() >= 2, "{looks:?}");
    assert!(looks.windows(2).all(|two| two[0].ns < two[1].ns && two[0].run_ns <= two[1].run_ns));
}

/// With the kernel's events: the delays are there one by one, the competitor had the CPU, and the folder is a run.
#[test]
fn the_kernels_events_say_who_ran() {
    const INSTANCES: &str = "/sys/kernel/tracing/instances";
    if let Err(error) = std::fs::read_dir(INSTANCES) {
        return skip(
            Requirement::TRACEFS,
            format_args!("{INSTANCES}: {error}; mount tracefs and be root"),
        );
    }
    let Some(cpu) = shared_cpu() else { return skip(Requirement::program("taskset"), "taskset") };
    let home = tempfile::tempdir().unwrap();
    let (child, other) = (busy(Some(cpu)), busy(Some(cpu)));
    let kept = home.path().join("kept");
    let found = document(&format!("{} -d 2s --trace -o {}", child.pid(), kept.display()));
    assert_eq!((&found["how"], &found["events_lost"]), (&"trace".into(), &0.into()), "{found}");
    let thread = &found["threads"][0];
    let delays = &thread["delays"];
    let ns = |value: &Value| value.as_u64().unwrap();
    assert!(
        ns(&delays["count"]) > 0 && ns(&delays["total_ns"]) > ns(&found["elapsed_ns"]) / 10,
        "{found}"
    );
    assert_eq!(delays["worst"]["delay_ns"], delays["max_ns"]);
    assert_eq!(delays["worst"]["cpu"], cpu);
    // Other processes of the machine may have had it longer than the competitor.
    let others = thread["ran"].as_array().unwrap();
    let had: u64 = others.iter().map(|ran| ns(&ran["total_ns"])).sum();
    // Where the kernel's record lacks switches, as the warning says, time is charged to the last that is known to run.
    let is_whole = !found["warnings"].to_string().contains("switch-events-missing");
    assert!(had > 0 && (had <= ns(&delays["total_ns"]) || !is_whole), "{found}");
    let named = |ran: &Value| ran["tid"] == other.pid();
    assert!(others.len() == 3 || others.iter().any(named), "{found}");
    let run = calls::document(&hourglass_in(home.path(), "show kept --json"));
    let taken = run["causes"].as_array().unwrap().iter();
    let taken = taken.filter(|cause| cause["cause"] == "context_switch_involuntary");
    assert!(taken.map(|cause| ns(&cause["count"])).sum::<u64>() > 0, "{run}");
    let of_run = &run["threads"][0];
    // One and the same time: its intervals, and what the kernel counted.
    let (seen, counted) = (ns(&of_run["cpu_time_ns"]), ns(&thread["run_ns"]));
    assert!(seen.abs_diff(counted) < ns(&found["elapsed_ns"]) / 5, "{seen} {counted}");
    assert!(hourglass_in(home.path(), "report kept -o page.html").status.success());
    assert!(hourglass_in(home.path(), "render kept -o picture.svg").status.success());
}

/// Threads of 1 ms are not there any more at a look 300 ms later; the process is the test's own.
#[test]
fn threads_that_no_look_saw_are_missing() {
    let over = AtomicBool::new(false);
    let compute = || {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(1) {}
    };
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::thread::spawn(compute).join().unwrap();
            }
        });
        let output = watch(&format!("{} -d 1200ms --interval 300ms --json -q", std::process::id()));
        over.store(true, Ordering::Relaxed);
        output
    });
    let found = calls::document(&output);
    if found["warnings"].to_string().contains("no-schedstat") {
        return assert!(output.status.success());
    }
    ends(&output, 4, &found);
    assert_eq!(found["premises"][0]["id"], "threads-unseen");
    let process = &found["processes"][0];
    let of = |key: &str| process[key].as_u64().unwrap();
    assert!(of("seen_cpu_ns") < of("cpu_ns"), "{process}");
    let said = stderr(&output);
    assert!(said.starts_with("hourglass: no verdict so far: the threads seen of"), "{said}");
    assert_eq!(said.lines().count(), 1, "once: {said}");
}

/// The document of a command that was watched, and what else is to be seen of it.
fn watched_command(words: &[&str]) -> (Option<i32>, Value, String) {
    let line: Vec<&str> = ["watch", "--json", "--"].iter().chain(words).copied().collect();
    let output = hourglass(&line);
    (output.status.code(), calls::document(&output), stderr(&output))
}

/// The first page faults of a program are those of its `exec`: it was watched before that.
#[test]
fn a_command_is_watched_from_its_first_instruction_to_its_end() {
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo said; exit 7";
    let (code, found, said) = watched_command(&["sh", "-c", script]);
    assert_eq!(code, Some(7), "{found}");
    assert_eq!(
        (&found["command"]["exit"], &found["command"]["words"][0]),
        (&7.into(), &"sh".into())
    );
    assert!(said.contains("said\n"), "its output is on stderr: {said}");
    let thread = &found["threads"][0];
    assert_eq!((&thread["tid"], &thread["name"]), (&found["command"]["pid"], &"sh".into()));
    assert_eq!((&thread["ended"], &found["processes"][0]["ended"]), (&true.into(), &true.into()));
    assert!(thread["minor_faults"].as_u64().unwrap() > 10, "{found}");
    // The kernel's last counts of it, not those of the last look before its end.
    if !thread["run_ns"].is_null() {
        assert!(thread["run_ns"].as_u64().unwrap() > 1_000_000, "{found}");
    }
}

#[test]
fn processes_that_a_command_starts_are_watched_too() {
    let (code, found, _) = watched_command(&["sh", "-c", "sleep 0.5 & sleep 0.6; wait"]);
    assert_eq!(code, Some(0), "{found}");
    let names = found["processes"].as_array().unwrap().iter().map(|process| &process["name"]);
    assert_eq!(names.filter(|name| **name == "sleep").count(), 2, "{found}");
}

/// Of many that are gone before they are seen the command's own counts tell.
#[test]
fn what_is_missing_of_a_command_is_said_and_its_exit_code_stays() {
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do \
        (i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done); done; exit 5";
    let line = ["watch", "--json", "--interval", "10s", "--", "sh", "-c", script];
    let output = hourglass(&line);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let found = calls::document(&output);
    assert_eq!(found["premises"][0]["id"], "processes-unseen", "{found}");
}

#[test]
fn how_a_command_ends_is_how_watch_ends() {
    for (words, code) in [
        (&["true"][..], 0),
        (&["sh", "-c", "kill -KILL $$"], 137),
        (&["no-such-program"], 127),
        (&["/etc/passwd"], 126),
    ] {
        let line: Vec<&str> = ["watch", "--"].iter().chain(words).copied().collect();
        let output = hourglass(&line);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "the table is on stderr: {output:?}");
    }
    // A failure of `watch` itself is not the command's, and comes after it.
    for (words, code) in [(&["true"][..], 125), (&["sh", "-c", "exit 3"], 3)] {
        let line = ["watch", "--openmetrics", "/dev/full", "--"];
        let line: Vec<&str> = line.iter().chain(words).copied().collect();
        let output = hourglass(&line);
        let said = stderr(ends(&output, code, words));
        assert!(said.contains("--openmetrics: /dev/full: "), "{said}");
    }
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("there");
    std::fs::create_dir(&folder).unwrap();
    let line = format!("-o {} -- touch {}/ran", folder.display(), folder.display());
    is_refused(&watch(&line), 125, "-o: ", &line);
    let line = format!("--trace --tasks {} -- touch {}/ran", folder.display(), folder.display());
    is_refused(&watch(&line), 125, "--tasks: ", &line);
    assert!(!folder.join("ran").exists(), "it was refused before the command ran");
    for line in ["1 -- true", "--comm x -- true", "-d 1s -- true"] {
        is_refused(&watch(line), 2, "cannot be used with", line);
    }
}

/// Whether a test may mount file systems for itself alone; else it is skipped.
fn may_mount() -> bool {
    let may = Command::new("unshare").args(["-m", "true"]).status();
    let may = may.is_ok_and(|status| status.success());
    if !may {
        skip(Requirement::program("unshare"), "no unshare, or it may not make a mount space");
    }
    may
}

/// `false` ended with 4, as none of its threads was a task, and a full disk left the record behind.
#[test]
fn a_file_of_tasks_takes_nothing_from_the_commands_end_and_leaves_nothing_behind() {
    const INSTANCES: &str = "/sys/kernel/tracing/instances";
    if let Err(error) = std::fs::read_dir(INSTANCES) {
        return skip(
            Requirement::TRACEFS,
            format_args!("{INSTANCES}: {error}; mount tracefs and be root"),
        );
    }
    if !may_mount() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    // The record cannot be begun, or not be ended, where its disk is full.
    for (size, script, code, says) in [
        ("10m", "exit 0", 4, "sh: no task: "),
        ("10m", "exit 3", 3, "sh: no task: "),
        ("10m", "kill -9 $$", 137, "sh: no task: "),
        ("4k", "sleep 0.3; exit 0", 125, "--tasks found.toml is not written: "),
        ("16k", "sleep 0.3; exit 0", 125, "--tasks found.toml is not written: "),
        ("4k", "sleep 0.3; exit 3", 3, "--tasks found.toml is not written: "),
    ] {
        let at = home.path().display();
        let watched = format!("{} watch --trace -q --tasks found.toml", calls::HOURGLASS);
        let line = format!(
            "mount -t tmpfs -o size={size} tmpfs {at} && cd {at} && {watched} -- sh -c '{script}'; code=$?; ls -A; exit $code"
        );
        let output = Command::new("unshare").args(["-m", "sh", "-c", &line]).output().unwrap();
        let said = stderr(ends(&output, code, &line));
        assert!(said.contains(says) && !said.contains("-o: "), "{line}: {said}");
        assert!(output.stdout.is_empty(), "left behind: {output:?}");
    }
}

/// No room for a folder is no fault of the words: 3, was 2, of each command that makes one.
#[test]
fn a_place_that_is_full_is_the_machines() {
    if !may_mount() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let tasks = home.path().join("tasks.toml");
    std::fs::write(
        &tasks,
        "[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"9ms\"\npriority = 1\n",
    )
    .unwrap();
    let at = home.path().join("full");
    std::fs::create_dir(&at).unwrap();
    let (at, tasks) = (at.display(), tasks.display());
    let pid = std::process::id();
    for words in [
        "run -d 10ms".to_owned(),
        "latency -D 1".to_owned(),
        format!("simulate {tasks}"),
        format!("predict -d 10ms {tasks}"),
        format!("watch -d 10ms {pid}"),
        "reserve 1ms/10ms -- true".to_owned(),
        "sweep --sets 1".to_owned(),
    ] {
        let full = format!("mount -t tmpfs -o nr_inodes=1 tmpfs {at}");
        let line = format!("{full} && {} {words} -q -o {at}/kept", calls::HOURGLASS);
        let line = match words.split_once(" -- ") {
            Some((own, rest)) => {
                format!("{full} && {} {own} -q -o {at}/kept -- {rest}", calls::HOURGLASS)
            }
            None => line,
        };
        let output = Command::new("unshare").args(["-m", "sh", "-c", &line]).output().unwrap();
        let said = stderr(ends(&output, 3, &line));
        assert!(said.contains("No space left on device"), "{line}: {said}");
    }
}

/// The keys of a terminal reach the command by themselves; a signal to `watch` alone is passed on.
#[test]
fn a_signal_ends_the_command_and_the_table_is_printed() {
    let home = tempfile::tempdir().unwrap();
    let kept = home.path().join("kept");
    let line = format!("watch -o {} -- sh -c", kept.display());
    let mut words: Vec<&str> = line.split_whitespace().collect();
    words.push("echo ready; while :; do sleep 0.01; done");
    let mut child =
        Killed(command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let mut ready = String::new();
    BufReader::new(child.0.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    child.signal("-TERM");
    let mut said = String::new();
    child.0.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(143), "{said}");
    assert!(said.contains("exit code 143") && said.contains("Run-queue delay"), "{said}");
    assert!(kept.join("manifest.json").exists(), "{said}");
}
