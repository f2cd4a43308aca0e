//! Stopping and resuming co-runners.

use std::io;

/// Stops and resumes a set of co-runners.
///
/// MUST: be idempotent in both directions. MUST leave nobody stopped when it is dropped, nor when
/// this process dies by any signal (a guardian resumes them). MUST return from `stop` only when
/// the kernel has accepted the order.
pub trait Stopper: Send {
    /// Its name in documents, such as `cgroup2_freeze`.
    fn name(&self) -> &'static str;
    /// Nobody of the set may run.
    ///
    /// # Errors
    /// What the kernel answers; members that ended are no error.
    fn stop(&mut self) -> io::Result<()>;
    /// Whether [`Stopper::slow`] does anything.
    fn is_graded(&self) -> bool {
        false
    }
    /// They may run, but only on what nobody else wants of a CPU: the step before a stop. Ends a stop.
    ///
    /// # Errors
    /// As [`Stopper::stop`].
    fn slow(&mut self) -> io::Result<()> {
        self.resume()
    }
    /// All may run again.
    ///
    /// # Errors
    /// As [`Stopper::stop`].
    fn resume(&mut self) -> io::Result<()>;
}
