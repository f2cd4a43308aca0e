//! `--trace` as a script sees it: events of the kernel lie where the threads saw gaps, wake-ups are
//! taken apart, and no instance of the trace stays behind. Needs root and a mounted tracefs; where
//! they are missing the tests say so and pass.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::calls::{self, document, json, printed, stderr};
use crate::processes::{last_allowed_cpu, send, within};
use hourglass_runs::store::RunFolder;
use hourglass_skip::{Requirement, skip};
use hourglass_trace::{Interval, KernelEvent, KernelEventKind as Kind, Vector};
use serde_json::Value;

const INSTANCES: &str = "/sys/kernel/tracing/instances";

/// What the tests ask of the machine; the reason is printed where it has it not.
fn missing() -> bool {
    match std::fs::read_dir(INSTANCES) {
        Ok(_) => false,
        Err(error) => {
            skip(
                Requirement::TRACEFS,
                format_args!("{INSTANCES}: {error}; mount tracefs and be root"),
            );
            true
        }
    }
}

fn command(line: &str) -> Command {
    let mut command = calls::command(&format!("run {line}"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it into `folder`.
fn run(line: &str, folder: &Path) -> Output {
    let output = command(line).arg("-o").arg(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

/// The instances that the process `pid` made.
fn instances(pid: u32) -> Vec<PathBuf> {
    let prefix = format!("hourglass-{pid}-");
    let all = std::fs::read_dir(INSTANCES).unwrap().flatten();
    let ours = all.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    ours.map(|entry| entry.path()).collect()
}

fn events(folder: &RunFolder) -> Vec<KernelEvent> {
    folder.kernel_events().unwrap().unwrap().map(Result::unwrap).collect()
}

/// How long a thread may take to note a gap, in which it looks for none (`NOTING` of the recorder).
const NOTING_NS: u64 = 2_000;

/// rt-tools 4.1: containment is exact. Whatever the kernel did on the CPU of a thread that only
/// looks at the time, the thread saw a gap there, or was just noting the one before.
#[test]
fn every_event_lies_in_a_gap() {
    if missing() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("run");
    let cpu = last_allowed_cpu();
    run(&format!("-n 1 -d 1s --cpu {cpu} --trace --json -q"), &path);
    let folder = RunFolder::open(&path).unwrap();
    let facts = folder.manifest().kernel.clone().unwrap();
    assert_eq!(facts.lost(), 0, "{facts:?}");
    if facts.same_counter {
        assert_eq!(facts.checks.len(), 2);
        assert!(facts.checks.iter().all(|check| check.holds()), "{:?}", facts.checks);
    }
    let intervals: Vec<Interval> =
        folder.trace().intervals().unwrap().map(Result::unwrap).collect();
    let (first, last) = (intervals.first().unwrap(), intervals.last().unwrap());
    let of_the_run: Vec<KernelEvent> = events(&folder)
        .into_iter()
        .filter(|event| event.cpu == cpu && event.kind != Kind::Lost)
        .filter(|event| (first.start_ticks..=last.end_ticks).contains(&event.ticks))
        .collect();
    // A tick of the slowest kernel comes 100 times a second; a CPU without one is not meant here.
    assert!(of_the_run.len() > 20, "{} events", of_the_run.len());
    let gap_ns = folder.manifest().threads[0].gap_ns;
    let noting_ns = i64::try_from(NOTING_NS + gap_ns).unwrap();
    let mut outside = Vec::new();
    for event in &of_the_run {
        let after = intervals.partition_point(|interval| interval.start_ticks < event.ticks);
        let before = &intervals[after.saturating_sub(1)];
        let is_inside = before.start_ticks < event.ticks && event.ticks < before.end_ticks;
        if is_inside && event.ns - before.start_ns > noting_ns {
            outside.push((*event, *before));
        }
    }
    // Pairs of another clock are as good as their brackets only.
    if facts.same_counter {
        let of = of_the_run.len();
        assert!(outside.is_empty(), "gap {gap_ns}: {} of {of}: {outside:?}", outside.len());
    }
    let timer = Vector::LocalTimer.code();
    if of_the_run.iter().any(|event| event.kind == Kind::VectorEntry) {
        let ticks = of_the_run.iter().filter(|e| e.kind == Kind::VectorEntry && e.a == timer);
        assert!(ticks.count() > 10);
    }
}

/// Whether the kernel left out switches on `cpu`, as it may where that was offline and came back: then
/// the run says so by name.
fn lacks_switches(document: &Value, cpu: u32) -> bool {
    let cpus = document["manifest"]["kernel"]["cpus"].as_array().unwrap();
    let facts = cpus.iter().find(|facts| facts["cpu"] == cpu).unwrap();
    let missing = facts["missing_switches"].as_u64().unwrap() > 0;
    let mut warnings = document["warnings"].as_array().unwrap().iter();
    let said = warnings.any(|warning| warning["id"] == "switch-events-missing");
    assert!(said || !missing, "{facts}: {}", document["warnings"]);
    missing
}

/// A wake-up that is later than all before it has a mark behind it in the kernel's record.
fn assert_the_latest_are_marked(folder: &RunFolder) {
    let facts = folder.manifest().kernel.clone().unwrap();
    let marks: Vec<KernelEvent> =
        events(folder).into_iter().filter(|event| event.kind == Kind::Mark).collect();
    assert!(facts.lost() > 0 || !marks.is_empty());
    assert!(marks.windows(2).all(|two| two[0].value < two[1].value), "{marks:?}");
    let wake_ups = folder.wake_ups(0).unwrap().unwrap().map(Result::unwrap);
    let wake_ups: Vec<(i64, u64)> =
        wake_ups.map(|one| (one.woke_ns.unwrap(), one.lateness_ps / 1_000)).collect();
    // While it is measured, the counter's rate is not known as well as afterwards.
    let same = |late: u64, marked: u64| late.abs_diff(marked) <= 1 + late / 1_000;
    for mark in marks.iter().filter(|_| facts.same_counter) {
        let before = wake_ups.iter().rfind(|(woke_ns, _)| *woke_ns <= mark.ns);
        assert!(before.is_some_and(|(_, late)| same(*late, mark.value)), "{mark:?}: {before:?}");
    }
    let latest = wake_ups.iter().map(|(_, late)| *late).max().unwrap();
    let marked = marks.last().is_some_and(|mark| same(latest, mark.value));
    assert!(facts.lost() > 0 || marked, "{latest}: {marks:?}");
}

/// rt-tools 4.4: nearly all wake-ups of a latency test are joined; the stages add up.
#[test]
fn wake_ups_are_taken_apart() {
    if missing() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("run");
    let cpu = last_allowed_cpu();
    let output = run(&format!("-n 1 -d 1s --cpu {cpu} -w LAT 2ms -i HR --trace --json -q"), &path);
    let document = document(&output);
    let wakeups = document["wakeups"].as_array().unwrap();
    assert_eq!(wakeups.len(), 1, "{wakeups:?}");
    let count = |key: &str| wakeups[0][key].as_u64().unwrap();
    let (joined, unjoined) = (count("joined"), count("unjoined"));
    assert_eq!(Some(joined + unjoined), document["threads"][0]["latency"]["count"].as_u64());
    assert_the_latest_are_marked(&RunFolder::open(&path).unwrap());
    if lacks_switches(&document, cpu) {
        skip(
            Requirement::CHANCE,
            format_args!("it does not record switches from idle on CPU {cpu}"),
        );
    } else if document["manifest"]["kernel"]["same_counter"] == true {
        assert!(joined * 10 >= (joined + unjoined) * 9, "{joined} of {}", joined + unjoined);
    }
    let stages = wakeups[0]["stages"].as_array().unwrap();
    if joined == 0 {
        assert!(stages.is_empty() && lacks_switches(&document, cpu), "{wakeups:?}");
        return;
    }
    let min = |at: usize| stages[at]["min_ns"].as_i64().unwrap();
    assert_eq!(stages.len(), 6);
    // Only the first may be negative; all of them together are no longer than their longest sum.
    assert!((1..5).all(|at| min(at) >= 0), "{stages:?}");
    let longest: i64 = (0..5).map(|at| stages[at]["max_ns"].as_i64().unwrap()).sum();
    assert!(stages[5]["max_ns"].as_i64().unwrap() <= longest);

    let shown = json(&printed(&["show", "--json", path.to_str().unwrap()]));
    assert_eq!(shown["wakeups"], document["wakeups"]);
}

/// A long run whose instance is there.
fn started() -> Child {
    let mut child =
        command(&format!("-n 1 -d 60s --cpu {} -w LAT 5ms --trace -q", last_allowed_cpu()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
    let made = within(Duration::from_secs(20), || !instances(child.id()).is_empty());
    if !made {
        let _ = child.kill();
        panic!("no instance was made");
    }
    // Until the run itself has begun, more or less; an early signal must leave nothing either.
    thread::sleep(Duration::from_millis(300));
    child
}

#[test]
fn no_instance_stays_behind() {
    if missing() {
        return;
    }
    for signal in ["-INT", "-KILL"] {
        let mut child = started();
        let pid = child.id();
        send(signal, pid.into()).unwrap();
        let status = child.wait().unwrap();
        assert!(!status.success(), "{signal}: {status:?}");
        let gone = within(Duration::from_secs(10), || instances(pid).is_empty());
        assert!(gone, "{signal}: {:?}", instances(pid));
    }
    let home = tempfile::tempdir().unwrap();
    let child = command(&format!("-n 1 -d 100ms --cpu {} --trace -q", last_allowed_cpu()))
        .arg("-o")
        .arg(home.path().join("run"))
        .spawn()
        .unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(instances(pid), Vec::<PathBuf>::new());
}

/// Without the privilege there is no run, and the message holds the line that grants it (exit code 3).
#[test]
fn without_the_trace_the_run_is_refused() {
    if std::fs::read_dir(INSTANCES).is_ok() {
        return;
    }
    let output = command("-n 1 -d 50ms --trace --json").output().unwrap();
    let said = stderr(calls::ends(&output, 3, "--trace"));
    assert!(output.stdout.is_empty());
    let remedies = ["sudo mount -t tracefs", "sudo hourglass", "CONFIG_FTRACE"];
    assert!(said.contains("--trace") && remedies.iter().any(|r| said.contains(r)), "{said}");
}

/// Two threads that never wait take a CPU from each other: at the longest gap the kernel's stack shows it.
#[test]
fn the_longest_gaps_have_the_kernels_stacks() {
    if missing() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("run");
    let output = run(&format!("-n 2 -d 1s --cpu {} --trace --json -q", last_allowed_cpu()), &path);
    let document = document(&output);
    let kernel = &document["manifest"]["kernel"];
    let missing = kernel["missing"].as_array().unwrap();
    if missing.iter().any(|name| name == "sched/sched_switch: stacktrace") {
        return skip(Requirement::TRACEFS, "this kernel has no trigger stacktrace");
    }
    let stacks = document["stacks"].as_array().unwrap_or_else(|| panic!("{document}"));
    let longest = &stacks[0];
    assert_eq!(longest["of"], "gap");
    let threads = document["manifest"]["threads"].as_array().unwrap();
    assert!(longest["thread"].as_u64().unwrap() < threads.len() as u64);
    for moment in longest["stacks"].as_array().unwrap() {
        let frames: Vec<&str> =
            moment["frames"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
        assert!(frames.iter().any(|name| name.contains("schedule")), "{frames:?}");
        let (at, over) = (moment["at_ns"].as_i64().unwrap(), longest["at_ns"].as_i64().unwrap());
        let length = longest["length_ns"].as_i64().unwrap();
        assert!((over - length..=over + 100_000).contains(&at), "{longest}");
    }
    // The longest first, of each kind.
    let lengths: Vec<u64> = stacks.iter().map(|s| s["length_ns"].as_u64().unwrap()).collect();
    assert!(lengths.windows(2).all(|two| two[0] >= two[1]), "{lengths:?}");
}
