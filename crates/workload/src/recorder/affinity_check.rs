//! Intervals on other CPUs than the thread was given: the kernel moves a thread whose last CPU goes
//! offline, without asking.
//!
//! Owns: counting them, also where the trace is full or absent. Must not: know why.

use hourglass_sys::thread::CpuWords;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffinityViolation {
    /// When it first came to such a CPU, on the counter.
    pub since: u64,
    /// The CPU on which it was before.
    pub from: u32,
    /// The CPU to which it came.
    pub to: u32,
    pub intervals: u64,
    /// Time received there, in ticks.
    pub received: u64,
}

#[derive(Debug)]
pub(super) struct AffinityCheck {
    cpus: CpuWords,
    pub(super) strayed: Option<AffinityViolation>,
}

impl AffinityCheck {
    /// Around these CPUs; around all if the list is empty.
    pub(super) fn around(cpus: &[u32]) -> AffinityCheck {
        let mut words = [if cpus.is_empty() { u64::MAX } else { 0 }; size_of::<CpuWords>() / 8];
        for cpu in cpus {
            if let Some(word) = words.get_mut((cpu / 64) as usize) {
                *word |= 1 << (cpu % 64);
            }
        }
        AffinityCheck { cpus: words, strayed: None }
    }

    /// From here on these are the CPUs that the thread was given.
    pub(super) fn move_to(&mut self, cpus: CpuWords) {
        self.cpus = cpus;
    }

    /// Whether a CPU is outside. One whose number has no bit is not known to be.
    fn is_outside(&self, cpu: u32) -> bool {
        self.cpus.get((cpu / 64) as usize).is_some_and(|word| word >> (cpu % 64) & 1 == 0)
    }

    /// An interval begins on CPU `to`.
    pub(super) fn enter(&mut self, at: u64, from: u32, to: u32) {
        if self.is_outside(to) {
            let first = AffinityViolation { since: at, from, to, intervals: 0, received: 0 };
            self.strayed.get_or_insert(first).intervals += 1;
        }
    }

    pub(super) fn leave(&mut self, cpu: u32, ticks: u64) {
        if self.is_outside(cpu)
            && let Some(strayed) = &mut self.strayed
        {
            strayed.received = strayed.received.saturating_add(ticks);
        }
    }
}
