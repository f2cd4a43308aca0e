//! Giving up rights before something is done that others have asked for.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::checked;
use crate::process::pipe;

/// How long a child that was killed, or is ending, is waited for.
const LAST: Duration = Duration::from_secs(2);

/// Takes all capabilities from the calling thread, for good. Programs of a user that got some from their file
/// (`setcap`) then have the rights of that user alone.
///
/// # Errors
/// What the kernel answers; does not happen.
pub fn give_up_capabilities() -> io::Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3`: two words of each set.
    const VERSION: u32 = 0x2008_0522;
    let head: [u32; 2] = [VERSION, 0];
    let none = [0u32; 6];
    // SAFETY: the kernel reads two live arrays of the sizes that this version has.
    let done = unsafe { libc::syscall(libc::SYS_capset, head.as_ptr(), none.as_ptr()) };
    crate::checked_long(done).map(drop)
}

/// Runs `work` in a child of this process that has the rights of user `uid` and group `gid` alone, and gives what it
/// returned. The child has no controlling terminal, and `/dev/null` for its standard descriptors. One that does not end
/// within `limit_s` is killed; that user may have stopped it.
///
/// To be called while the process has one thread: the child takes memory.
///
/// # Errors
/// No processes or descriptors left; `PermissionDenied` if this process may not become that user; `TimedOut` if the
/// child was killed.
pub fn as_user(
    uid: u32,
    gid: u32,
    limit_s: u32,
    work: impl FnOnce() -> Vec<u8>,
) -> io::Result<Vec<u8>> {
    let limit_s = limit_s.max(1);
    let until = Instant::now() + Duration::from_secs(limit_s.into());
    let (reading, writing) = pipe()?;
    let writing = File::from(beside_standard(writing)?);
    // SAFETY: the process has one thread, so that the child may do what its maker may; it leaves without unwinding
    // into the maker's frames.
    let child = checked(unsafe { libc::fork() })?;
    if child == 0 {
        drop(reading);
        // The child keeps its end open until it ends, when it cannot be stopped any more.
        let done = catch_unwind(AssertUnwindSafe(|| {
            leave_terminal()?;
            become_user(uid, gid, limit_s)?;
            (&writing).write_all(&work())
        }));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!matches!(done, Ok(Ok(()))))) };
    }
    drop(writing);
    let mut said = Vec::new();
    let read = read_until(&mut File::from(reading), until, &mut said);
    if !matches!(read, Ok(true)) {
        // SAFETY: takes its arguments by value; the child is ours and was not waited for.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    let status = status_within(child, LAST)?.ok_or(io::ErrorKind::TimedOut)?;
    read?;
    if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 {
        Ok(said)
    } else if libc::WIFSIGNALED(status) {
        Err(io::ErrorKind::TimedOut.into())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// This end of a pipe, with a number behind those of the standard descriptors, which the child replaces.
fn beside_standard(end: OwnedFd) -> io::Result<OwnedFd> {
    // The old number is closed on return: while it is open here, the end of the child is not seen.
    // SAFETY: takes its arguments by value.
    let copy = checked(unsafe { libc::fcntl(end.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Reads until the other end is closed; `false` if it was not by then.
fn read_until(from: &mut File, until: Instant, said: &mut Vec<u8>) -> io::Result<bool> {
    let mut piece = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let left_ms = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).saturating_add(1);
        let mut wanted = libc::pollfd { fd: from.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel reads and writes one live local.
        let ready = checked(unsafe { libc::poll(&raw mut wanted, 1, left_ms) });
        let read = match ready {
            Ok(0) => continue,
            Ok(_) => from.read(&mut piece),
            Err(error) => Err(error),
        };
        match read {
            Ok(0) => return Ok(true),
            Ok(count) => said.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// How a child ended that is about to; `None` if it does not within `limit`, as one that waits for a file system of its
/// user may not, even when it is killed.
fn status_within(child: libc::pid_t, limit: Duration) -> io::Result<Option<libc::c_int>> {
    let until = Instant::now() + limit;
    loop {
        let mut status = 0;
        // SAFETY: writes to a live local; the child is ours.
        match checked(unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) }) {
            Ok(0) if Instant::now() >= until => return Ok(None),
            Ok(0) => std::thread::sleep(Duration::from_millis(1)),
            Ok(_) => return Ok(Some(status)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Leaves the controlling terminal, which every process may write to as `/dev/tty`, and the standard descriptors.
fn leave_terminal() -> io::Result<()> {
    // SAFETY: takes no arguments.
    checked(unsafe { libc::setsid() })?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    for standard in 0..=2 {
        // SAFETY: takes its arguments by value; what was open there belongs to this child alone.
        checked(unsafe { libc::dup2(null.as_raw_fd(), standard) })?;
    }
    Ok(())
}

fn become_user(uid: u32, gid: u32, limit_s: u32) -> io::Result<()> {
    // SAFETY: each takes its arguments by value, and concerns this child alone.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        checked(libc::setgroups(0, std::ptr::null()))?;
        checked(libc::setresgid(gid, gid, gid))?;
        checked(libc::setresuid(uid, uid, uid))?;
        libc::alarm(limit_s);
    }
    give_up_capabilities()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime_folder::user;

    /// Neither the user's own rights nor a way back are left of root's.
    #[test]
    fn work_for_another_user_has_his_rights() {
        const OTHER: u32 = 65_534;
        let said = as_user(OTHER, OTHER, 20, || {
            // SAFETY: takes its arguments by value.
            let back = unsafe { libc::setuid(0) };
            format!("{} {back}", user()).into_bytes()
        });
        match said {
            Ok(said) => assert_eq!(said, b"65534 -1"),
            Err(error) if user() == 0 => panic!("{error}"),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
    }

    /// The bytes that `work` returns as another user; `None` where this process may not become one.
    fn as_other(limit_s: u32, work: impl FnOnce() -> Vec<u8>) -> Option<io::Result<Vec<u8>>> {
        const OTHER: u32 = 65_534;
        match as_user(OTHER, OTHER, limit_s, work) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && user() != 0 => None,
            said => Some(said),
        }
    }

    /// The bug: a record of a user that named `/dev/tty` was written to the terminal of root, who cleaned up.
    #[test]
    fn work_for_another_user_has_no_terminal() {
        let begun = Instant::now();
        let said = as_other(120, || {
            // SAFETY: takes its argument by value.
            let leads = unsafe { libc::getsid(0) } == std::process::id() as libc::pid_t;
            let target = |number| std::fs::read_link(format!("/proc/self/fd/{number}"));
            let null = (0..3).all(|number| target(number).is_ok_and(|at| at.ends_with("null")));
            let terminal = File::options().write(true).open("/dev/tty").is_ok();
            format!("{leads} {null} {terminal}").into_bytes()
        });
        if let Some(said) = said {
            assert_eq!(String::from_utf8_lossy(&said.unwrap()), "true true false");
        }
        // Its end is seen at once, and not when its time is over.
        assert!(begun.elapsed() < Duration::from_secs(60));
    }

    /// The bug: a user who stopped the child, which he may, kept root waiting for ever.
    #[test]
    fn work_that_is_stopped_ends_with_its_time() {
        let begun = Instant::now();
        let said = as_other(1, || {
            // SAFETY: takes its argument by value.
            unsafe { libc::raise(libc::SIGSTOP) };
            Vec::new()
        });
        if let Some(said) = said {
            assert_eq!(said.unwrap_err().kind(), io::ErrorKind::TimedOut);
            assert!(begun.elapsed() >= Duration::from_secs(1));
        }
    }

    #[test]
    fn capabilities_are_gone_for_good() {
        let said = crate::fork::child_says(10_000, || {
            give_up_capabilities().unwrap();
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let sets =
                status.lines().filter(|line| line.starts_with("CapP") || line.starts_with("CapE"));
            sets.filter_map(|line| line.split_once(":\t"))
                .all(|(_, set)| set.trim_start_matches('0').is_empty())
        });
        assert!(said.unwrap());
    }
}
