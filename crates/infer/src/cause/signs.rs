//! What speaks for the cause of a gap: a small set, and its words.

use std::fmt;

/// One thing that was noticed about a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Sign {
    /// A `sched_switch` took the thread off its CPU.
    KernelSwitch = 0,
    /// An interrupt, a softirq, a fault or a signal of the kernel's trace lies in the gap.
    KernelWork = 1,
    /// The kernel recorded nothing on the CPU, and lost nothing.
    KernelSilent = 2,
    /// The kernel's record has a hole here.
    KernelLost = 3,
    /// The kernel cleared the critical section.
    Cleared = 4,
    /// The kernel did not clear the critical section.
    NotCleared = 5,
    /// The kernel counted a switch forced on the thread.
    CountedInvoluntary = 6,
    /// The kernel counted a switch by the thread's own wait.
    CountedVoluntary = 7,
    /// The kernel counted no switch.
    NoneCounted = 8,
    /// The kernel counted a page fault.
    CountedFault = 9,
    /// Another thread of the run was seen on the CPU meanwhile.
    OtherThreadSeen = 10,
    /// The thread was on another CPU after the gap.
    CpuChanged = 11,
    /// The thread had just yielded.
    Yielded = 12,
    /// No thread of the run has a higher priority, and this one never waits.
    HighestPriority = 13,
    /// The gap holds a tick, or begins on the grid of the tick where its moments had to be found.
    OnTickGrid = 14,
    /// Gaps of this size come back at a fixed distance.
    Periodic = 15,
    /// It is as long as real-time throttling stops a thread.
    ThrottlingLength = 16,
    /// Gaps of that length are a throttling period apart.
    ThrottlingPeriod = 17,
    /// It ended when the reservation was replenished.
    Replenished = 18,
    /// It ended with a period of the control group's quota, which stopped the group in this run.
    QuotaPeriod = 19,
    /// The thread was in a stopped or traced state.
    StoppedState = 20,
    /// The thread never waits, but the kernel counted that it did.
    NeverWaits = 21,
    /// A hypervisor is below the kernel.
    VirtualMachine = 22,
    /// The kernel counted that the quota stopped the control group in this run.
    QuotaCounted = 23,
    /// The kernel's log says, since the run began, that it throttles real-time threads.
    ThrottlingLogged = 24,
    /// A record of the thread's switches has one here.
    RecordedSwitch = 25,
    /// The records of the thread's switches have none here, and none is missing.
    NoRecordedSwitch = 26,
    /// No interrupt but ticks was counted meanwhile.
    NoInterruptCounted = 27,
    /// Fewer interrupts were counted in the run than there are such gaps.
    FewInterrupts = 28,
    /// It is too short to be an interrupt: ticks take at least twice as long.
    ShorterThanTicks = 29,
    /// The CPU was idle for most of the time.
    IdleMeanwhile = 30,
    /// Ticks were counted that do not show among the gaps.
    TicksMissing = 31,
    /// Real-time throttling may have been a part of it.
    ThrottlingPossible = 32,
    /// Time-sharing threads had the CPU for most of the time.
    TimeSharing = 33,
}

