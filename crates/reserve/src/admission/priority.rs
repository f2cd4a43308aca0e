//! What a reserve that raises priorities demands of the kernel: FIFO.

use super::{AdmissionFacts, Obstacle, Refusal, rules};
use crate::request::{BackendKind, BackendRequest};

/// The highest priority that such a reserve gives, that of its enforcer.
const HIGHEST: u64 = 99;

fn refusal(id: Obstacle, cause: String, remedy: String) -> Refusal {
    Refusal { backend: BackendKind::User, id, errno: None, cause, remedy }
}

pub(super) fn cpu(request: &BackendRequest, facts: &AdmissionFacts) -> Option<Refusal> {
    let (cause, remedy) = rules::not_permitted(request, facts)?;
    Some(refusal(Obstacle::Cpu, cause, remedy))
}

pub(super) fn capability(_: &BackendRequest, facts: &AdmissionFacts) -> Option<Refusal> {
    let counts = facts.sys_nice? && facts.user_namespace != Some(true);
    let limit = facts.priority_limit.unwrap_or(0);
    if counts || limit >= HIGHEST {
        return None;
    }
    Some(refusal(
        Obstacle::Capability,
        format!(
            "CAP_SYS_NICE is missing, or counts only inside a user namespace, and RLIMIT_RTPRIO is {limit}"
        ),
        "sudo setcap cap_sys_nice,cap_ipc_lock+ep $(command -v hourglass); in a container: --cap-add \
         SYS_NICE --ulimit rtprio=99"
            .to_owned(),
    ))
}

/// The control group has real-time time to give (`CONFIG_RT_GROUP_SCHED`, version 1).
pub(super) fn group_budget(_: &BackendRequest, facts: &AdmissionFacts) -> Option<Refusal> {
    let own = facts.group_budgets.first().filter(|own| own.runtime_us == 0)?;
    // Without a limit for the machine the kernel does not look at the groups.
    if facts.rt_runtime_us.is_some_and(|us| us < 0) {
        return None;
    }
    // A group can get no more than its parent has, so the outermost comes first.
    let usual = rules::USUAL_RT_RUNTIME_US;
    let above = facts.group_budgets.iter().map(|group| group.runtime_us).filter(|us| *us > 0);
    let runtime = above.min().map_or(usual, |us| us.min(usual));
    let empty = facts.group_budgets.iter().take_while(|group| group.runtime_us == 0);
    let mut lines: Vec<String> =
        empty.map(|group| format!("echo {runtime} > {}", group.file)).collect();
    lines.reverse();
    Some(refusal(
        Obstacle::GroupBudget,
        format!("the control group gives real-time threads no time: {} is 0", own.file),
        format!("{} # as root", lines.join(" && ")),
    ))
}

/// A reservation must be no more than the kernel lets real-time threads have on a CPU.
pub(super) fn throttle(request: &BackendRequest, facts: &AdmissionFacts) -> Option<Refusal> {
    let runtime = u64::try_from(facts.rt_runtime_us?).ok()?;
    let whole = facts.rt_period_us.filter(|us| *us > 0)?;
    let budget = request.reservation.budget().nanos_or_zero();
    let period = request.reservation.period().nanos_or_zero();
    if u128::from(budget) * u128::from(whole) <= u128::from(runtime) * u128::from(period) {
        return None;
    }
    Some(refusal(
        Obstacle::Bandwidth,
        format!(
            "{} in every {} is more than kernel.sched_rt_runtime_us lets real-time threads have: {} in every {}",
            request.reservation.budget(),
            request.reservation.period(),
            rules::micros(runtime),
            rules::micros(whole)
        ),
        "reserve less; or give real-time threads everything: sudo sysctl \
         kernel.sched_rt_runtime_us=-1"
            .to_owned(),
    ))
}
