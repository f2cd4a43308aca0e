//! POSIX timers that signal one thread, and waiting for that signal (`timer_create(2)` with
//! `SIGEV_THREAD_ID`, `rt_sigtimedwait(2)`).
//!
//! The system calls are used directly: the C library's timer handles hide the kernel's numbers.

use std::io;
use std::ptr;

use crate::clock::timespec;
use crate::{checked, checked_long, fork, thread};

/// A timer on `CLOCK_MONOTONIC` whose expiry is a signal to one thread. Deleted when dropped.
///
/// A child made by `fork` does not inherit it; there every call answers EINVAL, and dropping does
/// nothing: the number may be that of a timer of the child's own. Known by [`fork::generation`], so
/// not in a child made by a raw system call or by `vfork`, which MUST NOT use its parent's timers.
#[derive(Debug)]
pub struct PosixTimer {
    number: libc::c_int,
    /// Of the process that it is in.
    forks: u32,
}

impl PosixTimer {
    /// A disarmed timer that will send `signal` to thread `tid` of this process. The kernel sets
    /// aside what it takes to queue that signal, so an expiry is never lost for want of memory.
    ///
    /// # Errors
    /// EAGAIN if the user may have no more signals queued (`RLIMIT_SIGPENDING`); EINVAL for a
    /// thread of another process or a number that is no signal.
    pub fn new(tid: u32, signal: i32) -> io::Result<PosixTimer> {
        PosixTimer::with_value(tid, signal, 0)
    }

    /// As [`PosixTimer::new`], and the signal's information carries `value` (`si_value`).
    ///
    /// # Errors
    /// As [`PosixTimer::new`].
    pub(crate) fn with_value(tid: u32, signal: i32, value: usize) -> io::Result<PosixTimer> {
        PosixTimer::on(libc::CLOCK_MONOTONIC, tid, signal, value)
    }

    /// A timer on the CPU time of the calling thread, which gets the signal. The kernel looks at these at its ticks, so
    /// that they are late by up to one (1 to 10 ms), and never early.
    ///
    /// # Errors
    /// As [`PosixTimer::new`].
    pub(crate) fn on_own_cpu_time(signal: i32, value: usize) -> io::Result<PosixTimer> {
        PosixTimer::on(libc::CLOCK_THREAD_CPUTIME_ID, thread::id(), signal, value)
    }

    fn on(clock: i32, tid: u32, signal: i32, value: usize) -> io::Result<PosixTimer> {
        // SAFETY: an all-zero sigevent is a valid one.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_value.sival_ptr = ptr::without_provenance_mut(value);
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = tid as libc::c_int;
        let mut id: libc::c_int = -1;
        // SAFETY: the kernel reads the live event and writes its timer's number, an int, to a live
        // local.
        checked_long(unsafe {
            libc::syscall(libc::SYS_timer_create, clock, &raw mut event, &raw mut id)
        })?;
        Ok(PosixTimer { number: id, forks: fork::watch() })
    }

    /// Arms it for an absolute time, and then every `interval_ns`; 0 for once.
    ///
    /// # Errors
    /// EINVAL in a child made by `fork`.
    pub fn set_absolute(&self, first_ns: u64, interval_ns: u64) -> io::Result<()> {
        // A zero time would disarm it.
        self.set(libc::TIMER_ABSTIME, first_ns.max(1), interval_ns)
    }

    /// Arms it once, so far from now. May be called in a signal handler.
    ///
    /// # Errors
    /// EINVAL in a child made by `fork`.
    pub fn set_relative(&self, delta_ns: u64) -> io::Result<()> {
        self.set(0, delta_ns.max(1), 0)
    }

    /// Disarms it. A signal already sent stays pending on kernels before 6.13.
    ///
    /// # Errors
    /// EINVAL in a child made by `fork`.
    pub fn disarm(&self) -> io::Result<()> {
        self.set(0, 0, 0)
    }

    /// Time until the next expiry, ns, 0 if disarmed; and the interval.
    ///
    /// # Errors
    /// EINVAL in a child made by `fork`.
    pub fn remaining(&self) -> io::Result<(u64, u64)> {
        let number = self.checked_id()?;
        let zero = timespec(0);
        let mut setting = libc::itimerspec { it_interval: zero, it_value: zero };
        // SAFETY: the kernel fills the live local.
        checked_long(unsafe { libc::syscall(libc::SYS_timer_gettime, number, &raw mut setting) })?;
        Ok((nanoseconds(setting.it_value), nanoseconds(setting.it_interval)))
    }

    /// Expiries that the signal last taken stands for beside its own.
    ///
    /// # Errors
    /// EINVAL in a child made by `fork`.
    pub fn overrun(&self) -> io::Result<u64> {
        let number = self.checked_id()?;
        // SAFETY: takes no memory.
        let count = checked_long(unsafe { libc::syscall(libc::SYS_timer_getoverrun, number) })?;
        Ok(count as u64)
    }

