//! Whether a critical section tells on this machine what it should, and of which switches.
//!
//! By trial, since what a kernel does follows neither from its version nor from the length of the area.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::{ClearRule, RseqUnusable, Section, SectionState};
use crate::clock::current_cpu;
use crate::thread::{counters, set_affinity};

/// Interruptions may spoil a round, not all of them.
const ROUNDS: u32 = 10;

/// Tests whether a critical section is kept at a plain system call and cleared when the thread sleeps or, where
/// it is not, when it is preempted. Takes less than a millisecond in the first case; in the second a thread
/// that preempts this one, and some milliseconds.
///
/// # Errors
/// See [`RseqUnusable`].
pub fn self_test() -> Result<ClearRule, RseqUnusable> {
    of(&Section::open()?)
}

pub(super) fn of(section: &Section) -> Result<ClearRule, RseqUnusable> {
    if is_cleared_by_waits(section)? {
        Ok(ClearRule::EverySwitch)
    } else if preemptions(section).contains(&SectionState::Cleared) {
        Ok(ClearRule::WhereInterrupted)
    } else {
        Err(RseqUnusable::NeverCleared)
    }
}

/// [`self_test`] for threads that may be switched inside system calls that are not announced.
///
/// # Errors
/// See [`RseqUnusable`]; [`RseqUnusable::KeptInSystemCalls`] where the section would overlook those switches.
pub fn self_test_of_every_switch() -> Result<ClearRule, RseqUnusable> {
    match is_cleared_by_waits(&Section::open()?) {
        Ok(true) => Ok(ClearRule::EverySwitch),
        Ok(false) => Err(RseqUnusable::KeptInSystemCalls),
        Err(reason) => Err(reason),
    }
}

/// Whether every wait clears it; an error if a system call does that even without one.
fn is_cleared_by_waits(section: &Section) -> Result<bool, RseqUnusable> {
    let is_kept = |_| {
        section.arm();
        system_call();
        section.state() == SectionState::Kept
    };
    if !(0..ROUNDS).any(is_kept) {
        return Err(RseqUnusable::AlwaysCleared);
    }
    let mut slept = 0;
    // A sleep may be over before it has begun, where a system call takes that long; then the thread kept its CPU.
    let mut sleep_ns = 50_000;
    for _ in 0..ROUNDS {
        let before = counters().voluntary;
        section.arm();
        sleep(sleep_ns);
        if counters().voluntary == before {
            sleep_ns *= 2;
            continue;
        }
        if section.state() == SectionState::Kept {
            return Ok(false);
        }
        slept += 1;
    }
    if slept > 0 { Ok(true) } else { Err(RseqUnusable::NeverCleared) }
}

/// State of the section each time that another thread had the CPU while this one made no system call, until that was
/// seen a few times.
pub(super) fn preemptions(section: &Section) -> Vec<SectionState> {
    const ENOUGH: usize = 2;
    let mut states = Vec::new();
    for _ in 0..ROUNDS {
        let over = Arc::new(AtomicBool::new(false));
        let Some(other) = preempt_from(current_cpu(), Arc::clone(&over)) else { break };
        let before = counters().involuntary;
        section.arm();
        spin_until(&over);
        let state = section.state();
        let after = counters().involuntary;
        let _ = other.join(); // does not panic
        if after != before {
            states.push(state);
        }
        if states.len() >= ENOUGH {
            break;
        }
    }
    states
}

/// A thread that takes the CPU a few times, and says when it has done so.
fn preempt_from(cpu: u32, over: Arc<AtomicBool>) -> Option<JoinHandle<()>> {
    const STACK: usize = 64 << 10;
    let turns = move || {
        // Refused only if the CPU has gone; then the round is spoilt.
        let _ = set_affinity([cpu]);
        // The longer ones for machines on which a system call takes as long as the shorter ones.
        for sleep_ns in [100_000, 200_000, 400_000, 800_000, 1_600_000] {
            sleep(sleep_ns);
        }
        over.store(true, Ordering::Relaxed);
    };
    Builder::new().name("hg-rseq".to_owned()).stack_size(STACK).spawn(turns).ok()
}

/// Spins in user mode, but for a look at the time once in a while, for some milliseconds at most: a real-time
/// thread may keep the other from running.
fn spin_until(over: &AtomicBool) {
    const LIMIT: Duration = Duration::from_millis(30);
    const TURNS: u32 = 20_000;
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        for _ in 0..TURNS {
            if over.load(Ordering::Relaxed) {
                return;
            }
            std::hint::spin_loop();
        }
    }
}

/// A system call that does nothing.
pub(super) fn system_call() {
    // SAFETY: no arguments, no memory.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

pub(super) fn sleep(ns: i64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: ns as libc::c_long };
    // SAFETY: reads a live local; asks for no remainder.
    unsafe { libc::nanosleep(&raw const time, ptr::null_mut()) };
}
