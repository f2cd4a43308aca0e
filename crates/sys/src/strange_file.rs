//! Files in folders to which others may write.
//!
//! Owns: opening one so that nothing but a plain file of that folder is opened, and the opener does not wait. Must not:
//! trust what is in it.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::checked;

/// Opens a plain file for reading, and for writing too if asked. No link is followed in the last part of the path, a
/// FIFO is not waited for, and no terminal is taken.
///
/// # Errors
/// ELOOP for a link, `InvalidInput` for what is no plain file, and what open(2) says.
pub fn open(path: &Path, writable: bool) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).write(writable).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// Whether this process may make and remove files in a folder, by its effective user, groups and capabilities.
///
/// # Errors
/// EACCES, EROFS, ENOENT and others of faccessat(2).
pub fn may_write_in(folder: &Path) -> io::Result<()> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    let mode = libc::W_OK | libc::X_OK;
    // SAFETY: the path is a terminated string; the rest is taken by value.
    let answer = unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), mode, libc::AT_EACCESS) };
    checked(answer).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_files_alone_are_opened_without_waiting() {
        let folder = std::env::temp_dir().join(format!("hourglass-strange-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        std::fs::write(at("plain"), "1").unwrap();
        std::os::unix::fs::symlink(at("plain"), at("link")).unwrap();
        let fifo = CString::new(at("fifo").as_os_str().as_bytes()).unwrap();
        // SAFETY: a terminated string and a number.
        assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
        let opened = |name: &str, writable| open(&at(name), writable).map(drop);
        let answers = [
            opened("plain", false).is_ok() && opened("plain", true).is_ok(),
            opened("link", false).is_err(),
            opened("fifo", false).is_err() && opened("fifo", true).is_err(),
            opened("", false).is_err(),
            may_write_in(&folder).is_ok() && may_write_in(&at("none")).is_err(),
        ];
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(answers, [true; 5]);
    }
}
