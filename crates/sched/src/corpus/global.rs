//! Cases about processors that share all jobs.
//!
//! Owns: the answers' shapes, and what a `variant` means. Must not: compute a bound.

use hourglass_tasks::corpus::{Case, ResultValue};

use crate::effort::StepLimit;
use crate::global::edf::{self, Test};
use crate::global::fixed_priority::{self, Bound};
use crate::global::schedule::{GlobalPolicy, Schedule, ScheduleEnd, ScheduleLimit, schedule};
use crate::global::{edf_response, tardiness};
use crate::task::TaskSet;
use crate::verdict::Verdict;

use super::{BadCase, bounds_of, is_feasible, misc_cases, missing, optional, task_set};

pub(crate) fn earliest_deadline(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let (set, cpus) = (task_set(&case.tasks)?, missing(case.m, "m")?);
    let test = |test: Test| Ok(is_feasible(test.verdict(&set, cpus)));
    match name {
        "gfb" | "density" => test(Test::Gfb),
        "bak" => test(Test::Bak),
        "bar" => test(Test::Bar),
        "bcl" => test(Test::Bcl),
        "bcl_iterative" | "bcli" => test(Test::BclIterative),
        "rta" | "bertogna_cirinei" => test(Test::ResponseTimes),
        "schedulable" => Ok(is_feasible(edf::analyse(&set, cpus).verdict)),
        "r" => Ok(bounds_of(edf_response::analyse(&set, cpus).from_arrival())),
        "bounded_tardiness" => Ok(ResultValue::Bool(tardiness::is_bounded(&set, cpus))),
        "tardiness" => {
            let bounds =
                tardiness::bounds(&set, cpus).map_err(|why| BadCase::NoAnswer(why.to_string()))?;
            Ok(bounds_of(
                bounds.map_or(vec![None; set.len()], |b| b.into_iter().map(Some).collect()),
            ))
        }
        _ => traced(case, name, &set, cpus, GlobalPolicy::EarliestDeadline),
    }
}

pub(crate) fn fixed_priority(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let (set, cpus) = (task_set(&case.tasks)?, missing(case.m, "m")?);
    let bound = match case.kind.as_str() {
        "global-fp-bc" => variant(case.variant.as_deref().unwrap_or_default()),
        _ => Bound::LimitedCarryIn,
    };
    match name {
        "r" => Ok(bounds_of(fixed_priority::analyse(&set, cpus, bound).from_arrival())),
        "schedulable" => {
            let found = fixed_priority::analyse(&set, cpus, bound).verdict();
            Ok(ResultValue::Bool(found == Verdict::Feasible))
        }
        _ => traced(case, name, &set, cpus, GlobalPolicy::FixedPriority),
    }
}

/// Parts between commas, each naming what is used, or after `no` or `without`, what is not.
fn variant(text: &str) -> Bound {
    let uses = |what: &str| {
        let part = text.split(',').map(str::trim).find(|part| part.contains(what));
        part.is_none_or(|part| !part.starts_with("no ") && !part.contains("without"))
    };
    Bound::BertognaCirinei { slack: uses("slack"), clamp: uses("clamp") }
}

/// Looks of a schedule before it is given up.
const LOOKS: u64 = 50_000_000;

/// Answers that a schedule with all tasks beginning together gives.
fn traced(
    case: &Case,
    name: &str,
    set: &TaskSet,
    cpus: u64,
    policy: GlobalPolicy,
) -> Result<ResultValue, BadCase> {
    let keep = asked_of_each(case, name);
    let run = |until: ScheduleLimit| -> Schedule {
        schedule(set, &[], cpus, policy, until, StepLimit::with_steps(LOOKS))
    };
    match name {
        "first_miss" => {
            let found = run(ScheduleLimit { horizon: case.horizon, miss: true, keep: 0 });
            if found.end.1 == ScheduleEnd::GivenUp {
                return Err(BadCase::NoAnswer("the schedule does not repeat soon".to_owned()));
            }
            Ok(optional(found.first_miss.map(|miss| miss.missed_at)))
        }
        "finish" => {
            let longest = set.tasks().iter().map(|t| t.period().saturating_add(t.deadline())).max();
            let jobs = u64::try_from(keep).unwrap_or(u64::MAX).saturating_add(1);
            let enough = longest.unwrap_or(0).saturating_mul(jobs).saturating_mul(set.len() as u64);
            let horizon = Some(case.horizon.unwrap_or(enough));
            let found = run(ScheduleLimit { horizon, miss: false, keep });
            let lists = misc_cases::lists(&found.finish, |t| ResultValue::Whole(*t));
            Ok(misc_cases::as_asked(case, name, lists))
        }
        "responses" | "max_response" => {
            let found = run(ScheduleLimit { horizon: case.horizon, miss: false, keep: 0 });
            Ok(bounds_of(found.longest.into_iter().map(Some).collect()))
        }
        _ => Err(BadCase::Asked(name.to_owned())),
    }
}

/// The largest number of values requested for a task.
fn asked_of_each(case: &Case, name: &str) -> usize {
    let Some(ResultValue::List(lists)) = case.expect.get(name) else { return 0 };
    let length = |value: &ResultValue| match value {
        ResultValue::List(list) => list.len(),
        _ => 0,
    };
    lists.iter().map(length).max().unwrap_or(0)
}
