//! Guardians that are killed, alone, before their maker, and together with it.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;

use hourglass_skip::{Requirement, skip};

use super::clean::{RecordState, StaleRecord, UndoOutcome, clean};
use super::record::Record;
use super::tests::{Home, OtherProcess, killed_after, ordinary, soon, write};
use super::*;
use crate::sched::{self, Attributes};

fn kill(pid: u32, signal: libc::c_int) {
    // SAFETY: takes no memory.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

fn kill_all(guardian: &Guardian) {
    guardian.pids().into_iter().for_each(|pid| kill(pid, libc::SIGKILL));
}

fn recording_in(folder: &Path) -> Guardian {
    Guardian::with(Some(Record::create_in(folder).unwrap())).unwrap()
}

/// The bug: of 25 makers that were killed after their guardian, 15 left threads raised or groups frozen for good. At
/// once behind it, and a little later.
#[test]
fn a_guardian_killed_before_its_maker_is_made_up_for() {
    const ROUNDS: u32 = 24;
    let home = Home::new("guardian-first");
    for round in 0..ROUNDS {
        let (file, other) = (home.file("file"), OtherProcess::new());
        let thread = TaskIdentity::of_task(other.0.id()).unwrap();
        let attributes = Some(ordinary());
        let raised = UndoAction::Thread { thread, attributes, cpus: None };
        killed_after(|| {
            let guardian = recording_in(&home.0);
            let kept = [write(&file), raised].map(|undo| guardian.keep(&undo).unwrap());
            // Where it is refused, there is nothing to lower.
            let _ = sched::set_of(thread.id, Attributes::Fifo(1));
            // Either of the two, and the one that does the work most of the time.
            let pids = guardian.pids();
            kill(pids[usize::from(round % 4 == 3)], libc::SIGKILL);
            std::thread::sleep(std::time::Duration::from_micros(u64::from(round / 4) * 100));
            std::mem::forget((guardian, kept));
        });
        soon("the file is put back", || fs::read_to_string(&file).unwrap() == "after!");
        soon("the thread is lowered", || sched::read(thread.id).unwrap() == attributes);
        soon("no record is left", || records(&home.0) == 0);
    }
}

fn records(folder: &Path) -> usize {
    let names = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with(|c: char| c.is_ascii_digit())).count()
}

/// If both are killed, one after the other or at once, two others exist a little later.
#[test]
fn guardians_that_are_killed_are_replaced() {
    let home = Home::new("guardian-replaced");
    let file = home.file("file");
    killed_after(|| {
        let guardian = recording_in(&home.0);
        let kept = guardian.keep(&write(&file)).unwrap();
        for round in 1..=3 {
            let before = guardian.pids();
            kill_all(&guardian);
            soon("both are replaced", || {
                guardian.replaced() == 2 * round
                    && guardian.pids().len() == 2
                    && guardian.is_alive()
            });
            assert!(guardian.pids().iter().all(|pid| !before.contains(pid)));
        }
        // The new ones know of promises too.
        guardian.promise(1).unwrap();
        soon("the promise is seen to be broken", || guardian.broken() == 1);
        fs::write(&file, "before").unwrap();
        std::mem::forget((guardian, kept));
    });
    soon("the file is put back", || fs::read_to_string(&file).unwrap() == "after!");
    soon("no record is left", || records(&home.0) == 0);
}

/// While no guardian lives, nothing may be stopped; and a normal end puts back what they would have.
#[test]
fn without_a_guardian_nothing_is_to_be_stopped() {
    let home = Home::new("guardian-none");
    let file = home.file("file");
    let guardian = recording_in(&home.0);
    assert!(guardian.is_alive() && guardian.must_live().is_ok());
    let mut kept = guardian.keep(&write(&file)).unwrap();
    // No thread starts others.
    guardian.0.guardians.stop();
    soon("the thread has ended", || guardian.0.watch.as_ref().unwrap().is_finished());
    kill_all(&guardian);
    soon("both have ended", || !guardian.is_alive());
    let error = guardian.must_live().unwrap_err();
    assert!(
        GuardianUnavailable::is_behind(&error) && error.to_string().contains("guardian was killed"),
        "{error}"
    );
    assert!(!GuardianUnavailable::is_behind(&io::Error::other(error.to_string())));
    // A child that another test has just forked may have the line for a moment.
    soon("none hears", || guardian.promise(0).is_ok() && guardian.promise(u64::MAX).is_err());
    // A promise that no process receives fails, each time anew.
    for _ in 0..2 {
        assert!(GuardianUnavailable::is_behind(&guardian.promise(u64::MAX).unwrap_err()));
        assert_eq!(guardian.0.guardians.table.promised(0), 0);
    }
    // Left to them.
    kept.slot = None;
    drop((kept, guardian));
    assert_eq!(fs::read_to_string(&file).unwrap(), "after!");
}

