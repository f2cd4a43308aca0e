//! Signals: being asked to stop, and getting a thread out of its wait.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::inherited_signals::is_ignored;
use crate::{checked, checked_long, futex};

static STOP_ASKED: AtomicBool = AtomicBool::new(false);
static STOP_SIGNAL: AtomicI32 = AtomicI32::new(0);

/// A signal that the system leaves to programs.
pub const SIGUSR1: i32 = libc::SIGUSR1;

/// The signal that gets a thread out of a wait.
const KICK: libc::c_int = libc::SIGUSR2;

/// The word that [`notify_on_stop`] rings.
static STOP_WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// The amount that a stop adds to its word; the lowest bit is a latch's.
const CALL: u32 = 2;

extern "C" fn on_stop(signal: libc::c_int) {
    STOP_SIGNAL.store(signal, Ordering::Relaxed);
    STOP_ASKED.store(true, Ordering::Release);
    // SAFETY: a pointer that is not null came from a `&'static AtomicU32`.
    if let Some(word) = unsafe { STOP_WORD.load(Ordering::Acquire).as_ref() } {
        word.fetch_add(CALL, Ordering::AcqRel);
        futex::wake(word, u32::MAX);
    }
}

extern "C" fn on_kick(_signal: libc::c_int) {}

extern "C" fn on_nothing(_signal: libc::c_int) {}

/// From here on SIGINT, SIGTERM, SIGHUP and SIGXCPU (a limit on time is reached) only set a flag, and [`kick`] interrupts
/// waits. Those of the four that the process ignores it goes on to ignore: its starter wants that (`nohup`, a shell's `&`).
///
/// # Errors
/// What the kernel answers; does not happen for these signals.
pub fn catch_stop() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, SIGXCPU] {
        if !is_ignored(signal) {
            install(signal, on_stop)?;
        }
    }
    install(KICK, on_kick)
}

/// Does `work` while the calling thread takes no signals: threads that it makes take none either, for good.
pub fn with_all_blocked<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: an all-zero set is a valid one to fill.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: fills live locals; the mask is the calling thread's own.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    let done = work();
    // SAFETY: reads a live local.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    done
}

/// Sets signal actions for a command that runs for long, writes files and starts others; for a program of its own, at
/// the beginning of `main`. From here on SIGUSR1, by which others are asked how they are doing, does nothing, where it
/// would end the process; a file that grows beyond the limit (`RLIMIT_FSIZE`) is an error of the write (EFBIG), where
/// SIGXFSZ would end the process; and the ends of children can be waited for (SIGCHLD) also if the starter ignored
/// them. Programs that are started find the default actions, or by [`crate::inherited_signals::hand_on`] what was
/// ignored.
///
/// # Errors
/// What the kernel answers; does not happen for these signals.
pub fn set_signal_dispositions() -> io::Result<()> {
    for signal in [SIGUSR1, libc::SIGXFSZ] {
        if !is_ignored(signal) {
            install_with(signal, on_nothing, libc::SA_RESTART)?;
        }
    }
    if is_ignored(libc::SIGCHLD) {
        // SAFETY: takes no memory; the default for this signal is that nothing happens.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
    Ok(())
}

/// Whether one of the signals came since [`catch_stop`], and which.
#[must_use]
pub fn stop_asked() -> Option<i32> {
    STOP_ASKED.load(Ordering::Acquire).then(|| STOP_SIGNAL.load(Ordering::Relaxed))
}

/// From here on a signal of [`catch_stop`] also adds 2 to `word` and wakes threads that wait on it: the signal may be
/// given to a thread that waits for something else. A later call replaces this one.
pub fn notify_on_stop(word: &'static AtomicU32) {
    STOP_WORD.store(ptr::from_ref(word).cast_mut(), Ordering::Release);
}

/// The signals that [`catch_stop`] takes.
const CAUGHT: [libc::c_int; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, SIGXCPU, KICK];

/// Whose the signals of [`catch_stop`] are outside of [`catch_stop_during`].
struct Owners {
    calls: usize,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

static OWNERS: Mutex<Owners> = Mutex::new(Owners { calls: 0, before: Vec::new() });

fn owners() -> MutexGuard<'static, Owners> {
    OWNERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `work`, which may use [`catch_stop`], for a program that has handlers of its own, such as an interpreter.
/// Afterwards these are in force again, no stop is pending any more, and the signal that came meanwhile is sent to the
/// process once more, so that it does what it does there: by default it ends the process, but SIGXCPU is not sent where it
/// would. Calls in several threads are
/// one, from the first beginning to the last end.
///
/// # Errors
/// What the kernel answers; does not happen for these signals. Then nothing was called.
pub fn catch_stop_during<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    struct SignalGuard;
    impl Drop for SignalGuard {
        fn drop(&mut self) {
            restore_handlers();
        }
    }
    {
        let mut owners = owners();
        if owners.calls == 0 {
            owners.before =
                CAUGHT.iter().map(|s| Ok((*s, action_of(*s)?))).collect::<io::Result<_>>()?;
            STOP_ASKED.store(false, Ordering::Release);
            catch_stop()?;
        }
        owners.calls += 1;
    }
    let lent = SignalGuard;
    let done = work();
    drop(lent);
    Ok(done)
}

/// The last call ends: the handlers are as they were before the first.
fn restore_handlers() {
    let mut owners = owners();
    owners.calls -= 1;
    if owners.calls > 0 {
        return;
    }
    let mut ends_it_at_a_limit = false;
    for (signal, action) in owners.before.drain(..) {
        ends_it_at_a_limit |= signal == SIGXCPU && action.sa_sigaction == libc::SIG_DFL;
        // SAFETY: the action came from the kernel, for this signal.
        unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    }
    let asked = STOP_ASKED.swap(false, Ordering::AcqRel);
    let stop = asked.then(|| STOP_SIGNAL.load(Ordering::Relaxed));
    // What was measured until the limit is still to be used; the kernel sends the signal again.
    if let Some(stop) = stop.filter(|stop| *stop != SIGXCPU || !ends_it_at_a_limit) {
        // SAFETY: takes no memory. Sent to the process, which an interpreter wakes its first thread by.
        unsafe { libc::kill(libc::getpid(), stop) };
    }
}

fn action_of(signal: libc::c_int) -> io::Result<libc::sigaction> {
    // SAFETY: an all-zero sigaction is a valid one to fill.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: fills a live local.
    checked(unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) })?;
    Ok(action)
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

