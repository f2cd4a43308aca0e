//! How others are treated beside the real-time process (section 4.2).

use super::simulated::SimMethod;

/// A policy, and where progress is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SmtMethod {
    /// The scheduler does not know of hardware threads.
    Ignore,
    /// Others stand while the real-time process runs.
    Disable,
    /// Slack is monitored; the process reports its progress in shared memory. The paper's `Syscall`.
    Word,
    /// Slack is monitored; the processor counts instructions. The paper's `PMC`.
    Instructions,
    /// Slack is monitored; processor time counts, beside co-runners only its certain part.
    CpuTime,
}

impl SmtMethod {
    pub(super) const fn name(self) -> &'static str {
        match self {
            SmtMethod::Ignore => "ignore",
            SmtMethod::Disable => "disable",
            SmtMethod::Word => "monitor, word",
            SmtMethod::Instructions => "monitor, instructions",
            SmtMethod::CpuTime => "monitor, CPU time",
        }
    }

    pub(super) const fn monitors(self) -> bool {
        matches!(self, SmtMethod::Word | SmtMethod::Instructions | SmtMethod::CpuTime)
    }

    /// The same in the simulator, which has no clock for processor time that counts in part.
    pub(super) const fn simulated(self) -> Option<SimMethod> {
        match self {
            SmtMethod::Ignore => Some(SimMethod::Ignore),
            SmtMethod::Disable => Some(SimMethod::Disable),
            SmtMethod::Word => Some(SimMethod::Reported(256)),
            SmtMethod::Instructions => Some(SimMethod::Counted),
            SmtMethod::CpuTime => None,
        }
    }

    /// Colour of its curve, the same in all figures.
    pub(super) const fn colour(self) -> u32 {
        match self {
            SmtMethod::Ignore => 1,
            SmtMethod::Disable => 0,
            SmtMethod::Word => 2,
            SmtMethod::Instructions => 3,
            SmtMethod::CpuTime => 4,
        }
    }
}
