//! `hourglass reserve` that is killed or stopped: no process stays raised, stopped or frozen.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use hourglass_dice::{Dice, seed};
use hourglass_skip::{Requirement, skip};

use super::*;

/// Ends the processes with the mark, also when an assertion fails: they would spin for ever.
pub(super) struct Ending(pub(super) String);

impl Drop for Ending {
    fn drop(&mut self) {
        for _ in 0..400 {
            if gone(&self.0) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Ends the processes with the mark, except the guardian: it ends by itself when everything is put back, and has its
/// maker's name until it first runs. Returns whether none remains.
pub(super) fn gone(mark: &str) -> bool {
    for pid in marked(mark) {
        if !name_of(pid).starts_with("hourglass") {
            let _ = kill("-KILL", pid);
        }
    }
    marked(mark).is_empty()
}

/// Groups that process `maker` made, and that are still there: in the groups of this process, and at the tops.
pub(crate) fn groups_left(maker: u32) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let tops = mounts.lines().filter(|line| line.contains(" - cgroup"));
    let tops: Vec<&str> = tops.filter_map(|line| line.split(' ').nth(4)).collect();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let inside = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let own = format!("hourglass-{maker}-");
    let mut left: Vec<PathBuf> = inside
        .chain([""])
        .flat_map(|group| tops.iter().map(move |top| format!("{top}{group}")))
        .flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&own))
        .map(|entry| entry.path())
        .collect();
    left.sort_unstable();
    left.dedup();
    left
}

/// Files that a reservation of process `maker` left where the machine keeps them.
pub(crate) fn files_left(maker: u32) -> Vec<PathBuf> {
    let (claim, undo) = (format!("claim-{maker}-"), format!("{maker}-"));
    let folders = hourglass_sys::runtime_folder::candidates();
    let of = |folder: &Path, begin: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(begin));
        named.map(|entry| entry.path()).collect()
    };
    let inside = |folder: &PathBuf| {
        [of(&folder.join("claims"), &claim), of(&folder.join("undo"), &undo)].concat()
    };
    folders.iter().flat_map(inside).collect()
}

#[test]
fn killed_at_any_moment_it_leaves_nothing_behind() {
    let _alone = alone();
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    const ROUNDS: usize = 8;
    let seed = seed();
    let mut dice = Dice::new(seed);
    for backend in ["deadline", "user", "quota"] {
        if !granted(backend) {
            continue;
        }
        for _ in 0..ROUNDS {
            let mark = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
            let _ended = Ending(mark.clone());
            // Two processes that use up whatever they are given.
            let script = "ulimit -t 5; (while :; do :; done) & while :; do :; done";
            let words = ["reserve", AMOUNT, "--backend", backend, "--", "sh", "-c", script];
            let mut running = Running::start(Command::new(HOURGLASS).args(words).env(MARK, &mark));
            std::thread::sleep(Duration::from_millis(dice.below(100)));
            let maker = running.pid();
            running.child().kill().unwrap();
            running.child().wait().unwrap();
            soon(&format!("seed {seed}, {backend}: {:?}", left_behind(&mark)), || {
                left_behind(&mark).is_empty()
            });
            soon("all are gone", || gone(&mark));
            assert_eq!(groups_left(maker), [] as [PathBuf; 0], "seed {seed}, {backend}");
        }
    }
}

/// The issue: kill -9 of the monitor at random moments leaves no process frozen.
#[test]
fn a_killed_monitor_leaves_no_process_frozen() {
    let _alone = alone();
    const ROUNDS: usize = 3;
    let Some(victim) = busy_on(1) else {
        return skip(Requirement::SECOND_CPU, "there is no second CPU, or no taskset");
    };
    let pid = victim.pid();
    let seed = seed();
    let mut dice = Dice::new(seed);
    for round in 0..ROUNDS {
        let mark = format!("{}-smt-{round}", std::process::id());
        let _ended = Ending(mark.clone());
        let script = "ulimit -t 5; echo ready; while :; do :; done";
        let mut command = Command::new(HOURGLASS);
        command.args(beside("disable", &pid.to_string(), script)).env(MARK, &mark);
        let mut running = Running::start(&mut command);
        let Some(_lines) = running.ready() else {
            return skip(need("auto"), "no reservation, or no process can be stopped here");
        };
        std::thread::sleep(Duration::from_millis(dice.below(120)));
        let maker = running.pid();
        running.child().kill().unwrap();
        running.child().wait().unwrap();
        soon("the victim runs again", || !stands(pid));
        soon("nothing is left behind", || left_behind(&mark).is_empty());
        soon("all are gone", || gone(&mark));
        assert_eq!(groups_left(maker), [] as [PathBuf; 0], "seed {seed}");
    }
}

