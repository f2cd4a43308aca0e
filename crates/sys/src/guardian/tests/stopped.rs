//! Guardians that were stopped when they were born, before they have their name or hold the record.

use std::fs;
use std::path::Path;

use super::clean::{RecordState, clean, resume_guardians};
use super::record::Record;
use super::tests::{Home, OtherProcess, soon, write};
use super::*;

fn signal(pid: u32, signal: libc::c_int) {
    let _ = crate::signal::send_to(pid as libc::pid_t, signal);
}

/// Runs in a child before `fork` returns there.
extern "C" fn stop() {
    signal(std::process::id(), libc::SIGSTOP);
}

/// What `/proc/PID/stat` says after the name begins with this.
fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.starts_with('T')
}

/// A process that keeps something, whose guardians stand since they were born, and that stands itself then: its number
/// and theirs, which are written into a file.
fn maker(home: &Home, record: Option<&Path>) -> Vec<u32> {
    let (file, said) = (home.file("file"), home.0.join("pids"));
    // SAFETY: the child takes no locks of other threads but the allocator's, which the C library hands over unlocked,
    // and never returns.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // Some tell of guardians of other tests, whose maker lives.
        super::process::close_all(3, libc::c_uint::MAX).unwrap();
        // SAFETY: the handler is a function of this program that makes two system calls.
        unsafe { libc::pthread_atfork(None, None, Some(stop)) };
        let record = record.map(|folder| Record::create_in(folder).unwrap());
        let guardian = Guardian::with(record).unwrap();
        let _kept = guardian.keep(&write(&file)).unwrap();
        fs::write(&said, format!("{:?}", guardian.pids())).unwrap();
        loop {
            stop();
        }
    }
    let pid = child.unsigned_abs();
    soon("the maker stands", || is_stopped(pid));
    let said = fs::read_to_string(&said).unwrap();
    let guardians = said.trim_matches(['[', ']']).split(", ").map(|pid| pid.parse().unwrap());
    [pid].into_iter().chain(guardians).collect()
}

/// Ended with the test, whatever became of them.
struct StoppedProcesses(Vec<TaskIdentity>);

impl Drop for StoppedProcesses {
    fn drop(&mut self) {
        self.0.iter().filter(|one| one.is_alive()).for_each(|one| signal(one.id, libc::SIGKILL));
    }
}

/// The bug: a guardian that was stopped between `fork` and its first call has its maker's name, and was never let go on.
/// While the maker lives, nothing is; nor is ever what no guardian made. With a record, without one, and with one whose
/// name is gone.
#[test]
fn a_guardian_without_a_name_is_let_go_on() {
    let home = Home::new("guardian-stopped");
    let folder = home.0.join("records");
    fs::create_dir(&folder).unwrap();
    let unrelated = OtherProcess::new();
    signal(unrelated.0.id(), libc::SIGSTOP);
    for (record, removed) in [(Some(&*folder), false), (None, false), (Some(&*folder), true)] {
        let pids = maker(&home, record);
        let made =
            StoppedProcesses(pids.iter().map(|pid| TaskIdentity::of_task(*pid).unwrap()).collect());
        soon("all stand", || pids.iter().all(|pid| is_stopped(*pid)));
        let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
        assert!(
            pids.len() == 3 && pids.iter().all(|pid| !name(pid).starts_with("hourglass-guard"))
        );
        let own = || {
            let found = clean(&folder).unwrap().into_iter().chain(resume_guardians());
            let own = found.filter(|one| pids.contains(&one.maker));
            own.map(|one| (one.state, one.steps.len())).collect::<Vec<_>>()
        };
        let alive = if record.is_some() { vec![(RecordState::Alive, 0)] } else { Vec::new() };
        assert_eq!(own(), alive);
        assert!(pids.iter().all(|pid| is_stopped(*pid)));
        if removed {
            fs::remove_dir_all(&folder).unwrap();
            fs::create_dir(&folder).unwrap();
        }
        signal(pids[0], libc::SIGKILL);
        super::process::wait_for(pids[0] as libc::pid_t);
        let undone = if record.is_some() && !removed { 1 } else { 2 };
        assert_eq!(own(), vec![(RecordState::Undone, 1); undone], "{record:?}");
        soon("they have ended", || !made.0.iter().any(TaskIdentity::is_alive));
        assert_eq!(fs::read_to_string(home.0.join("file")).unwrap(), "after!");
        assert!(unrelated.state() == 'T' && fs::read_dir(&folder).unwrap().next().is_none());
    }
}
