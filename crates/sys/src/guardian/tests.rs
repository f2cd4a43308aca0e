use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use hourglass_skip::{Requirement, skip};

use super::*;
use crate::sched::{self, Attributes};

/// A folder of its own for each test.
pub(super) struct Home(pub(super) PathBuf);

impl Home {
    pub(super) fn new(name: &str) -> Home {
        let path = std::env::temp_dir().join(format!("hourglass-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Home(path)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, "before").unwrap();
        path
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Another process, ended with the test.
pub(super) struct OtherProcess(pub(super) Child);

impl OtherProcess {
    pub(super) fn new() -> OtherProcess {
        OtherProcess(Command::new("sleep").arg("60").spawn().unwrap())
    }

    pub(super) fn state(&self) -> char {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// What a thread is lowered to: a nice value stays what it was, and tests may be started by `nice`.
pub(super) fn ordinary() -> Attributes {
    Attributes::Other(sched::nice() as i8)
}

pub(super) fn write(path: &std::path::Path) -> UndoAction {
    UndoAction::Write { path: path.to_path_buf(), text: "after!".into() }
}

/// Waits for what another process does soon. It fails only on a machine that does not run that process for this time.
pub(super) fn soon(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Does something in a process that then dies of SIGKILL, without any of its own steps.
pub(super) fn killed_after(work: impl FnOnce()) {
    // SAFETY: the child takes no locks of other threads but the allocator's, which the C library
    // hands over unlocked, and never returns.
    let child = unsafe { libc::fork() };
    if child == 0 {
        work();
        // SAFETY: takes no memory.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: writes to a live local; the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL);
}

#[test]
fn what_is_undone_or_forgotten_here_is_not_done_by_the_guardian() {
    let home = Home::new("guardian-here");
    let files = ["undone", "dropped", "forgotten", "left"].map(|name| home.file(name));
    let guardian = Guardian::start().unwrap();
    let kept = files.clone().map(|file| guardian.keep(&write(&file)).unwrap());
    let [undone, dropped, forgotten, left] = kept;
    undone.undo().unwrap();
    drop(dropped);
    forgotten.forget();
    let texts = || files.clone().map(|file| fs::read_to_string(file).unwrap());
    assert_eq!(texts(), ["after!", "after!", "before", "before"]);
    // Nothing may be done twice: later owners of a file keep what they wrote.
    fs::write(&files[0], "later!").unwrap();
    drop(guardian);
    drop(left);
    assert_eq!(texts(), ["later!", "after!", "before", "after!"]);
}

/// Injected faults: where the descriptors ran out for the second guardian, its maker waited for it for 20 s.
#[test]
fn descriptors_may_run_out_at_any_call() {
    const CALLS: u64 = 16;
    let all_end = || {
        // SAFETY: a number by value; the descriptor is closed at once and has no other owner.
        let lowest = unsafe {
            let lowest = libc::dup(0);
            libc::close(lowest);
            lowest
        };
        (0..CALLS).all(|more| {
            let limit = u64::from(lowest.unsigned_abs()) + more;
            let limit = libc::rlimit { rlim_cur: limit, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: reads a live local.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
            let begun = Instant::now();
            drop(Guardian::start());
            begun.elapsed() < Duration::from_secs(15)
        })
    };
    assert!(crate::fork::child_says(120_000, all_end).unwrap());
}

#[test]
fn after_sigkill_everything_is_put_back() {
    let home = Home::new("guardian-killed");
    let (file, folder) = (home.file("file"), home.0.join("folder"));
    fs::create_dir(&folder).unwrap();
    let other = OtherProcess::new();
    let life = TaskIdentity::of_task(other.0.id()).unwrap();
    let privileged = OtherProcess::new();
    let raised = sched::set_of(privileged.0.id(), Attributes::Fifo(1)).is_ok();
    if !raised {
        skip(Requirement::REAL_TIME, "in part: SCHED_FIFO is refused here");
    }
    let list = home.file("list");
    fs::write(&list, format!("{}\n", privileged.0.id())).unwrap();
    let thread = UndoAction::Thread { thread: life, attributes: Some(ordinary()), cpus: None };
    killed_after(|| {
        let guardian = Guardian::start().unwrap();
        let members = UndoAction::Members { list: list.clone(), cpus: None };
        let all = [
            write(&file),
            UndoAction::Continue(life),
            thread,
            UndoAction::Remove(folder.clone()),
            members,
        ];
        let kept = all.map(|undo| guardian.keep(&undo).unwrap());
        // Kept actions are not carried out until now.
        sched::set_of(life.id, Attributes::Batch(sched::nice() as i8)).unwrap();
        // SAFETY: takes no memory.
        unsafe { libc::kill(life.id as libc::pid_t, libc::SIGSTOP) };
        std::mem::forget((guardian, kept));
    });
    soon("the folder is removed", || !folder.exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), "after!");
    assert_eq!(sched::read(life.id).unwrap(), Some(ordinary()));
    soon("the process goes on", || other.state() == 'S');
    assert_eq!(sched::read(privileged.0.id()).unwrap(), Some(ordinary()));
}

/// A monitor that hangs keeps nothing stopped (a dead man's thaw).
#[test]
fn a_broken_promise_wakes_who_was_stopped() {
    let home = Home::new("guardian-promise");
    let (file, folder) = (home.file("file"), home.0.join("folder"));
    fs::create_dir(&folder).unwrap();
    let guardian = Guardian::start().unwrap();
    let kept = guardian.keep(&write(&file)).unwrap();
    let removal = guardian.keep(&UndoAction::Remove(folder.clone())).unwrap();
    let in_ms = |ms: u64| crate::clock::now_ns(crate::clock::ClockId::Monotonic) + ms * 1_000_000;
    // Promises that are renewed are not broken.
    guardian.promise(in_ms(60_000)).unwrap();
    assert_eq!(guardian.broken(), 0);
    guardian.promise(in_ms(1)).unwrap();
    guardian.promise(0).unwrap();
    guardian.promise(in_ms(20)).unwrap();
    soon("the promise is seen to be broken", || guardian.broken() > 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "after!");
    // Nothing else was done, and what was kept still is.
    assert!(folder.exists());
    guardian.promise(0).unwrap();
    fs::write(&file, "before").unwrap();
    kept.undo().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "after!");
    removal.forget();
}

#[test]
fn who_is_gone_counts_as_put_back() {
    let guardian = Guardian::start().unwrap();
    let gone = {
        let other = OtherProcess::new();
        TaskIdentity::of_task(other.0.id()).unwrap()
    };
    let nowhere = PathBuf::from("/nowhere/at/all");
    for undo in [
        UndoAction::Continue(gone),
        UndoAction::Thread {
            thread: gone,
            attributes: Some(Attributes::Idle),
            cpus: Some(vec![0]),
        },
        UndoAction::Members { list: nowhere.clone(), cpus: None },
        UndoAction::Move { from: nowhere.clone(), to: nowhere.clone() },
        UndoAction::Remove(nowhere.clone()),
        write(&nowhere),
    ] {
        guardian.keep(&undo).unwrap().undo().unwrap();
    }
}

/// Groups that a program makes inside its group are removed with it, deepest first, but none of other guardians.
#[test]
fn groups_below_are_emptied_and_removed() {
    let home = Home::new("guardian-below");
    let (top, to) = (home.0.join("top"), home.file("to"));
    let deep = top.join("one/two");
    let foreign = top.join("hourglass-1-0");
    for folder in [&deep, &foreign] {
        fs::create_dir_all(folder).unwrap();
    }
    let guardian = Guardian::start().unwrap();
    let keep = |undo: UndoAction| guardian.keep(&undo).unwrap();
    // On files, which keep their numbers, the number written last stays: that of the highest folder that has one.
    fs::write(&to, "").unwrap();
    for (folder, wanted) in [(&foreign, ""), (&deep, "4711"), (&top, "4712")] {
        let number = if wanted.is_empty() { "9999" } else { wanted };
        fs::write(folder.join("cgroup.procs"), number).unwrap();
        let from = top.join("cgroup.procs");
        if folder == &deep {
            fs::write(&from, "").unwrap();
        }
        keep(UndoAction::Move { from, to: to.clone() }).undo().unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), wanted);
    }
    for folder in [&top, &deep, &foreign] {
        fs::remove_file(folder.join("cgroup.procs")).unwrap();
    }
    assert!(keep(UndoAction::RemoveGroup(top.clone())).undo().is_err(), "another's group is in it");
    assert!(!top.join("one").exists() && foreign.exists());
    fs::remove_dir(&foreign).unwrap();
    fs::create_dir_all(&deep).unwrap();
    keep(UndoAction::RemoveGroup(top.clone())).undo().unwrap();
    assert!(!top.exists());
}

/// A thread that left a group unseen is lowered by descent or by mark; a thread that has the same policy from elsewhere
/// keeps it.
#[test]
fn strays_are_known_by_descent_and_mark() {
    const PRIORITY: u8 = 2;
    let value = format!("{}-strays", std::process::id());
    let marked = Command::new("sleep").arg("60").env("HOURGLASS_TEST_STRAY", &value).spawn();
    let marked = OtherProcess(marked.unwrap());
    let (root, unrelated) = (OtherProcess::new(), OtherProcess::new());
    let others = [&marked, &root, &unrelated].map(|other| other.0.id());
    if others.iter().any(|id| sched::set_of(*id, Attributes::Fifo(PRIORITY)).is_err()) {
        return skip(Requirement::REAL_TIME, "SCHED_FIFO is refused here");
    }
    let guardian = Guardian::start().unwrap();
    let undo = UndoAction::Strays {
        root: TaskIdentity::of_task(root.0.id()).unwrap(),
        priority: PRIORITY - 1,
        mark: format!("HOURGLASS_TEST_STRAY={value}"),
        pin: None,
        cpus: None,
    };
    // The name alone is not the mark, nor is the begin of it.
    for part in ["HOURGLASS_TEST_STRAY", &format!("HOURGLASS_TEST_STRAY={}", std::process::id())] {
        let UndoAction::Strays { root, priority, .. } = undo.clone() else { unreachable!() };
        let root = TaskIdentity { started: root.started + 1, ..root };
        let other =
            UndoAction::Strays { root, priority, mark: part.to_owned(), pin: None, cpus: None };
        guardian.keep(&other).unwrap().undo().unwrap();
        assert_eq!(sched::read(others[0]).unwrap(), Some(Attributes::Fifo(PRIORITY)), "{part}");
    }
    guardian.keep(&undo).unwrap().undo().unwrap();
    let (other, fifo) = (Some(ordinary()), Some(Attributes::Fifo(PRIORITY)));
    assert_eq!(others.map(|id| sched::read(id).unwrap()), [other, other, fifo]);
}

/// Work whose keeper hangs is not urgent without a budget, stays on its CPU, and can be raised again.
#[test]
fn a_broken_pledge_lowers_who_was_raised() {
    let other = OtherProcess::new();
    let id = other.0.id();
    let before = crate::thread::affinity_of(id).unwrap();
    let guardian = Guardian::start().unwrap();
    let thread = TaskIdentity::of_task(id).unwrap();
    let (attributes, cpus) = (Some(ordinary()), Some(before.clone()));
    let kept = guardian.keep(&UndoAction::Thread { thread, attributes, cpus }).unwrap();
    if sched::set_of(id, Attributes::Fifo(1)).is_err() {
        return skip(Requirement::REAL_TIME, "SCHED_FIFO is refused here");
    }
    crate::thread::set_affinity_of(id, [before[0]]).unwrap();
    // SAFETY: takes no memory.
    unsafe { libc::kill(id as libc::pid_t, libc::SIGSTOP) };
    let continued = guardian.keep(&UndoAction::Continue(thread)).unwrap();
    let in_ms = |ms: u64| crate::clock::now_ns(crate::clock::ClockId::Monotonic) + ms * 1_000_000;
    // The maker's own promise is another one.
    guardian.promise(in_ms(600_000)).unwrap();
    let pledge = guardian.pledge().unwrap();
    pledge.until(in_ms(60_000)).unwrap();
    assert_eq!((pledge.broken(), sched::read(id).unwrap()), (0, Some(Attributes::Fifo(1))));
    pledge.until(in_ms(1)).unwrap();
    soon("the pledge is seen to be broken", || pledge.broken() == 1);
    assert_eq!(sched::read(id).unwrap(), Some(ordinary()));
    assert_eq!(crate::thread::affinity_of(id).unwrap(), [before[0]]);
    soon("it goes on", || other.state() == 'S');
    assert_eq!((guardian.broken(), guardian.woken()), (0, 1));
    sched::set_of(id, Attributes::Fifo(1)).unwrap();
    drop(pledge);
    continued.forget();
    kept.undo().unwrap();
    assert_eq!(crate::thread::affinity_of(id).unwrap(), before);
}
