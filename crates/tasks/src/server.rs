//! Servers and reservations: processor time that is given out by budget and period.
//!
//! Owns: [`Server`] and its kinds. Must not: compute supply (`sched` does).

use hourglass_documents::CpuSet;
use hourglass_time::Span;

use super::Scheduler;

/// A server: `budget` of processor time in every `period` for the tasks in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The name, unique among servers.
    pub name: String,
    pub kind: ServerKind,
    /// Processor time per period. Above zero, at most the deadline.
    pub budget: Span,
    /// The time between two replenishments. Above zero.
    pub period: Span,
    /// Within which time of a period's begin the budget is delivered; at most the period. For
    /// [`ServerKind::ExplicitDeadline`], [`ServerKind::CbsHard`] and [`ServerKind::CbsReclaim`]; without it, the period.
    pub deadline: Option<Span>,
    /// The priority, where servers have one: the larger is more urgent; without one, it is before all that have one.
    pub priority: Option<u32>,
    /// CPUs on which it may run; without it, all of the machine.
    pub cpus: Option<CpuSet>,
    pub scheduler: Scheduler,
    /// The tasks that run in it; none of them in another server too.
    pub tasks: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// Budget that is not used at once when the period begins is lost.
    Polling,
    /// The budget stays until the period ends (Lehoczky, Sha and Strosnider 1987).
    Deferrable,
    /// What was used comes back a period after its use began (Sprunt, Sha and Lehoczky 1989).
    Sporadic,
    /// Constant-bandwidth server that waits for its next period when the budget is spent: the
    /// kernel's deadline class.
    CbsHard,
    /// Constant-bandwidth server that goes on at once with a later deadline (Abeni and
    /// Buttazzo 1998).
    CbsSoft,
    /// As [`ServerKind::CbsHard`], and it may use what other reservations leave (GRUB, Lipari and Baruah, ECRTS 2000;
    /// `SCHED_FLAG_RECLAIM` of the kernel's deadline class).
    CbsReclaim,
    /// Budget at any time of the period (Shin and Lee 2003).
    PeriodicResource,
    /// Budget within a deadline of the period's begin (Easwaran, Anand and Lee 2007).
    ExplicitDeadline,
}

impl ServerKind {
    /// Whether it is chosen by its deadline, before every fixed priority, as the kernel's deadline class is.
    #[must_use]
    pub fn is_constant_bandwidth(self) -> bool {
        matches!(self, ServerKind::CbsHard | ServerKind::CbsSoft | ServerKind::CbsReclaim)
    }
}

impl Server {
    /// A server with this budget and period, without tasks.
    #[must_use]
    pub fn new(name: &str, kind: ServerKind, budget: Span, period: Span) -> Server {
        Server {
            name: name.to_owned(),
            kind,
            budget,
            period,
            deadline: None,
            priority: None,
            cpus: None,
            scheduler: Scheduler::default(),
            tasks: Vec::new(),
        }
    }

    /// The deadline that holds: the one given, else the period.
    #[must_use]
    pub fn deadline(&self) -> Span {
        self.deadline.unwrap_or(self.period)
    }
}
