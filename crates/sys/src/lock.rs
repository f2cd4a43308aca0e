//! Advisory locks on files: those of an opening, `flock(2)`, and those of a process, `fcntl(2)`.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use crate::checked;

/// Takes the file, or folder, for this opening of it alone. Whether it could: `false` says that
/// another opening has it. The lock is let go when the file is closed, at the latest when the
/// process ends, however it ends.
///
/// # Errors
/// ENOLCK, EOPNOTSUPP, EBADF and others: its file system has no such locks.
pub fn try_exclusive(file: &File) -> io::Result<bool> {
    // SAFETY: takes no memory, and the descriptor is open.
    match checked(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// The holder of the lock of a process on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// No process, or the calling one.
    None,
    /// This one, by its number in the caller's PID namespace. The number comes from the kernel, not from the file.
    Process(u32),
    /// A process that the caller's PID namespace does not show.
    Unseen,
}

/// Takes the whole file, which is open for writing, for this process alone (`F_SETLK`). Whether it could: `false`
/// says that another process has it. Children do not inherit the lock. It is let go when this process closes any
/// descriptor of the file, at the latest when it ends, however it ends.
///
/// # Errors
/// ENOLCK, EBADF and others: its file system has no such locks, or it is open for reading only.
pub fn try_for_process(file: &File) -> io::Result<bool> {
    take_whole(file.as_raw_fd())
}

/// [`try_for_process`] by the descriptor. Takes no memory.
pub(crate) fn take_whole(file: RawFd) -> io::Result<bool> {
    let lock = whole();
    // SAFETY: reads a live local; a descriptor that is not open is refused.
    match checked(unsafe { libc::fcntl(file, libc::F_SETLK, &raw const lock) }) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Which other process has taken the file by [`try_for_process`] (`F_GETLK`). Takes nothing itself. A lock for reading
/// does not count: every process that may read the file may take it.
///
/// # Errors
/// As [`try_for_process`].
pub fn process_that_holds(file: &File) -> io::Result<Holder> {
    let mut lock = whole();
    // SAFETY: the kernel reads and writes a live local, and the descriptor is open.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) })?;
    Ok(match u32::try_from(lock.l_pid) {
        _ if lock.l_type != libc::F_WRLCK as libc::c_short => Holder::None,
        Ok(pid) if pid > 0 => Holder::Process(pid),
        _ => Holder::Unseen,
    })
}

/// A lock for writing on all of a file.
fn whole() -> libc::flock {
    // SAFETY: an all-zero flock is a valid one.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock
}

#[cfg(test)]
mod tests {
    use super::*;

    /// fcntl(2): the lock is the process's, the kernel names its holder, and a child does not have it.
    #[test]
    fn the_process_that_holds_a_file_is_named() {
        let path = std::env::temp_dir().join(format!("hourglass-record-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        assert!(try_for_process(&file).unwrap());
        assert_eq!(process_that_holds(&file).unwrap(), Holder::None, "none but this one");
        let own = std::process::id();
        let said = crate::fork::child_says(10_000, || {
            let again = File::options().write(true).open(&path).unwrap();
            process_that_holds(&again).unwrap() == Holder::Process(own)
                && !try_for_process(&again).unwrap()
        });
        drop(file);
        // A process that may read it can lock it for reading, and is not taken for one that may write.
        let reader = File::open(&path).unwrap();
        let shared = libc::flock { l_type: libc::F_RDLCK as libc::c_short, ..whole() };
        // SAFETY: reads a live local, and the descriptor is open.
        let locked = unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETLK, &raw const shared) };
        let unheld = crate::fork::child_says(10_000, || {
            process_that_holds(&File::open(&path).unwrap()).unwrap() == Holder::None
        });
        assert!(locked == 0 && unheld.unwrap());
        drop(reader);
        let free = crate::fork::child_says(10_000, || {
            let again = File::options().write(true).open(&path).unwrap();
            process_that_holds(&again).unwrap() == Holder::None && try_for_process(&again).unwrap()
        });
        std::fs::remove_file(&path).unwrap();
        assert!(said.unwrap() && free.unwrap());
    }

    /// flock(2): a lock belongs to the opening, not to the process.
    #[test]
    fn a_second_opening_waits_for_the_first() {
        let place = env!("CARGO_MANIFEST_DIR");
        let first = File::open(place).unwrap();
        assert!(try_exclusive(&first).unwrap());
        assert!(try_exclusive(&first).unwrap(), "it has it already");
        let second = File::open(place).unwrap();
        assert!(!try_exclusive(&second).unwrap());
        drop(first);
        assert!(try_exclusive(&second).unwrap());
    }
}
