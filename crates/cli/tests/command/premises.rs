//! Premises of a measurement as a script sees them: what broke is in the exit code, in the first line and in the document.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::calls::{self, HOURGLASS, command, ends, hourglass, printed, stderr};
use crate::processes::{allowed_cpus, has_taskset, last_allowed_cpu, until};
use hourglass_documents::premise::PremiseKind;
use hourglass_skip::{Requirement, skip};

/// `hourglass WORDS` under limits that a shell sets first.
fn limited(limit: &str, words: &str) -> Output {
    let line = format!("{limit} && exec timeout 30 {HOURGLASS} {words}");
    Command::new("sh").args(["-c", &line]).stdin(Stdio::null()).output().unwrap()
}

/// That the run was announced to be ended, was, and wrote what it had.
fn ended_by_a_limit(output: &Output, id: &str, line: &str) {
    let found = calls::document(ends(output, 4, line));
    assert_eq!(found["premises"][0]["id"], id, "{line}: {found}");
    assert!(found["premises"][0]["text"].as_str().unwrap().contains("RLIMIT_"), "{line}: {found}");
    assert_eq!(found["interrupted"], true, "{line}");
    assert!(!found["threads"].as_array().unwrap().is_empty(), "{line}");
    let said = stderr(output);
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), 2, "{line}: {said:?}");
    assert!(said[0].starts_with("hourglass: warning: the run will be ended "), "{line}: {said:?}");
    assert!(said[1].starts_with("hourglass: no verdict: the run was ended "), "{line}: {said:?}");
}

/// The kernel ended the process by SIGXCPU (exit code 152) or by SIGKILL, and there was no document.
#[test]
fn a_limit_on_cpu_time_ends_the_run_with_what_was_measured() {
    let cpu = last_allowed_cpu();
    for (limit, words) in [
        ("ulimit -t 2", format!("run -n 1 -d 20s --cpu {cpu}")),
        ("ulimit -S -t 1", format!("noise -c {cpu} -D 20s --warm-up 0")),
        ("ulimit -S -t 3", format!("latency --policy other -a {cpu} -i 1000 -D 2s")),
    ] {
        let line = format!("{words} -q --json");
        let output = limited(limit, &line);
        if words.starts_with("latency") {
            // It waits, and uses little.
            let found = calls::document(ends(&output, 0, &line));
            assert_eq!(found["premises"].as_array().map(Vec::len), Some(0), "{found}");
            assert_eq!(stderr(&output), "", "{line}");
        } else {
            ended_by_a_limit(&output, "cpu-time-limit", &format!("{limit}; {line}"));
        }
    }
}

/// As rtkit sets it: soft and hard limit are the same, at which the kernel kills.
#[test]
fn a_limit_on_real_time_threads_ends_the_run_with_what_was_measured() {
    let cpu = last_allowed_cpu();
    if allowed_cpus().len() < 2 {
        return skip(Requirement::SECOND_CPU, "one CPU");
    }
    if hourglass(&format!("run -q -d 1ms -n 1 --cpu {cpu} -p FIFO:10")).status.code() == Some(3) {
        return skip(Requirement::REAL_TIME, "real-time policies");
    }
    if Command::new("prlimit").arg("--version").output().is_err() {
        return skip(Requirement::program("prlimit"), "prlimit");
    }
    for (limit, words) in [
        ("150000:150000", format!("run -n 1 -d 2s --cpu {cpu} -p FIFO:10")),
        ("100000:1000000", format!("noise -f 10 -c {cpu} -D 2s --warm-up 0")),
    ] {
        let line = format!("{words} -q --json");
        let output = limited(&format!("prlimit --pid $$ --rttime={limit}"), &line);
        ended_by_a_limit(&output, "rt-time-limit", &format!("{limit}; {line}"));
    }
}

