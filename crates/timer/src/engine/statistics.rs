//! What an engine did.

/// What an engine did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStatistics {
    /// Waits that returned.
    pub wakes: u64,
    /// Polls of the timers.
    pub polls: u64,
    /// Ticks of a tick-bound engine at which nothing was due, so that it slept on (*Hrtimers and
    /// Beyond*, section 9: dynamic tick). 0 in high resolution, which has no tick.
    pub ticks_skipped: u64,
    /// Timers that expired.
    pub fired: u64,
    /// Times that the clocks could not be watched for being set, for want of file descriptors or
    /// threads: until it succeeds the engine polls them each tick, and does not know of a
    /// setting that is over ([`ClockSetPolicy::Expire`](super::ClockSetPolicy::Expire)).
    pub watch_failures: u64,
}
