//! `eventfd(2)`, a timerfd that is armed apart from being read, and waiting for two descriptors.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::checked;
use crate::clock::timespec;

/// A counter in the kernel that can be waited for. Does not block, is closed by `exec`.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A counter at zero.
    ///
    /// # Errors
    /// EMFILE, ENFILE: no descriptors left.
    pub fn new() -> io::Result<EventFd> {
        // SAFETY: takes no memory.
        let fd = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the descriptor was just opened and has no other owner.
        Ok(EventFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Adds one, which makes it readable. May be called in a signal handler.
    pub fn post(&self) {
        let one = 1u64;
        let written = || {
            // SAFETY: eight bytes are read from a live u64. It fails only where the counter is at its
            // end, and then it is readable anyway.
            unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) }
        };
        // A filter of system calls (seccomp) may return this though the kernel does not; a waiter would wait for ever.
        while written() < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {}
    }

    /// Sets it to zero; returns what it was.
    pub fn drain(&self) -> u64 {
        read_count(self.0.as_fd()).unwrap_or(0)
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A timer on `CLOCK_MONOTONIC` behind a descriptor. Does not block, is closed by `exec`.
///
/// A child made by `fork` shares it with its parent: arming it there arms it here.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// A new, disarmed timer.
    ///
    /// # Errors
    /// EMFILE, ENFILE: no descriptors left.
    pub fn new() -> io::Result<Timer> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes no memory.
        let fd = checked(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        // SAFETY: the descriptor was just opened and has no other owner.
        Ok(Timer(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Arms it for an absolute time, and then every `interval_ns`; 0 for once. Forgets expiries
    /// that were not taken.
    ///
    /// # Errors
    /// What the kernel answers; does not happen for a live timer.
    pub fn set_absolute(&self, first_ns: u64, interval_ns: u64) -> io::Result<()> {
        // A zero time would disarm it.
        self.set(first_ns.max(1), interval_ns)
    }

    /// Disarms it, and forgets expiries that were not taken.
    ///
    /// # Errors
    /// What the kernel answers; does not happen for a live timer.
    pub fn disarm(&self) -> io::Result<()> {
        self.set(0, 0)
    }

    /// Expiries since it was armed or this was last called.
    pub fn expiries(&self) -> u64 {
        read_count(self.0.as_fd()).unwrap_or(0)
    }

    fn set(&self, first_ns: u64, interval_ns: u64) -> io::Result<()> {
        let setting =
            libc::itimerspec { it_interval: timespec(interval_ns), it_value: timespec(first_ns) };
        // SAFETY: the setting is a live local; no old value is asked for.
        checked(unsafe {
            libc::timerfd_settime(
                self.0.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const setting,
                ptr::null_mut(),
            )
        })
        .map(|_| ())
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Becomes readable when `CLOCK_REALTIME` is set, and when the machine comes back from a suspension: a timerfd for the
/// end of time with `TFD_TIMER_CANCEL_ON_SET`. Does not block, is closed by `exec`.
#[derive(Debug)]
pub struct ClockSetWatch(OwnedFd);

impl ClockSetWatch {
    /// Watches from now on.
    ///
    /// # Errors
    /// EMFILE, ENFILE: no descriptors left.
    pub fn new() -> io::Result<ClockSetWatch> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes no memory.
        let fd = checked(unsafe { libc::timerfd_create(libc::CLOCK_REALTIME, flags) })?;
        // SAFETY: the descriptor was just opened and has no other owner.
        let watch = ClockSetWatch(unsafe { OwnedFd::from_raw_fd(fd) });
        let never =
            libc::itimerspec { it_interval: timespec(0), it_value: timespec(i64::MAX as u64) };
        // SAFETY: the setting is a live local; no old value is asked for.
        checked(unsafe {
            libc::timerfd_settime(
                watch.0.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET,
                &raw const never,
                ptr::null_mut(),
            )
        })?;
        Ok(watch)
    }

    /// Whether the clock was set since the last call. It watches on.
    #[must_use]
    pub fn was_set(&self) -> bool {
        let read = read_count(self.0.as_fd());
        read.is_err_and(|e| e.raw_os_error() == Some(libc::ECANCELED))
    }
}

impl AsFd for ClockSetWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until one of two descriptors is readable, at most `timeout_ns` (for ever without); tells
/// which are.
///
/// # Errors
/// Interrupted by a signal.
pub fn either_readable(
    first: BorrowedFd<'_>,
    second: BorrowedFd<'_>,
    timeout_ns: Option<u64>,
) -> io::Result<(bool, bool)> {
    let watch =
        |fd: BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut watched = [watch(first), watch(second)];
    let timeout = timespec(timeout_ns.unwrap_or(0));
    let timeout = timeout_ns.map_or(ptr::null(), |_| &raw const timeout);
    // SAFETY: two entries are given and counted; the timeout, if there is one, is a live local;
    // the signal mask is null, so none is set.
    checked(unsafe { libc::ppoll(watched.as_mut_ptr(), 2, timeout, ptr::null()) })?;
    let ready = |at: usize| watched[at].revents != 0;
    Ok((ready(0), ready(1)))
}

/// Reads the eight bytes that eventfds and timerfds give.
fn read_count(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut count = 0u64;
    // SAFETY: eight bytes are read into a live u64.
    let read = unsafe { libc::read(fd.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
    if read == -1 { Err(io::Error::last_os_error()) } else { Ok(count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ClockId, now_ns};

    #[test]
    fn what_was_posted_is_drained_once() {
        let event = EventFd::new().unwrap();
        assert_eq!(event.drain(), 0);
        event.post();
        event.post();
        assert_eq!((event.drain(), event.drain()), (2, 0));
    }

    /// Setting the clock is no business of a test: only that nothing is seen where nothing is.
    #[test]
    fn a_clock_that_was_not_set_is_not_reported_as_set() {
        let watch = ClockSetWatch::new().unwrap();
        let event = EventFd::new().unwrap();
        event.post();
        assert!(either_readable(watch.as_fd(), event.as_fd(), None).unwrap().1);
        assert!(!watch.was_set());
    }

    #[test]
    fn a_timer_is_readable_when_it_expired_and_not_before() {
        let (event, timer) = (EventFd::new().unwrap(), Timer::new().unwrap());
        let wait = |ns| either_readable(timer.as_fd(), event.as_fd(), ns).unwrap();
        assert_eq!(wait(Some(0)), (false, false));
        let at = now_ns(ClockId::Monotonic) + 1_000_000;
        timer.set_absolute(at, 0).unwrap();
        assert_eq!(wait(None), (true, false));
        assert!(now_ns(ClockId::Monotonic) >= at);
        assert_eq!((timer.expiries(), timer.expiries()), (1, 0));
        event.post();
        assert_eq!(wait(None), (false, true));
        timer.set_absolute(1, 0).unwrap();
        timer.disarm().unwrap();
        assert_eq!(timer.expiries(), 0);
    }
}
