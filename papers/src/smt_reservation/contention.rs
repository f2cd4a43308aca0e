//! How much hardware threads of one core take from one another, where it is emulated or simulated.
//!
//! Owns: the co-runners of the paper and their rates. Must not: run anything.
//!
//! The paper says what contention does to throughput, not how much it slows whom. Its Figure 9 can be
//! solved for it: a rate that both sides suffer while they run beside one another, such that the
//! simulated gain over disabling SMT is the paper's. So the gain that is emulated with these rates is
//! the paper's by construction, as far as stopping in time costs nothing, and but for what slack is left to the kernel
//! (`trial`), which makes it smaller; what is found out is whether deadlines hold, and what the monitor itself costs.

use hourglass_tasks::Fraction;

hourglass_documents::named_enum! {
    /// What runs beside the real-time process, section 5.2.1. Two of each: one on each hardware thread.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum CoRunner {
        Integer,
        Float,
        Compile,
    }
}

impl CoRunner {
    /// Rate of the real-time process and of this, in hundredths, while one runs beside the other.
    pub(super) const fn percent(self) -> u64 {
        match self {
            CoRunner::Integer => 69,
            CoRunner::Float => 60,
            CoRunner::Compile => 60,
        }
    }

    /// Rate of each of two of these beside the other, in hundredths: they want the same units.
    pub(super) const AMONG_THEMSELVES: u64 = 60;
}

pub(super) fn hundredths(percent: u64) -> Fraction {
    Fraction::new(percent, 100).unwrap_or(Fraction::ONE)
}