/// A guardian that is killed goes last where memory runs out; its maker, and what that starts, keep their places.
#[test]
fn the_kernel_ends_guardians_last() {
    let score = |pid: u32| -> i32 {
        fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap().trim().parse().unwrap()
    };
    let before = score(std::process::id());
    let guardian = Guardian::start().unwrap();
    let lowest = || guardian.pids().into_iter().map(score).max().unwrap();
    soon("both have the least that they may", || {
        lowest() <= before && (lowest() == -1000 || before >= 0)
    });
    if fs::read_to_string("/proc/self/status").unwrap().contains("CapEff:\t000001ffffffffff") {
        soon("root may have the least of all", || lowest() == -1000);
    }
    assert_eq!(score(std::process::id()), before);
    let child = OtherProcess::new();
    assert_eq!(score(child.0.id()), before);
}

/// Maker and guardians killed at once, as the OOM killer or a session's end does; the recorded actions are undone
/// later, for threads that still live, and only once.
#[test]
fn a_record_outlives_maker_and_guardians() {
    let home = Home::new("guardian-record");
    let (file, folder) = (home.file("file"), home.0.join("records"));
    fs::create_dir(&folder).unwrap();
    let other = OtherProcess::new();
    let life = TaskIdentity::of_task(other.0.id()).unwrap();
    let reused = TaskIdentity { started: life.started + 1, ..life };
    killed_after(|| {
        let guardian = recording_in(&folder);
        let undos = [write(&file), UndoAction::Continue(life), UndoAction::Continue(reused)];
        let kept = undos.map(|undo| guardian.keep(&undo).unwrap());
        guardian.keep(&write(&home.0.join("never"))).unwrap().forget();
        kill(life.id, libc::SIGSTOP);
        // Its own record is left alone, and as it is alive, so is it by others.
        assert!(clean(&folder).unwrap().is_empty());
        guardian.0.guardians.stop();
        soon("the thread has ended", || guardian.0.watch.as_ref().unwrap().is_finished());
        kill_all(&guardian);
        soon("both have ended", || !guardian.is_alive());
        std::mem::forget((guardian, kept));
    });
    soon("it stands", || other.state() == 'T');
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), records(&folder)), ("before", 1));
    let [StaleRecord { state, steps, .. }] = &clean(&folder).unwrap()[..] else {
        panic!("one record")
    };
    let outcomes: Vec<_> = steps.iter().map(|step| format!("{:?}", step.outcome)).collect();
    assert_eq!(
        (*state, &outcomes[..]),
        (RecordState::Undone, &["Undone", "Undone", "Gone"].map(String::from)[..])
    );
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), records(&folder)), ("after!", 0));
    soon("it goes on", || other.state() == 'S');
    assert!(clean(&folder).unwrap().is_empty());
}

/// A record whose maker lives, one of another user, a link, and what is no record at all: all are left alone.
#[test]
fn what_is_not_a_dead_ones_record_is_left_alone() {
    let home = Home::new("guardian-foreign");
    let folder = home.0.join("records");
    fs::create_dir(&folder).unwrap();
    let file = home.file("file");
    let id = u32::MAX;
    fs::write(folder.join(format!("{id}-1-0")), "no record").unwrap();
    std::os::unix::fs::symlink(&file, folder.join(format!("{id}-1-1"))).unwrap();
    fs::write(folder.join("readme"), "").unwrap();
    let foreign = folder.join(format!("{id}-1-2"));
    fs::write(&foreign, "no record").unwrap();
    let chowned = chown(&foreign, Some(65_534), None).is_ok();
    let states: Vec<RecordState> =
        clean(&folder).unwrap().iter().map(|found| found.state).collect();
    assert_eq!(states, [RecordState::Unreadable; 3]);
    assert!(chowned || crate::runtime_folder::user() != 0);
    let guardian = recording_in(&folder);
    let kept = guardian.keep(&write(&file)).unwrap();
    // Another process finds the record of this one, which lives.
    let said = crate::fork::child_says(20_000, || {
        let found = clean(&folder).unwrap();
        found.iter().filter(|found| found.state == RecordState::Alive).count() == 1
    });
    assert!(said.unwrap());
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    kept.forget();
}

