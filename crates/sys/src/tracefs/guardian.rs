//! A tiny process that outlives this one, to remove an instance that nobody else will.
//!
//! It holds one end of a pipe and nothing else. When the other end closes without a word, which
//! the kernel sees to even after SIGKILL, it removes the instance and ends.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use crate::{checked, checked_long};

/// How often the removal is tried: threads of a killed process may hold the instance's files for
/// a moment.
const TRIES: u32 = 500;

/// Pause between two tries.
const PAUSE_NS: i64 = 10_000_000;

/// The name under which `ps` shows it.
const NAME: &std::ffi::CStr = c"hourglass-guard";

/// The process, seen from its parent.
#[derive(Debug)]
pub(super) struct Guardian {
    pid: libc::pid_t,
    /// Closed when dropped; a word through it before that means that all is done.
    line: Option<File>,
}

/// What it needs, made before it is.
struct Duty {
    instance: CString,
    switch: CString,
    line: RawFd,
}

impl Guardian {
    /// Starts one for the instance in the folder `instance`. It ends at the latest five seconds
    /// after this process.
    ///
    /// # Errors
    /// No descriptors or processes left.
    pub(super) fn watch(instance: &Path) -> io::Result<Guardian> {
        let name = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from);
        let (reading, writing) = pipe()?;
        let duty = Duty {
            instance: name(instance)?,
            switch: name(&instance.join("tracing_on"))?,
            line: reading.as_raw_fd(),
        };
        // SAFETY: the child makes nothing but system calls with memory that was made before, so
        // that locks which other threads hold do not matter; it never returns.
        let pid = checked(unsafe { libc::fork() })?;
        if pid == 0 {
            duty.live();
        }
        Ok(Guardian { pid, line: Some(File::from(writing)) })
    }

    /// The instance is gone: the guardian has nothing to do any more.
    pub(super) fn dismiss(mut self) {
        if let Some(mut line) = self.line.take() {
            // If it is not heard, the guardian finds nothing to remove.
            let _ = line.write_all(b"!");
        }
    }
}

impl Drop for Guardian {
    /// Waits until the guardian has ended, which takes it as long as it needs to do its duty.
    fn drop(&mut self) {
        drop(self.line.take());
        let mut status = 0;
        // SAFETY: writes to a live local; the child is ours and was not waited for.
        while unsafe { libc::waitpid(self.pid, &raw mut status, 0) } == -1
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}

impl Duty {
    /// The life of the guardian.
    fn live(&self) -> ! {
        self.leave_the_others();
        let mut word = 0u8;
        let heard = loop {
            // SAFETY: the kernel writes one byte to a live local.
            let count = unsafe { libc::read(self.line, (&raw mut word).cast(), 1) };
            let error = || io::Error::last_os_error().kind();
            if count != -1 || error() != io::ErrorKind::Interrupted {
                break count;
            }
        };
        if heard != 1 {
            self.remove();
        }
        // SAFETY: ends this process at once, without the parent's exit handlers.
        unsafe { libc::_exit(0) }
    }

    /// Keeps nothing of the parent's: neither its terminal, nor its folder, nor its files, whose
    /// other ends would otherwise wait for this process.
    fn leave_the_others(&self) {
        // SAFETY: an all-zero set is a valid one to fill.
        let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: fills a live local and blocks what is in it, for this process alone.
        unsafe {
            libc::sigfillset(&raw mut all);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut());
        }
        // SAFETY: takes no memory but two constant names.
        unsafe {
            libc::setsid();
            libc::chdir(c"/".as_ptr());
            libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        }
        let line = self.line as libc::c_uint;
        let below = line.checked_sub(1).map_or(Ok(()), |last| close_all(0, last));
        if below.is_err() || close_all(line + 1, libc::c_uint::MAX).is_err() {
            close_one_by_one(self.line);
        }
    }

    fn remove(&self) {
        // SAFETY: the name is a terminated string; the descriptor is written to and closed here.
        unsafe {
            let switch = libc::open(self.switch.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            if switch != -1 {
                libc::write(switch, c"0".as_ptr().cast(), 1);
                libc::close(switch);
            }
        }
        for _ in 0..TRIES {
            // SAFETY: the name is a terminated string.
            let removed = unsafe { libc::rmdir(self.instance.as_ptr()) };
            if removed == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EBUSY) {
                return;
            }
            let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE_NS as libc::c_long };
            // SAFETY: reads a live local.
            unsafe { libc::nanosleep(&raw const pause, ptr::null_mut()) };
        }
    }
}

/// A pipe: the end to read from, the end to write to. A program that this one starts has neither.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel fills the live array.
    checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: both descriptors were just opened and are owned by nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Closes the descriptors from `first` to `last`; ENOSYS before Linux 5.9.
fn close_all(first: libc::c_uint, last: libc::c_uint) -> io::Result<()> {
    // SAFETY: takes its arguments by value; nothing in the guardian uses those descriptors.
    checked_long(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

/// The same where the kernel has no call for it.
fn close_one_by_one(but: RawFd) {
    /// More than any process of ours has open.
    const MOST: RawFd = 4096;
    for descriptor in (0..MOST).filter(|descriptor| *descriptor != but) {
        // SAFETY: nothing in the guardian uses the descriptor; one that is not open is refused.
        unsafe { libc::close(descriptor) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instance is a folder that `rmdir` removes; an empty one does for the guardian.
    #[test]
    fn it_removes_what_is_left() {
        let home = std::env::temp_dir().join(format!("hourglass-guardian-{}", std::process::id()));
        for (name, dismissed) in [("left", false), ("done", true)] {
            let instance = home.join(name);
            std::fs::create_dir_all(&instance).unwrap();
            let guardian = Guardian::watch(&instance).unwrap();
            assert!(instance.exists());
            if dismissed {
                guardian.dismiss();
            } else {
                drop(guardian);
            }
            assert_eq!(instance.exists(), dismissed, "{name}");
        }
        std::fs::remove_dir_all(home).unwrap();
    }
}
