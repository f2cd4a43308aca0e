//! The kernel's sum: what the deadline class has given away in a root domain, and what is left.
//!
//! The kernel compares sums of shares rounded down to 2^-20 of a CPU; here they are exact
//! fractions, so that nothing is said to fit that the kernel refuses for its sum.

use std::fmt::Write;

use hourglass_documents::CpuSet;
use hourglass_sched::admission::{Fraction, admits, utilisation};
use hourglass_sched::task::{Task, TaskSet};
use hourglass_time::Span;

use super::facts::FairServerSource;
use super::{AdmissionFacts, Obstacle, Refusal, capacity};
use crate::request::{BackendKind, BackendRequest};

/// A whole CPU in the kernel's account (`BW_UNIT`).
const WHOLE_CPU: u128 = 1 << 20;
const PPM: u128 = 1_000_000;
/// Deadline threads that a refusal names.
const NAMED: usize = 3;

/// What a root domain has for the deadline class, in parts per million of one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bandwidth {
    pub(crate) cpus: CpuSet,
    /// What may be given away, over all of them.
    pub(crate) all_ppm: u64,
    /// What is given to threads that can be seen, and to the fair servers; rounded up.
    pub(crate) seen_ppm: u64,
    /// What the kernel's own account says is given away, where it can be read. It has threads of
    /// other containers too, and what a thread gave back less than about 200 ms ago.
    pub(crate) account_ppm: Option<u64>,
    /// Whether the request fits into what is left, by both.
    pub(crate) fits: bool,
    /// Whether it fits by what can be seen, whatever the account says.
    pub(crate) fits_seen: bool,
    /// The largest budget of the requested period that fits, ns; the period at most.
    pub(crate) largest_budget_ns: u64,
}

/// Sums up the root domain of the subject; `None` where the kernel admits everything
/// (`kernel.sched_rt_runtime_us` is -1) or does not say what it gives.
pub(crate) fn bandwidth(request: &BackendRequest, facts: &AdmissionFacts) -> Option<Bandwidth> {
    let runtime = u64::try_from(facts.rt_runtime_us?).ok()?;
    let period = facts.rt_period_us.filter(|us| *us > 0)?;
    // Of one unit of capacity.
    let cap = Fraction { numerator: runtime, denominator: period.checked_mul(capacity::WHOLE)? };
    let cpus = facts.domain.clone()?;
    let units = capacity::admitted(facts, &cpus);
    let given = given(facts, &cpus);
    let reservation = &request.reservation;
    let (budget, period) =
        (reservation.budget().nanos_or_zero(), reservation.period().nanos_or_zero());
    let mut with = given.clone();
    with.push(Task::new(budget, period, period).ok()?);
    let all = all_ppm(cap, units)?;
    let given = TaskSet::in_order(given);
    let seen = ppm_of(&given);
    let account = account_ppm(facts, &cpus)
        .map(|account| account.saturating_add(ppm_of(&TaskSet::in_order(planned(facts, &cpus)))));
    let by_account = account.is_none_or(|account| {
        u128::from(account) + u128::from(budget) * PPM / u128::from(period) <= u128::from(all)
    });
    let taken = account.map_or(seen, |account| account.max(seen));
    let fits_seen = admits(&TaskSet::in_order(with), cap, units)?;
    Some(Bandwidth {
        fits: by_account && fits_seen,
        fits_seen,
        largest_budget_ns: largest(all, taken, period),
        all_ppm: all,
        seen_ppm: seen,
        account_ppm: account,
        cpus,
    })
}

pub(super) fn given(facts: &AdmissionFacts, domain: &CpuSet) -> Vec<Task> {
    let servers = facts.fair_servers.iter().filter(|server| domain.contains(server.cpu));
    let servers = servers.map(|server| (server.runtime_ns, server.period_ns, server.period_ns));
    let threads = facts.deadline_threads.iter().filter(|thread| {
        thread.cpus.as_ref().is_none_or(|cpus| !cpus.intersection(domain).is_empty())
    });
    let threads = threads.map(|thread| (thread.runtime_ns, thread.period_ns, thread.deadline_ns));
    servers
        .chain(threads)
        .filter_map(|(runtime, period, deadline)| Task::new(runtime, period, deadline).ok())
        .chain(planned(facts, domain))
        .collect()
}

/// What is to be given away with the request, which the kernel's account does not have.
fn planned(facts: &AdmissionFacts, domain: &CpuSet) -> Vec<Task> {
    let planned = facts.planned_by(BackendKind::Deadline);
    let here = planned.filter(|one| !one.cpus.intersection(domain).is_empty());
    let times = here.map(|one| {
        let of = &one.reservation;
        [of.budget(), of.period(), of.deadline()].map(Span::nanos_or_zero)
    });
    times
        .filter_map(|[budget, period, deadline]| Task::new(budget, period, deadline).ok())
        .collect()
}

/// A set's share in parts per million of a CPU, rounded up.
fn ppm_of(set: &TaskSet) -> u64 {
    let ppm = |numerator: u64, denominator: u64| {
        (u128::from(numerator) * PPM).div_ceil(u128::from(denominator.max(1)))
    };
    let sum = match utilisation(set) {
        Some(Fraction { numerator, denominator }) => ppm(numerator, denominator),
        // Terms of more than 64 bits: each rounded up by itself.
        None => set.tasks().iter().map(|task| ppm(task.cost(), task.period())).sum(),
    };
    u64::try_from(sum).unwrap_or(u64::MAX)
}

