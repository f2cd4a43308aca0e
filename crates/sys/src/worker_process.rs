//! A process that runs a function of this program, over and over, until it is ended.
//!
//! Owns: making it, ending it, that it ends with its maker. Must not: know what it does, or stop it
//! meanwhile.

use std::io::{self, Write};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::{ClockId, now_ns};
use crate::memfd::SharedWords;
use crate::sched::{self, Attributes};
use crate::{checked, thread};

/// States of the child in its first steps.
const STARTING: u64 = 0;
const READY: u64 = 1;
const REFUSED: u64 = 2;

/// Between two looks at that, ns.
const PAUSE_NS: libc::c_long = 100_000;

/// A child of this process. It ends when this is dropped, with the thread that made it, and by itself
/// when its time is over.
#[derive(Debug)]
pub struct Worker {
    pid: libc::pid_t,
}

/// How a worker is to live.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSettings {
    /// The CPU on which it stays; `None`: those of its maker.
    pub cpu: Option<u32>,
    /// Its nice value, from -20 to 19; 0 where the one that is wanted is refused. Any but 0 also counts against
    /// other sessions, where the kernel groups processes by session.
    pub nice: i8,
    /// When it ends by itself at the latest, ns from now.
    pub max_lifetime_ns: u64,
}

impl Worker {
    /// Starts one, which calls `work` until it returns `false`. `work` gets what it needs before: in the
    /// child of a process with several threads only the caller's goes on, so that it MUST NOT allocate,
    /// free, lock or print, nor panic. Returns when the child is about to work.
    ///
    /// # Errors
    /// No processes, descriptors or memory left; `InvalidInput` if the child cannot have its CPU.
    pub fn start(life: WorkerSettings, work: impl FnMut() -> bool) -> io::Result<Worker> {
        Worker::start_with(life, &[], work)
    }

    /// The same; the child has the descriptors of these numbers, which MUST be in ascending order, besides the standard
    /// ones.
    ///
    /// # Errors
    /// As [`Worker::start`].
    pub fn start_with(
        life: WorkerSettings,
        kept: &[u32],
        mut work: impl FnMut() -> bool,
    ) -> io::Result<Worker> {
        let parent = std::process::id();
        let shared = SharedWords::create(c"hourglass-worker", 1)?;
        let [said] = shared.words() else { return Err(io::ErrorKind::OutOfMemory.into()) };
        // SAFETY: the child makes nothing but system calls, and what the caller promises of its work, so
        // that locks which other threads hold do not matter; it never returns.
        let pid = checked(unsafe { libc::fork() })?;
        if pid == 0 {
            // Locks and pipes of the maker are not the child's to hold.
            close_all_but(kept);
            let ready = prepared(life, parent);
            said.store(if ready { READY } else { REFUSED }, Ordering::Release);
            if ready {
                let end = now_ns(ClockId::Monotonic).saturating_add(life.max_lifetime_ns);
                while work() && now_ns(ClockId::Monotonic) < end {}
            }
            // SAFETY: ends this process at once, without the parent's exit handlers.
            unsafe { libc::_exit(0) };
        }
        let worker = Worker { pid };
        // The thread must not end before its child has asked to end with it.
        worker.begins(said)?;
        Ok(worker)
    }

    /// Waits for the child's first word.
    fn begins(&self, said: &AtomicU64) -> io::Result<()> {
        loop {
            match said.load(Ordering::Acquire) {
                READY => return Ok(()),
                STARTING if !self.has_ended() => {}
                _ if said.load(Ordering::Acquire) == READY => return Ok(()),
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            }
            let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE_NS };
            // SAFETY: reads a live local; asks for no remainder.
            unsafe { libc::nanosleep(&raw const pause, ptr::null_mut()) };
        }
    }

    /// Whether it has ended; it is not waited for.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        // SAFETY: an all-zero structure is a valid one to fill.
        let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: the child is ours and was not waited for; the kernel fills a live local.
        let code = unsafe { libc::waitid(libc::P_PID, self.pid(), &raw mut found, flags) };
        // SAFETY: after `waitid` the structure holds a number there, 0 while the child lives.
        code == -1 || unsafe { found.si_pid() } != 0
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid as u32
    }
}

/// Closes all descriptors but the standard ones and `kept`.
fn close_all_but(kept: &[u32]) {
    let mut from = 3u32;
    for (from_next, to) in kept.iter().map(|number| (number.saturating_add(1), *number)) {
        if to > from {
            // SAFETY: takes its arguments by value; the work has none of these descriptors.
            unsafe { libc::syscall(libc::SYS_close_range, from, to - 1, 0u32) };
        }
        from = from.max(from_next);
    }
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_close_range, from, u32::MAX, 0u32) };
}

/// The first steps of the child; whether it may go on.
fn prepared(life: WorkerSettings, parent: u32) -> bool {
    // First of all: it must not go on with a real-time policy that its maker has.
    if sched::set(Attributes::Other(0)).is_err() {
        return false;
    }
    // SAFETY: takes its arguments by value.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // The parent may have ended before it was asked for.
    // SAFETY: takes no memory.
    if unsafe { libc::getppid() } as u32 != parent {
        return false;
    }
    // Another nice value is a wish.
    let _ = sched::set(Attributes::Other(life.nice));
    // In a session or a group of its own: keys of the terminal are for its maker, which ends it.
    if life.nice == 0 {
        // SAFETY: takes its arguments by value.
        unsafe { libc::setpgid(0, 0) };
    } else {
        new_session(life.nice);
    }
    life.cpu.is_none_or(|cpu| thread::set_affinity([cpu]).is_ok())
}

