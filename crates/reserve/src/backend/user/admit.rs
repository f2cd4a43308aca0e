//! Whether one more reservation of this kind fits beside those that there are.
//!
//! Owns: the limits of its times, the sum with what others have reserved, and the words of a refusal. Must not: reserve,
//! or judge what fits on a CPU (`claims.rs` does).

use hourglass_documents::CpuSet;
use hourglass_documents::reservations::ReservationInForce;
use hourglass_sched::admission::Fraction;
use hourglass_sys::sched::{self, Attributes};
use hourglass_time::Span;

use super::claims::{
    AdmissionFailure, DEADLINE_CLASS, ReservationClaim, fits, fits_above, planned_ns,
};
use super::registry::{Holder, RegisteredReservation, Registry, RegistryEntry, StaleClaim};
use super::urgent;
use crate::admission::facts::{AdmissionFacts, DeadlineThread};
use crate::admission::{self, Obstacle, Refusal};
use crate::backend::{AccuracyWarning, BackendKind, BackendRequest, members};

/// Shorter ones the thread that keeps them would mostly spend on itself.
const LEAST_BUDGET_NS: u64 = 50_000;
const LEAST_PERIOD_NS: u64 = 500_000;
/// Longer ones say nothing.
const LONGEST_PERIOD_NS: u64 = 3_600_000_000_000;

/// The obstacles to `request`; empty if none is visible. Reserves nothing. Other reservations of this kind are visible.
pub(crate) fn check(request: &BackendRequest, facts: &AdmissionFacts) -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = times(request).into_iter().collect();
    refusals.extend(admission::user(request, facts));
    refusals
}

/// As [`check`], beside the present reservations of this kind on these CPUs.
pub(crate) fn check_present(
    request: &BackendRequest,
    cpus: &[u32],
    facts: &AdmissionFacts,
) -> Result<(), Refusal> {
    admit(&claim(request, cpus), with_planned(Registry::of_the_machine().all(), facts), facts)
}

/// Why a reservation of this kind would not be seen by all others on this machine, so that they may be promised the
/// same time; `None` if it would.
pub(crate) fn unseen() -> Option<AccuracyWarning> {
    Registry::of_the_machine().doubt()
}

pub(crate) fn remove_claims() -> Vec<StaleClaim> {
    Registry::of_the_machine().remove_stale()
}

/// These, and those of this kind that are to be made with the request.
fn with_planned(
    mut all: Vec<RegisteredReservation>,
    facts: &AdmissionFacts,
) -> Vec<RegisteredReservation> {
    let planned = facts.planned_by(BackendKind::User);
    all.extend(planned.map(|one| RegisteredReservation {
        share: ReservationClaim::new(&one.reservation, one.cpus.clone()),
        holder: Holder::Planned(one.target.clone()),
        course: None,
    }));
    all
}

fn claim(request: &BackendRequest, cpus: &[u32]) -> ReservationClaim {
    ReservationClaim::new(&request.reservation, cpus.iter().copied().collect())
}

pub(super) fn refusal(id: Obstacle, cause: String, remedy: &str) -> Refusal {
    Refusal { backend: BackendKind::User, id, errno: None, cause, remedy: remedy.to_owned() }
}

fn times(request: &BackendRequest) -> Option<Refusal> {
    let reservation = &request.reservation;
    let (budget, period) = (reservation.budget(), reservation.period());
    let short = budget.nanos_or_zero() < LEAST_BUDGET_NS;
    if !short && (LEAST_PERIOD_NS..=LONGEST_PERIOD_NS).contains(&period.nanos_or_zero()) {
        return None;
    }
    Some(refusal(
        Obstacle::Times,
        format!("a thread of this program cannot keep {budget} in every {period}"),
        "choose a budget of at least 50us and a period from 500us to 1h",
    ))
}

/// Whether a thread of the deadline class, of which `facts` are, would leave the reservations of this kind their time: it
/// stands above them all.
pub(crate) fn check_above(request: &BackendRequest, facts: &AdmissionFacts) -> Result<(), Refusal> {
    let claims = with_planned(Registry::of_the_machine().all(), facts);
    let Some(cpus) = facts.affinity.as_ref().filter(|_| !claims.is_empty()) else { return Ok(()) };
    let cpus: Vec<u32> = cpus.iter().collect();
    let new = ReservationClaim { priority: DEADLINE_CLASS, ..claim(request, &cpus) };
    let others = in_class(facts, &new.cpus);
    let class: Vec<ReservationClaim> =
        std::iter::once(new.clone()).chain(others.iter().map(|held| held.share.clone())).collect();
    let shares: Vec<ReservationClaim> = claims.iter().map(|held| held.share.clone()).collect();
    fits_above(&class, &shares, cap(facts)).map_err(|misfit| {
        let all: Vec<RegisteredReservation> = claims.into_iter().chain(others).collect();
        Refusal { backend: BackendKind::Deadline, ..misfits(&misfit, &new, &all, facts) }
    })
}

