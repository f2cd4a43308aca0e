//! What sleeping is made of.

use std::sync::atomic::AtomicU32;

pub use hourglass_sys::woken::Woken;

/// A scheduling policy by the kernel's number (`SCHED_OTHER` is 0, `SCHED_FIFO` 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Class(pub i32);

impl Class {
    /// `SCHED_OTHER`.
    pub const OTHER: Class = Class(0);
    /// `SCHED_FIFO`.
    pub const FIFO: Class = Class(1);
    /// `SCHED_RR`.
    pub const ROUND_ROBIN: Class = Class(2);
    /// `SCHED_DEADLINE`.
    pub const DEADLINE: Class = Class(6);

    /// Whether the kernel wakes threads of this class without timer slack.
    #[must_use]
    pub const fn is_real_time(self) -> bool {
        matches!(self, Class::FIFO | Class::ROUND_ROBIN | Class::DEADLINE)
    }
}

/// The ways of one thread to let time pass, and what there is to know about it: this machine's, or
/// a simulated one's.
///
/// Implementations MUST
/// - take deadlines on the scale of the clock that the sleeper is given (`CLOCK_MONOTONIC`);
/// - end a wait when `word` is not `expected` and when somebody wakes it, and may end it at any
///   other time: the sleeper looks at its clock and at the word, and waits again;
/// - return from [`Mechanism::relax`] before `left_ns` are over, and before that within some 500 ns
///   of an interrupt: the word is looked at only in between;
/// - never allocate, and never fail: a wait that is refused returns at once, and the sleep is spun.
pub trait Mechanism {
    /// Waits in the kernel until an absolute time, ns.
    fn wait_until(&mut self, word: &AtomicU32, expected: u32, deadline_ns: u64) -> Woken;

    /// Waits in the kernel for a length of time, ns.
    fn wait_for(&mut self, word: &AtomicU32, expected: u32, length_ns: u64) -> Woken;

    /// Passes a moment of spinning, with `left_ns` until the deadline.
    fn relax(&mut self, left_ns: u64);

    /// The CPU that the thread runs on.
    fn cpu(&mut self) -> u32;

    /// The thread's scheduling policy.
    fn class(&mut self) -> Class;

    /// How often the CPU was taken from the thread so far (`ru_nivcsw`).
    fn preemptions(&mut self) -> u64;

    /// CPU time of the thread so far, ns.
    fn cpu_time_ns(&mut self) -> u64;

    /// The thread's timer slack, ns; `None` if it has none to be changed.
    fn slack_ns(&mut self) -> Option<u64>;

    /// Sets it; refusals are not told.
    fn set_slack_ns(&mut self, slack_ns: u64);

    /// Told what the clock says, before and after each wait: whoever needs the rate of a counter for
    /// [`Mechanism::relax`] learns it from that.
    fn clock_says(&mut self, _now_ns: u64) {}
}
