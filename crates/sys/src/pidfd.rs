//! Signals to processes that may end at any time: a descriptor of a process (`pidfd_open(2)`, Linux 5.3)
//! never becomes another process, as its number does.
//!
//! Owns: the descriptor, and the signals that stop, resume and end. Must not: wait for a process, know
//! why one is stopped.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::{checked, checked_long};

#[derive(Debug)]
pub struct PidFd(OwnedFd);

impl PidFd {
    /// The process `pid`, which must be a process and not another thread of one.
    ///
    /// # Errors
    /// ESRCH if it does not exist, EINVAL for the number of a thread, ENOSYS before Linux 5.3, EMFILE.
    pub fn open(pid: u32) -> io::Result<PidFd> {
        PidFd::with(pid, 0)
    }

    /// The thread `tid` of any process.
    ///
    /// # Errors
    /// As [`PidFd::open`]; EINVAL before Linux 6.9.
    pub fn of_thread(tid: u32) -> io::Result<PidFd> {
        PidFd::with(tid, libc::PIDFD_THREAD)
    }

    /// Another descriptor of the same.
    ///
    /// # Errors
    /// EMFILE.
    pub fn try_clone(&self) -> io::Result<PidFd> {
        self.0.try_clone().map(PidFd)
    }

    fn with(id: u32, flags: libc::c_uint) -> io::Result<PidFd> {
        // SAFETY: takes its arguments by value.
        let fd = checked_long(unsafe { libc::syscall(libc::SYS_pidfd_open, id, flags) })?;
        // SAFETY: the descriptor was just opened and has no other owner.
        Ok(PidFd(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) }))
    }

    /// Stops the process, as no process can refuse (SIGSTOP). One call, no allocation.
    ///
    /// # Errors
    /// ESRCH if it has ended, EPERM if it is not ours to stop.
    pub fn stop(&self) -> io::Result<()> {
        self.signal(libc::SIGSTOP)
    }

    /// Lets it run again (SIGCONT), by whatever it was stopped.
    ///
    /// # Errors
    /// As [`PidFd::stop`].
    pub fn resume(&self) -> io::Result<()> {
        self.signal(libc::SIGCONT)
    }

    /// Ends it (SIGKILL).
    ///
    /// # Errors
    /// As [`PidFd::stop`].
    pub fn kill(&self) -> io::Result<()> {
        self.signal(libc::SIGKILL)
    }

    /// Whether it may be signalled: nothing is sent.
    ///
    /// # Errors
    /// As [`PidFd::stop`].
    pub fn probe(&self) -> io::Result<()> {
        self.signal(0)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// As [`PidFd::stop`]; EINVAL for what is no signal.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        // SAFETY: no information goes with the signal; the rest is taken by value.
        checked_long(unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                signal,
                ptr::null::<libc::siginfo_t>(),
                0,
            )
        })
        .map(drop)
    }

    /// Whether the process has ended, also before its parent has waited for it.
    ///
    /// # Errors
    /// What `poll(2)` answers; does not happen for an open descriptor.
    pub fn has_ended(&self) -> io::Result<bool> {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live entry, and a count of one.
        Ok(checked(unsafe { libc::poll(&raw mut poll, 1, 0) })? == 1)
    }
}

impl AsRawFd for PidFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether two processes have one address space (`kcmp(2)`); `None` where the kernel does not tell: it
/// was built without, or they are not ours to look at.
#[must_use]
pub fn same_memory(one: u32, other: u32) -> Option<bool> {
    /// `KCMP_VM`.
    const VM: libc::c_int = 1;
    // SAFETY: takes its arguments by value.
    let answer = unsafe { libc::syscall(libc::SYS_kcmp, one, other, VM, 0, 0) };
    (answer >= 0).then_some(answer == 0)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// The state letter of `/proc/PID/stat`.
    fn state(pid: u32) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    fn until(pid: u32, wanted: impl Fn(char) -> bool) {
        for _ in 0..5_000 {
            if wanted(state(pid)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        panic!("{pid} is {}", state(pid));
    }

    #[test]
    fn a_process_is_stopped_resumed_and_ended() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = match PidFd::open(child.id()) {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                child.kill().unwrap();
                child.wait().unwrap();
                return eprintln!("this kernel has no pidfd");
            }
            process => process.unwrap(),
        };
        process.probe().unwrap();
        process.stop().unwrap();
        until(child.id(), |state| state == 'T');
        process.resume().unwrap();
        until(child.id(), |state| state != 'T');
        assert!(!process.has_ended().unwrap());
        process.kill().unwrap();
        child.wait().unwrap();
        assert!(process.has_ended().unwrap());
        assert_eq!(process.stop().unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn threads_are_no_processes() {
        let own = std::process::id();
        let refused = std::thread::spawn(move || {
            assert_ne!(crate::thread::id(), own);
            PidFd::open(crate::thread::id()).map(drop)
        });
        // EINVAL; ENOENT from Linux 6.9 on.
        assert!(refused.join().unwrap().is_err());
        assert!(PidFd::open(u32::MAX >> 1).is_err());
    }

    #[test]
    fn memory_is_compared() {
        let own = std::process::id();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let answers = (same_memory(own, own), same_memory(own, child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(matches!(answers, (Some(true), Some(false)) | (None, None)), "{answers:?}");
    }
}
