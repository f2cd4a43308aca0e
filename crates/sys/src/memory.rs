//! Keeping memory in memory, and whether there is any.

use std::{fs, hint, io};

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

/// Below so many bytes nobody is asked: a program that cannot have them cannot go on in any case.
const SMALL: u128 = 1 << 24;

/// Whether so many bytes can be had now, and written. A kernel that promises more than it has ends the
/// process, or another one, when they are written; so what it says is available (`MemAvailable`) is the
/// limit, and what the process may have at all (`RLIMIT_AS`). For an answer in place of an abort: nothing
/// is kept, and others may be quicker.
#[must_use]
pub fn has_room(bytes: u128) -> bool {
    if bytes < SMALL {
        return true;
    }
    // First, since some allocators end the process where they are asked for what cannot be.
    if available().is_some_and(|available| bytes > u128::from(available)) {
        return false;
    }
    let mut tried = Vec::<u8>::new();
    let can = usize::try_from(bytes).is_ok_and(|bytes| tried.try_reserve_exact(bytes).is_ok());
    // Seen from outside, so that it is not left out for being of no use.
    hint::black_box(&tried);
    can
}

/// Bytes that the kernel thinks it could give without swapping; `None` if it does not say.
fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_not_there() {
        assert!(has_room(0) && has_room(SMALL));
        assert!(!has_room(u128::from(u64::MAX)) && !has_room(u128::MAX));
        // 2^46 bytes are below any address, and above any memory.
        assert!(!has_room(1 << 46));
        assert!(available().is_some_and(|bytes| bytes > 0));
    }
}
