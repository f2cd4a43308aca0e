//! Indications of the cause of a gap: a small set, and their words.

use std::fmt;

hourglass_documents::named_enum! {
    /// One piece of evidence for the cause of a gap.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum Indication {
        KernelSwitch = 0 => "the kernel's trace has a switch",
        KernelWork = 1 => "the kernel's trace has interrupts or faults",
        KernelSilent = 2 => "the kernel's trace has nothing here",
        KernelLost = 3 => "the kernel's trace has a hole here",
        Cleared = 4 => "the critical section was cleared",
        NotCleared = 5 => "the critical section was not cleared",
        CountedInvoluntary = 6 => "an involuntary switch was counted",
        CountedVoluntary = 7 => "a voluntary switch was counted",
        NoneCounted = 8 => "no switch was counted",
        CountedFault = 9 => "a page fault was counted",
        OtherThreadSeen = 10 => "another thread of the run had the CPU",
        CpuChanged = 11 => "the CPU changed",
        Yielded = 12 => "the thread had yielded",
        HighestPriority = 13 => "the thread has the highest priority and never waits",
        OnTickGrid = 14 => "it is where a tick is",
        Periodic = 15 => "gaps of its size are periodic",
        ThrottlingLength = 16 => "it is as long as throttling stops a thread",
        ThrottlingPeriod = 17 => "such gaps are a throttling period apart",
        Replenished = 18 => "it ended when the budget was replenished",
        QuotaPeriod = 19 => "it ended with a period of the quota",
        StoppedState = 20 => "the thread was stopped or traced",
        NeverWaits = 21 => "the thread never waits by itself",
        VirtualMachine = 22 => "a hypervisor is below the kernel",
        QuotaCounted = 23 => "the kernel counted that the group was throttled",
        ThrottlingLogged = 24 => "the kernel's log says that it throttles",
        RecordedSwitch = 25 => "a switch was recorded",
        NoRecordedSwitch = 26 => "no switch was recorded",
        NoInterruptCounted = 27 => "no interrupt but ticks was counted",
        FewInterrupts = 28 => "far fewer interrupts were counted than there are such gaps",
        ShorterThanTicks = 29 => "it is far shorter than ticks are",
        IdleMeanwhile = 30 => "the CPU was idle meanwhile",
        TicksMissing = 31 => "ticks were counted that do not show among the gaps",
        ThrottlingPossible = 32 => "real-time throttling may be a part of it",
        TimeSharing = 33 => "time-sharing threads had the CPU",
        WaitedForCpu = 34 => "the kernel counted that the thread waited for a CPU",
        WokenLate = 35 => "the thread was made ready late",
    }
}

/// A set of [`Indication`]s. Written, it is their words joined by `; `.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct IndicationSet(u64);

impl IndicationSet {
    /// The empty set.
    pub const NONE: IndicationSet = IndicationSet(0);

    pub fn insert(&mut self, sign: Indication) {
        self.0 |= 1_u64 << sign as u8;
    }

    pub fn with(mut self, sign: Indication) -> IndicationSet {
        self.insert(sign);
        self
    }

    pub fn contains(self, sign: Indication) -> bool {
        self.0 & (1_u64 << sign as u8) != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The signs in the set, in the order of [`Indication::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Indication> {
        Indication::ALL.into_iter().filter(move |sign| self.contains(*sign))
    }

    /// Whether what was noticed proves that the thread was off its CPU for another: the kernel's
    /// trace or its records have a switch, the kernel counted one, or another thread of the run was seen there.
    pub fn prove_a_switch(self) -> bool {
        [
            Indication::KernelSwitch,
            Indication::RecordedSwitch,
            Indication::CountedInvoluntary,
            Indication::CountedVoluntary,
            Indication::OtherThreadSeen,
            Indication::WaitedForCpu,
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
