//! Waits on a word of memory, and wakes threads that wait on it.
//!
//! Waits end by deadline, by wake or by signal, and say which. None retries. Waking is
//! async-signal-safe: one system call, no memory but the word's address, `errno` as it was.

use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;

use crate::checked_long;
use crate::clock::timespec;
pub use crate::wake_reason::WakeReason;

/// Waits while `word` is `expected`, until the absolute `CLOCK_MONOTONIC` time `deadline_ns` at
/// most (`FUTEX_WAIT_BITSET`). A deadline beyond 292 years is one that never comes.
///
/// # Errors
/// What the kernel answers; does not happen for a word of this process.
pub fn wait_until(word: &AtomicU32, expected: u32, deadline_ns: u64) -> io::Result<WakeReason> {
    let deadline = timespec(deadline_ns);
    let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    match i32::try_from(-wait_bitset(word, operation, expected, &deadline)) {
        Ok(libc::ETIMEDOUT) => Ok(WakeReason::Timeout),
        Ok(libc::EAGAIN) => Ok(WakeReason::Changed),
        Ok(libc::EINTR) => Ok(WakeReason::Signal),
        Ok(error @ 1..) => Err(io::Error::from_raw_os_error(error)),
        _ => Ok(WakeReason::Woken),
    }
}

/// The call itself, and the kernel's answer. Not by the C library: after a long wait its code and `errno` are in no
/// cache, which would double the cost of the way out.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
#[inline(always)]
fn wait_bitset(word: &AtomicU32, operation: i32, expected: u32, until: &libc::timespec) -> i64 {
    let answer: i64;
    // SAFETY: the word and the deadline outlive the call, which writes to neither and changes these registers only.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") libc::SYS_futex => answer,
            in("rdi") word.as_ptr(),
            in("rsi") operation,
            in("rdx") expected,
            in("r10") ptr::from_ref(until),
            in("r8") ptr::null::<u32>(),
            in("r9") libc::FUTEX_BITSET_MATCH_ANY,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
fn wait_bitset(word: &AtomicU32, operation: i32, expected: u32, until: &libc::timespec) -> i64 {
    // SAFETY: the word and the deadline outlive the call; the unused argument is null.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            expected,
            ptr::from_ref(until),
            ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
    match answer {
        -1 => -i64::from(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)),
        // A wait that ended well returns 0.
        _ => 0,
    }
}

/// Waits while `word` is `expected`, `length_ns` from the kernel's entry at most (`FUTEX_WAIT`):
/// what happens between the caller's reading of a clock and the entry comes on top.
///
/// # Errors
/// What the kernel answers; does not happen for a word of this process.
pub fn wait_for(word: &AtomicU32, expected: u32, length_ns: u64) -> io::Result<WakeReason> {
    let length = timespec(length_ns);
    // SAFETY: the word and the length outlive the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            &raw const length,
        )
    };
    ended(answer)
}

/// Wakes at most `most` threads of this process that wait on `word`. May be called from a signal
/// handler.
pub fn wake(word: &AtomicU32, most: u32) {
    // SAFETY: errno is this thread's own; the location is valid as long as the thread lives.
    let errno = unsafe { *libc::__errno_location() };
    let most = i32::try_from(most).unwrap_or(i32::MAX);
    // SAFETY: the kernel takes the word's address as a name and does not write to it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            most,
        )
    };
    // SAFETY: as above; what a handler interrupted must find its errno unchanged.
    unsafe { *libc::__errno_location() = errno };
}

