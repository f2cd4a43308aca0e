//! Advisory locks on files and folders, `flock(2)`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

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

#[cfg(test)]
mod tests {
    use super::*;

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
