//! A process that leaves the control group of its reservation. Where no group can be made, the tests are skipped.

use std::process::{Command, Stdio};

use hourglass_skip::{Requirement, skip};
use hourglass_sys::cgroup::{Group, Hierarchy};

use super::tests::{alone, last_cpu, request, reserved, user};
use super::*;
use crate::backend::members;
use crate::backend::quota::Quota;
use crate::command;
use crate::testing::{Program, soon};

/// Where process `pid` is, in whichever hierarchy a group of this process's was made for it.
fn reserved_group(pid: u32) -> Option<(Hierarchy, Group)> {
    let own = format!("/hourglass-{}-", std::process::id());
    let all = Hierarchy::all().unwrap().into_iter();
    let mut found = all.filter_map(|one| one.group_of(pid).ok().map(|group| (one, group)));
    found.find(|(_, group)| group.path().to_string_lossy().contains(&own))
}

fn moves_out(pid: u32) -> bool {
    let Some((_, group)) = reserved_group(pid) else { return false };
    group.parent().unwrap().take_process(pid).unwrap();
    true
}

/// Whether the reservation says that exactly these left, and what it promises.
fn check(mut reserved: Box<dyn ActiveReservation>, left: &[u32]) {
    reserved.release().unwrap();
    let doubts = reserved.accuracy_warnings();
    let doubt = doubts.iter().find(|doubt| doubt.id == "member-left");
    assert_eq!(doubt.is_some(), !left.is_empty(), "{doubts:?}");
    for pid in left {
        assert!(doubt.unwrap().text.contains(&format!("{pid} (")), "{doubts:?}");
    }
}

/// The bug: a job that left its control group went on as "guaranteed", though it was not raised any more.
#[test]
fn who_leaves_the_group_is_named() {
    let _one = alone();
    for leaves in [false, true] {
        let program = Program::sleeping();
        let cpu = Some(last_cpu());
        let Some(keeping) = reserved(&user(), &program, ReservationKind::Hard, cpu) else { return };
        if reserved_group(program.pid()).is_none() {
            return skip(Requirement::CONTROL_GROUP, "no control group can be made here");
        }
        let left = if leaves && moves_out(program.pid()) { vec![program.pid()] } else { vec![] };
        check(Box::new(keeping), &left);
    }
}

/// A job that leaves a quota is not limited outside.
#[test]
fn who_leaves_a_quota_is_named() {
    let _one = alone();
    for leaves in [false, true] {
        let program = Program::sleeping();
        let quota = Quota::new(Guardian::start().unwrap());
        let wanted = request(ReservationKind::Hard, None);
        let capped = match quota.reserve(&Target::Process(program.pid()), &wanted) {
            Ok(capped) => capped,
            Err(refusal) => return skip(Requirement::CONTROL_GROUP, refusal),
        };
        let left = if leaves && moves_out(program.pid()) { vec![program.pid()] } else { vec![] };
        check(capped, &left);
    }
}

/// As a daemon does: its parents end, it is no descendant of the command, and leaves. It is known by the mark that
/// commands are started with.
#[test]
fn who_has_no_parent_left_is_known_by_its_mark() {
    let _one = alone();
    let (name, value) = (command::RESERVED_BY, std::process::id().to_string());
    // The child waits until it is in the group; then its parent ends.
    let script = "(read word; exec sleep 60) <&0 & echo $!; sleep 60";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).env(name, value).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program(shell.spawn().unwrap());
    let mut said = String::new();
    let mut output = std::io::BufReader::new(program.0.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut said).unwrap();
    let orphan: u32 = said.trim().parse().unwrap();
    let keeping = reserved(&user(), &program, ReservationKind::Hard, Some(last_cpu()));
    let moved = keeping.is_some() && moves_out(orphan);
    let everybody = members::tree(program.pid());
    // Only the shell ends; the processes that it started have no parent then.
    let shell = hourglass_sys::pidfd::PidFd::open(program.pid()).unwrap();
    shell.kill().unwrap();
    soon("it has no parent left", || members::parent_of(orphan) != Some(program.pid()));
    match keeping {
        Some(keeping) if moved => check(Box::new(keeping), &[orphan]),
        _ => {
            skip(Requirement::CONTROL_GROUP, "no reservation with a control group can be had here")
        }
    }
    for pid in everybody {
        if let Ok(one) = hourglass_sys::pidfd::PidFd::open(pid) {
            let _ = one.kill();
        }
    }
}