/// Where the kernel groups processes by session (autogroup, `sched(7)`), a nice value counts only within the session: a
/// session of its own, with the same value. A wish, too.
fn new_session(nice: i8) {
    let mut text = [0u8; 8];
    let mut rest = &mut text[..];
    if write!(rest, "{nice}").is_err() {
        return;
    }
    let unused = rest.len();
    let written = text.len() - unused;
    // SAFETY: takes no memory; reads a live text and gives a descriptor that is closed below.
    let file = unsafe {
        libc::setsid();
        libc::open(c"/proc/self/autogroup".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC)
    };
    if file >= 0 {
        // SAFETY: reads as many bytes of a live local as it has; the descriptor is ours.
        unsafe {
            libc::write(file, text.as_ptr().cast(), written);
            libc::close(file);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let mut status = 0;
        // SAFETY: the child is ours and was not waited for, so that its number is still its own; the
        // status is a live local.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            while libc::waitpid(self.pid, &raw mut status, 0) == -1
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::memfd::SharedWords;
    use hourglass_skip::{Requirement, skip};

    fn until(what: &str, mut done: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !done() {
            assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// It works until it is dropped, on its CPU, and then is gone.
    #[test]
    fn it_works_until_it_is_dropped() {
        let cpu = thread::affinity().unwrap()[0];
        let shared = SharedWords::create(c"hourglass-test", 2).unwrap();
        let words = shared.words();
        let life = WorkerSettings { cpu: Some(cpu), nice: 0, max_lifetime_ns: 60_000_000_000 };
        let worker = Worker::start(life, || {
            words[1].store(u64::from(crate::clock::current_cpu()), Ordering::Release);
            words[0].fetch_add(1, Ordering::AcqRel) < u64::MAX
        });
        let worker = worker.unwrap();
        until("it does not work", || words[0].load(Ordering::Acquire) > 100);
        assert_eq!(words[1].load(Ordering::Acquire), u64::from(cpu));
        let pid = worker.pid();
        assert!(!worker.has_ended());
        drop(worker);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        let last = words[0].load(Ordering::Acquire);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(words[0].load(Ordering::Acquire), last);
    }

    /// A descriptor that it is to have is open there, and no other one.
    #[test]
    fn it_has_the_descriptors_that_it_is_given() {
        use std::io::{Read, Write};
        use std::os::fd::AsRawFd;
        use std::os::unix::net::UnixStream;
        let (mut heard, mut said) = UnixStream::pair().unwrap();
        let other = std::fs::File::open("/dev/null").unwrap();
        let mut closed = other.try_clone().unwrap();
        let life = WorkerSettings { cpu: None, nice: 0, max_lifetime_ns: 60_000_000_000 };
        let kept = [said.as_raw_fd().unsigned_abs()];
        let worker = Worker::start_with(life, &kept, move || {
            let is_closed = closed.read(&mut [0u8]).is_err();
            let _ = said.write(&[u8::from(is_closed)]);
            false
        });
        let mut found = [7u8];
        heard.read_exact(&mut found).unwrap();
        assert_eq!(found, [1]);
        drop(worker.unwrap());
    }

    /// It ends when its work is done, when its time is over, and with the thread that made it.
    #[test]
    fn it_ends_by_itself() {
        let cpu = thread::affinity().unwrap()[0];
        let life =
            move |most_ns| WorkerSettings { cpu: Some(cpu), nice: 0, max_lifetime_ns: most_ns };
        let done = Worker::start(life(60_000_000_000), || false).unwrap();
        until("its work is done", || done.has_ended());
        let over = Worker::start(life(20_000_000), || true).unwrap();
        until("its time is over", || over.has_ended());
        let orphan = std::thread::spawn(move || Worker::start(life(60_000_000_000), || true));
        let orphan = orphan.join().unwrap().unwrap();
        until("its maker has ended", || orphan.has_ended());
    }

    /// `sched(7)`: with autogroups a nice value counts within a session only, and the session has one of its own.
    #[test]
    fn its_nice_value_counts_against_other_sessions() {
        let cpu = thread::affinity().unwrap()[0];
        let life = WorkerSettings { cpu: Some(cpu), nice: 7, max_lifetime_ns: 60_000_000_000 };
        let worker = Worker::start(life, || true).unwrap();
        let Ok(text) = std::fs::read_to_string(format!("/proc/{}/autogroup", worker.pid())) else {
            return skip(
                Requirement::file("/proc/self/autogroup"),
                "this kernel has no autogroups",
            );
        };
        if !text.trim().is_empty() {
            assert!(text.trim().ends_with("nice 7"), "{text}");
        }
        let own = std::fs::read_to_string("/proc/self/autogroup").unwrap_or_default();
        assert!(!own.trim().ends_with("nice 7"), "the maker's own session has it: {own}");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let life = WorkerSettings { cpu: Some(1_023), nice: 0, max_lifetime_ns: 60_000_000_000 };
        let refused = Worker::start(life, || true).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}
