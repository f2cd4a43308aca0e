//! `--load`: what runs beside a measurement, that it ends with the command, and what is said where it did not run.
//!
//! stress-ng is a script here, or is not found.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::calls::{command, document, ends, is_refused, json, refuses, text};
use crate::processes::{Killed, send, until};

const RUN: &str = "latency --policy other -i5000 -q --json";

/// A stress-ng that spins in one more process than its own, and ends both when it is asked to.
const STRESS_NG: &str = "#!/bin/sh
[ \"$1\" = --version ] && { echo 'stress-ng, version 9.9.9 (sh)'; exit 0; }
trap 'trap - TERM; kill -TERM 0' TERM
(trap - TERM; while :; do :; done) &
while :; do :; done
";

/// A command that finds no programs but this stress-ng, if one is given.
fn beside(folder: &TempDir, stress_ng: Option<&str>, line: &str) -> Command {
    if let Some(script) = stress_ng {
        let file = folder.path().join("stress-ng");
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = command(line);
    command.env("PATH", folder.path());
    command
}

/// Fields 4 and 5 of `/proc/PID/stat`: parent and group; `None` of one that has ended.
fn parent_and_group(pid: u32) -> Option<(u32, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some((parent, group))
}

/// The processes of the load of a command: its children, and their groups.
fn load_of(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: Vec<(u32, u32, u32)> = pids
        .filter_map(|one| parent_and_group(one).map(|(parent, group)| (one, parent, group)))
        .collect();
    let leads = |group: u32| all.iter().any(|(one, parent, _)| *one == group && *parent == pid);
    all.iter().filter(|(.., group)| leads(*group)).map(|(one, ..)| *one).collect()
}

/// Waits until a load of `processes` runs, and the measurement with it.
fn with_load(child: &Killed, processes: usize) -> Vec<u32> {
    let measures = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", child.pid()));
        tasks.into_iter().flatten().flatten().count() > 1
    };
    until("the load runs", || measures() && load_of(child.pid()).len() >= processes);
    load_of(child.pid())
}

fn started(mut command: Command) -> Killed {
    Killed(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

fn gone(pids: &[u32]) -> bool {
    pids.iter().all(|pid| parent_and_group(*pid).is_none())
}

#[test]
fn what_ran_beside_is_in_the_manifest() {
    let folder = TempDir::new().unwrap();
    let kept = folder.path().join("run").display().to_string();
    for (script, by) in [(None, "hourglass"), (Some(STRESS_NG), "stress-ng")] {
        let line = format!("{RUN} -D0.4s --load cpu:1,timer");
        let output = beside(&folder, script, &line).output().unwrap();
        let document = document(ends(&output, 0, by));
        let load = &document["manifest"]["load"];
        assert_eq!((load["by"].as_str(), load["ran"].as_bool()), (Some(by), Some(true)), "{load}");
        let kinds = load["kinds"].as_array().unwrap();
        let names: Vec<&str> = kinds.iter().filter_map(|kind| kind["kind"].as_str()).collect();
        assert_eq!(names, ["cpu", "timer"], "{load}");
        assert!(kinds[0]["cpu_time_ns"].as_u64().unwrap() > 0, "{load}");
        assert_eq!(document["premises"], json("[]"), "{document}");
        if by == "stress-ng" {
            assert_eq!(load["version"], "9.9.9");
            assert_eq!(kinds[0]["does"], "stress-ng --quiet --timeout 999d --cpu 1");
        }
    }
    let line = format!("noise -D0.2s --warm-up=0 -z --load cpu:1 -o {kept}");
    let said = beside(&folder, None, &line).output().unwrap();
    let said = text(&ends(&said, 0, &line).stdout);
    assert!(said.contains("# Beside stress-ng 9.9.9: cpu 1; "), "{said}");
    let manifest = fs::read_to_string(Path::new(&kept).join("manifest.json")).unwrap();
    assert_eq!(json(&manifest)["load"]["kinds"][0]["number"], 1);
}

/// The kernel ends it, since a command that is killed can end nothing.
#[test]
fn a_load_ends_with_a_command_that_is_killed() {
    let folder = TempDir::new().unwrap();
    for (script, spec, processes) in
        [(None, "cpu:1,switch:1,io:1", 4), (Some(STRESS_NG), "cpu:1", 2)]
    {
        let child = started(beside(&folder, script, &format!("{RUN} -D60 --load {spec}")));
        let load = with_load(&child, processes);
        child.signal("-KILL");
        until("the load is gone", || gone(&load));
    }
}

/// Measured until the end; but not beside what was asked for.
#[test]
fn a_load_that_is_killed_leaves_no_verdict() {
    let cases = [
        (None, 1, "-KILL", "one of its processes ended"),
        (None, 1, "-STOP", "one of its processes was stopped"),
        (Some(STRESS_NG), 2, "-KILL", "one of its processes ended"),
    ];
    // Side by side, and long enough for a busy machine.
    let run = |script| {
        let folder = TempDir::new().unwrap();
        (started(beside(&folder, script, &format!("{RUN} -D5s --load cpu:1"))), folder)
    };
    let runs = cases.map(|(script, ..)| run(script));
    let hit = runs.into_iter().zip(cases).map(|((child, folder), (_, processes, signal, why))| {
        let load = with_load(&child, processes);
        send(signal, load[0].into()).unwrap();
        (child, folder, load, why)
    });
    let hit: Vec<_> = hit.collect();
    for (mut child, _folder, load, why) in hit {
        let mut said = String::new();
        child.0.stdout.as_mut().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.0.wait().unwrap().code(), Some(4), "{said}");
        let document = json(&said);
        assert_eq!(document["premises"][0]["id"], "load-not-run", "{document}");
        assert!(document["premises"][0]["text"].as_str().unwrap().ends_with(why), "{document}");
        assert_eq!(document["manifest"]["load"]["ran"], false, "{document}");
        until("the load is gone", || gone(&load));
    }
}

#[test]
fn a_load_that_cannot_be_is_refused() {
    let folder = TempDir::new().unwrap();
    let ends_at_once = "#!/bin/sh
[ \"$1\" = --version ] && echo 'stress-ng, version 9.9.9 (sh)'
";
    let line = format!("{RUN} -D1 --load cpu:1");
    let output = beside(&folder, Some(ends_at_once), &line).output().unwrap();
    is_refused(&output, 3, "--load: cpu does not start: stress-ng ended at once", &line);
    refuses("latency --load disk", "--load: unknown load 'disk'; use all, or some of cpu, cache,");
    refuses("noise --load cpu:0", "--load: bad number '0' of cpu: give one from 1 to 256");
    refuses("noise --load-cpus 0", "--load-cpus: there is no load; give --load SPEC");
    refuses("latency --load cpu --load-cpus 4095", "--load-cpus: CPU 4095 is not online");
}
