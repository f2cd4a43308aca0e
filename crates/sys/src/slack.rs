//! The calling thread's timer slack as it is ([`crate::thread::set_timer_slack`] changes it).

/// How late the kernel may wake the calling thread to save power, in ns (`PR_GET_TIMERSLACK`).
/// Real-time threads are told 0 by kernels from 6.12 on.
#[must_use]
pub fn timer_slack() -> u64 {
    // SAFETY: takes no memory.
    let ns = unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    u64::try_from(ns).unwrap_or(0)
}
