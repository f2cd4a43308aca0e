//! How far a program has come that a test has started: by what the kernel says of it, since on a busy
//! machine no time that could be waited is surely enough.

#![allow(dead_code)] // each test uses its part

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use hourglass_documents::CpuSet;

/// Sends a signal, by its name after `-`, to a process, or to a group by its number below zero. Container images have no
/// program for that.
pub(crate) fn send(signal: &str, pid: i64) -> io::Result<()> {
    let numbers = [
        ("-HUP", 1),
        ("-INT", 2),
        ("-KILL", 9),
        ("-USR1", 10),
        ("-TERM", 15),
        ("-CONT", 18),
        ("-STOP", 19),
    ];
    let (_, number) = numbers.into_iter().find(|(name, _)| *name == signal).unwrap();
    hourglass_sys::signal::send_to(pid.try_into().unwrap(), number)
}

/// Copies a program, by a process of its own. A file that this process writes may not be executed (ETXTBSY) while a child
/// that another test starts at that moment still has it open.
pub(crate) fn copy_program(from: impl AsRef<Path>, to: &Path) {
    let copied = Command::new("cp").arg(from.as_ref()).arg(to).status();
    assert!(copied.unwrap().success(), "{}", to.display());
}

/// Waits until `what` is so.
pub(crate) fn until(what: &str, is_so: impl FnMut() -> bool) {
    assert!(within(Duration::from_secs(60), is_so), "not within a minute: {what}");
}

/// Waits until something is so, at most for `limit`; whether it is.
pub(crate) fn within(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// A process that is killed at the end of the test, whatever becomes of that.
pub(crate) struct Killed(pub(crate) Child);

impl Killed {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        send(name, self.pid().into()).unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The CPUs that this process may use.
pub(crate) fn allowed_cpus() -> CpuSet {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    line.trim().parse().unwrap()
}

/// The last CPU that this process may use: on machines with several, another one is free.
pub(crate) fn last_allowed_cpu() -> u32 {
    allowed_cpus().iter().last().unwrap()
}

pub(crate) fn has_taskset() -> bool {
    Command::new("taskset").arg("--version").output().is_ok()
}

/// Processor time of all threads of a process, ms; the kernel counts it in hundredths of a second.
pub(crate) fn received_ms(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // Its name may hold anything but is in parentheses.
    let (_, numbers) = stat.rsplit_once(')').unwrap();
    let modes = numbers.split_whitespace().skip(11).take(2);
    modes.map(|ticks| ticks.parse::<u64>().unwrap() * 10).sum()
}

/// Whether a process has a handler for a signal.
pub(crate) fn catches(pid: u32, signal: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() >> (signal - 1) & 1 == 1
}

/// How often the first measured thread of a run has waited so far, for its start included.
pub(crate) fn waits_of_the_measured(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let read = |task: &fs::DirEntry, file: &str| {
        // A thread may have ended since it was listed.
        fs::read_to_string(task.path().join(file)).unwrap_or_default()
    };
    let waits = |task: fs::DirEntry| {
        let status = read(&task, "status");
        let line = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
        line.map_or(0, |count| count.trim().parse().unwrap())
    };
    tasks.filter(|task| read(task, "comm").trim() == "hourglass-0").map(waits).sum()
}
