//! CPUs that are not equally fast.
//!
//! The deadline class admits by the capacities of a root domain's CPUs (`dl_bw_capacity` in `kernel/sched/deadline.c`, Linux
//! 5.8; before that it counted them), and charges what a thread runs by the capacity of its CPU (`dl_scaled_delta_exec`): of
//! a budget that is time on a whole CPU, more time passes on a slower one. The frequency counts likewise, and is in no file
//! that would hold for the next period.

use hourglass_documents::{CpuSet, ReservationKind};
use hourglass_time::Span;

use super::AdmissionFacts;
use crate::backend::AccuracyWarning;
use crate::request::BackendRequest;

/// The capacity of the fastest CPU (`SCHED_CAPACITY_SCALE`).
pub(super) const WHOLE: u64 = 1 << 10;

/// The first kernel that admits by capacities.
const ADMITS_BY_CAPACITY: (u32, u32) = (5, 8);

fn capacity(facts: &AdmissionFacts, cpu: u32) -> u64 {
    facts.capacities.get(&cpu).copied().unwrap_or(WHOLE)
}

/// What the kernel admits on these CPUs by, [`WHOLE`] for each of the fastest.
pub(super) fn admitted(facts: &AdmissionFacts, cpus: &CpuSet) -> u64 {
    match facts.kernel {
        Some(kernel) if kernel < ADMITS_BY_CAPACITY => cpus.len() as u64 * WHOLE,
        _ => cpus.iter().map(|cpu| capacity(facts, cpu)).sum(),
    }
}

/// The slowest of these CPUs, and its capacity.
fn slowest(facts: &AdmissionFacts, cpus: &CpuSet) -> Option<(u32, u64)> {
    cpus.iter().map(|cpu| (cpu, capacity(facts, cpu))).min_by_key(|(_, capacity)| *capacity)
}

/// How long a budget lasts on the slowest of these CPUs, ns, rounded up.
pub(super) fn longest_ns(facts: &AdmissionFacts, cpus: &CpuSet, budget_ns: u64) -> Option<u64> {
    let (_, least) = slowest(facts, cpus)?;
    let longest = (u128::from(budget_ns) * u128::from(WHOLE)).div_ceil(u128::from(least));
    u64::try_from(longest).ok()
}

/// The warning that a thread may run for longer than its budget says; with reclaiming it may anyway.
pub(crate) fn by_capacity(
    request: &BackendRequest,
    facts: &AdmissionFacts,
) -> Option<AccuracyWarning> {
    let cpus = facts.domain.as_ref()?;
    let budget = request.reservation.budget();
    let (cpu, least) = slowest(facts, cpus).filter(|(_, least)| *least < WHOLE)?;
    if request.reservation.strength() == ReservationKind::Soft {
        return None;
    }
    let longest = Span::saturating_from_nanos(longest_ns(facts, cpus, budget.nanos_or_zero())?);
    Some(AccuracyWarning {
        id: "budget-by-capacity",
        text: format!(
            "the kernel charges budgets by the capacity of the CPU: on CPU {cpu}, which has {least} of {WHOLE}, {budget} last \
             {longest}"
        ),
        remedy: "give the budget as time on the fastest CPU; --backend user with --cpu counts time as it passes",
    })
}
