//! Why waits end.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeReason {
    Timeout,
    /// A thread woke the waiters, or the kernel did for no reason.
    Woken,
    /// The word did not hold what was expected: nothing was waited for.
    Changed,
    Signal,
}
