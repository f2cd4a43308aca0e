use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use super::*;
use crate::sched::{self, Attributes};

/// A folder of its own for each test.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        let path = std::env::temp_dir().join(format!("hourglass-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Home(path)
    }

    fn file(&self, name: &str) -> PathBuf {
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
struct Other(Child);

impl Other {
    fn new() -> Other {
        Other(Command::new("sleep").arg("60").spawn().unwrap())
    }

    fn state(&self) -> char {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn write(path: &std::path::Path) -> Undo {
    Undo::Write { path: path.to_path_buf(), text: "after!".into() }
}

/// Waits for what another process does soon. Only a machine that does not run it for so long fails.
fn soon(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Does something in a process that then dies of SIGKILL, without any of its own steps.
fn killed_after(work: impl FnOnce()) {
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

#[test]
fn after_sigkill_everything_is_put_back() {
    let home = Home::new("guardian-killed");
    let (file, folder) = (home.file("file"), home.0.join("folder"));
    fs::create_dir(&folder).unwrap();
    let other = Other::new();
    let life = Life::of(other.0.id()).unwrap();
    let privileged = Other::new();
    let raised = sched::set_of(privileged.0.id(), Attributes::Fifo(1)).is_ok();
    if !raised {
        eprintln!("skipped in part: SCHED_FIFO is refused here");
    }
    let list = home.file("list");
    fs::write(&list, format!("{}\n", privileged.0.id())).unwrap();
    let thread = Undo::Thread { thread: life, attributes: Some(Attributes::Other(0)), cpus: None };
    killed_after(|| {
        let guardian = Guardian::start().unwrap();
        let members = Undo::Members { list: list.clone(), cpus: None };
        let all =
            [write(&file), Undo::Continue(life), thread, Undo::Remove(folder.clone()), members];
        let kept = all.map(|undo| guardian.keep(&undo).unwrap());
        // What is kept is not yet done: now it is.
        sched::set_of(life.id, Attributes::Batch(0)).unwrap();
        // SAFETY: takes no memory.
        unsafe { libc::kill(life.id as libc::pid_t, libc::SIGSTOP) };
        std::mem::forget((guardian, kept));
    });
    soon("the folder is removed", || !folder.exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), "after!");
    assert_eq!(sched::of(life.id).unwrap(), Some(Attributes::Other(0)));
    soon("the process goes on", || other.state() == 'S');
    assert_eq!(sched::of(privileged.0.id()).unwrap(), Some(Attributes::Other(0)));
}

/// A monitor that hangs keeps nobody stopped (a dead man's thaw).
#[test]
fn a_broken_promise_wakes_who_was_stopped() {
    let home = Home::new("guardian-promise");
    let (file, folder) = (home.file("file"), home.0.join("folder"));
    fs::create_dir(&folder).unwrap();
    let guardian = Guardian::start().unwrap();
    let kept = guardian.keep(&write(&file)).unwrap();
    let removal = guardian.keep(&Undo::Remove(folder.clone())).unwrap();
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
        let other = Other::new();
        Life::of(other.0.id()).unwrap()
    };
    let nowhere = PathBuf::from("/nowhere/at/all");
    for undo in [
        Undo::Continue(gone),
        Undo::Thread { thread: gone, attributes: Some(Attributes::Idle), cpus: Some(vec![0]) },
        Undo::Members { list: nowhere.clone(), cpus: None },
        Undo::Move { from: nowhere.clone(), to: nowhere.clone() },
        Undo::Remove(nowhere.clone()),
        write(&nowhere),
    ] {
        guardian.keep(&undo).unwrap().undo().unwrap();
    }
}
