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

/// Requests below this many bytes are not checked: a program that cannot have them cannot go on in any case.
const SMALL: u128 = 1 << 24;

/// Whether `bytes` bytes can be had now, and written; see [`lack_of`]. Fewer than 16 MiB always can.
#[must_use]
pub fn has_room(bytes: u128) -> bool {
    bytes < SMALL || lack_of(bytes, 0).is_none()
}

/// Why memory cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryShortage {
    /// Bytes that the machine has to give (`MemAvailable`).
    Available(u64),
    /// Further bytes that the process may have (`RLIMIT_AS`).
    Limit(u64),
    Refused,
}

/// Why `bytes` bytes cannot be had now, and written; `None` if they can. A kernel that promises more than it has ends
/// the process, or another one, when they are written; so what it says is available (`MemAvailable`) is the limit (for
/// 16 MiB and more), and what the process may have at all (`RLIMIT_AS`), of which `beside` must be left. For an answer
/// in place of an abort: nothing is kept, and others may be quicker.
#[must_use]
pub fn lack_of(bytes: u128, beside: u64) -> Option<MemoryShortage> {
    // First, since some allocators end the process where they are asked for what cannot be.
    let short = |available: &u64| bytes >= SMALL && bytes > u128::from(*available);
    if let Some(available) = available().filter(short) {
        return Some(MemoryShortage::Available(available));
    }
    let bytes = bytes.saturating_add(u128::from(beside));
    let mut tried = Vec::<u8>::new();
    let can = usize::try_from(bytes).is_ok_and(|bytes| tried.try_reserve_exact(bytes).is_ok());
    // Seen from outside, so that it is not left out for being of no use.
    hint::black_box(&tried);
    if can {
        return None;
    }
    Some(
        left_of_limit()
            .filter(|left| bytes > u128::from(*left))
            .map_or(MemoryShortage::Refused, MemoryShortage::Limit),
    )
}

/// Bytes of addresses that the process may still take (`RLIMIT_AS`); `None` if there is no limit.
fn left_of_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills a live local.
    checked(unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) }).ok()?;
    if limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let taken = status.lines().find_map(|line| line.strip_prefix("VmSize:")).and_then(in_bytes);
    Some(limit.rlim_cur.saturating_sub(taken.unwrap_or(0)))
}

/// `    1234 kB`, as files of `/proc` have it.
fn in_bytes(text: &str) -> Option<u64> {
    text.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Bytes that the kernel thinks it could give without swapping; `None` if it does not say.
fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    in_bytes(line)
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

    /// A limit smaller than the buffers ended the process by SIGABRT.
    #[test]
    fn a_limit_of_the_process_is_reported() {
        let said = crate::fork::child_says(10_000, || {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let taken = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
            let most = in_bytes(taken).unwrap() + (32 << 20);
            let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
            // SAFETY: reads a live local; the limit is this child's own.
            unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
            let shortage = lack_of(24 << 20, 40 << 20);
            lack_of(4 << 20, 4 << 20).is_none()
                && matches!(shortage, Some(MemoryShortage::Limit(left)) if left > 0 && left <= 32 << 20)
        });
        assert!(said.unwrap());
    }
}