    /// The kernel's number of it, for [`expire_soon`]. Valid while it lives.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.number
    }

    /// The number, if it is this timer's; otherwise the kernel's error for an unknown number.
    fn checked_id(&self) -> io::Result<libc::c_int> {
        match fork::generation() == self.forks {
            true => Ok(self.number),
            false => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        }
    }

    fn set(&self, flags: libc::c_int, first_ns: u64, interval_ns: u64) -> io::Result<()> {
        set(self.checked_id()?, flags, first_ns, interval_ns)
    }
}

/// Arms the timer of this process with that number to expire in a nanosecond. May be called in a
/// signal handler. In a child made by `fork` the number is not that of the parent's timer: ask
/// [`fork::generation`] before.
///
/// # Errors
/// EINVAL if that timer does not exist.
pub fn expire_soon(number: i32) -> io::Result<()> {
    set(number, 0, 1, 0)
}

fn set(number: i32, flags: i32, first_ns: u64, interval_ns: u64) -> io::Result<()> {
    let setting =
        libc::itimerspec { it_interval: timespec(interval_ns), it_value: timespec(first_ns) };
    // SAFETY: the setting is a live local; no old value is asked for. A number that is no timer's
    // is refused.
    checked_long(unsafe {
        libc::syscall(
            libc::SYS_timer_settime,
            number,
            flags,
            &raw const setting,
            ptr::null_mut::<libc::itimerspec>(),
        )
    })
    .map(|_| ())
}

impl Drop for PosixTimer {
    fn drop(&mut self) {
        let Ok(number) = self.checked_id() else { return };
        // SAFETY: takes no memory; the number is this timer's until now.
        unsafe { libc::syscall(libc::SYS_timer_delete, number) };
    }
}

/// The source of a signal that was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalOrigin {
    Timer,
    /// A sender: [`send`], `kill`, `sigqueue`. (The C library does not distinguish them.)
    Sent,
}

/// The first and the last number of the real-time signals that programs may use.
#[must_use]
pub fn realtime_signals() -> (i32, i32) {
    (libc::SIGRTMIN(), libc::SIGRTMAX())
}

/// Blocks `signal` for the calling thread; returns whether it was blocked already.
///
/// # Errors
/// EINVAL for a number that is no signal.
pub fn block(signal: i32) -> io::Result<bool> {
    let set = signal_set(signal)?;
    // SAFETY: an all-zero sigset_t is the empty set.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: both sets are live locals; the call answers the error itself.
    let code = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before) };
    if code != 0 {
        return Err(io::Error::from_raw_os_error(code));
    }
    // SAFETY: reads a live local.
    Ok(unsafe { libc::sigismember(&raw const before, signal) } == 1)
}

/// Unblocks `signal` for the calling thread. If one is pending it is delivered: take it first.
///
/// # Errors
/// EINVAL for a number that is no signal.
pub fn unblock(signal: i32) -> io::Result<()> {
    let set = signal_set(signal)?;
    // SAFETY: the set is a live local; no old one is asked for.
    let code = unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut()) };
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// Takes `signal`, which the calling thread has blocked, from those pending, waiting for it at
/// most `timeout_ns` (for ever without). `None` if the time passed.
///
/// # Errors
/// Interrupted by another signal that is not blocked; EINVAL for a number that is no signal.
pub fn take(signal: i32, timeout_ns: Option<u64>) -> io::Result<Option<SignalOrigin>> {
    let set = signal_set(signal)?;
    let timeout = timespec(timeout_ns.unwrap_or(0));
    let timeout = timeout_ns.map_or(ptr::null(), |_| &raw const timeout);
    // SAFETY: an all-zero siginfo_t is a valid one.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set, the information and the timeout, if there is one, are live locals.
    match checked(unsafe { libc::sigtimedwait(&raw const set, &raw mut info, timeout) }) {
        Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => Ok(None),
        Err(e) => Err(e),
        Ok(_) => Ok(Some(match info.si_code {
            libc::SI_TIMER => SignalOrigin::Timer,
            _ => SignalOrigin::Sent,
        })),
    }
}

/// Sends `signal` to thread `tid` of this process. May be called in a signal handler.
///
/// # Errors
/// ESRCH if the thread has ended; EAGAIN if the user may have no more signals queued
/// (`RLIMIT_SIGPENDING`).
pub fn send(tid: u32, signal: i32) -> io::Result<()> {
    // SAFETY: takes no memory; what the signal does is the receiver's business.
    checked_long(unsafe {
        libc::syscall(libc::SYS_tgkill, libc::getpid(), tid as libc::pid_t, signal)
    })
    .map(|_| ())
}

fn signal_set(signal: i32) -> io::Result<libc::sigset_t> {
    // SAFETY: an all-zero sigset_t is the empty set.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes to a live local, and refuses numbers outside it.
    checked(unsafe { libc::sigaddset(&raw mut set, signal) })?;
    Ok(set)
}

