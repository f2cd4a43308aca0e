//! What a measurement rests on: the table of premises that may break while it goes on.
//!
//! Must not: find out whether one broke; `measure` does.

use crate::warning::{Premise, Warning};

crate::named_enum! {
    /// A premise by the name that it has in documents when it broke.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PremiseKind {
        PinningLost => "pinning-lost",
        CpuGone => "cpu-gone",
        RtTimeLimit => "rt-time-limit",
        CpuTimeLimit => "cpu-time-limit",
        ThreadsUnseen => "threads-unseen",
        ProcessesUnseen => "processes-unseen",
        QuotaChanged => "quota-changed",
        LoadNotRun => "load-not-run",
    }
}

impl PremiseKind {
    /// What is so where it holds, in a sentence without its stop.
    pub const fn meaning(self) -> &'static str {
        match self {
            PremiseKind::PinningLost => "each thread keeps the CPUs that it was given",
            PremiseKind::CpuGone => "the CPUs that are measured stay online",
            PremiseKind::RtTimeLimit => {
                "no real-time thread reaches the limit on its time without a wait (RLIMIT_RTTIME)"
            }
            PremiseKind::CpuTimeLimit => {
                "the process does not reach the limit on its CPU time (RLIMIT_CPU)"
            }
            PremiseKind::ThreadsUnseen => "the threads seen are all that the process has",
            PremiseKind::ProcessesUnseen => {
                "the processes seen are all that the command started (watch -- COMMAND)"
            }
            PremiseKind::LoadNotRun => "the load beside the measurement (--load) runs to its end",
            PremiseKind::QuotaChanged => "the process stays under the quotas that are counted",
        }
    }

    /// What to do where it broke.
    pub const fn remedy(self) -> &'static str {
        match self {
            PremiseKind::PinningLost => "measure again without such changes",
            PremiseKind::CpuGone => "measure again with it online throughout",
            PremiseKind::RtTimeLimit => LIFT_RT_TIME,
            PremiseKind::CpuTimeLimit => LIFT_CPU_TIME,
            PremiseKind::ThreadsUnseen | PremiseKind::ProcessesUnseen => {
                "a shorter --interval (10ms) sees more of them; perf sched timehist, as root, sees all"
            }
            PremiseKind::LoadNotRun => {
                "measure again, and leave the load alone; see what its processes may have (ulimit -a)"
            }
            PremiseKind::QuotaChanged => "watch it in the group in which it stays",
        }
    }

    /// It broke.
    pub fn broken(self, text: String, at_ns: u64) -> Premise {
        Premise { id: self.name().to_owned(), text, at_ns }
    }

    /// The warning of a run that a limit of this kind would end.
    pub fn warning(self, text: String) -> Warning {
        Warning { id: self.name().to_owned(), text, remedy: self.remedy().to_owned() }
    }
}

/// The warning of a comparison for each run of which a premise broke: nothing is decided.
pub const PREMISE_BROKEN: &str = "premise-broken";

fn is_time_limit(id: &str) -> bool {
    matches!(PremiseKind::from_name(id), Some(PremiseKind::RtTimeLimit | PremiseKind::CpuTimeLimit))
}

impl Premise {
    /// Whether a limit on time ended the run.
    pub fn is_time_limit(&self) -> bool {
        is_time_limit(&self.id)
    }
}

/// Whether the warning says that the kernel may end the process before it says anything else: it is given before the
/// run, also where it is to be quiet.
pub fn is_fatal(warning: &Warning) -> bool {
    is_time_limit(&warning.id)
}

/// Lifts `RLIMIT_RTTIME`.
pub const LIFT_RT_TIME: &str =
    "sudo prlimit --pid $$ --rttime=unlimited # in the shell that starts the run";
const LIFT_CPU_TIME: &str =
    "sudo prlimit --pid $$ --cpu=unlimited # in the shell that starts the run";

impl From<&Premise> for Warning {
    /// The same for those who read warnings only.
    fn from(premise: &Premise) -> Warning {
        let remedy = PremiseKind::from_name(&premise.id).map_or("", PremiseKind::remedy);
        Warning { id: premise.id.clone(), text: premise.text.clone(), remedy: remedy.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_announced_and_each_premise_says_what_to_do() {
        for kind in PremiseKind::ALL {
            let warning = Warning::from(&kind.broken("text".to_owned(), 1));
            assert_eq!(warning, kind.warning("text".to_owned()));
            assert_eq!(is_fatal(&warning), kind.name().ends_with("-time-limit"), "{kind:?}");
            assert!(!warning.remedy.is_empty() && !kind.meaning().is_empty(), "{kind:?}");
        }
    }
}
