//! Keeps state of a thread that calls a library: its `errno`, and that it is not cancelled.
//!
//! A thread that is cancelled (`pthread_cancel(3)`) is unwound by force at its next cancellation point, such
//! as `read`. Frames of Rust behind a C interface do not bear that: the process is aborted. While a
//! [`CallerState`] lives there are no such points; a request that comes meanwhile is obeyed by the thread's next
//! one after that, in code of its own.
//!
//! Async-signal-safe: two stores in memory of the calling thread, no system call.

use std::marker::PhantomData;

use libc::c_int;

/// `PTHREAD_CANCEL_DISABLE`, of glibc and of musl.
const DISABLE: c_int = 1;

unsafe extern "C" {
    // The binding of the libc crate leaves it out for Linux.
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// The calling thread is not cancelled, until this is dropped; then `errno` is what it was, too.
///
/// They nest. It stays in its thread.
#[derive(Debug)]
pub struct CallerState {
    errno: c_int,
    /// Whether the thread may be cancelled, as the C library writes it.
    cancelling: c_int,
    /// Both are the thread's.
    stays: PhantomData<*const ()>,
}

/// Keeps `errno`, and the thread from being cancelled.
#[must_use]
#[inline]
pub fn keep() -> CallerState {
    // SAFETY: errno is this thread's own; the location is valid as long as the thread lives.
    let errno = unsafe { *libc::__errno_location() };
    CallerState { errno, cancelling: set(DISABLE), stays: PhantomData }
}

impl Drop for CallerState {
    #[inline]
    fn drop(&mut self) {
        set(self.cancelling);
        // SAFETY: as where it was read; it is the same thread, since this stays there.
        unsafe { *libc::__errno_location() = self.errno };
    }
}

/// Whether the calling thread is cancelled from here on; what held before.
fn set(state: c_int) -> c_int {
    let mut before = DISABLE;
    // SAFETY: writes to a live local. An answer that is not 0, for an invalid state, leaves it.
    unsafe { pthread_setcancelstate(state, &raw mut before) };
    before
}

/// Lets the calling thread never be cancelled: for threads of a library.
pub fn never_cancelled() {
    set(DISABLE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_finds_all_as_it_was() {
        let before = set(DISABLE);
        set(before);
        assert_ne!(before, DISABLE, "threads begin cancellable");
        // SAFETY: errno is this thread's own, and valid as long as the thread lives.
        let errno = unsafe { &mut *libc::__errno_location() };
        *errno = libc::ENOTTY;
        {
            let _kept = keep();
            {
                let _nested = keep();
                *errno = libc::ENOENT;
            }
            assert_eq!(*errno, libc::ENOTTY);
            assert_eq!(set(DISABLE), DISABLE, "the outer one holds on");
            assert!(std::fs::File::open("/nowhere").is_err());
        }
        assert_eq!(*errno, libc::ENOTTY);
        assert_eq!(set(before), before);
    }
}