fn nanoseconds(time: libc::timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ClockId, now_ns};

    /// Signals are the thread's own: each test takes one in a thread of its own.
    fn in_a_thread(test: impl FnOnce(i32) + Send) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let signal = realtime_signals().0 + 5;
                assert!(!block(signal).unwrap());
                test(signal);
                while take(signal, Some(0)).unwrap().is_some() {}
                unblock(signal).unwrap();
            });
        });
    }

    #[test]
    fn an_expiry_is_a_signal_to_the_thread_and_never_early() {
        in_a_thread(|signal| {
            let timer = PosixTimer::new(thread::id(), signal).unwrap();
            assert_eq!(timer.remaining().unwrap(), (0, 0));
            timer.set_absolute(now_ns(ClockId::Monotonic) + 60_000_000_000, 0).unwrap();
            let (left, interval) = timer.remaining().unwrap();
            assert!(left > 0 && left <= 60_000_000_000 && interval == 0);
            let at = now_ns(ClockId::Monotonic) + 2_000_000;
            timer.set_absolute(at, 0).unwrap();
            assert_eq!(take(signal, None).unwrap(), Some(SignalOrigin::Timer));
            assert!(now_ns(ClockId::Monotonic) >= at);
            timer.set_relative(60_000_000_000).unwrap();
            timer.disarm().unwrap();
            assert_eq!(take(signal, Some(1_000_000)).unwrap(), None);
        });
    }

    #[test]
    fn expiries_that_were_not_taken_are_counted() {
        in_a_thread(|signal| {
            let timer = PosixTimer::new(thread::id(), signal).unwrap();
            let begin = now_ns(ClockId::Monotonic);
            timer.set_absolute(begin + 1_000_000, 1_000_000).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(8));
            assert_eq!(take(signal, None).unwrap(), Some(SignalOrigin::Timer));
            let counted = timer.overrun().unwrap() + 1;
            let elapsed = (now_ns(ClockId::Monotonic) - begin) / 1_000_000;
            assert!(counted >= 7 && counted <= elapsed, "{counted} of {elapsed}");
        });
    }

    #[test]
    fn a_signal_of_another_thread_is_distinguished_from_a_timer() {
        in_a_thread(|signal| {
            let tid = thread::id();
            std::thread::scope(|scope| {
                scope.spawn(move || send(tid, signal).unwrap());
            });
            assert_eq!(take(signal, None).unwrap(), Some(SignalOrigin::Sent));
        });
    }

    #[test]
    fn numbers_that_are_no_signals_and_threads_of_others_are_refused() {
        let errno = |result: io::Result<()>| result.unwrap_err().raw_os_error();
        let signal = realtime_signals().0;
        assert_eq!(errno(PosixTimer::new(thread::id(), 9_999).map(|_| ())), Some(libc::EINVAL));
        assert_eq!(errno(PosixTimer::new(1, signal).map(|_| ())), Some(libc::EINVAL));
        assert_eq!(errno(block(-1).map(|_| ())), Some(libc::EINVAL));
        assert_eq!(errno(take(0, None).map(|_| ())), Some(libc::EINVAL));
    }

    /// timer_create(2): timers are not inherited by `fork`.
    #[test]
    fn a_child_has_none_of_its_parents_timers() {
        let timer = PosixTimer::new(thread::id(), realtime_signals().0).unwrap();
        timer.set_relative(60_000_000_000).unwrap();
        // SAFETY: the child makes system calls only, and leaves without running anything else.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let gone = timer.remaining().is_err() && timer.set_relative(1).is_err();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!gone)) };
        }
        let mut status = 0;
        // SAFETY: writes to a live local; the child is ours.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "the child could use the timer");
        assert!(timer.remaining().unwrap().0 > 0);
    }

    /// A child counts its timers from the first again: one of its own gets the number of its parent's,
    /// and is neither changed nor deleted by that.
    #[test]
    fn a_childs_own_timer_is_not_taken_for_its_parents() {
        let signal = realtime_signals().0;
        let inherited = PosixTimer::new(thread::id(), signal).unwrap();
        let said = fork::child_says(10_000, move || {
            let mut own = Vec::new();
            while own.len() < 10_000
                && own.last().is_none_or(|own: &PosixTimer| own.number != inherited.number)
            {
                own.push(PosixTimer::new(thread::id(), signal).unwrap());
            }
            let own = own.last().unwrap();
            own.set_relative(60_000_000_000).unwrap();
            let errno = inherited.disarm().map_err(|error| error.raw_os_error());
            let is_left_alone = own.remaining().unwrap().0 > 0;
            let number = inherited.number;
            drop(inherited);
            number == own.number
                && errno == Err(Some(libc::EINVAL))
                && is_left_alone
                && own.remaining().is_ok_and(|(left, _)| left > 0)
        });
        assert!(said.unwrap(), "the parent's timer was the child's own");
    }
}
