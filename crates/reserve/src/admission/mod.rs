//! Whether a reservation is admitted, and if not, why not and what mends it.

use crate::backend::Kind;

/// Why a backend does not take a reservation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}; {remedy}")]
pub struct Refusal {
    /// The backend.
    pub backend: Kind,
    /// What is in the way, by name.
    pub id: Obstacle,
    /// The kernel's answer, if it was asked.
    pub errno: Option<i32>,
    /// What is in the way, in words, with the file or number that says so.
    pub cause: String,
    /// The line that mends it.
    pub remedy: String,
}

/// What stands in the way of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// `CAP_SYS_NICE` or a limit is missing.
    Capability,
    /// The affinity does not cover the root domain, or a thread in the class would be pinned.
    Affinity,
    /// The group has no real-time budget (`cpu.rt_runtime_us` is 0).
    GroupBudget,
    /// The bandwidth is given away.
    Bandwidth,
    /// Budget, deadline or period outside what is taken.
    Times,
    /// The CPU is offline or not there.
    Cpu,
    /// A thread in the class may not fork.
    Fork,
    /// The target has ended.
    Gone,
    /// The kernel or the machine does not have it.
    Missing,
}
