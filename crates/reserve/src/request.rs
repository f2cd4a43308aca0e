//! What is asked of a backend, and why one refuses.

use hourglass_documents::{Reservation, named_enum};

named_enum! {
    /// One means of many, as the document and `--backend` name it. Adding one is a file and a line here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum BackendKind {
        /// The kernel's deadline class: one thread, enforced by the kernel.
        Deadline => "deadline",
        /// A reserve kept by a thread of this program: a group of threads, one budget.
        User => "user",
        /// CPU quota of a cgroup: a limit, no promise.
        Quota => "quota",
    }
}

/// A request to a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendRequest {
    /// Budget, period, deadline, strength.
    pub reservation: Reservation,
    /// The CPU on which the work is to stay; `None` leaves it where it is.
    pub cpu: Option<u32>,
}

/// Why a backend does not take a reservation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}; {remedy}")]
pub struct Refusal {
    /// The backend that refuses.
    pub backend: BackendKind,
    /// The obstacle, as an identifier.
    pub id: Obstacle,
    /// The kernel's answer, if it was asked.
    pub errno: Option<i32>,
    /// The obstacle in words, with the file or number that shows it.
    pub cause: String,
    /// The line that mends it.
    pub remedy: String,
}

impl Refusal {
    /// By the deadline class, before the kernel was asked.
    pub(crate) fn deadline(id: Obstacle, cause: String, remedy: String) -> Refusal {
        Refusal { backend: BackendKind::Deadline, id, errno: None, cause, remedy }
    }
}

named_enum! {
    /// What stands in the way of a reservation, as scripts know it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Obstacle {
        /// `CAP_SYS_NICE` or a limit is missing.
        Capability => "capability",
        /// The target is another user's ([`crate::ownership`]).
        Owner => "owner",
        /// The affinity does not cover the root domain, or a thread in the class would be pinned.
        Affinity => "affinity",
        /// The group has no real-time budget (`cpu.rt_runtime_us` is 0).
        GroupBudget => "group_budget",
        /// The bandwidth is given away.
        Bandwidth => "bandwidth",
        /// Budget, deadline or period outside what is taken.
        Times => "times",
        /// The CPU is offline or not there.
        Cpu => "cpu",
        /// A thread in the class may not fork.
        Fork => "fork",
        /// It would be inside another reservation.
        Nested => "nested",
        /// The target has ended.
        Gone => "gone",
        /// The kernel or the machine does not have it.
        Missing => "missing",
    }
}
