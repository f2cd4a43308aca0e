//! Ways of being woken at a time. All but the RTC take an absolute `CLOCK_MONOTONIC` deadline.
//!
//! Each returns `Ok` when the kernel says that the time has come and `ErrorKind::Interrupted`
//! when a signal came first. None retries.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::AtomicU32;

use crate::clock::timespec;
use crate::{checked, checked_long};

/// `clock_nanosleep`, absolute.
///
/// # Errors
/// Interrupted by a signal.
pub fn nanosleep_until(deadline_ns: u64) -> io::Result<()> {
    let deadline = timespec(deadline_ns);
    // SAFETY: the deadline is a live local; no remainder is written for absolute sleeps.
    let code = unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const deadline,
            ptr::null_mut(),
        )
    };
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// Waits on a futex word that no other thread uses: the wait ends by its deadline.
///
/// # Errors
/// Interrupted by a signal, or what the kernel answers.
pub fn futex_until(word: &AtomicU32, expected: u32, deadline_ns: u64) -> io::Result<()> {
    let deadline = timespec(deadline_ns);
    // SAFETY: the word and the deadline outlive the call; the unused arguments are null.
    let answer = checked_long(unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            expected,
            &raw const deadline,
            ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    });
    match answer {
        Err(e) if e.raw_os_error() == Some(libc::ETIMEDOUT) => Ok(()),
        Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => Ok(()),
        Err(e) => Err(e),
        Ok(_) => Ok(()),
    }
}

/// A `timerfd` on `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// A new, disarmed timer.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn new() -> io::Result<TimerFd> {
        // SAFETY: takes no memory.
        let fd =
            checked(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) })?;
        // SAFETY: the descriptor was just opened and has no other owner.
        Ok(TimerFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Arms the timer and reads it, which blocks until it expires.
    ///
    /// # Errors
    /// Interrupted by a signal.
    pub fn wait_until(&self, deadline_ns: u64) -> io::Result<()> {
        let setting = libc::itimerspec {
            it_interval: timespec(0),
            // A zero time would disarm it.
            it_value: timespec(deadline_ns.max(1)),
        };
        // SAFETY: the setting is a live local; no old value is asked for.
        checked(unsafe {
            libc::timerfd_settime(
                self.0.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const setting,
                ptr::null_mut(),
            )
        })?;
        let mut expirations = 0u64;
        // SAFETY: eight bytes are read into a live u64.
        let read = unsafe {
            libc::read(self.0.as_raw_fd(), (&raw mut expirations).cast(), size_of::<u64>())
        };
        if read == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// An epoll instance that watches nothing; waiting on it ends by its timeout (`epoll_pwait2`,
/// Linux 5.11).
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// A new instance.
    ///
    /// # Errors
    /// No descriptors left, or `Unsupported` on a kernel without `epoll_pwait2`.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: takes no memory.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor was just opened and has no other owner.
        let epoll = Epoll(unsafe { OwnedFd::from_raw_fd(fd) });
        epoll.wait_for(0)?;
        Ok(epoll)
    }

    /// Waits for a length of time (the call knows no absolute deadlines).
    ///
    /// # Errors
    /// Interrupted by a signal, or `Unsupported`.
    pub fn wait_for(&self, timeout_ns: u64) -> io::Result<()> {
        let timeout = timespec(timeout_ns);
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: one event fits the buffer of one event; the timeout is a live local; the signal
        // mask is null, its size then unused.
        checked_long(unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                &raw mut event,
                1,
                &raw const timeout,
                ptr::null::<libc::sigset_t>(),
                0usize,
            )
        })
        .map(|_| ())
        .map_err(|e| match e.raw_os_error() {
            Some(libc::ENOSYS) => io::Error::from(io::ErrorKind::Unsupported),
            _ => e,
        })
    }
}
