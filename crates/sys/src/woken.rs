//! Why waits end.

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time had come.
    Timeout,
    /// Somebody woke the waiters, or the kernel did for no reason.
    Woken,
    /// The word did not hold what was expected: nothing was waited for.
    Changed,
    /// A signal handler ran.
    Signal,
}