/// Sends a signal to a process, or to a process group by its number below zero; kill(2).
///
/// # Errors
/// ESRCH if it does not exist; EPERM if this user may not.
pub fn send_to(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: takes no memory.
    checked(unsafe { libc::kill(pid, signal) }).map(|_| ())
}

/// Signals have numbers below this.
const SIGNALS: usize = 65;

/// The word that [`latch`] sets, for each signal.
static LATCHES: [AtomicPtr<AtomicU32>; SIGNALS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; SIGNALS];

/// The bit of a latch.
const LATCHED: u32 = 1;

extern "C" fn on_latch(signal: libc::c_int) {
    let index = signal as usize % SIGNALS;
    let word = LATCHES[index].load(Ordering::Acquire);
    // SAFETY: a pointer that is not null came from a `&'static AtomicU32`.
    if let Some(word) = unsafe { word.as_ref() } {
        word.fetch_or(LATCHED, Ordering::AcqRel);
        futex::wake(word, u32::MAX);
    }
}

/// From here on `signal` sets the lowest bit of `word` and wakes threads that wait on it; nothing else, so that it may
/// come at any time. System calls that it interrupts go on (`SA_RESTART`) where the kernel can do that. A later call
/// for the same signal replaces this one.
///
/// # Errors
/// EINVAL for signals that cannot be caught, and for those that the processor raises at an
/// instruction, which would be raised again at once.
pub fn latch(signal: i32, word: &'static AtomicU32) -> io::Result<()> {
    const RAISED: [i32; 5] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];
    let index = usize::try_from(signal).ok().filter(|index| (1..SIGNALS).contains(index));
    let Some(index) = index.filter(|_| !RAISED.contains(&signal)) else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    LATCHES[index].store(ptr::from_ref(word).cast_mut(), Ordering::Release);
    install_with(signal, on_latch, libc::SA_RESTART)
}

/// Sent to a process that reached a limit on time ([`crate::time_limit`]), and to a thread of `SCHED_DEADLINE` whose budget
/// was overrun, if it asked for that (`SCHED_FLAG_DL_OVERRUN`). Ends a program that does not catch it.
pub const SIGXCPU: i32 = libc::SIGXCPU;

/// How often SIGXCPU came since [`count_overruns`].
static OVERRUNS: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_overrun(_signal: libc::c_int) {
    OVERRUNS.fetch_add(1, Ordering::Relaxed);
}

/// From here on SIGXCPU is only counted, for all threads of the process together. System calls that it
/// interrupts go on (`SA_RESTART`) where the kernel can do that.
///
/// # Errors
/// What the kernel answers; does not happen for this signal.
pub fn count_overruns() -> io::Result<()> {
    install_with(SIGXCPU, on_overrun, libc::SA_RESTART)
}

/// How often SIGXCPU came since [`count_overruns`]. The kernel looks at ticks and tells only a thread that
/// runs then, so that there may have been more overruns.
#[must_use]
pub fn overruns() -> u64 {
    OVERRUNS.load(Ordering::Relaxed)
}

fn install(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // No flags, so that waits return EINTR.
    install_with(signal, handler, 0)
}

