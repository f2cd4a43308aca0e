//! Signals as something to read (`signalfd(2)`), for a program that passes them on.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::checked;
use crate::inherited::is_ignored;

/// What a signal-passing program is sent and hands on.
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

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// Which.
    pub signal: i32,
    /// Whether the kernel sent it by itself, as it does for the keys of a terminal, to all
    /// processes of the group in the foreground; else a process did.
    pub by_kernel: bool,
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
        // SAFETY: the descriptor was just opened and is owned by nobody else.
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

    /// The next signal that came; `None` if there is none.
    ///
    /// # Errors
    /// What the kernel answers; does not happen.
    pub fn next(&self) -> io::Result<Option<Came>> {
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
        Ok(Some(Came { signal: information.ssi_signo as i32, by_kernel }))
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
            let came = Came { signal: libc::SIGWINCH, by_kernel: false };
            assert_eq!(signals.next().unwrap(), Some(came));
            assert_eq!(signals.next().unwrap(), None);
        })
        .join()
        .unwrap();
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