/// No CPU is left for a look at the masks: each thread reads its own at its end.
#[test]
fn a_changed_mask_is_found_where_every_cpu_is_measured() {
    let cpus = allowed_cpus();
    if cpus.len() < 2 {
        return skip(Requirement::SECOND_CPU, "one CPU");
    }
    if !has_taskset() {
        return skip(Requirement::program("taskset"), "taskset");
    }
    let first = cpus.iter().next().unwrap();
    let line = "-q --json -n 1 -d 2s";
    let run = command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let tasks = format!("/proc/{}/task", run.id());
    let measured = || {
        let tids = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
        let mut tids = tids.map(|entry| entry.file_name().into_string().unwrap());
        tids.find(|tid| {
            let name = std::fs::read_to_string(format!("{tasks}/{tid}/comm"));
            name.is_ok_and(|name| name.trim() == "hourglass-0")
        })
    };
    until("a thread is measured", || measured().is_some());
    std::thread::sleep(Duration::from_millis(600));
    let moved = Command::new("taskset")
        .args(["-pc", &first.to_string(), &measured().unwrap()])
        .output()
        .unwrap();
    assert!(moved.status.success());
    let output = run.wait_with_output().unwrap();
    let found = calls::document(ends(&output, 4, line));
    assert_eq!(found["premises"][0]["id"], "pinning-lost", "{found}");
    assert_eq!(calls::warning(&found, "pinning-lost")["text"], found["premises"][0]["text"]);
    let said = stderr(&output);
    assert!(said.starts_with("hourglass: no verdict: thread 0: its CPUs were changed"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn premises_that_held_are_an_empty_list() {
    let found = calls::json(&printed("-q --json -n 1 -d 50ms"));
    assert_eq!(found["premises"], serde_json::json!([]));
}

/// Every premise is in the table of the handbook, as the code words it.
#[test]
fn the_table_of_premises_is_complete() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/reference/documents.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = |kind: PremiseKind| {
        format!("| `{}` | {} | {} |", kind.name(), kind.meaning(), kind.remedy())
    };
    let rows: Vec<String> = PremiseKind::ALL.into_iter().map(row).collect();
    assert!(page.contains(&rows.join("\n")), "{}", rows.join("\n"));
}

/// Another process changes the CPUs of a thread that is measured. That a limit was broken, too, is no answer.
#[test]
fn a_run_whose_thread_is_moved_from_its_cpu_has_no_verdict() {
    let cpus = allowed_cpus();
    let mut cpus = cpus.iter();
    let (Some(first), Some(second)) = (cpus.next(), cpus.next()) else {
        return skip(Requirement::SECOND_CPU, "one CPU");
    };
    if !has_taskset() {
        return skip(Requirement::program("taskset"), "taskset");
    }
    for line in [
        "-q --json -n 1 -d 2s --cpu CPU --max-gap 0ns",
        "-q --json -n 1 -d 2s -w LAT 10ms --cpu CPU",
        "run -q --summary -n 1 -d 2s --cpu CPU --max-gap 1h",
        "latency -q --policy other -a CPU -D 2 --max-latency 1h",
        "noise -q -c CPU -D 2s --warm-up 0 --max-gap 1h",
    ] {
        let line = line.replace("CPU", &second.to_string());
        let mut run = command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let tasks = format!("/proc/{}/task", run.id());
        let pinned = || {
            let tids = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
            let mut tids = tids.map(|entry| entry.file_name().into_string().unwrap());
            tids.find(|tid| {
                let status = format!("{tasks}/{tid}/status");
                let status = std::fs::read_to_string(status).unwrap_or_default();
                status.contains(&format!("Cpus_allowed_list:\t{second}\n"))
            })
        };
        until("a thread is pinned", || pinned().is_some());
        std::thread::sleep(Duration::from_millis(600));
        let mut moved = Command::new("taskset");
        moved.args(["-pc", &first.to_string(), &pinned().unwrap()]);
        assert!(moved.output().unwrap().status.success());
        // A run of which nothing else comes has the line, too.
        let mut first = String::new();
        let mut said = BufReader::new(run.stderr.take().unwrap());
        said.read_line(&mut first).unwrap();
        assert!(first.contains("no verdict: thread 0"), "{line}: {first}");
        assert!(run.try_wait().unwrap().is_none(), "{line}: it is said while the run goes on");
        let output = run.wait_with_output().unwrap();
        if line.contains("--json") {
            let found = calls::document(ends(&output, 4, &line));
            assert_eq!(found["premises"][0]["id"], "pinning-lost", "{line}: {output:?}");
        } else {
            // "Gate max-latency: kept" was said beside an exit code of 4.
            let printed = calls::text(&ends(&output, 4, &line).stdout);
            assert!(printed.contains("No verdict: thread 0"), "{line}: {printed}");
            assert!(printed.contains("no verdict, "), "{line}: {printed}");
            assert!(!printed.contains(": kept"), "{line}: {printed}");
        }
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "{line}: once");
    }
}
