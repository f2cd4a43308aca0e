//! Signals: being asked to stop, and getting a thread out of its wait.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::{checked, checked_long};

static STOP_ASKED: AtomicBool = AtomicBool::new(false);
static STOP_SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The signal that gets a thread out of a wait.
const KICK: libc::c_int = libc::SIGUSR2;

extern "C" fn on_stop(signal: libc::c_int) {
    STOP_SIGNAL.store(signal, Ordering::Relaxed);
    STOP_ASKED.store(true, Ordering::Release);
}

extern "C" fn on_kick(_signal: libc::c_int) {}

/// From here on SIGINT, SIGTERM and SIGHUP only set a flag, and [`kick`] interrupts waits.
///
/// # Errors
/// What the kernel answers; does not happen for these signals.
pub fn catch_stop() -> io::Result<()> {
    install(libc::SIGINT, on_stop)?;
    install(libc::SIGTERM, on_stop)?;
    install(libc::SIGHUP, on_stop)?;
    install(KICK, on_kick)
}

/// Whether one of the signals came since [`catch_stop`], and which.
#[must_use]
pub fn stop_asked() -> Option<i32> {
    STOP_ASKED.load(Ordering::Acquire).then(|| STOP_SIGNAL.load(Ordering::Relaxed))
}

/// Interrupts the wait that thread `tid` of this process is in, if it is in one.
///
/// # Errors
/// ESRCH if the thread has ended.
pub fn kick(tid: u32) -> io::Result<()> {
    // SAFETY: takes no memory; the signal has a handler since `catch_stop`.
    checked_long(unsafe {
        libc::syscall(libc::SYS_tgkill, libc::getpid(), tid as libc::pid_t, KICK)
    })
    .map(|_| ())
}

fn install(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: an all-zero sigaction is a valid one: no flags (so that waits return EINTR) and an
    // empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    // SAFETY: the handlers touch only atomics and may run at any time; the action is a live local.
    checked(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) }).map(|_| ())
}
