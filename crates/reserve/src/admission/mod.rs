//! Whether a reservation is admitted, and if not, why not and what mends it.
//!
//! Owns: the facts that bear on it ([`facts`]), the kernel's rules put against them ([`deadline`], [`user`]),
//! what stands behind an error number ([`explain`]), and how much to reserve beyond what is needed
//! (`headroom`). Must not: reserve anything, or analyse (sums are `sched`'s).

mod bandwidth;
mod capacity;
mod errno;
pub mod facts;
pub(crate) mod headroom;
mod lateness;
mod priority;
mod rules;
#[cfg(test)]
mod tests;
pub mod tick;

pub(crate) use bandwidth::bandwidth;
pub(crate) use capacity::by_capacity;
pub use errno::explain;
pub use facts::{AdmissionFacts, PlannedReservation};
pub(crate) use lateness::{BudgetDelay, lateness};
pub(crate) use rules::not_permitted;
pub use tick::Tick;

use crate::ownership::{NotOwned, REMEDY};
use crate::request::{BackendKind, BackendRequest};
pub use crate::request::{Obstacle, Refusal};

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
