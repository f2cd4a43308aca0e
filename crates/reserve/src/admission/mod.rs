//! Whether a reservation is admitted, and if not, why not and what mends it.
//!
//! Owns: the facts that bear on it ([`facts`]), the kernel's rules put against them ([`check`]),
//! what stands behind an error number ([`explain`]), and how much to reserve beyond what is needed
//! ([`headroom`]). Must not: reserve anything, or analyse (sums are `sched`'s).

mod bandwidth;
mod errno;
pub mod facts;
pub mod headroom;
mod lateness;
mod priority;
mod rules;
#[cfg(test)]
mod tests;
pub mod tick;

pub use bandwidth::{Bandwidth, bandwidth};
pub(crate) use errno::ESRCH;
pub use errno::explain;
pub use facts::AdmissionFacts;
pub use lateness::{BudgetDelay, lateness};
pub(crate) use rules::not_permitted;
pub use tick::Tick;

use crate::backend::{BackendKind, BackendRequest};
use crate::ownership::{NotOwned, REMEDY};

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

/// What stands in the way of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// `CAP_SYS_NICE` or a limit is missing.
    Capability,
    /// The target is another user's ([`crate::ownership`]).
    Owner,
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
    /// It would be inside another reservation.
    Nested,
    /// The target has ended.
    Gone,
    /// The kernel or the machine does not have it.
    Missing,
}

/// Whether the process or thread `id` is the caller's to reserve for.
///
/// # Errors
/// Whose it is.
pub fn ownership(backend: BackendKind, id: u32) -> Result<(), Refusal> {
    NotOwned::find(id).map_or(Ok(()), |foreign| Err(not_own(backend, &foreign)))
}

/// As [`not_own`], for a change that was refused; `None` for any other answer.
pub(crate) fn ownership_of(backend: BackendKind, error: &std::io::Error) -> Option<Refusal> {
    crate::ownership::foreign(error).map(|foreign| not_own(backend, foreign))
}

fn not_own(backend: BackendKind, foreign: &NotOwned) -> Refusal {
    let remedy = REMEDY.to_owned();
    Refusal { backend, id: Obstacle::Owner, errno: None, cause: foreign.cause(), remedy }
}

/// What would refuse `request`, by the deadline class and then by a user-space reserve; empty if
/// nothing that can be seen. Reserves nothing, asks the kernel nothing.
#[must_use]
pub fn check(request: &BackendRequest, facts: &AdmissionFacts) -> Vec<Refusal> {
    let mut refusals = deadline(request, facts);
    refusals.extend(user(request, facts));
    refusals
}

/// What of `request` the kernel's deadline class would refuse, in the order in which the kernel looks.
#[must_use]
pub fn deadline(request: &BackendRequest, facts: &AdmissionFacts) -> Vec<Refusal> {
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
pub fn user(request: &BackendRequest, facts: &AdmissionFacts) -> Vec<Refusal> {
    let rules = [priority::cpu, priority::capability, priority::group_budget, priority::throttle];
    rules.iter().filter_map(|rule| rule(request, facts)).collect()
}
