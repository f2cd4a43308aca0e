//! The smallest reservation that makes a set of tasks work.
//!
//! Owns: which sets it can be designed for. Must not: search (`sched::design` does).

use hourglass_model::check::ServerDesign;
use hourglass_sched::catalogue::{Rule, Situation};
use hourglass_sched::design::{self, Wanted};
use hourglass_sched::fixed_priority::Sections;
use hourglass_sched::servers::{Inside, Kind};
use hourglass_sched::supply;
use hourglass_tasks::TaskSet;
use hourglass_time::Span;

use super::RequestError;
use super::host;
use super::numbers;
use super::processor::Notes;

/// The smallest budget in which all tasks of the set meet their deadlines under fixed priorities, every
/// one of `periods`: of several, the one that takes the least share of the processor, two context
/// switches a period included. At most 65 analyses for each. `None` without periods.
///
/// # Errors
/// A period is not above zero.
pub(super) fn design(
    set: &TaskSet,
    periods: &[Span],
) -> Result<Option<ServerDesign>, RequestError> {
    if let Some(period) = periods.iter().find(|period| !period.is_positive()) {
        return Err(RequestError::NoPeriod(*period));
    }
    let periods: Vec<u64> = periods.iter().map(|period| period.nanos_or_zero()).collect();
    Ok(periods.first().map(|first| of_several(set, &periods, *first)))
}

/// The same; `period_ns` is named where there is none.
fn of_several(set: &TaskSet, periods: &[u64], period_ns: u64) -> ServerDesign {
    let none = |reason: &str| ServerDesign {
        period_ns,
        budget_ns: None,
        response_times_ns: vec![None; set.tasks.len()],
        reason: reason.to_owned(),
    };
    if !set.servers.is_empty() {
        return none("the set has servers already; take them out");
    }
    let mut notes = Notes::default();
    let one = match host::processors(set, true, &mut notes) {
        Ok(mut all) if all.len() == 1 => all.remove(0),
        Ok(_) => return none("the tasks run on several CPUs; give those of one"),
        Err(why) => return none(&why),
    };
    if let Some(why) = &one.refused {
        return none(why);
    }
    let plain = one.rule == Rule::FixedPriority
        && one.sections == Sections::Preemptive
        && !matches!(one.situation, Situation::Shared(_))
        && !one.has_thresholds()
        && !one.finds_priorities
        && one.members.iter().all(|member| member.unknown.is_none());
    if !plain {
        return none("a reservation is designed for preemptive fixed priorities that are known");
    }
    let burst = one.has_bursts();
    if burst {
        return none("a reservation for tasks with bursts is not designed here");
    }
    let tasks = one.in_any_phase();
    let (inside, kind) = (Inside::FixedPriority, Kind::Periodic);
    let wanted = Wanted { set: &tasks, inside, kind, step: 1 };
    let switches = numbers::costs(set).switch.saturating_mul(2);
    let found = design::best(&wanted, periods, switches);
    let Some(found) = found.and_then(|found| found.server.supply()) else {
        return none("even the whole processor is not known to suffice");
    };
    let analysis = supply::fixed_priority(&tasks, &found);
    if !supply::holds(&tasks, &found, &analysis) {
        return none("the proof of the budget does not hold; please report this");
    }
    let bounds = analysis.from_arrival();
    let mut response_times_ns = vec![None; set.tasks.len()];
    for (member, bound) in one.members.iter().zip(bounds) {
        if let Some(position) = member.position {
            response_times_ns[position] = bound;
        }
    }
    let mut reason = "with one nanosecond less, some deadline is not known to hold".to_owned();
    if periods.len() > 1 {
        reason.push_str("; of these periods, this one takes the least share");
    }
    let (period_ns, budget_ns) = (found.period(), Some(found.budget()));
    ServerDesign { period_ns, budget_ns, response_times_ns, reason }
}