/// `reserve` with a script that has said "ready", and the rest of what it says, which must be read or kept.
fn started(script: &str, mark: &str) -> (Running, BufReader<std::process::ChildStderr>) {
    let words = ["reserve", AMOUNT, "--backend", "user", "--json", "--", "sh", "-c", script];
    let mut running = Running::start(Command::new(HOURGLASS).args(words).env(MARK, mark));
    let lines = running.ready().unwrap();
    (running, lines)
}

/// The thread that keeps a reserve from user space is stopped with its process: the work is not urgent without a
/// budget, nor stands; and it is kept again when the keeper comes back.
#[test]
fn a_stopped_keeper_leaves_no_process_raised() {
    let _alone = alone();
    if !granted("user") {
        return;
    }
    let mark = format!("{}-stopped", std::process::id());
    let _ended = Ending(mark.clone());
    let script = "ulimit -t 5; echo ready; while :; do :; done";
    let (running, _lines) = started(script, &mark);
    let keeper = running.pid();
    // The guardian has the mark too, and is urgent.
    let work = || -> Vec<u32> {
        marked(&mark).into_iter().filter(|pid| name_of(*pid) == "sh\n").collect()
    };
    let raised = || work().into_iter().any(|pid| policies(pid) != [OTHER]);
    soon("the work is raised", raised);
    running.stop();
    let stands = || work().into_iter().any(is_frozen);
    soon("the work is lowered, and runs", || !raised() && !stands());
    running.signal("-CONT");
    soon("the work is raised again", raised);
    for pid in work() {
        kill("-TERM", pid).unwrap();
    }
    let (status, document) = running.end_with_document();
    assert_eq!(status.code(), Some(128 + 15), "{keeper}");
    warning(&document, "keeper-absent");
    assert_eq!(document["guarantee"], false);
}

/// The bug: where the command ended while its keeper was stopped, the report said that all was kept, and had neither the
/// time nor the processor time after the stop.
#[test]
fn what_ended_while_the_keeper_was_stopped_is_not_said_to_be_kept() {
    let _alone = alone();
    if !granted("user") {
        return;
    }
    let mark = format!("{}-away", std::process::id());
    let _ended = Ending(mark.clone());
    let script = "echo ready; exec timeout 1 sh -c 'while :; do :; done'";
    let (running, _lines) = started(script, &mark);
    std::thread::sleep(Duration::from_millis(200));
    running.stop();
    std::thread::sleep(Duration::from_millis(1_500));
    running.signal("-CONT");
    let (_, document) = running.end_with_document();
    warning(&document, "keeper-absent");
    assert_eq!(document["guarantee"], false);
    assert_ne!(document["kept"], true);
    assert!(document["wall_ns"].as_u64() > Some(1_500_000_000), "{document}");
}

/// The bug: protection was claimed for a run in which the guardian had let co-runners run, since nothing was heard of
/// the monitor.
#[test]
fn no_protection_is_claimed_after_the_guardian_woke_them() {
    let _alone = alone();
    let Some(victim) = busy_on(1) else {
        return skip(Requirement::SECOND_CPU, "there is no second CPU, or no taskset");
    };
    let pid = victim.pid();
    let mark = format!("{}-woken", std::process::id());
    let _ended = Ending(mark.clone());
    // Co-runners are stopped while the target wants what is reserved: a target that sleeps would stop none.
    let script = "ulimit -t 5; echo ready; while :; do :; done";
    let mut command = Command::new(HOURGLASS);
    command.args(beside("disable", &pid.to_string(), script)).env(MARK, &mark);
    let mut running = Running::start(&mut command);
    let Some(_lines) = running.ready() else {
        return skip(need("auto"), "no reservation, or no process can be stopped here");
    };
    // The monitor is to be caught while they stand, a tenth of the time.
    soon("the monitor is stopped while the victim stands", || {
        soon("the victim stands", || stands(pid));
        running.stop();
        std::thread::sleep(Duration::from_millis(5));
        let caught = stands(pid);
        if !caught {
            running.signal("-CONT");
        }
        caught
    });
    soon("the victim runs again", || !stands(pid));
    running.signal("-CONT");
    for work in marked(&mark).into_iter().filter(|work| name_of(*work) == "sh\n") {
        kill("-TERM", work).unwrap();
    }
    let (_, document) = running.end_with_document();
    let smt = &document["smt"];
    assert_eq!((&smt["protected"], &smt["against"][0]), (&false.into(), &pid.to_string().into()));
    assert!(smt["broken"].as_u64().unwrap() > 0, "{document}");
    warning(&document, "guardian-woke");
    soon("the victim runs again", || !stands(pid));
}
