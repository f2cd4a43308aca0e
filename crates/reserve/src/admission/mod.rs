//! Whether a reservation is admitted, and if not, why not and what mends it.
//!
//! Owns: the facts that bear on it ([`facts`]), the kernel's rules put against them ([`check`]),
//! what stands behind an error number ([`explain`]), and how much to reserve beyond what is needed
//! ([`over`]). Must not: reserve anything, or analyse (sums are `sched`'s).

mod bandwidth;
mod errno;
pub mod facts;
mod lateness;
pub mod over;
mod priority;
mod rules;
#[cfg(test)]
mod tests;

pub use bandwidth::{Bandwidth, bandwidth};
pub(crate) use errno::ESRCH;
pub use errno::explain;
pub use facts::Facts;
pub use lateness::{Lateness, lateness};
pub(crate) use rules::not_there;

use crate::backend::{Kind, Request};

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

impl Refusal {
    /// By the deadline class, before the kernel was asked.
    fn deadline(id: Obstacle, cause: String, remedy: String) -> Refusal {
        Refusal { backend: Kind::Deadline, id, errno: None, cause, remedy }
    }
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

/// What would refuse `request`, by the deadline class and then by a user-space reserve; empty if
/// nothing that can be seen. Reserves nothing, asks the kernel nothing.
#[must_use]
pub fn check(request: &Request, facts: &Facts) -> Vec<Refusal> {
    let mut refusals = deadline(request, facts);
    refusals.extend(user(request, facts));
    refusals
}

/// What of `request` the kernel's deadline class would refuse, in the order in which the kernel looks.
#[must_use]
pub fn deadline(request: &Request, facts: &Facts) -> Vec<Refusal> {
    let rules = [
        rules::times,
        rules::capability,
        rules::cpu,
        rules::pinned,
        rules::affinity,
        rules::switched_off,
        bandwidth::refusal,
    ];
    rules.iter().filter_map(|rule| rule(request, facts)).collect()
}

/// What would refuse a user-space reserve, which raises its threads to FIFO.
#[must_use]
pub fn user(request: &Request, facts: &Facts) -> Vec<Refusal> {
    let rules = [priority::cpu, priority::capability, priority::group_budget, priority::throttle];
    rules.iter().filter_map(|rule| rule(request, facts)).collect()
}
