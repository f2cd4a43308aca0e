//! Opening a file without asking for memory, as threads must that may not allocate.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::checked;

/// Longest path that the kernel takes, its last zero included.
const MOST_PATH: usize = libc::PATH_MAX as usize;

/// Opens `name` in `folder` for reading. Allocates nothing on success.
///
/// # Errors
/// `InvalidFilename` if the path is longer than the kernel takes; what the kernel answers.
pub fn open_in(folder: &Path, name: &str) -> io::Result<File> {
    let mut room = [0; MOST_PATH];
    let parts = [folder.as_os_str().as_bytes(), b"/", name.as_bytes()];
    let mut used = 0;
    for part in parts {
        let end = used + part.len();
        // The last byte stays 0.
        let place = room[..MOST_PATH - 1].get_mut(used..end);
        place.ok_or(io::ErrorKind::InvalidFilename)?.copy_from_slice(part);
        used = end;
    }
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the room is a live local that ends with a zero.
    let file = checked(unsafe { libc::open(room.as_ptr().cast(), flags) })?;
    // SAFETY: the kernel has just given us this descriptor, and only us.
    Ok(unsafe { File::from_raw_fd(file) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_opened_and_paths_that_are_too_long_are_not() {
        assert!(open_in(Path::new("/proc/self"), "cgroup").is_ok());
        let missing = open_in(Path::new("/proc/self"), "no such file").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        for length in [MOST_PATH - 3, MOST_PATH - 2, MOST_PATH, 3 * MOST_PATH] {
            let error = open_in(Path::new("/"), &"x".repeat(length)).unwrap_err();
            assert_ne!(error.kind(), io::ErrorKind::NotFound, "{length}");
        }
    }
}
