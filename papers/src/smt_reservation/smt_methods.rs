//! How others are treated beside the real-time process (section 4.2).

use hourglass_sim::smt::{Monitoring, ProgressModel, SmtPolicy};

hourglass_documents::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) enum SmtMethod {
        /// The scheduler does not know of hardware threads.
        Ignore => "ignore",
        /// Others stand while the real-time process runs.
        Disable => "disable",
        /// Slack is monitored; the process reports its progress in shared memory. The paper's `Syscall`.
        Word => "monitor, word",
        /// Slack is monitored; the processor counts instructions. The paper's `PMC`.
        Instructions => "monitor, instructions",
        /// Slack is monitored; processor time counts, beside co-runners only its certain part.
        CpuTime => "monitor, CPU time",
    }
}

impl SmtMethod {
    pub(super) const fn monitors(self) -> bool {
        matches!(self, SmtMethod::Word | SmtMethod::Instructions | SmtMethod::CpuTime)
    }

    /// The same in the simulator, which has no clock for processor time that counts in part. Progress is reported in
    /// 256 steps.
    pub(super) fn simulated(self) -> Option<SmtPolicy> {
        let monitoring =
            |progress| SmtPolicy::Monitor(Monitoring { progress, ..Monitoring::default() });
        match self {
            SmtMethod::Ignore => Some(SmtPolicy::Ignore),
            SmtMethod::Disable => Some(SmtPolicy::Disable),
            SmtMethod::Word => Some(monitoring(ProgressModel::Reported(256))),
            SmtMethod::Instructions => Some(monitoring(ProgressModel::Counted)),
            SmtMethod::CpuTime => None,
        }
    }

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
