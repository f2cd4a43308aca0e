//! Servers and reservations: processor time by budget and period.
//!
//! Owns: [`SimServer`] and its kinds. Must not: execute them.

/// Processor time for the threads that name it. It runs one of them at a time, chosen by their own
/// classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimServer {
    pub kind: ServerKind,
    /// Processor time in a period, ns; above zero, at most the deadline.
    pub budget: u64,
    /// The period, ns; at least the deadline.
    pub period: u64,
    /// Within which time of a period's begin the budget is delivered, ns.
    pub deadline: u64,
    /// How it competes while it has budget.
    pub rank: ServerRank,
    /// The time that spends the budget.
    pub charge: Charge,
    /// Whether it takes what others leave (GRUB, Lipari and Baruah 2000; `SCHED_FLAG_RECLAIM`). Only
    /// for [`ServerKind::CbsHard`] and [`ServerKind::CbsSoft`], charged by time.
    pub reclaim: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// Constant bandwidth; when the budget is spent, it waits for its next period: the kernel's
    /// deadline class.
    CbsHard,
    /// Constant bandwidth; when the budget is spent, it goes on at once with a later deadline (Abeni
    /// and Buttazzo 1998).
    CbsSoft,
    /// Full at each multiple of the period; what is not used at once is lost.
    Polling,
    /// Full at each multiple of the period; kept until its end (Lehoczky, Sha and Strosnider 1987).
    Deferrable,
    /// What was used comes back a period after its use began (Sprunt, Sha and Lehoczky 1989).
    Sporadic,
    /// A hard reserve of a resource kernel: as deferrable (Rajkumar et al. 1998).
    ReserveHard,
    /// A soft reserve: when the budget is spent, its threads go on in the fair class.
    ReserveSoft,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRank {
    /// The server ranks by its absolute deadline, before all priorities.
    Deadline,
    /// The server ranks by this fixed priority.
    Priority(u32),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charge {
    /// Time on a CPU, however fast it is.
    #[default]
    Time,
    /// Work done: processor time as if nothing ran beside it (the SMT paper, section 3.1).
    Progress,
}

impl SimServer {
    /// A server with this budget and period. Constant bandwidth servers compete by deadline, the
    /// others by priority 100, above the kernel's priorities.
    #[must_use]
    pub fn new(kind: ServerKind, budget: u64, period: u64) -> SimServer {
        let rank = match kind {
            ServerKind::CbsHard | ServerKind::CbsSoft => ServerRank::Deadline,
            _ => ServerRank::Priority(100),
        };
        SimServer {
            kind,
            budget,
            period,
            deadline: period,
            rank,
            charge: Charge::Time,
            reclaim: false,
        }
    }

    #[must_use]
    pub fn with_rank(self, rank: ServerRank) -> SimServer {
        SimServer { rank, ..self }
    }

    #[must_use]
    pub fn reclaiming(self) -> SimServer {
        SimServer { reclaim: true, ..self }
    }

    /// This server, delivered within `deadline` of each period's begin.
    #[must_use]
    pub fn with_deadline(self, deadline: u64) -> SimServer {
        SimServer { deadline, ..self }
    }
}