fn install_with(
    signal: libc::c_int,
    handler: extern "C" fn(libc::c_int),
    flags: libc::c_int,
) -> io::Result<()> {
    // SAFETY: an all-zero sigaction is a valid one with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_flags = flags;
    action.sa_sigaction = handler as *const () as usize;
    // SAFETY: the handlers touch only atomics and may run at any time; the action is a live local.
    checked(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) }).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_sets_its_latch() {
        static FIRST: AtomicU32 = AtomicU32::new(8);
        static SECOND: AtomicU32 = AtomicU32::new(8);
        let both = || (FIRST.load(Ordering::Acquire), SECOND.load(Ordering::Acquire));
        for (word, expected) in [(&FIRST, (9, 8)), (&SECOND, (9, 9))] {
            latch(libc::SIGWINCH, word).unwrap();
            // SAFETY: takes no memory; the signal has a handler.
            unsafe { libc::raise(libc::SIGWINCH) };
            assert_eq!(both(), expected);
        }
    }

    /// As an interpreter wants it: its own handler hears of the signal, but only afterwards.
    #[test]
    fn a_stop_is_handed_on_afterwards() {
        static OWN: AtomicU32 = AtomicU32::new(0);
        static BELL: AtomicU32 = AtomicU32::new(0);
        latch(libc::SIGHUP, &OWN).unwrap();
        notify_on_stop(&BELL);
        for (stopped, own) in [(true, 1), (false, 0)] {
            OWN.store(0, Ordering::Release);
            BELL.store(0, Ordering::Release);
            let asked = catch_stop_during(|| {
                if stopped {
                    // SAFETY: takes no memory; the signal has a handler.
                    unsafe { libc::raise(libc::SIGHUP) };
                }
                (stop_asked(), OWN.load(Ordering::Acquire))
            });
            assert_eq!(asked.unwrap(), (stopped.then_some(libc::SIGHUP), 0));
            assert_eq!(BELL.load(Ordering::Acquire), if stopped { CALL } else { 0 });
            assert_eq!(stop_asked(), None);
            // Sent to the process, it may be another thread's.
            for _ in 0..1_000 {
                if OWN.load(Ordering::Acquire) == own {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            assert_eq!(OWN.load(Ordering::Acquire), own);
        }
    }

    #[test]
    fn a_limit_on_time_does_not_end_the_process_afterwards() {
        let said = crate::fork::child_says(10_000, || {
            // SAFETY: takes no memory; the signal has a handler.
            let raise = || unsafe { libc::raise(SIGXCPU) };
            let asked = catch_stop_during(|| (raise(), stop_asked())).unwrap();
            asked == (0, Some(SIGXCPU)) && stop_asked().is_none()
        });
        assert!(said.unwrap());
    }

    /// `nohup hourglass` died of SIGHUP, and an ignored SIGINT was taken back.
    #[test]
    fn what_is_ignored_stays_ignored() {
        let said = crate::fork::child_says(10_000, || {
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGUSR1, libc::SIGXFSZ] {
                // SAFETY: sets this child's own action.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            }
            set_signal_dispositions().unwrap();
            catch_stop_during(|| ()).unwrap();
            catch_stop().unwrap();
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGUSR1, libc::SIGXFSZ] {
                // SAFETY: takes no memory; the signal is ignored.
                unsafe { libc::raise(signal) };
            }
            let ignored = [libc::SIGHUP, libc::SIGINT].into_iter().all(is_ignored);
            let unasked = stop_asked().is_none();
            // SAFETY: takes no memory; the signal has a handler.
            unsafe { libc::raise(libc::SIGTERM) };
            ignored && unasked && stop_asked() == Some(libc::SIGTERM)
        });
        assert!(said.unwrap());
    }

    /// Both ended a run; and where SIGCHLD is ignored, no child can be waited for.
    #[test]
    fn neither_a_question_nor_a_full_disk_ends_the_process() {
        let said = crate::fork::child_says(10_000, || {
            // SAFETY: sets this child's own actions.
            unsafe {
                libc::signal(libc::SIGUSR1, libc::SIG_DFL);
                libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            }
            set_signal_dispositions().unwrap();
            // SAFETY: takes no memory; the signals have handlers.
            unsafe {
                libc::raise(libc::SIGUSR1);
                libc::raise(libc::SIGXFSZ);
            }
            std::process::Command::new("true").status().is_ok_and(|ended| ended.success())
        });
        assert!(said.unwrap());
    }

    #[test]
    fn signals_that_cannot_be_latched_are_refused() {
        static WORD: AtomicU32 = AtomicU32::new(0);
        let refused = [0, -1, 65, i32::MAX, libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV];
        for signal in refused {
            let error = latch(signal, &WORD).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{signal}");
        }
    }
}
