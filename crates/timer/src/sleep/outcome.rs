//! What happened in a sleep.

use hourglass_time::Span;

/// Why a sleep ended after its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delay {
    /// It did not, but for the last step of the spin: the miss is at most [`Delay::ON_TIME_NS`].
    None,
    /// The deadline had passed when the sleep was asked for. The kernel was not entered.
    AlreadyPast,
    /// The kernel woke the thread after the deadline, and no other thread had taken the CPU from it: the
    /// timer was late, the CPU slow to leave its idle state, or the thread had to wait for a CPU. A
    /// thread that was stopped meanwhile (`SIGSTOP`, a debugger, a frozen control group) looks the same:
    /// the kernel keeps nothing by which the thread could distinguish it afterwards.
    WokenLate,
    /// The CPU was given to another thread against the thread's will (`ru_nivcsw` grew), after the
    /// kernel had woken it or while it spun. Not read with [`super::SleepPolicy::KernelOnly`],
    /// where it would be a system call or two in each sleep: such a sleep is [`Delay::WokenLate`].
    Preempted,
    /// The spin stood still across the deadline without a preemption by the scheduler: an
    /// interrupt, the firmware, a hypervisor that ran another guest, or a stop (`SIGSTOP`).
    Stalled,
}

impl Delay {
    /// The greatest miss that is not a delay, ns.
    pub const ON_TIME_NS: u64 = 1_000;
}

/// What happened in a sleep. Times are on `CLOCK_MONOTONIC`'s scale, as the sleeper's clock tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an interrupted sleep ended before its deadline"]
pub struct SleepOutcome {
    /// The deadline, ns.
    pub deadline_ns: u64,
    /// The reading that ended the sleep, ns: taken in order after everything before it.
    pub woke_ns: u64,
    /// Time in the kernel, its wake-up included, ns.
    pub kernel_ns: u64,
    /// Time spinning, ns; with whatever interrupted it.
    pub spin_ns: u64,
    /// How long before the deadline the kernel was to wake, ns; 0 if it was not asked to.
    pub margin_ns: u64,
    /// The longest time between two looks at the clock in the spin, ns.
    pub longest_step_ns: u64,
    /// Whether an interrupt ended it (or would have: it is set, and the deadline had passed).
    pub interrupted: bool,
    /// Why it ended after its deadline.
    pub delay: Delay,
}

impl SleepOutcome {
    /// How long after its deadline the sleep ended, ns; 0 if an interrupt ended it before.
    #[must_use]
    pub const fn miss_ns(&self) -> u64 {
        self.woke_ns.saturating_sub(self.deadline_ns)
    }

    /// How long after its deadline the sleep ended; negative if an interrupt ended it before.
    #[must_use]
    pub fn miss(&self) -> Span {
        let apart = i128::from(self.woke_ns) - i128::from(self.deadline_ns);
        let held = i64::try_from(apart);
        Span::from_nanos(held.unwrap_or(if apart < 0 { i64::MIN } else { i64::MAX }))
    }

    /// Whether the deadline was reached.
    #[must_use]
    pub const fn reached(&self) -> bool {
        self.woke_ns >= self.deadline_ns
    }

    /// Whether the CPU was away from the thread across the deadline, rather than it being merely
    /// woken late.
    #[must_use]
    pub const fn preempted(&self) -> bool {
        matches!(self.delay, Delay::Preempted | Delay::Stalled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_has_a_sign() {
        let slept = |deadline_ns, woke_ns| SleepOutcome {
            deadline_ns,
            woke_ns,
            kernel_ns: 0,
            spin_ns: 0,
            margin_ns: 0,
            longest_step_ns: 0,
            interrupted: false,
            delay: Delay::None,
        };
        assert_eq!((slept(5, 9).miss_ns(), slept(5, 9).miss()), (4, Span::from_nanos(4)));
        assert_eq!((slept(9, 5).miss_ns(), slept(9, 5).miss()), (0, Span::from_nanos(-4)));
        assert_eq!(slept(u64::MAX, 0).miss(), Span::MIN);
        assert!(slept(5, 5).reached() && !slept(6, 5).reached());
    }
}