/// Locks the word that the kernel knows as a mutex with priority inheritance (`FUTEX_LOCK_PI`): it
/// holds 0, or its owner's thread number and a bit for waiters. To be called where exchanging 0 for
/// the own number failed; while the caller waits, the owner has at least its priority. Waits until
/// the absolute `CLOCK_REALTIME` time `deadline_ns` at most; a signal does not end it.
///
/// # Errors
/// `TimedOut`; `Deadlock` (EDEADLK) where owners wait for each other in a ring, the caller among
/// them; `WouldBlock` where it is to be tried again.
pub fn lock_inheriting(word: &AtomicU32, deadline_ns: u64) -> io::Result<()> {
    let deadline = timespec(deadline_ns);
    // SAFETY: the word and the deadline outlive the call; the kernel writes to the word atomically.
    checked_long(unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG,
            0,
            &raw const deadline,
        )
    })
    .map(|_| ())
}

/// Unlocks such a word and hands it to the most urgent waiter (`FUTEX_UNLOCK_PI`). To be called
/// where exchanging the own number for 0 failed.
///
/// # Errors
/// The caller does not own it.
pub fn unlock_inheriting(word: &AtomicU32) -> io::Result<()> {
    // SAFETY: the word outlives the call; the kernel writes to it atomically.
    checked_long(unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG,
        )
    })
    .map(|_| ())
}

fn ended(answer: libc::c_long) -> io::Result<WakeReason> {
    if answer != -1 {
        return Ok(WakeReason::Woken);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ETIMEDOUT) => Ok(WakeReason::Timeout),
        Some(libc::EAGAIN) => Ok(WakeReason::Changed),
        Some(libc::EINTR) => Ok(WakeReason::Signal),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::clock::{ClockId, now_ns};

    #[test]
    fn a_wait_ends_by_its_deadline_and_not_before() {
        let word = AtomicU32::new(7);
        let deadline = now_ns(ClockId::Monotonic) + 2_000_000;
        assert_eq!(wait_until(&word, 7, deadline).unwrap(), WakeReason::Timeout);
        assert!(now_ns(ClockId::Monotonic) >= deadline);
        let begun = now_ns(ClockId::Monotonic);
        assert_eq!(wait_for(&word, 7, 2_000_000).unwrap(), WakeReason::Timeout);
        assert!(now_ns(ClockId::Monotonic) >= begun + 2_000_000);
    }

    #[test]
    fn another_value_is_not_waited_for() {
        let word = AtomicU32::new(1);
        assert_eq!(wait_until(&word, 0, u64::MAX).unwrap(), WakeReason::Changed);
        assert_eq!(wait_for(&word, 0, u64::MAX).unwrap(), WakeReason::Changed);
    }

    #[test]
    fn a_wake_ends_a_wait_without_end() {
        let word = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                while word.load(Ordering::Acquire) == 0 {
                    assert_ne!(wait_until(&word, 0, u64::MAX).unwrap(), WakeReason::Timeout);
                }
            });
            word.store(1, Ordering::Release);
            wake(&word, 1);
            waiter.join().unwrap();
        });
    }

    /// A mutex is handed to who waits for it, and a wait for one's own ends as an error.
    #[test]
    fn an_inheriting_mutex_changes_hands() {
        let me = crate::thread::id();
        let word = AtomicU32::new(me);
        let own = lock_inheriting(&word, u64::MAX).unwrap_err();
        assert_eq!(own.raw_os_error(), Some(libc::EDEADLK));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                lock_inheriting(&word, u64::MAX).unwrap();
                word.load(Ordering::Acquire)
            });
            while word.load(Ordering::Acquire) == me {
                std::thread::yield_now();
            }
            unlock_inheriting(&word).unwrap();
            assert_ne!(waiter.join().unwrap() & !(1 << 31), me);
        });
        assert!(unlock_inheriting(&word).is_err(), "not the owner");
    }

    /// A handler may wake; the interrupted code finds errno as it left it.
    #[test]
    fn a_wake_leaves_errno_alone() {
        let word = AtomicU32::new(0);
        // SAFETY: errno is this thread's own, and valid as long as the thread lives.
        let errno = unsafe { &mut *libc::__errno_location() };
        *errno = libc::ENOTTY;
        wake(&word, u32::MAX);
        assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::ENOTTY));
    }
}
