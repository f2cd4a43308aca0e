//! Signals as something to read (`signalfd(2)`), for a program that passes them on.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::checked;
use crate::inherited_signals::is_ignored;

/// Signals that a program passes on.
pub const PASSED: [i32; 7] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
];

/// Those of [`PASSED`] by which a program is asked to end.
pub const ENDING: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// By which a reservation is asked to change: the number with it says how.
#[must_use]
pub fn change() -> i32 {
    libc::SIGRTMIN() + 9
}

/// How often the mask of a process is read until it is one that stays, a millisecond apart.
const LOOKS: u32 = 200;

/// Whether a process blocks a signal for good. While a thread or a process is started all of them are blocked for a
/// moment, by C libraries and by [`crate::signal::with_all_blocked`]; no program lives with SIGSEGV blocked.
fn is_blocked(pid: u32, signal: i32) -> io::Result<bool> {
    let bit = |signal: i32| {
        let place = u32::try_from(signal - 1).ok();
        place.and_then(|place| 1_u64.checked_shl(place)).unwrap_or(0)
    };
    for _ in 0..LOOKS {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        if mask & bit(libc::SIGSEGV) == 0 {
            return Ok(mask & bit(signal) != 0);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(false)
}

/// Sends a signal with a number to a process that reads it from a [`SignalFile`].
///
/// # Errors
/// `Unsupported` if the process does not block the signal, which would end it; what the kernel answers otherwise, such as
/// EPERM for a process of another user.
pub fn send_value(pid: u32, signal: i32, value: u64) -> io::Result<()> {
    let (true, Ok(pid)) = (is_blocked(pid, signal)?, i32::try_from(pid)) else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let value = libc::sigval { sival_ptr: value as *mut libc::c_void };
    // SAFETY: takes numbers; the pointer is handed on as one, and never read.
    checked(unsafe { libc::sigqueue(pid, signal, value) }).map(drop)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSignal {
    pub signal: i32,
    /// Whether the kernel sent it by itself, as it does for the keys of a terminal, to all
    /// processes of the group in the foreground; else a process did.
    pub by_kernel: bool,
    /// The number that came with it; 0 with most.
    pub value: u64,
}

/// Signals that no longer act on this process, but are read here.
#[derive(Debug)]
pub struct SignalFile {
    file: OwnedFd,
    before: libc::sigset_t,
}

impl SignalFile {
    /// Blocks `signals` in the calling thread and in all that it starts; to be called while there
    /// are no others. Those that the process ignores it goes on to ignore, as `nohup` wants it: a blocked
    /// one would be read here.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn block(signals: &[i32]) -> io::Result<SignalFile> {
        // SAFETY: an all-zero set is a valid one to fill.
        let (mut set, mut before): (libc::sigset_t, libc::sigset_t) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: fills a live local.
        unsafe {
            libc::sigemptyset(&raw mut set);
            signals.iter().filter(|signal| !is_ignored(**signal)).for_each(|signal| {
                libc::sigaddset(&raw mut set, *signal);
            });
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: reads a live local.
        let fd = checked(unsafe { libc::signalfd(-1, &raw const set, flags) })?;
        // SAFETY: the descriptor was just opened and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: reads and writes live locals; the mask is the calling thread's own.
        let code =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before) };
        if code == 0 {
            Ok(SignalFile { file, before })
        } else {
            Err(io::Error::from_raw_os_error(code))
        }
    }

    /// The next pending signal; `None` if no signal is pending.
    ///
    /// # Errors
    /// What the kernel answers; does not happen.
    pub fn next(&self) -> io::Result<Option<ReceivedSignal>> {
        // SAFETY: all zero is a valid one to fill.
        let mut information: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most the size of the live local.
        let count =
            unsafe { libc::read(self.file.as_raw_fd(), (&raw mut information).cast(), size) };
        if count == -1 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        let by_kernel = information.ssi_code == libc::SI_KERNEL;
        let value = if information.ssi_code == libc::SI_QUEUE { information.ssi_ptr } else { 0 };
        Ok(Some(ReceivedSignal { signal: information.ssi_signo as i32, by_kernel, value }))
    }
}

impl AsFd for SignalFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SignalFile {
    /// The calling thread has its mask back; what came and was not read acts now.
    fn drop(&mut self) {
        // SAFETY: reads a live field; the mask is the calling thread's own.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a thread of its own, to which alone the signal is sent: the mask is the thread's.
    #[test]
    fn a_blocked_signal_is_read() {
        std::thread::spawn(|| {
            let signals = SignalFile::block(&[libc::SIGWINCH]).unwrap();
            assert_eq!(signals.next().unwrap(), None);
            // SAFETY: takes no memory.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGWINCH) };
            let came = ReceivedSignal { signal: libc::SIGWINCH, by_kernel: false, value: 0 };
            assert_eq!(signals.next().unwrap(), Some(came));
            assert_eq!(signals.next().unwrap(), None);
        })
        .join()
        .unwrap();
    }

    /// A process that would end of it does not get it.
    #[test]
    fn a_number_comes_with_a_signal() {
        let said = crate::fork::child_says(10_000, || {
            let pid = std::process::id();
            let refused = send_value(pid, change(), 7).map_err(|error| error.kind());
            let while_all_are_blocked = crate::signal::with_all_blocked(|| {
                send_value(pid, change(), 7).map_err(|error| error.kind())
            });
            let signals = SignalFile::block(&[change()]).unwrap();
            let value = 0x1234_5678_9abc_def0;
            send_value(pid, change(), value).unwrap();
            let came = ReceivedSignal { signal: change(), by_kernel: false, value };
            let unsupported = Err(io::ErrorKind::Unsupported);
            (refused, while_all_are_blocked) == (unsupported, unsupported)
                && signals.next().unwrap() == Some(came)
        });
        assert!(said.unwrap());
    }

    /// `nohup hourglass reserve --pid` ended with the terminal: the ignored SIGHUP was blocked, and read.
    #[test]
    fn an_ignored_signal_stays_ignored() {
        let said = crate::fork::child_says(10_000, || {
            // SAFETY: sets this child's own action.
            unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
            let signals = SignalFile::block(&[libc::SIGHUP, libc::SIGTERM]).unwrap();
            // SAFETY: takes no memory; the one is ignored, the other blocked.
            unsafe {
                libc::kill(libc::getpid(), libc::SIGHUP);
                libc::kill(libc::getpid(), libc::SIGTERM);
            }
            let came = [signals.next().unwrap(), signals.next().unwrap()];
            came.map(|came| came.map(|came| came.signal)) == [Some(libc::SIGTERM), None]
        });
        assert!(said.unwrap());
    }
}
