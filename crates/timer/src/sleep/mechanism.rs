//! What sleeping is made of.

use std::sync::atomic::AtomicU32;

pub use hourglass_sys::wake_reason::WakeReason;

/// A scheduling policy by the kernel's number (`SCHED_OTHER` is 0, `SCHED_FIFO` 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SchedClass(pub i32);

impl SchedClass {
    /// `SCHED_OTHER`.
    pub const OTHER: SchedClass = SchedClass(0);
    /// `SCHED_FIFO`.
    pub const FIFO: SchedClass = SchedClass(1);
    /// `SCHED_RR`.
    pub const ROUND_ROBIN: SchedClass = SchedClass(2);
    /// `SCHED_DEADLINE`.
    pub const DEADLINE: SchedClass = SchedClass(6);

    /// Whether the kernel wakes threads of this class without timer slack.
    #[must_use]
    pub const fn is_real_time(self) -> bool {
        matches!(self, SchedClass::FIFO | SchedClass::ROUND_ROBIN | SchedClass::DEADLINE)
    }
}

/// How long before the deadline a sleeper that can asks not to be preempted, ns: less than a kernel
/// grants by default, which is 5 us.
pub(super) const LAST_NS: u64 = 4_000;
/// The longest low-power wait, ns: an interrupt is seen after it.
const SLICE_NS: u64 = 400;
/// How long before the deadline low-power waits end: what it may take to leave them, and what they are
/// longer than asked because processors count in quanta (83 ticks, Kuns and others, ICPE 2025), ns.
const AWAKE_NS: u64 = 600;
/// The shortest of them, ns.
const SHORTEST_SLICE_NS: u64 = 100;

/// How long to wait at low power at this distance from the deadline, ns; `None` if it is too close.
#[inline]
pub(super) fn low_power_slice_ns(left_ns: u64) -> Option<u64> {
    let slice_ns = left_ns.saturating_sub(AWAKE_NS).min(SLICE_NS);
    (slice_ns > SHORTEST_SLICE_NS).then_some(slice_ns)
}

/// The ways of one thread to let time pass, and what there is to know about it: this machine's, or
/// a simulated one's.
///
/// Implementations MUST
/// - take deadlines on the scale of the clock that the sleeper is given (`CLOCK_MONOTONIC`);
/// - end a wait when `word` is not `expected` and when another thread wakes it, and may end it at any
///   other time: the sleeper looks at its clock and at the word, and waits again;
/// - return from [`Mechanism::relax`] before `left_ns` are over, and before that within some 500 ns
///   of an interrupt: the word is looked at only in between;
/// - never allocate, and never fail: a wait that is refused returns at once, and the sleep is spun.
pub trait Mechanism {
    /// Waits in the kernel until an absolute time, ns.
    fn wait_until(&mut self, word: &AtomicU32, expected: u32, deadline_ns: u64) -> WakeReason;

    /// Waits in the kernel for a length of time, ns.
    fn wait_for(&mut self, word: &AtomicU32, expected: u32, length_ns: u64) -> WakeReason;

    /// Passes a moment of spinning, with `left_ns` until the deadline.
    fn relax(&mut self, left_ns: u64);

    /// The CPU that the thread runs on.
    fn cpu(&mut self) -> u32;

    /// The thread's scheduling policy.
    fn class(&mut self) -> SchedClass;

    /// How often the CPU was taken from the thread so far (`ru_nivcsw`).
    fn preemptions(&mut self) -> u64;

    /// CPU time of the thread so far, ns.
    fn cpu_time_ns(&mut self) -> u64;

    /// The thread's timer slack, ns; `None` if it has none to be changed.
    fn slack_ns(&mut self) -> Option<u64>;

    /// Sets the timer slack; refusals are not reported.
    fn set_slack_ns(&mut self, slack_ns: u64);

    /// Called before a wait that a spin follows, on this thread.
    fn spin_follows(&mut self) {}

    /// Called when a spin is over: withdraws what was asked for in its last moments, for example
    /// not to be preempted.
    fn spin_ended(&mut self) {}

    /// Called with the clock's time, before and after each wait: a mechanism that needs the rate of
    /// a counter for [`Mechanism::relax`] learns it from that.
    fn clock_says(&mut self, _now_ns: u64) {}
}
