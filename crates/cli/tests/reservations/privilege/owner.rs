//! Whose processes may be reserved for, and stopped.
//!
//! The source: a copy of the command with `cap_sys_nice,cap_ipc_lock+ep`, run as user 65534, put a process of root
//! into the deadline class (`reserve 2ms/1s --backend deadline --pid`), and pinned one and made it FIFO 62
//! (`reserve 1ms/1s --cpu 1 --backend user --pid`).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use hourglass_skip::{Requirement, skip};

use super::{Capable, Idle, OWN, USER, code, document, last_cpu, stderr, warning};

/// No backend reserves for a process of root, whether it is named as a process, as a thread or by its name.
#[test]
fn a_capability_does_not_reach_the_processes_of_others() {
    let Some(capable) = Capable::new() else { return };
    let (victim, name) = Idle::of_root_with_a_name();
    let pid = victim.pid();
    let before = victim.situation();
    let last = last_cpu();
    for words in [
        &["2ms/1s", "--backend", "deadline", "--pid", &pid][..],
        &["1ms/1s", "--cpu", &last, "--backend", "user", "--pid", &pid],
        &["1ms/1s", "--soft", "--backend", "user", "--thread", &pid],
        &["10ms/100ms", "--backend", "quota", "--pid", &pid],
        &["2ms/1s", "--thread", &name],
        &["2ms/1s", "--pid", &pid],
    ] {
        let refused = capable.reserve(words);
        let text = stderr(&refused);
        assert_eq!(code(&refused), OWN, "{words:?}: {text}");
        let says =
            format!("{pid} ({name}) belongs to user 0, and this program, started by user {USER}, ");
        assert!(text.contains(&says) && text.lines().count() == 1, "{words:?}: {text}");
        assert!(text.contains("sudo hourglass"), "{text}");
        assert_eq!(victim.situation(), before, "{words:?}");
        // Asked whether it would be granted, it says no, and why.
        let checked = capable.reserve(&[words, &["--check", "--json"]].concat());
        assert_eq!(code(&checked), 1, "{words:?}: {}", stderr(&checked));
        let document = document(&checked);
        assert_eq!(document["backend"], serde_json::Value::Null);
        assert_eq!(document["refusals"][0]["id"], "owner");
    }
    // Its own it may.
    let own = Idle::of_user();
    let granted = capable.reserve(&["1ms/20ms", "--backend", "user", "--pid", &own.pid()]);
    assert_ne!(code(&granted), OWN, "{}", stderr(&granted));
}

/// Co-runners of others are neither stopped nor slowed, also where a folder that is no control group names them.
#[test]
fn a_capability_does_not_stop_or_slow_the_processes_of_others() {
    let Some(capable) = Capable::new() else { return };
    if last_cpu() == "0" {
        return skip(Requirement::SECOND_CPU, "no CPU is beside the only one");
    }
    let victim = Idle::of_root();
    let fake = capable.folder.path().join("group");
    fs::create_dir(&fake).unwrap();
    fs::write(fake.join("cgroup.procs"), victim.pid()).unwrap();
    let before = victim.situation();
    for whom in [victim.pid(), fake.display().to_string()] {
        let words = ["1ms/20ms", "--cpu", "0", "--smt", "disable", "--interferes", "1"];
        let stop = ["--stop", &whom, "--stop", &whom, "--stopper", "sigstop", "--slow-first"];
        let refused = capable.reserve(&[&words[..], &stop, &["--", "true"]].concat());
        let text = stderr(&refused);
        assert_eq!(code(&refused), OWN, "{whom}: {text}");
        let says = format!("process {}", victim.pid());
        assert!(text.contains(&says) && text.contains("another user's"), "{whom}: {text}");
        assert_eq!(victim.situation(), before);
    }
}

/// Who executes a set-uid program goes on without the reservation, at the priority that he had.
#[test]
fn a_set_uid_program_is_not_raised() {
    let Some(capable) = Capable::new() else { return };
    let program = capable.folder.path().join("sleep");
    super::copy_program("/bin/sleep", &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    for backend in ["user", "deadline"] {
        let words = ["reserve", "1ms/20ms", "--soft", "--backend", backend, "--json", "--"];
        let script = ["sh", "-c", "sleep 0.2; exec ./sleep 1"];
        let mut command = capable.run(&[&words[..], &script].concat());
        let begun = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let Some(set_uid) = waiting_for(&program) else {
            let output = begun.wait_with_output().unwrap();
            let need = match backend {
                "deadline" => Requirement::DEADLINE_CLASS,
                _ => Requirement::FILE_CAPABILITIES,
            };
            skip(need, format!("{backend}: no set-uid program runs: {}", stderr(&output)));
            continue;
        };
        // Some periods later, and from then on.
        let ordinary = (0..200).any(|_| {
            sleep(Duration::from_millis(5));
            is_ordinary(set_uid)
        });
        sleep(Duration::from_millis(100));
        let stays = is_ordinary(set_uid);
        let output = begun.wait_with_output().unwrap();
        assert!(ordinary && stays, "{backend}: it was raised");
        let document = document(&output);
        warning(&document, "members-of-others");
        assert_eq!(document["guarantee"], false);
    }
}

/// Whether the policy of a process, field 41 of its line (proc(5)), is `SCHED_OTHER`, or it has ended.
fn is_ordinary(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .and_then(|(_, fields)| fields.split(' ').nth(38))
        .is_none_or(|p| p == "0")
}

/// The process that runs this file with root's rights; none within some seconds.
fn waiting_for(program: &Path) -> Option<u32> {
    let runs = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let uids = format!("Uid:\t{USER}\t0\t0\t0");
        fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program)
            && status.lines().any(|line| line == uids)
    };
    let pids = || {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect::<Vec<u32>>()
    };
    (0..1_000).find_map(|_| {
        sleep(Duration::from_millis(2));
        pids().into_iter().find(runs)
    })
}