/// The bug: a thread that was raised with the help of a capability, such that its children are not, could not be
/// lowered again by its user, who has no capability.
#[test]
fn a_user_lowers_what_a_capability_raised() {
    const NOBODY: u32 = 65_534;
    let mut command = std::process::Command::new("sleep");
    let spawned = command.arg("60").uid(NOBODY).gid(NOBODY).spawn();
    let Some(other) = spawned.ok().map(OtherProcess) else {
        return skip(Requirement::REAL_TIME, "this user may not become another one");
    };
    let life = TaskIdentity::of_task(other.0.id()).unwrap();
    // With the nice value that the tests run at.
    let before = sched::read(life.id).unwrap();
    if let Err(error) = sched::set_without_children(life.id, Attributes::Fifo(1)) {
        return skip(Requirement::REAL_TIME, error);
    }
    let undo = UndoAction::Thread { thread: life, attributes: before, cpus: Some(vec![0]) };
    let work = || format!("{:?}", super::clean::undo(&undo)).into_bytes();
    let said = crate::privilege::as_user(NOBODY, NOBODY, 20, work).unwrap();
    assert_eq!(String::from_utf8_lossy(&said), "Undone");
    assert_eq!(sched::read(life.id).unwrap(), before);
}

/// The bug: a host with a small limit for files (`RLIMIT_FSIZE`) was ended by SIGXFSZ when much was kept, or when it
/// lowered the limit. What fits is recorded.
#[test]
fn a_record_keeps_to_the_limit_for_files() {
    let home = Home::new("guardian-limit");
    let file = home.file("file");
    let said = crate::fork::child_says(20_000, || {
        crate::file_limit::set(64);
        let none = Record::create_in(&home.0).is_err();
        crate::file_limit::set(4096);
        let record = Record::create_in(&home.0).unwrap();
        record.appear();
        let written = write(&file).written().unwrap();
        let filled: Vec<bool> = (0..64).map(|index| record.fill(index, &written).is_ok()).collect();
        let (first, last) = (record.read(0), record.read(63));
        crate::file_limit::set(64);
        record.clear(0);
        none && filled[0] && !filled[63] && first == Some(written) && last.is_none()
    });
    assert!(said.unwrap());
    assert_eq!(records(&home.0), 1);
}

/// The bug: the entry of a killed reservation among the claims stayed until another one looked there. One that a process
/// holds is somebody's.
#[test]
fn a_file_that_nobody_holds_is_removed() {
    let home = Home::new("guardian-unheld");
    let (held, free) = (home.0.join("held"), home.0.join("free"));
    let file = fs::OpenOptions::new().write(true).create_new(true).open(&held).unwrap();
    assert!(crate::lock::try_for_process(&file).unwrap());
    killed_after(|| {
        fs::write(&free, "").unwrap();
        let guardian = Guardian::with(None).unwrap();
        let kept = [&held, &free]
            .map(|path| guardian.keep(&UndoAction::RemoveUnheld(path.clone())).unwrap());
        std::mem::forget((guardian, kept));
    });
    soon("the other one is gone", || !free.exists());
    assert!(held.exists());
}

/// What is refused stays in the record, for a user with the rights.
#[test]
fn what_is_refused_stays() {
    let home = Home::new("guardian-refused");
    let (folder, used) = (home.0.join("records"), home.0.join("used"));
    fs::create_dir(&folder).unwrap();
    fs::create_dir_all(used.join("inner")).unwrap();
    killed_after(|| {
        let guardian = recording_in(&folder);
        let kept = guardian.keep(&UndoAction::Remove(used.clone())).unwrap();
        std::mem::forget((guardian, kept));
    });
    // The guardians have tried, and left it.
    let mut last = Vec::new();
    soon("they have ended", || {
        last = clean(&folder).unwrap();
        last[0].state == RecordState::Left
    });
    let UndoOutcome::Refused(error) = &last[0].steps[0].outcome else { panic!("{last:?}") };
    assert_eq!(error.raw_os_error(), Some(libc::ENOTEMPTY));
    fs::remove_dir(used.join("inner")).unwrap();
    // A guardian that ends late still holds it, or undoes it itself.
    soon("it is undone", || {
        clean(&folder).unwrap().iter().all(|one| one.state == RecordState::Undone)
    });
    assert!(!used.exists() && records(&folder) == 0);
}