/// The threads of the deadline class that may run on the CPUs of a claim.
pub(super) fn class_above(own: &ReservationClaim) -> Vec<ReservationClaim> {
    let class = in_class(&AdmissionFacts::here(None), &own.cpus);
    class.into_iter().map(|held| held.share).collect()
}

/// What other reservations, and these of the deadline class, may take of the time until each deadline, ns; and how many
/// reservations of this kind share a CPU with it.
pub(super) fn planned(entry: &RegistryEntry, class: &[ReservationClaim]) -> (u64, u64) {
    let own = entry.share();
    let mut others: Vec<ReservationClaim> =
        entry.others().into_iter().map(|held| held.share).collect();
    others.retain(|other| !other.cpus.intersection(&own.cpus).is_empty());
    let sharers = others.len() as u64;
    others.extend_from_slice(class);
    (planned_ns(own, &others), sharers)
}

/// Others that have time of the CPUs of a claim, at its priority or above.
pub(super) fn above(entry: &RegistryEntry) -> Vec<String> {
    let own = entry.share();
    let mut others = entry.others();
    others.extend(in_class(&AdmissionFacts::here(None), &own.cpus));
    let above = others.iter().filter(|held| {
        held.share.priority >= own.priority && !held.share.cpus.intersection(&own.cpus).is_empty()
    });
    let mut names: Vec<String> = above.map(|held| held.holder.to_string()).collect();
    names.extend(
        entry.unclaimed().map(|pid| format!("{}, which has no claim", Holder::process(pid))),
    );
    names.extend(urgent::above(&own.cpus, own.priority));
    names
}

/// The other threads of the deadline class that may run where thread `tid` may.
pub(in crate::backend) fn in_class_beside(tid: u32) -> Vec<String> {
    let facts = AdmissionFacts::here(Some(tid));
    let cpus = facts.affinity.clone().unwrap_or_default();
    let meets = |held: &RegisteredReservation| !held.share.cpus.intersection(&cpus).is_empty();
    let others = in_class(&facts, &cpus);
    others.into_iter().filter(meets).map(|held| held.holder.to_string()).collect()
}

/// The reservations of this kind and of the deadline class in force, and what stands against that these are all.
pub(crate) fn in_force() -> (Vec<ReservationInForce>, Option<AccuracyWarning>) {
    let registry = Registry::of_the_machine();
    let facts = AdmissionFacts::here(None);
    let all = facts.online.clone().unwrap_or_default();
    let held = registry.all().into_iter().chain(in_class(&facts, &all));
    (held.map(listed).collect(), registry.gap().map(AccuracyWarning::from))
}

fn listed(held: RegisteredReservation) -> ReservationInForce {
    let RegisteredReservation { share, holder, course } = held;
    let (pid, tid, command, user, backend) = match holder {
        Holder::Process { pid, command, uid } => (pid, None, command, Some(uid), BackendKind::User),
        Holder::Planned(target) => (None, None, target, None, BackendKind::User),
        Holder::Thread(tid, name) => {
            let pid = members::process_of(tid);
            let (command, user) = match pid.map(Holder::process) {
                Some(Holder::Process { command, uid, .. }) => (command, Some(uid)),
                _ => (name, None),
            };
            (pid, Some(tid), command, user, BackendKind::Deadline)
        }
    };
    // Where the claim of a thread counts its period as the deadline, that is to be on the safe side.
    let (deadline, reclaims) = match tid.map(sched::read) {
        Some(Ok(Some(Attributes::Deadline { deadline_ns, reclaim, .. }))) => {
            (Some(deadline_ns), Some(reclaim))
        }
        _ => (None, None),
    };
    ReservationInForce {
        pid,
        tid,
        command,
        user,
        cpus: share.cpus.iter().collect(),
        budget_ns: share.budget_ns,
        period_ns: share.period_ns,
        deadline_ns: deadline.unwrap_or(share.deadline_ns),
        reclaims,
        backend: backend.name().to_owned(),
        periods: course.map(|(periods, _)| periods),
        missed: course.map(|(_, missed)| missed),
        kept: course.filter(|(periods, _)| *periods > 0).map(|(_, missed)| missed == 0),
    }
}

