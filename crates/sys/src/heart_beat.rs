//! A process that does nothing but run, and says when it last did.
//!
//! Owns: making it, its last sign of life, ending it. Must not: stop it (that is what others measure).

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::checked;
use crate::clock::{ClockId, now_ns};
use crate::memfd::SharedWords;
use crate::sched::{self, Attributes};

/// Beats between two looks at whether it has lived long enough.
const BEATS: u32 = 4096;

/// How often a child at its gate looks whether that is open.
const GATE_NS: libc::c_long = 100_000;

/// A child that spins on one CPU and writes the time, over and over. It ends when this is dropped, and
/// with the thread that made it, and by itself when its time is over.
#[derive(Debug)]
pub struct HeartBeat {
    pid: libc::pid_t,
    words: SharedWords,
}

/// Words that the child writes: the last beat, and the errno of what it was refused.
const BEAT: usize = 0;
const REFUSED: usize = 1;
/// Opened by its maker: not 0.
const GATE: usize = 2;
/// The first beat after the last stretch without one.
const BACK: usize = 3;

/// A stretch without a beat that is longer than this counts as one in which it did not run, ns. Ticks
/// of the kernel are shorter.
const AWAY_NS: u64 = 100_000;

impl HeartBeat {
    /// Starts one on `cpu` with `attributes`, for at most `life_ns`. It begins stopped at a gate, so that
    /// it can be put where it is wanted; [`PausedHeartBeat::begin`] lets it run.
    ///
    /// # Errors
    /// No processes or descriptors left.
    pub fn start(cpu: u32, attributes: Attributes, life_ns: u64) -> io::Result<PausedHeartBeat> {
        let words = SharedWords::create(c"hourglass-heart-beat", 4)?;
        let parent = std::process::id();
        // SAFETY: the child makes nothing but system calls and stores to memory made before, so that
        // locks which other threads hold do not matter; it never returns.
        let pid = checked(unsafe { libc::fork() })?;
        if pid == 0 {
            live(words.words(), &ChildSettings { cpu, attributes, life_ns, parent });
        }
        Ok(PausedHeartBeat(HeartBeat { pid, words }))
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid as u32
    }

    /// When it last ran, `CLOCK_MONOTONIC`, ns; 0 if it has not yet. One load.
    #[must_use]
    #[inline]
    pub fn last_ns(&self) -> u64 {
        self.words.words()[BEAT].load(Ordering::Acquire)
    }

    /// The first beat after the last 100 us or more in which it did not run, ns; 0 if there were none.
    #[must_use]
    pub fn back_ns(&self) -> u64 {
        self.words.words()[BACK].load(Ordering::Acquire)
    }

    /// The error of its CPU or its policy when it began; it runs without the policy, but not without the CPU.
    #[must_use]
    pub fn refused(&self) -> Option<io::Error> {
        let errno = self.words.words()[REFUSED].load(Ordering::Acquire);
        (errno != 0).then(|| io::Error::from_raw_os_error(errno as i32))
    }
}

impl Drop for HeartBeat {
    fn drop(&mut self) {
        // SAFETY: the child is ours and was not waited for, so that its number is still its own; the
        // status is a live local.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            let mut status = 0;
            while libc::waitpid(self.pid, &raw mut status, 0) == -1
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

/// One that stands at its gate.
#[derive(Debug)]
pub struct PausedHeartBeat(HeartBeat);

impl PausedHeartBeat {
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Lets it run.
    #[must_use]
    pub fn begin(self) -> HeartBeat {
        self.0.words.words()[GATE].store(1, Ordering::Release);
        self.0
    }
}

/// How the child is to live.
struct ChildSettings {
    cpu: u32,
    attributes: Attributes,
    life_ns: u64,
    parent: u32,
}

fn live(words: &[AtomicU64], life: &ChildSettings) -> ! {
    // A frozen child cannot die: it must not keep open what tells others that its maker has died.
    // SAFETY: takes its arguments by value; nothing of this process reads a descriptor from here on.
    unsafe { libc::syscall(libc::SYS_close_range, 0u32, u32::MAX, 0u32) };
    // First of all: a spinner must not inherit a real-time policy that it was not to have.
    if sched::set(Attributes::Other(0)).is_err() {
        leave();
    }
    // SAFETY: takes its arguments by value.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // The parent may have ended before it was asked for.
    // SAFETY: takes no memory.
    if unsafe { libc::getppid() } as u32 != life.parent {
        leave();
    }
    let end = now_ns(ClockId::Monotonic).saturating_add(life.life_ns);
    let over = || now_ns(ClockId::Monotonic) > end;
    while words[GATE].load(Ordering::Acquire) == 0 && !over() {
        let pause = libc::timespec { tv_sec: 0, tv_nsec: GATE_NS };
        // SAFETY: reads a live local; asks for no remainder.
        unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
    }
    let refused = |error: &io::Error| {
        let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
        words[REFUSED].store(errno as u64, Ordering::Release);
    };
    if let Err(error) = crate::thread::set_affinity([life.cpu]) {
        refused(&error);
        leave();
    }
    if let Err(error) = sched::set(life.attributes) {
        refused(&error);
    }
    let mut last = now_ns(ClockId::Monotonic);
    while last < end {
        for _ in 0..BEATS {
            let now = now_ns(ClockId::Monotonic);
            words[BEAT].store(now, Ordering::Release);
            if now.saturating_sub(last) > AWAY_NS {
                words[BACK].store(now, Ordering::Release);
            }
            last = now;
        }
    }
    leave()
}

fn leave() -> ! {
    // SAFETY: ends this process at once, without the parent's exit handlers.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn until(what: &str, mut done: impl FnMut() -> bool) {
        for _ in 0..5_000 {
            if done() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        panic!("{what}");
    }

    #[test]
    fn it_beats_behind_its_gate_until_it_is_dropped() {
        let cpu = crate::thread::affinity().unwrap()[0];
        let waiting = HeartBeat::start(cpu, Attributes::Other(0), 20 * SECOND).unwrap();
        let pid = waiting.pid();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(waiting.0.last_ns(), 0);
        let begun = now_ns(ClockId::Monotonic);
        let beat = waiting.begin();
        until("no beat", || beat.last_ns() >= begun);
        let before = beat.last_ns();
        until("no second beat", || beat.last_ns() > before);
        let process = crate::pidfd::PidFd::open(beat.pid()).unwrap();
        process.stop().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let resumed = now_ns(ClockId::Monotonic);
        process.resume().unwrap();
        until("not back", || beat.back_ns() >= resumed);
        assert!(beat.refused().is_none());
        drop(beat);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    /// Also one whose gate never opens, so that nothing stays behind if its owner forgets it.
    #[test]
    fn it_ends_by_itself() {
        let cpu = crate::thread::affinity().unwrap()[0];
        for opened in [true, false] {
            let waiting = HeartBeat::start(cpu, Attributes::Other(0), SECOND / 50).unwrap();
            let beat = if opened { waiting.begin() } else { waiting.0 };
            let process = crate::pidfd::PidFd::open(beat.pid()).unwrap();
            until("it lives on", || process.has_ended().unwrap());
        }
    }

    /// A CPU that does not exist: the refusal is reported, and the thread ends.
    #[test]
    fn a_refusal_is_reported() {
        let beat = HeartBeat::start(1_023, Attributes::Other(0), 20 * SECOND).unwrap().begin();
        until("nothing was refused", || beat.refused().is_some());
        assert_eq!(beat.last_ns(), 0);
    }
}