impl Sign {
    pub const ALL: [Sign; 34] = [
        Sign::KernelSwitch,
        Sign::KernelWork,
        Sign::KernelSilent,
        Sign::KernelLost,
        Sign::Cleared,
        Sign::NotCleared,
        Sign::CountedInvoluntary,
        Sign::CountedVoluntary,
        Sign::NoneCounted,
        Sign::CountedFault,
        Sign::OtherThreadSeen,
        Sign::CpuChanged,
        Sign::Yielded,
        Sign::HighestPriority,
        Sign::OnTickGrid,
        Sign::Periodic,
        Sign::ThrottlingLength,
        Sign::ThrottlingPeriod,
        Sign::Replenished,
        Sign::QuotaPeriod,
        Sign::StoppedState,
        Sign::NeverWaits,
        Sign::VirtualMachine,
        Sign::QuotaCounted,
        Sign::ThrottlingLogged,
        Sign::RecordedSwitch,
        Sign::NoRecordedSwitch,
        Sign::NoInterruptCounted,
        Sign::FewInterrupts,
        Sign::ShorterThanTicks,
        Sign::IdleMeanwhile,
        Sign::TicksMissing,
        Sign::ThrottlingPossible,
        Sign::TimeSharing,
    ];

    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Sign::KernelSwitch => "the kernel's trace has a switch",
            Sign::KernelWork => "the kernel's trace has interrupts or faults",
            Sign::KernelSilent => "the kernel's trace has nothing here",
            Sign::KernelLost => "the kernel's trace has a hole here",
            Sign::Cleared => "the critical section was cleared",
            Sign::NotCleared => "the critical section was not cleared",
            Sign::CountedInvoluntary => "an involuntary switch was counted",
            Sign::CountedVoluntary => "a voluntary switch was counted",
            Sign::NoneCounted => "no switch was counted",
            Sign::CountedFault => "a page fault was counted",
            Sign::OtherThreadSeen => "another thread of the run had the CPU",
            Sign::CpuChanged => "the CPU changed",
            Sign::Yielded => "the thread had yielded",
            Sign::HighestPriority => "the thread has the highest priority and never waits",
            Sign::OnTickGrid => "it is where a tick is",
            Sign::Periodic => "gaps of its size are periodic",
            Sign::ThrottlingLength => "it is as long as throttling stops a thread",
            Sign::ThrottlingPeriod => "such gaps are a throttling period apart",
            Sign::Replenished => "it ended when the budget was replenished",
            Sign::QuotaPeriod => "it ended with a period of the quota",
            Sign::StoppedState => "the thread was stopped or traced",
            Sign::NeverWaits => "the thread never waits by itself",
            Sign::VirtualMachine => "a hypervisor is below the kernel",
            Sign::QuotaCounted => "the kernel counted that the group was throttled",
            Sign::ThrottlingLogged => "the kernel's log says that it throttles",
            Sign::RecordedSwitch => "a switch was recorded",
            Sign::NoRecordedSwitch => "no switch was recorded",
            Sign::NoInterruptCounted => "no interrupt but ticks was counted",
            Sign::FewInterrupts => "far fewer interrupts were counted than there are such gaps",
            Sign::ShorterThanTicks => "it is far shorter than ticks are",
            Sign::IdleMeanwhile => "the CPU was idle meanwhile",
            Sign::TicksMissing => "ticks were counted that do not show among the gaps",
            Sign::ThrottlingPossible => "real-time throttling may be a part of it",
            Sign::TimeSharing => "time-sharing threads had the CPU",
        }
    }
}

/// A set of [`Sign`]s. Written, it is their words joined by `; `.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Signs(u64);

impl Signs {
    /// The empty set.
    pub const NONE: Signs = Signs(0);

    /// Puts a sign into the set.
    pub fn insert(&mut self, sign: Sign) {
        self.0 |= 1_u64 << sign as u8;
    }

    /// The set with this sign.
    #[must_use]
    pub fn with(mut self, sign: Sign) -> Signs {
        self.insert(sign);
        self
    }

    /// Whether the sign is in the set.
    #[must_use]
    pub fn contains(self, sign: Sign) -> bool {
        self.0 & (1_u64 << sign as u8) != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The signs in the set, in the order of [`Sign::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Sign> {
        Sign::ALL.into_iter().filter(move |sign| self.contains(*sign))
    }

    /// Whether what was noticed proves that the thread was off its CPU for another: the kernel's
    /// trace or its records have a switch, the kernel counted one, or another thread of the run was seen there.
    #[must_use]
    pub fn prove_a_switch(self) -> bool {
        [
            Sign::KernelSwitch,
            Sign::RecordedSwitch,
            Sign::CountedInvoluntary,
            Sign::CountedVoluntary,
            Sign::OtherThreadSeen,
        ]
        .into_iter()
        .any(|sign| self.contains(sign))
    }
}

impl fmt::Display for Signs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, sign) in self.iter().enumerate() {
            if place > 0 {
                f.write_str("; ")?;
            }
            f.write_str(sign.words())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Signs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_keeps_its_signs_and_says_them() {
        let mut all = Signs::NONE;
        for (place, sign) in Sign::ALL.into_iter().enumerate() {
            assert_eq!(sign as usize, place, "the order of ALL is that of the bits");
            assert!(!all.contains(sign));
            all.insert(sign);
        }
        assert_eq!(all.iter().count(), Sign::ALL.len());
        let two = Signs::NONE.with(Sign::CpuChanged).with(Sign::Cleared);
        assert_eq!(two.to_string(), "the critical section was cleared; the CPU changed");
        assert!(!two.prove_a_switch());
        assert!(two.with(Sign::CountedVoluntary).prove_a_switch());
    }
}
