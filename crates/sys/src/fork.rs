//! Detects that this process was forked: the child lacks the other threads of its parent and their work.
//!
//! Owns: a count that a child made by `fork(3)` finds one higher than its parent left it.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Runs in the child, before `fork` returns there.
extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Begins to count; the count now. A `fork` before this is not seen, nor is one by a raw system
/// call or by `vfork`, which run no handlers.
#[must_use]
pub fn watch() -> u32 {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // SAFETY: the handler is a function of this program and only counts.
        // Refused for want of memory only; then forks are not seen.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    generation()
}

/// The count: another one than [`watch`] gave means that this is a child. One load.
#[must_use]
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Runs `work` in a child of this process and tells whether it returned true there. For tests: in
/// the child of a process with several threads only the caller's goes on, and locks that another
/// one held, the allocator's included, stay locked for ever. A child that does not end within
/// `limit_ms` is killed.
///
/// # Errors
/// No child can be made, or it was killed.
pub fn child_says(limit_ms: u32, work: impl FnOnce() -> bool) -> std::io::Result<bool> {
    // SAFETY: the child runs the caller's work, as documented, and leaves without unwinding into
    // the parent's frames.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SIGALRM ends a child that hangs.
        // SAFETY: takes no memory.
        unsafe { libc::alarm(limit_ms.div_ceil(1000).max(1)) };
        let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!matches!(said, Ok(true)))) };
    }
    if child == -1 {
        return Err(std::io::Error::last_os_error());
    }
    let mut status = 0;
    // SAFETY: writes to a live local; the child is ours.
    crate::checked(unsafe { libc::waitpid(child, &raw mut status, 0) })?;
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        return Err(std::io::Error::other(format!("the child was ended by signal {signal}")));
    }
    Ok(libc::WEXITSTATUS(status) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_counts_on() {
        let before = watch();
        assert!(child_says(10_000, || generation() == before + 1).unwrap());
        assert_eq!(generation(), before);
        assert!(!child_says(10_000, || false).unwrap());
    }
}
