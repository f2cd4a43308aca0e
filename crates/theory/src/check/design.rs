//! The smallest reservation that makes a set of tasks work.
//!
//! Owns: which sets it can be designed for. Must not: search (`sched::design` does).

use hourglass_documents::check::ServerDesign;
use hourglass_sched::catalogue::{Rule, Situation};
use hourglass_sched::design::{self, DesignProblem};
use hourglass_sched::fixed_priority::Sections;
use hourglass_sched::servers::{LocalScheduler, Server, ServerPolicy};
use hourglass_sched::{TaskSet as Numbers, checker, supply};
use hourglass_tasks::TaskSet;
use hourglass_time::Span;

use super::RequestError;
use super::parameters;
use super::placement;
use super::processor::NoteList;
use super::proof;

/// What a reservation has of its period at most: what Linux admits of real-time threads unless it is set up otherwise.
const MOST_PERCENT: u128 = 95;

/// The periods that Linux's deadline class takes unless it is set up otherwise (`sched_deadline_period_min_us` and
/// `_max_us`), ns.
const PERIODS_OF_CLASS: std::ops::RangeInclusive<u64> = 100_000..=4_000_000_000;

/// The least budget that it takes, ns (`DL_SCALE`).
const LEAST_OF_CLASS: u64 = 1 << 10;

/// The smallest budget in which all tasks of the set meet their deadlines under fixed priorities or EDF, every
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

/// The design for several periods; `period_ns` is stated if no period is feasible.
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
    let mut notes = NoteList::default();
    let one = match placement::processors(set, true, &mut notes) {
        Ok(mut all) if all.len() == 1 => all.remove(0),
        Ok(_) => return none("the tasks run on several CPUs; give those of one"),
        Err(why) => return none(&why),
    };
    if let Some(why) = &one.refused {
        return none(why);
    }
    let inside = match one.rule {
        Rule::FixedPriority => Some(LocalScheduler::FixedPriority),
        Rule::Edf => Some(LocalScheduler::Edf),
        Rule::Fifo => None,
    };
    let plain = one.sections == Sections::Preemptive
        && !matches!(one.situation, Situation::Shared(_))
        && !one.has_thresholds()
        && !one.finds_priorities
        && one.members.iter().all(|member| member.unknown.is_none());
    let Some(inside) = inside.filter(|_| plain) else {
        return none(
            "a reservation is designed for preemptive fixed priorities that are known, and for EDF",
        );
    };
    if one.has_bursts() {
        return none("a reservation for tasks with bursts cannot be designed");
    }
    let tasks = one.in_any_phase();
    let wanted = DesignProblem { set: &tasks, inside, kind: ServerPolicy::Periodic, step: 1 };
    let switches = parameters::costs(set).switch.saturating_mul(2);
    let Some(found) = design::best(&wanted, periods, switches).map(|found| found.server) else {
        return none("even the whole processor is not known to suffice");
    };
    if u128::from(found.budget()) * 100 > u128::from(found.period()) * MOST_PERCENT {
        return none(&format!(
            "the least budget is {} every {}, and Linux admits 95 % of a CPU for real-time threads",
            proof::time(found.budget()),
            proof::time(found.period())
        ));
    }
    let Some(bounds) = bounds(&tasks, inside, &found) else {
        return none("the proof of the budget does not hold; please report this");
    };
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
    reason.push_str(refused_by_class(&found));
    let (period_ns, budget_ns) = (found.period(), Some(found.budget()));
    ServerDesign { period_ns, budget_ns, response_times_ns, reason }
}

/// Why Linux's deadline class does not take a reservation, to be appended; empty if it does.
fn refused_by_class(server: &Server) -> &'static str {
    if !PERIODS_OF_CLASS.contains(&server.period()) {
        "; Linux's deadline class refuses it: periods of 100us to 4s are taken"
    } else if server.budget() < LEAST_OF_CLASS {
        "; Linux's deadline class refuses it: budgets of 1024ns or more are taken"
    } else {
        ""
    }
}

/// Bounds of response times in the server, whose proof holds.
fn bounds(tasks: &Numbers, inside: LocalScheduler, server: &Server) -> Option<Vec<Option<u64>>> {
    let supply = server.supply()?;
    match inside {
        LocalScheduler::FixedPriority => {
            let analysis = supply::fixed_priority(tasks, &supply);
            supply::holds(tasks, &supply, &analysis).then(|| analysis.from_arrival())
        }
        LocalScheduler::Edf => {
            let found = server.demand(tasks)?;
            checker::supplied_demand(tasks, &supply, &found).ok()?;
            // If the demand is met, each deadline is a bound.
            Some(tasks.tasks().iter().map(|task| Some(task.deadline())).collect())
        }
    }
}
