//! Waking a thread that waits on a word ([`crate::wait::futex_until`]).

use std::sync::atomic::AtomicU32;

/// Wakes one thread of this process that waits on `word`, if there is one: 0.1 us if there is
/// none. May be called in a signal handler.
pub fn wake_one(word: &AtomicU32) {
    // SAFETY: the kernel only takes the live word's address; it fails for no aligned one.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        )
    };
}
