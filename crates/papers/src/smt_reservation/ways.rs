//! How others are treated beside the real-time process (section 4.2).

use super::simulated::Method;

/// A policy, and where progress is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// The scheduler does not know of hardware threads.
    Ignore,
    /// Others stand while the real-time process runs.
    Disable,
    /// Slack is monitored; the process reports its progress in shared memory. The paper's `Syscall`.
    Word,
    /// Slack is monitored; the processor counts instructions. The paper's `PMC`.
    Instructions,
    /// Slack is monitored; processor time counts, beside others as much as is certain.
    CpuTime,
}

impl Way {
    /// As tables write it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Way::Ignore => "ignore",
            Way::Disable => "disable",
            Way::Word => "monitor, word",
            Way::Instructions => "monitor, instructions",
            Way::CpuTime => "monitor, CPU time",
        }
    }

    /// Whether slack is monitored.
    pub(super) const fn monitors(self) -> bool {
        matches!(self, Way::Word | Way::Instructions | Way::CpuTime)
    }

    /// The same in the simulator, which has no clock for processor time that counts in part.
    pub(super) const fn simulated(self) -> Option<Method> {
        match self {
            Way::Ignore => Some(Method::Ignore),
            Way::Disable => Some(Method::Disable),
            Way::Word => Some(Method::Reported(256)),
            Way::Instructions => Some(Method::Counted),
            Way::CpuTime => None,
        }
    }

    /// Colour of its curve, the same in all figures.
    pub(super) const fn colour(self) -> u32 {
        match self {
            Way::Ignore => 1,
            Way::Disable => 0,
            Way::Word => 2,
            Way::Instructions => 3,
            Way::CpuTime => 4,
        }
    }
}
