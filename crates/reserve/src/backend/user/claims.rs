//! Whether one more reservation fits beside those that there are.
//!
//! Owns: what a reservation takes of a CPU, as the analyst is asked about it. Must not: analyse (responses and sums are
//! `sched`'s); know where others come from (`registry` does).

use hourglass_documents::{CpuSet, Reservation};
use hourglass_sched::admission::{Fraction, admits};
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::{Sections, TimeModel, verdict_within};
use hourglass_sched::{Task, TaskSet, Verdict};
use hourglass_time::Span;

/// One reservation among others, in ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReservationClaim {
    pub(crate) cpus: CpuSet,
    pub(crate) budget_ns: u64,
    pub(crate) deadline_ns: u64,
    pub(crate) period_ns: u64,
    /// The real-time priority; a thread of the deadline class is above all.
    pub(crate) priority: u32,
}

impl ReservationClaim {
    /// Of a user-space reserve on these CPUs.
    pub(super) fn new(reservation: &Reservation, cpus: CpuSet) -> ReservationClaim {
        let deadline_ns = reservation.deadline().nanos_or_zero();
        ReservationClaim {
            cpus,
            budget_ns: reservation.budget().nanos_or_zero(),
            deadline_ns,
            period_ns: reservation.period().nanos_or_zero(),
            priority: u32::from(priority_for(deadline_ns)),
        }
    }
}

/// The longest deadline of the highest priority is below twice this.
const SHORTEST_NS: u64 = 100_000;
/// Above every FIFO priority: the deadline class.
pub(crate) const DEADLINE_CLASS: u32 = 1_000;

/// The FIFO priority for a deadline: the shorter, the higher, by octaves from 100 us on. Each has
/// the next number too, so they are two apart.
pub(crate) fn priority_for(deadline_ns: u64) -> u8 {
    const HIGHEST: u8 = 88;
    const LOWEST: u8 = 58;
    let octave = (deadline_ns / SHORTEST_NS).checked_ilog2().unwrap_or(0);
    let below = u8::try_from(octave).unwrap_or(u8::MAX).saturating_mul(2);
    HIGHEST.saturating_sub(below).max(LOWEST)
}