/// What the class has on `units` of capacity, `cap` of each, in parts per million of a whole CPU; rounded down.
fn all_ppm(cap: Fraction, units: u64) -> Option<u64> {
    let all = u128::from(cap.numerator) * u128::from(units) * PPM / u128::from(cap.denominator);
    u64::try_from(all).ok()
}

/// The kernel's account of the domain, rounded up. A negative one, which Linux 6.18 can come to, says
/// nothing.
fn account_ppm(facts: &AdmissionFacts, domain: &CpuSet) -> Option<u64> {
    let account = domain.iter().find_map(|cpu| facts.accounts.get(&cpu))?;
    let account = u128::try_from(*account).ok()?;
    u64::try_from((account * PPM).div_ceil(WHOLE_CPU)).ok()
}

/// The largest budget of `period` that what is left allows, in whole microseconds unless it is
/// shorter than one.
fn largest(all: u64, taken: u64, period: u64) -> u64 {
    let left = u128::from(all.saturating_sub(taken));
    let exact = (left * u128::from(period) / PPM).min(u128::from(period));
    let exact = u64::try_from(exact).unwrap_or(period);
    if exact >= 1_000 { exact - exact % 1_000 } else { exact }
}

/// In parts per million, rounded down.
fn share(runtime: u64, period: u64) -> u128 {
    u128::from(runtime) * PPM / u128::from(period.max(1))
}

pub(super) fn refusal(request: &BackendRequest, facts: &AdmissionFacts) -> Option<Refusal> {
    let sum = bandwidth(request, facts).filter(|sum| !sum.fits)?;
    Some(Refusal::deadline(Obstacle::Bandwidth, cause(request, facts, &sum), remedy(request, &sum)))
}

pub(super) fn cause(request: &BackendRequest, facts: &AdmissionFacts, sum: &Bandwidth) -> String {
    let (budget, period) = (request.reservation.budget(), request.reservation.period());
    let wanted = share(budget.nanos_or_zero(), period.nanos_or_zero());
    let mut text = format!(
        "the reservation needs {} of a CPU; kernel.sched_rt_runtime_us gives the deadline class {} on \
         CPUs {}, of which {} is given away",
        percent(wanted),
        percent(u128::from(sum.all_ppm)),
        sum.cpus,
        percent(u128::from(sum.account_ppm.unwrap_or(sum.seen_ppm).max(sum.seen_ppm))),
    );
    let held = held(facts, sum);
    if !held.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {}", held.join(", "));
    }
    text
}

fn held(facts: &AdmissionFacts, sum: &Bandwidth) -> Vec<String> {
    let mut held = Vec::new();
    let servers = facts.fair_servers.iter().filter(|server| sum.cpus.contains(server.cpu));
    let kept = servers.fold(0, |kept, server| kept + share(server.runtime_ns, server.period_ns));
    if kept > 0 {
        let known = match facts.fair_servers_known {
            FairServerSource::Read => "",
            _ => " (assumed: /sys/kernel/debug/sched/fair_server cannot be read)",
        };
        held.push(format!("{} to the fair servers{known}", percent(kept)));
    }
    let mut threads: Vec<_> = facts.deadline_threads.iter().collect();
    threads.sort_by_key(|thread| std::cmp::Reverse(share(thread.runtime_ns, thread.period_ns)));
    for thread in threads.iter().take(NAMED) {
        let part = percent(share(thread.runtime_ns, thread.period_ns));
        held.push(format!("{part} to {} (thread {})", thread.name, thread.tid));
    }
    if threads.len() > NAMED {
        held.push(format!("the remaining part to {} more threads", threads.len() - NAMED));
    }
    for one in facts.planned_by(BackendKind::Deadline) {
        let times = [one.reservation.budget(), one.reservation.period()];
        let [budget, period] = times.map(Span::nanos_or_zero);
        held.push(format!(
            "{} to the reservation for {}",
            percent(share(budget, period)),
            one.target
        ));
    }
    let unseen = sum.account_ppm.map_or(0, |account| account.saturating_sub(sum.seen_ppm));
    // Less is the kernel's rounding.
    if u128::from(unseen) > PPM / 1_000 {
        held.push(format!(
            "{} to threads that are not visible: a thread of another container, or one that has just ended",
            percent(u128::from(unseen))
        ));
    }
    held
}

pub(super) fn remedy(request: &BackendRequest, sum: &Bandwidth) -> String {
    let period = request.reservation.period();
    let largest = Span::saturating_from_nanos(sum.largest_budget_ns);
    if largest < Span::from_nanos(super::rules::SHORTEST_BUDGET_NS) {
        return "end one of these threads (chrt -p TID shows its class), or wait a second and try \
                again: no bandwidth remains"
            .to_owned();
    }
    format!(
        "reserve at most {largest}/{period}, or end one of these threads (chrt -p TID shows its \
         class)"
    )
}

fn percent(ppm: u128) -> String {
    format!("{} %", ppm as f64 / 10_000.0)
}
