//! Whether what the deadline class admits is also delivered in time.
//!
//! The kernel admits by a sum alone, and runs the threads of a root domain by global EDF. On one CPU with
//! deadlines that are periods the sum is enough. On several it bounds how late a budget can come, no more
//! (Documentation/scheduler/sched-deadline.rst, section 3.4; Devi and Anderson, RTSS 2005).
//!
//! Where CPUs are of different capacity, each budget is taken for as long as it lasts on the slowest: one that lasts less long is a
//! job that ends before its time, which delays none under global EDF (Ha and Liu, ICDCS 1994).

use hourglass_sched::global::tardiness;
use hourglass_sched::servers::delivery_on_several;
use hourglass_sched::task::{Task, TaskSet};

use super::{AdmissionFacts, bandwidth, capacity};
use crate::request::BackendRequest;

/// By how much a budget can come after its deadline, beside what interrupts, the host of a virtual machine
/// and others' overruns take, which the kernel notices at its next tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BudgetDelay {
    Never,
    /// At most this late, ns.
    AtMost(u64),
    Unknown,
}

/// The delay of `request` beside the threads of the deadline class and the fair servers that can be seen; `None` where
/// the CPUs of the machine are not known.
pub(crate) fn lateness(request: &BackendRequest, facts: &AdmissionFacts) -> Option<BudgetDelay> {
    let domain = facts.domain.as_ref().filter(|domain| !domain.is_empty())?;
    let reservation = &request.reservation;
    let own = Task::new(
        reservation.budget().nanos_or_zero(),
        reservation.period().nanos_or_zero(),
        reservation.deadline().nanos_or_zero(),
    );
    let mut tasks = bandwidth::given(facts, domain);
    tasks.push(own.ok()?);
    let lasting = |task: Task| {
        let cost = capacity::longest_ns(facts, domain, task.cost())?;
        Task::new(cost, task.period(), task.deadline()).ok()
    };
    let Some(tasks) = tasks.into_iter().map(lasting).collect() else {
        return Some(BudgetDelay::Unknown);
    };
    let (set, cpus) = (TaskSet::in_order(tasks), domain.len() as u64);
    if delivery_on_several(&set, cpus).is_some() {
        return Some(BudgetDelay::Never);
    }
    let bounds = tardiness::bounds(&set, cpus).ok().flatten();
    let own = bounds.and_then(|bounds| bounds.last().copied());
    Some(own.map_or(BudgetDelay::Unknown, BudgetDelay::AtMost))
}