/// The shortest deadline of which a reserve has a lower priority than one of this deadline; `None` where none has.
#[must_use]
pub fn less_urgent(deadline: Span) -> Option<Span> {
    let own = priority_for(deadline.nanos_or_zero());
    let octaves = (1..u64::BITS).map(|octave| SHORTEST_NS.saturating_mul(1 << octave));
    let mut lower = octaves.filter(|deadline_ns| priority_for(*deadline_ns) < own);
    lower.next().map(Span::saturating_from_nanos)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AdmissionFailure {
    /// All together are more than real-time threads may have on this CPU.
    Sum { cpu: u32 },
    /// The new reservation or a present one would not have its budget by its deadline.
    Late { cpu: u32, share: ReservationClaim },
}

/// Whether `new` fits beside `others`, of whose time real-time threads may have `cap`.
///
/// Each CPU on which a reservation may be used is looked at as if all of it were used there: while a
/// raised thread waits, all of its CPUs, so also that one, are busy with work of higher priority.
/// A budget may be used at any place in its period, so that it delays others as one released with
/// jitter does (Strosnider, Lehoczky and Sha, IEEE ToC 1995, on deferrable servers).
pub(crate) fn fits(
    new: &ReservationClaim,
    others: &[ReservationClaim],
    cap: Fraction,
) -> Result<(), AdmissionFailure> {
    for cpu in new.cpus.iter() {
        let mut here = vec![new];
        here.extend(others.iter().filter(|other| other.cpus.contains(cpu)));
        fit_on(cpu, &here, here.len(), cap)?;
    }
    Ok(())
}

/// Whether `claims` are kept below threads of the deadline class, of which the first one is new. On how many CPUs these
/// are together is the kernel's to admit.
pub(crate) fn fits_above(
    class: &[ReservationClaim],
    claims: &[ReservationClaim],
    cap: Fraction,
) -> Result<(), AdmissionFailure> {
    let Some(new) = class.first() else { return Ok(()) };
    for cpu in new.cpus.iter() {
        let on = |share: &&ReservationClaim| share.cpus.contains(cpu);
        let mut here: Vec<&ReservationClaim> = claims.iter().filter(on).collect();
        let judged = here.len();
        if judged > 0 {
            here.extend(class.iter().filter(on));
            fit_on(cpu, &here, judged, cap)?;
        }
    }
    Ok(())
}

/// Whether all of one CPU's together leave what others have, and the first ones, `judged` of them, are in time.
fn fit_on(
    cpu: u32,
    here: &[&ReservationClaim],
    judged: usize,
    cap: Fraction,
) -> Result<(), AdmissionFailure> {
    let tasks = here.iter().filter_map(|share| task(share, false)).collect();
    if admits(&TaskSet::new(tasks), cap, 1) != Some(true) {
        return Err(AdmissionFailure::Sum { cpu });
    }
    for (position, share) in here.iter().enumerate().take(judged) {
        let tasks = here.iter().enumerate().filter_map(|(k, one)| task(one, k != position));
        // The other ones are there to delay it; whether they are late is asked when it is their turn.
        let tasks = tasks.enumerate().map(|(k, task)| (k == position, task));
        let set = TaskSet::new(tasks.filter_map(delaying).collect());
        let verdict =
            verdict_within(&set, Sections::Preemptive, TimeModel::Discrete, StepLimit::default());
        if verdict != Verdict::Feasible {
            return Err(AdmissionFailure::Late { cpu, share: (*share).clone() });
        }
    }
    Ok(())
}

/// The most that `others` at this priority or above may take of `deadline_ns`, as admitted: what is denied beyond it breaks
/// the promise. A CPU more can only bring time sooner, so that the CPU on which they take least decides.
pub(super) fn planned_ns(own: &ReservationClaim, others: &[ReservationClaim]) -> u64 {
    let on = |cpu: u32| {
        let above = others
            .iter()
            .filter(|other| other.priority >= own.priority && other.cpus.contains(cpu));
        above.map(|other| most_in(other, own.deadline_ns)).fold(0, u64::saturating_add)
    };
    own.cpus.iter().map(on).min().unwrap_or(0)
}

/// Of a window: budgets may be late in one period and early in the next, as [`fits`] counts them.
fn most_in(share: &ReservationClaim, window_ns: u64) -> u64 {
    let jitter = share.period_ns.saturating_sub(share.budget_ns);
    let budgets = window_ns.saturating_add(jitter).div_ceil(share.period_ns.max(1));
    budgets.saturating_mul(share.budget_ns).min(window_ns)
}

fn task(share: &ReservationClaim, delays: bool) -> Option<Task> {
    let task = Task::new(share.budget_ns, share.period_ns, share.deadline_ns).ok()?;
    let jitter = if delays { share.period_ns.saturating_sub(share.budget_ns) } else { 0 };
    Some(task.with_priority(share.priority).with_jitter(jitter))
}

/// One that only delays has no deadline of its own.
fn delaying((own, task): (bool, Task)) -> Option<Task> {
    if own {
        return Some(task);
    }
    /// Far beyond every busy window.
    const NEVER: u64 = u64::MAX / 4;
    let free = Task::new(task.cost(), task.period(), NEVER).ok()?;
    Some(free.with_priority(task.priority()).with_jitter(task.jitter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// `kernel.sched_rt_runtime_us` over its period, as it usually is.
    const USUAL: Fraction = Fraction { numerator: 19, denominator: 20 };

    fn share(cpus: &str, budget: u64, deadline: u64, period: u64) -> ReservationClaim {
        ReservationClaim {
            cpus: cpus.parse().unwrap(),
            budget_ns: budget,
            deadline_ns: deadline,
            period_ns: period,
            priority: u32::from(priority_for(deadline)),
        }
    }

    #[test]
    fn shorter_deadlines_have_higher_priorities() {
        assert_eq!(priority_for(50_000), 88);
        assert_eq!(priority_for(100_000), 88);
        assert_eq!(priority_for(200_000), 86);
        assert_eq!(priority_for(8 * MS), 76);
        assert_eq!(priority_for(u64::MAX), 58);
        let next = |us| less_urgent(Span::from_micros(us)).map(|next| next.nanos() / 1_000);
        assert_eq!([50, 100, 200, 799, 800].map(next), [200, 200, 400, 800, 1_600].map(Some));
        assert_eq!(next(i64::MAX / 1_000), None);
    }

    #[test]
    fn what_is_planned_above_is_what_admission_counts() {
        let long = share("0", 9 * MS, 21 * MS, 40 * MS);
        let short = share("0", 4 * MS, 10 * MS, 10 * MS);
        // 4 at 0, 4 at 4 (10 - 6), 4 at 14: of 21 ms.
        assert_eq!(planned_ns(&long, std::slice::from_ref(&short)), 12 * MS);
        // Below it, on another CPU, or on one of two: nothing.
        assert_eq!(planned_ns(&short, std::slice::from_ref(&long)), 0);
        let elsewhere = ReservationClaim { cpus: "1".parse().unwrap(), ..short.clone() };
        assert_eq!(planned_ns(&long, std::slice::from_ref(&elsewhere)), 0);
        let on_both = ReservationClaim { cpus: "0-1".parse().unwrap(), ..long.clone() };
        assert_eq!(planned_ns(&on_both, std::slice::from_ref(&short)), 0);
        assert_eq!(planned_ns(&on_both, &[short.clone(), elsewhere]), 12 * MS);
        // The same octave has the same priority, and waits behind it.
        let equal = share("0", 2 * MS, 20 * MS, 20 * MS);
        assert_eq!(planned_ns(&long, &[short, equal]), 16 * MS);
        let ends = ReservationClaim { budget_ns: u64::MAX, period_ns: 0, ..long.clone() };
        assert_eq!(planned_ns(&long, &[ends.clone(), ends]), 42 * MS);
    }

    #[test]
    fn the_sum_is_looked_at_on_each_cpu() {
        let new = share("0-1", 4 * MS, 10 * MS, 10 * MS);
        let other = share("1", 56 * MS, 100 * MS, 100 * MS);
        assert_eq!(fits(&new, &[], USUAL), Ok(()));
        assert_eq!(
            fits(&new, std::slice::from_ref(&other), USUAL),
            Err(AdmissionFailure::Sum { cpu: 1 })
        );
        let elsewhere = ReservationClaim { cpus: "2".parse().unwrap(), ..other };
        assert_eq!(fits(&new, &[elsewhere], USUAL), Ok(()));
    }

    /// The bug: 80 ms of 100 in the deadline class were granted above 60 of 100 from user space.
    #[test]
    fn the_deadline_class_leaves_claims_their_time() {
        let in_class = |cpus, budget: u64| ReservationClaim {
            priority: DEADLINE_CLASS,
            ..share(cpus, budget * MS, 100 * MS, 100 * MS)
        };
        let claim = share("1", 60 * MS, 100 * MS, 100 * MS);
        let fits =
            |class: &[ReservationClaim]| fits_above(class, std::slice::from_ref(&claim), USUAL);
        assert_eq!(fits(&[in_class("0-1", 80)]), Err(AdmissionFailure::Sum { cpu: 1 }));
        assert_eq!(fits(&[in_class("0-1", 20)]), Ok(()));
        assert_eq!(
            fits(&[in_class("0-1", 20), in_class("0-1", 20)]),
            Err(AdmissionFailure::Sum { cpu: 1 })
        );
        // On CPUs without claims the kernel's sum is enough.
        assert_eq!(fits(&[in_class("0", 80), in_class("0", 80)]), Ok(()));
        assert_eq!(fits_above(&[in_class("0-1", 90), in_class("0-1", 90)], &[], USUAL), Ok(()));
    }

    /// Half of the CPU each: the sum would do with all of it for real-time threads, but the longer one
    /// meets two budgets of the shorter one back to back at its begin, and a third.
    #[test]
    fn a_budget_late_in_its_period_delays_others() {
        let all = Fraction { numerator: 1, denominator: 1 };
        let short = share("0", 4 * MS, 10 * MS, 10 * MS);
        let long = share("0", 9 * MS, 20 * MS, 40 * MS);
        // 9 + 4 at 0, 4 at 4 (10 - 6), 4 at 14: 21 ms.
        let misfit = AdmissionFailure::Late { cpu: 0, share: long.clone() };
        assert_eq!(fits(&long, std::slice::from_ref(&short), all), Err(misfit.clone()));
        // The present reservation is protected from the new one just as well.
        assert_eq!(fits(&short, std::slice::from_ref(&long), all), Err(misfit));
        let later = share("0", 9 * MS, 21 * MS, 40 * MS);
        assert_eq!(fits(&later, &[short], all), Ok(()));
    }
}