pub(super) fn admit(
    new: &ReservationClaim,
    mut others: Vec<RegisteredReservation>,
    facts: &AdmissionFacts,
) -> Result<(), Refusal> {
    others.extend(in_class(facts, &new.cpus));
    let shares: Vec<ReservationClaim> = others.iter().map(|held| held.share.clone()).collect();
    fits(new, &shares, cap(facts)).map_err(|misfit| misfits(&misfit, new, &others, facts))
}

/// The threads of the deadline class. A thread with unknown CPUs counts on `cpus`.
fn in_class(facts: &AdmissionFacts, cpus: &CpuSet) -> Vec<RegisteredReservation> {
    let held = |thread: &DeadlineThread| RegisteredReservation {
        share: ReservationClaim {
            cpus: thread.cpus.clone().unwrap_or_else(|| cpus.clone()),
            budget_ns: thread.runtime_ns,
            deadline_ns: thread.period_ns,
            period_ns: thread.period_ns,
            priority: DEADLINE_CLASS,
        },
        holder: Holder::Thread(thread.tid, crate::ownership::for_people(&thread.name)),
        course: None,
    };
    let planned = facts.planned_by(BackendKind::Deadline).map(|one| RegisteredReservation {
        share: ReservationClaim {
            priority: DEADLINE_CLASS,
            ..ReservationClaim::new(&one.reservation, one.cpus.clone())
        },
        holder: Holder::Planned(one.target.clone()),
        course: None,
    });
    facts.deadline_threads.iter().map(held).chain(planned).collect()
}

/// The share of a CPU that real-time threads may have.
fn cap(facts: &AdmissionFacts) -> Fraction {
    match (facts.rt_runtime_us.map(u64::try_from), facts.rt_period_us) {
        (Some(Ok(numerator)), Some(denominator)) => Fraction { numerator, denominator },
        _ => Fraction { numerator: 1, denominator: 1 },
    }
}

fn misfits(
    misfit: &AdmissionFailure,
    new: &ReservationClaim,
    others: &[RegisteredReservation],
    facts: &AdmissionFacts,
) -> Refusal {
    let cap = cap(facts);
    let cause = match misfit {
        AdmissionFailure::Sum { cpu } => format!(
            "on CPU {cpu} the reservations together are more than real-time threads may have \
             (kernel.sched_rt_runtime_us is {} of {} us): {}",
            cap.numerator,
            cap.denominator,
            holders(others, *cpu)
        ),
        AdmissionFailure::Late { cpu, share } if share == new => format!(
            "on CPU {cpu} the other reservations would delay {} beyond its deadline of {}: {}",
            Span::saturating_from_nanos(share.budget_ns),
            Span::saturating_from_nanos(share.deadline_ns),
            holders(others, *cpu)
        ),
        AdmissionFailure::Late { cpu, share } => format!(
            "on CPU {cpu} another reservation would come too late, due within {}: {}",
            Span::saturating_from_nanos(share.deadline_ns),
            holders(others.iter().filter(|held| held.share == *share), *cpu)
        ),
    };
    refusal(Obstacle::Bandwidth, cause, "reserve less, or take another CPU with --cpu")
}

/// Holders of time on a CPU, the largest first.
fn holders<'a>(others: impl IntoIterator<Item = &'a RegisteredReservation>, cpu: u32) -> String {
    const MOST: usize = 3;
    let here = others.into_iter().filter(|held| held.share.cpus.contains(cpu));
    let mut here: Vec<&RegisteredReservation> = here.collect();
    let part = |held: &&RegisteredReservation| {
        u128::from(held.share.budget_ns) * u128::from(u64::MAX)
            / u128::from(held.share.period_ns.max(1))
    };
    here.sort_by_key(|held| std::cmp::Reverse(part(held)));
    let text = |held: &&RegisteredReservation| {
        let ReservationClaim { budget_ns, period_ns, .. } = held.share;
        format!(
            "{} has {} every {}",
            held.holder,
            Span::saturating_from_nanos(budget_ns),
            Span::saturating_from_nanos(period_ns)
        )
    };
    let mut texts: Vec<String> = here.iter().take(MOST).map(text).collect();
    if here.len() > MOST {
        texts.push(format!("{} more", here.len() - MOST));
    }
    texts.join(", ")
}
