//! Indications of the cause of a gap: a small set, and their words.

use std::fmt;

/// One piece of evidence for the cause of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Indication {
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
    /// The gap is as long as real-time throttling stops a thread.
    ThrottlingLength = 16,
    /// Gaps of that length are a throttling period apart.
    ThrottlingPeriod = 17,
    /// The gap ended when the reservation was replenished.
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

impl Indication {
    pub const ALL: [Indication; 34] = [
        Indication::KernelSwitch,
        Indication::KernelWork,
        Indication::KernelSilent,
        Indication::KernelLost,
        Indication::Cleared,
        Indication::NotCleared,
        Indication::CountedInvoluntary,
        Indication::CountedVoluntary,
        Indication::NoneCounted,
        Indication::CountedFault,
        Indication::OtherThreadSeen,
        Indication::CpuChanged,
        Indication::Yielded,
        Indication::HighestPriority,
        Indication::OnTickGrid,
        Indication::Periodic,
        Indication::ThrottlingLength,
        Indication::ThrottlingPeriod,
        Indication::Replenished,
        Indication::QuotaPeriod,
        Indication::StoppedState,
        Indication::NeverWaits,
        Indication::VirtualMachine,
        Indication::QuotaCounted,
        Indication::ThrottlingLogged,
        Indication::RecordedSwitch,
        Indication::NoRecordedSwitch,
        Indication::NoInterruptCounted,
        Indication::FewInterrupts,
        Indication::ShorterThanTicks,
        Indication::IdleMeanwhile,
        Indication::TicksMissing,
        Indication::ThrottlingPossible,
        Indication::TimeSharing,
    ];

    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Indication::KernelSwitch => "the kernel's trace has a switch",
            Indication::KernelWork => "the kernel's trace has interrupts or faults",
            Indication::KernelSilent => "the kernel's trace has nothing here",
            Indication::KernelLost => "the kernel's trace has a hole here",
            Indication::Cleared => "the critical section was cleared",
            Indication::NotCleared => "the critical section was not cleared",
            Indication::CountedInvoluntary => "an involuntary switch was counted",
            Indication::CountedVoluntary => "a voluntary switch was counted",
            Indication::NoneCounted => "no switch was counted",
            Indication::CountedFault => "a page fault was counted",
            Indication::OtherThreadSeen => "another thread of the run had the CPU",
            Indication::CpuChanged => "the CPU changed",
            Indication::Yielded => "the thread had yielded",
            Indication::HighestPriority => "the thread has the highest priority and never waits",
            Indication::OnTickGrid => "it is where a tick is",
            Indication::Periodic => "gaps of its size are periodic",
            Indication::ThrottlingLength => "it is as long as throttling stops a thread",
            Indication::ThrottlingPeriod => "such gaps are a throttling period apart",
            Indication::Replenished => "it ended when the budget was replenished",
            Indication::QuotaPeriod => "it ended with a period of the quota",
            Indication::StoppedState => "the thread was stopped or traced",
            Indication::NeverWaits => "the thread never waits by itself",
            Indication::VirtualMachine => "a hypervisor is below the kernel",
            Indication::QuotaCounted => "the kernel counted that the group was throttled",
            Indication::ThrottlingLogged => "the kernel's log says that it throttles",
            Indication::RecordedSwitch => "a switch was recorded",
            Indication::NoRecordedSwitch => "no switch was recorded",
            Indication::NoInterruptCounted => "no interrupt but ticks was counted",
            Indication::FewInterrupts => {
                "far fewer interrupts were counted than there are such gaps"
            }
            Indication::ShorterThanTicks => "it is far shorter than ticks are",
            Indication::IdleMeanwhile => "the CPU was idle meanwhile",
            Indication::TicksMissing => "ticks were counted that do not show among the gaps",
            Indication::ThrottlingPossible => "real-time throttling may be a part of it",
            Indication::TimeSharing => "time-sharing threads had the CPU",
        }
    }
}

/// A set of [`Indication`]s. Written, it is their words joined by `; `.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct IndicationSet(u64);

impl IndicationSet {
    /// The empty set.
    pub const NONE: IndicationSet = IndicationSet(0);

    /// Puts a sign into the set.
    pub fn insert(&mut self, sign: Indication) {
        self.0 |= 1_u64 << sign as u8;
    }

    /// The set with this sign.
    #[must_use]
    pub fn with(mut self, sign: Indication) -> IndicationSet {
        self.insert(sign);
        self
    }

    /// Whether the sign is in the set.
    #[must_use]
    pub fn contains(self, sign: Indication) -> bool {
        self.0 & (1_u64 << sign as u8) != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The signs in the set, in the order of [`Indication::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Indication> {
        Indication::ALL.into_iter().filter(move |sign| self.contains(*sign))
    }

    /// Whether what was noticed proves that the thread was off its CPU for another: the kernel's
    /// trace or its records have a switch, the kernel counted one, or another thread of the run was seen there.
    #[must_use]
    pub fn prove_a_switch(self) -> bool {
        [
            Indication::KernelSwitch,
            Indication::RecordedSwitch,
            Indication::CountedInvoluntary,
            Indication::CountedVoluntary,
            Indication::OtherThreadSeen,
        ]
        .into_iter()
        .any(|sign| self.contains(sign))
    }
}

impl fmt::Display for IndicationSet {
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

impl fmt::Debug for IndicationSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_keeps_its_signs_and_says_them() {
        let mut all = IndicationSet::NONE;
        for (place, sign) in Indication::ALL.into_iter().enumerate() {
            assert_eq!(sign as usize, place, "the order of ALL is that of the bits");
            assert!(!all.contains(sign));
            all.insert(sign);
        }
        assert_eq!(all.iter().count(), Indication::ALL.len());
        let two = IndicationSet::NONE.with(Indication::CpuChanged).with(Indication::Cleared);
        assert_eq!(two.to_string(), "the critical section was cleared; the CPU changed");
        assert!(!two.prove_a_switch());
        assert!(two.with(Indication::CountedVoluntary).prove_a_switch());
    }
}
