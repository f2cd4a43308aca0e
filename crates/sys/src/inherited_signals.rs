//! The signal state at the start of this process: ignored signals, and the signal mask.
//!
//! Owns: a note of both, made before the language's own start-up changes them (Rust ignores SIGPIPE), and
//! handing both on to programs that this process starts.
//! Must not: install handlers.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// The signals with which something may be done here before another program is started: what is
/// ignored of any other is inherited without help.
const CHANGED: [libc::c_int; 9] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGPIPE,
    libc::SIGTERM,
    libc::SIGCHLD,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGXCPU,
    libc::SIGXFSZ,
];

/// Signals that were ignored at the start, a bit each; signal 1 is the lowest.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// Signals that were blocked at the start, in the same way.
static BLOCKED: AtomicU64 = AtomicU64::new(0);

/// Signals have numbers up to this.
const LAST: libc::c_int = 64;

fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// Called by the loader: in a program before `main`, in a shared library when it is loaded.
extern "C" fn note() {
    let ignored = CHANGED.into_iter().filter(|signal| is_ignored(*signal));
    IGNORED.store(ignored.map(bit).sum(), Ordering::Relaxed);
    let mut mask = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: all zero is a valid set, which the call fills; the mask is only read.
    let mask = unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), mask.as_mut_ptr());
        mask.assume_init()
    };
    // SAFETY: reads a live set; the numbers are those of signals.
    let blocked = (1..=LAST).filter(|signal| unsafe { libc::sigismember(&mask, *signal) } == 1);
    BLOCKED.store(blocked.map(bit).sum(), Ordering::Relaxed);
}

// SAFETY: the loader calls every function of this section once, with arguments that this one leaves alone;
// it uses atomics and system calls, and nothing that the language's start-up would have to make first.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

/// Whether the process was started with `signal` ignored; `false` for signals that nothing here changes.
#[must_use]
pub fn was_ignored(signal: i32) -> bool {
    CHANGED.contains(&signal) && IGNORED.load(Ordering::Relaxed) & bit(signal) != 0
}

/// Whether this process ignores `signal` now.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero sigaction is a valid one to fill.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: fills a live local; nothing is installed.
    let asked = unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Puts ignored signals and the mask back as they were at the start. For a child on its way to another
/// program: system calls only, no memory of the allocator's. Handlers end with the old program by themselves.
pub(crate) fn put_back() {
    for signal in CHANGED {
        if was_ignored(signal) {
            // SAFETY: takes no memory; sets this process's own action.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
    if !was_ignored(libc::SIGPIPE) {
        // The language's start-up ignores it.
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
    let mut mask = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: fills and reads a live local; the numbers are those of signals; the mask is the calling thread's.
    unsafe {
        libc::sigemptyset(mask.as_mut_ptr());
        for signal in 1..=LAST {
            if BLOCKED.load(Ordering::Relaxed) & bit(signal) != 0 {
                libc::sigaddset(mask.as_mut_ptr(), signal);
            }
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, mask.as_ptr(), ptr::null_mut());
    }
}

/// Has the program that `command` starts ignore and block the signals that this process was started with
/// ignored and blocked, as if there were no process between its starter and it.
pub fn hand_on(command: &mut Command) -> &mut Command {
    let put_back = || -> io::Result<()> {
        put_back();
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls only.
    unsafe { command.pre_exec(put_back) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rust ignores SIGPIPE before `main`, and gives each program that it starts the default action and
    /// an empty mask; the note is from before that, and a mask of today is not handed on.
    #[test]
    fn the_note_is_older_than_the_languages_start_up() {
        assert!(is_ignored(libc::SIGPIPE));
        let said = crate::fork::child_says(10_000, || {
            // SAFETY: sets this child's own action and mask.
            unsafe {
                let mut mask: libc::sigset_t = std::mem::zeroed();
                libc::sigaddset(&raw mut mask, libc::SIGUSR1);
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const mask, ptr::null_mut());
            }
            put_back();
            let mut mask = MaybeUninit::<libc::sigset_t>::zeroed();
            // SAFETY: fills and reads a live local.
            let blocked = unsafe {
                libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), mask.as_mut_ptr());
                libc::sigismember(mask.as_ptr(), libc::SIGUSR1) == 1
            };
            let was_blocked = BLOCKED.load(Ordering::Relaxed) & bit(libc::SIGUSR1) != 0;
            is_ignored(libc::SIGPIPE) == was_ignored(libc::SIGPIPE) && blocked == was_blocked
        });
        assert!(said.unwrap());
    }
}
