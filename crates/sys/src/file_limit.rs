//! How large a file of this process may grow (`RLIMIT_FSIZE`).
//!
//! Owns: asking before a file grows, since the kernel answers beyond the limit with SIGXFSZ, which ends a program that
//! has not said otherwise. It looks at where a write ends, and not at how large the file is. Must not: change the limit
//! or what the signal does, which are the program's.

use std::io;
use std::mem::MaybeUninit;

use crate::checked;
#[cfg(test)]
pub(crate) use tests::set;

/// Whether a write, or a new size, may end at byte `end` of a file. Takes no memory if it may.
///
/// # Errors
/// `FileTooLarge` if it may not.
pub(crate) fn allows(end: u64) -> io::Result<()> {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the kernel fills the live local.
    checked(unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, limit.as_mut_ptr()) })?;
    // SAFETY: filled, since the call succeeded.
    let limit = unsafe { limit.assume_init() }.rlim_cur;
    if limit == libc::RLIM_INFINITY || end <= limit {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::FileTooLarge, FileSizeExceeded { end, limit }))
}

#[derive(Debug, thiserror::Error)]
#[error(
    "a file of {end} bytes is needed, and this process may have files of {limit} (RLIMIT_FSIZE): raise that with ulimit -f"
)]
struct FileSizeExceeded {
    end: u64,
    limit: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a child: no file grows beyond `limit` bytes from here on, and SIGXFSZ ends the process.
    pub(crate) fn set(limit: u64) {
        let limit = libc::rlimit { rlim_cur: limit, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: reads a live local; a number by value.
        unsafe {
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        }
    }

    /// getrlimit(2): a file may grow up to the limit, and not beyond.
    #[test]
    fn a_file_may_grow_to_the_limit() {
        let said = crate::fork::child_says(10_000, || {
            set(4096);
            let refused = allows(4097).unwrap_err();
            allows(4096).is_ok()
                && refused.kind() == io::ErrorKind::FileTooLarge
                && refused.to_string().contains("RLIMIT_FSIZE")
        });
        assert!(said.unwrap());
    }
}
