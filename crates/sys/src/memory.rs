//! Keeping memory in memory.

use std::io;

use crate::checked;

/// Locks every page that the process has or will have (`mlockall`).
///
/// # Errors
/// EPERM or ENOMEM where `RLIMIT_MEMLOCK` does not allow it.
pub fn lock_all() -> io::Result<()> {
    // SAFETY: takes no memory.
    checked(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }).map(|_| ())
}

/// Takes back [`lock_all`] and every [`lock`].
pub fn unlock_all() {
    // SAFETY: takes no memory.
    unsafe { libc::munlockall() };
}

/// Locks the pages under `items`; they stay locked until they are freed or [`unlock_all`].
///
/// # Errors
/// EPERM or ENOMEM where `RLIMIT_MEMLOCK` does not allow it.
pub fn lock<T>(items: &[T]) -> io::Result<()> {
    let bytes = size_of_val(items);
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the range is that of a live slice; locking does not change its contents.
    checked(unsafe { libc::mlock(items.as_ptr().cast(), bytes) }).map(|_| ())
}
