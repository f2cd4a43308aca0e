//! The smallest reservation that makes a set of tasks work.
//!
//! Owns: which sets it can be designed for. Must not: search (`sched::design` does).

use hourglass_model::check::ServerDesign;
use hourglass_model::tasks::TaskSet;
use hourglass_sched::catalogue::{Rule, Situation};
use hourglass_sched::design::{self, Wanted};
use hourglass_sched::fixed_priority::Sections;
use hourglass_sched::servers::{Inside, Kind};
use hourglass_sched::supply;
use hourglass_time::Span;

use super::RequestError;
use super::host;
use super::processor::Notes;

/// The smallest budget every `period` in which all tasks of the set meet their deadlines under fixed
/// priorities. At most 64 analyses.
///
/// # Errors
/// The period is not above zero.
pub(super) fn design(set: &TaskSet, period: Span) -> Result<ServerDesign, RequestError> {
    if !period.is_positive() {
        return Err(RequestError::NoPeriod(period));
    }
    let period_ns = period.nanos_or_zero();
    let none = |reason: &str| ServerDesign {
        period_ns,
        budget_ns: None,
        response_times_ns: vec![None; set.tasks.len()],
        reason: reason.to_owned(),
    };
    if !set.servers.is_empty() {
        return Ok(none("the set has servers already; take them out"));
    }
    let mut notes = Notes::default();
    let one = match host::processors(set, true, &mut notes) {
        Ok(mut all) if all.len() == 1 => all.remove(0),
        Ok(_) => return Ok(none("the tasks run on several CPUs; give those of one")),
        Err(why) => return Ok(none(&why)),
    };
    if let Some(why) = &one.refused {
        return Ok(none(why));
    }
    let plain = one.rule == Rule::FixedPriority
        && one.sections == Sections::Preemptive
        && !matches!(one.situation, Situation::Shared(_))
        && !one.has_thresholds()
        && !one.finds_priorities
        && one.members.iter().all(|member| member.unknown.is_none());
    if !plain {
        return Ok(none(
            "a reservation is designed for preemptive fixed priorities that are known",
        ));
    }
    let burst = one.has_bursts();
    if burst {
        return Ok(none("a reservation for tasks with bursts is not designed here"));
    }
    let numbers = one.in_any_phase();
    let (inside, kind) = (Inside::FixedPriority, Kind::Periodic);
    let wanted = Wanted { set: &numbers, inside, kind, step: 1 };
    let found = design::smallest_budget(&wanted, period_ns);
    let Some(found) = found.and_then(|found| found.server.supply()) else {
        return Ok(none("even the whole processor is not known to suffice"));
    };
    let analysis = supply::fixed_priority(&numbers, &found);
    if !supply::holds(&numbers, &found, &analysis) {
        return Ok(none("the proof of the budget does not hold; please report this"));
    }
    let bounds = analysis.from_arrival();
    let mut response_times_ns = vec![None; set.tasks.len()];
    for (member, bound) in one.members.iter().zip(bounds) {
        if let Some(position) = member.position {
            response_times_ns[position] = bound;
        }
    }
    let reason = "with one nanosecond less, some deadline is not known to hold".to_owned();
    Ok(ServerDesign { period_ns, budget_ns: Some(found.budget()), response_times_ns, reason })
}
