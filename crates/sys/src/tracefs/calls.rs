//! The system calls in which a thread may wait, by the kernel's numbers on this processor.

/// What a system call waits for, and which of its arguments says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFamily {
    /// `clock_nanosleep`: the second argument has `TIMER_ABSTIME`.
    ClockNanosleep,
    Nanosleep,
    /// `futex`: at the first argument, with the operation in the second.
    Futex,
    /// `futex_wait`: at the first argument.
    FutexWait,
    /// The descriptor in the first argument.
    Descriptor,
    /// Several descriptors, which are behind a pointer.
    Several,
    Other,
}

/// `TIMER_ABSTIME` of `clock_nanosleep`.
pub const ABSOLUTE: u64 = libc::TIMER_ABSTIME as u64;
/// `FUTEX_CMD_MASK`: what is left of an operation without its flags.
const COMMAND: u64 = 0x7f;
/// `futex_wait`, which libc does not have for all of its targets.
const FUTEX_WAIT: i64 = 455;

/// What an operation of `futex` does to who calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FutexWaiting {
    Wait,
    /// With priority inheritance.
    Lock,
    Never,
}

impl FutexWaiting {
    #[must_use]
    pub fn of(operation: u64) -> FutexWaiting {
        /// `FUTEX_LOCK_PI2`.
        const LOCK_PI2: i32 = 13;
        match i32::try_from(operation & COMMAND).unwrap_or(-1) {
            libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_WAIT_REQUEUE_PI => {
                FutexWaiting::Wait
            }
            libc::FUTEX_LOCK_PI | LOCK_PI2 => FutexWaiting::Lock,
            _ => FutexWaiting::Never,
        }
    }
}

/// Each call with its number. Calls of 32-bit programs have other numbers, and are not among these.
#[must_use]
pub fn waiting_calls() -> Vec<(u64, CallFamily)> {
    use CallFamily::{ClockNanosleep, Descriptor, Futex, FutexWait, Nanosleep, Other, Several};
    let common = [
        (libc::SYS_clock_nanosleep, ClockNanosleep),
        (libc::SYS_nanosleep, Nanosleep),
        (libc::SYS_futex, Futex),
        (FUTEX_WAIT, FutexWait),
        (libc::SYS_read, Descriptor),
        (libc::SYS_readv, Descriptor),
        (libc::SYS_write, Descriptor),
        (libc::SYS_writev, Descriptor),
        (libc::SYS_ioctl, Descriptor),
        (libc::SYS_fsync, Descriptor),
        (libc::SYS_fdatasync, Descriptor),
        (libc::SYS_flock, Descriptor),
        (libc::SYS_accept, Descriptor),
        (libc::SYS_accept4, Descriptor),
        (libc::SYS_connect, Descriptor),
        (libc::SYS_recvfrom, Descriptor),
        (libc::SYS_recvmsg, Descriptor),
        (libc::SYS_recvmmsg, Descriptor),
        (libc::SYS_sendto, Descriptor),
        (libc::SYS_sendmsg, Descriptor),
        (libc::SYS_epoll_pwait, Descriptor),
        (libc::SYS_epoll_pwait2, Descriptor),
        (libc::SYS_io_uring_enter, Descriptor),
        (libc::SYS_io_getevents, Descriptor),
        (libc::SYS_mq_timedreceive, Descriptor),
        (libc::SYS_mq_timedsend, Descriptor),
        (libc::SYS_msgrcv, Descriptor),
        (libc::SYS_semtimedop, Descriptor),
        (libc::SYS_semop, Descriptor),
        (libc::SYS_ppoll, Several),
        (libc::SYS_pselect6, Several),
        (libc::SYS_futex_waitv, Other),
        (libc::SYS_rt_sigtimedwait, Other),
        (libc::SYS_rt_sigsuspend, Other),
        (libc::SYS_wait4, Other),
        (libc::SYS_waitid, Other),
    ];
    #[cfg(target_arch = "x86_64")]
    let older = [
        (libc::SYS_epoll_wait, Descriptor),
        (libc::SYS_poll, Several),
        (libc::SYS_select, Several),
        (libc::SYS_pause, Other),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let older = [];
    let number = |(number, family): (i64, CallFamily)| Some((u64::try_from(number).ok()?, family));
    common.into_iter().chain(older).filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_a_futex_are_known_without_their_flags() {
        let private_bitset = (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG) as u64;
        assert_eq!(FutexWaiting::of(private_bitset), FutexWaiting::Wait);
        assert_eq!(FutexWaiting::of(libc::FUTEX_LOCK_PI as u64), FutexWaiting::Lock);
        assert_eq!(FutexWaiting::of(libc::FUTEX_WAKE as u64), FutexWaiting::Never);
    }

    #[test]
    fn no_number_is_there_twice() {
        let mut numbers: Vec<u64> = waiting_calls().iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    }
}
