//! Indications of the cause of a gap: a small set, and their words.

use std::fmt;

hourglass_documents::named_enum! {
    /// One piece of evidence for the cause of a gap.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum Indication {
        /// A `sched_switch` took the thread off its CPU.
        KernelSwitch = 0 => "the kernel's trace has a switch",
        /// An interrupt, a softirq, a fault or a signal of the kernel's trace lies in the gap.
        KernelWork = 1 => "the kernel's trace has interrupts or faults",
        /// The kernel recorded nothing on the CPU, and lost nothing.
        KernelSilent = 2 => "the kernel's trace has nothing here",
        /// The kernel's record has a hole here.
        KernelLost = 3 => "the kernel's trace has a hole here",
        /// The kernel cleared the critical section.
        Cleared = 4 => "the critical section was cleared",
        /// The kernel did not clear the critical section.
        NotCleared = 5 => "the critical section was not cleared",
        /// The kernel counted a switch forced on the thread.
        CountedInvoluntary = 6 => "an involuntary switch was counted",
        /// The kernel counted a switch by the thread's own wait.
        CountedVoluntary = 7 => "a voluntary switch was counted",
        /// The kernel counted no switch.
        NoneCounted = 8 => "no switch was counted",
        /// The kernel counted a page fault.
        CountedFault = 9 => "a page fault was counted",
        /// Another thread of the run was seen on the CPU meanwhile.
        OtherThreadSeen = 10 => "another thread of the run had the CPU",
        /// The thread was on another CPU after the gap.
        CpuChanged = 11 => "the CPU changed",
        /// The thread had just yielded.
        Yielded = 12 => "the thread had yielded",
        /// No thread of the run has a higher priority, and this one never waits.
        HighestPriority = 13 => "the thread has the highest priority and never waits",
        /// The gap holds a tick, or begins on the grid of the tick where its moments had to be found.
        OnTickGrid = 14 => "it is where a tick is",
        /// Gaps of this size come back at a fixed distance.
        Periodic = 15 => "gaps of its size are periodic",
        /// The gap is as long as real-time throttling stops a thread.
        ThrottlingLength = 16 => "it is as long as throttling stops a thread",
        /// Gaps of that length are a throttling period apart.
        ThrottlingPeriod = 17 => "such gaps are a throttling period apart",
        /// The gap ended when the reservation was replenished.
        Replenished = 18 => "it ended when the budget was replenished",
        /// It ended with a period of the control group's quota, which stopped the group in this run.
        QuotaPeriod = 19 => "it ended with a period of the quota",
        /// The thread was in a stopped or traced state.
        StoppedState = 20 => "the thread was stopped or traced",
        /// The thread never waits, but the kernel counted that it did.
        NeverWaits = 21 => "the thread never waits by itself",
        /// A hypervisor is below the kernel.
        VirtualMachine = 22 => "a hypervisor is below the kernel",
        /// The kernel counted that the quota stopped the control group in this run.
        QuotaCounted = 23 => "the kernel counted that the group was throttled",
        /// The kernel's log says, since the run began, that it throttles real-time threads.
        ThrottlingLogged = 24 => "the kernel's log says that it throttles",
        /// A record of the thread's switches has one here.
        RecordedSwitch = 25 => "a switch was recorded",
        /// The records of the thread's switches have none here, and none is missing.
        NoRecordedSwitch = 26 => "no switch was recorded",
        /// No interrupt but ticks was counted meanwhile.
        NoInterruptCounted = 27 => "no interrupt but ticks was counted",
        /// Fewer interrupts were counted in the run than there are such gaps.
        FewInterrupts = 28 => "far fewer interrupts were counted than there are such gaps",
        /// It is too short to be an interrupt: ticks take at least twice as long.
        ShorterThanTicks = 29 => "it is far shorter than ticks are",
        /// The CPU was idle for most of the time.
        IdleMeanwhile = 30 => "the CPU was idle meanwhile",
        /// Ticks were counted that do not show among the gaps.
        TicksMissing = 31 => "ticks were counted that do not show among the gaps",
        /// Real-time throttling may have been a part of it.
        ThrottlingPossible = 32 => "real-time throttling may be a part of it",
        /// Time-sharing threads had the CPU for most of the time.
        TimeSharing = 33 => "time-sharing threads had the CPU",
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
            f.write_str(sign.name())?;
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
