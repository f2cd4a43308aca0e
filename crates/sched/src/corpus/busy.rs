//! Cases about busy windows, demand and supply.
//!
//! Owns: the answers' shapes. Must not: compute a bound.

use hourglass_tasks::corpus::{Case, ResultValue};

use crate::edf;
use crate::edf::demand::demand_bound;
use crate::fixed_priority::{self, Sections, TimeModel};
use crate::supply::{self, Supply};
use crate::task::TaskSet;
use crate::{fifo as first_in, verdict::Analysis};

use super::{BadCase, at_points, bounds_of, is_feasible, missing, optional, task_set, time_model};

fn sections(kind: &str) -> Sections {
    match kind {
        "fp-nonpreemptive" | "edf-nonpreemptive" => Sections::NonPreemptive,
        "fp-limited-preemptive" | "edf-limited-preemptive" => Sections::Limited,
        "fp-floating-np" | "edf-floating-np" => Sections::Floating,
        _ => Sections::Preemptive,
    }
}

pub(crate) fn fixed_priority(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let set = task_set(&case.tasks)?;
    let found = fixed_priority::analyse(&set, sections(&case.kind), time_model(case)?);
    match name {
        "r_first_job" => {
            let first = |task: usize| {
                let point = found.points(task).first()?;
                let of = &set.tasks()[task];
                Some(fixed_priority::response(point, of.period, of.jitter)?.from_arrival)
            };
            Ok(bounds_of((0..set.len()).map(first).collect()))
        }
        "jobs_of_last" => {
            let last = set.len().saturating_sub(1);
            let of = missing(set.tasks().get(last), "tasks")?;
            let each = found.points(last).iter().map(|point| {
                let response = fixed_priority::response(point, of.period, of.jitter);
                optional(response.map(|response| response.from_arrival))
            });
            Ok(ResultValue::List(each.collect()))
        }
        _ => common(&found, name),
    }
}

fn common(found: &Analysis, name: &str) -> Result<ResultValue, BadCase> {
    match name {
        "r" | "r_from_arrival" => Ok(bounds_of(found.from_arrival())),
        "r_from_release" => Ok(bounds_of(found.from_release())),
        "schedulable" => Ok(is_feasible(found.verdict())),
        _ => Err(BadCase::Asked(name.to_owned())),
    }
}

pub(crate) fn edf(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let set = task_set(&case.tasks)?;
    common(&edf::response_times(&set, sections(&case.kind), time_model(case)?), name)
}

pub(crate) fn demand(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let set = task_set(&case.tasks)?;
    match name {
        "schedulable" => {
            let found = edf::qpa::feasible(&set, Sections::Preemptive, TimeModel::Discrete);
            Ok(is_feasible(found.verdict))
        }
        "lstar" => even_length(&set),
        "dbf" => at_points(case, name, |point| {
            let point = point.parse::<i128>().ok()?;
            let demand = u64::try_from(point).map_or(Ok(0), |p| demand_bound(&set, p).try_into());
            demand.ok().map(ResultValue::Whole)
        }),
        _ => Err(BadCase::Asked(name.to_owned())),
    }
}

/// L* = sum of (T - D) U / (1 - U), exactly where it is whole.
fn even_length(set: &TaskSet) -> Result<ResultValue, BadCase> {
    let exact = || {
        let mut product = 1i128;
        for task in set.tasks() {
            product = product.checked_mul(task.period().into())?;
        }
        let (mut excess, mut free) = (0i128, product);
        for task in set.tasks() {
            let share = (product / i128::from(task.period())).checked_mul(task.cost().into())?;
            let gap = i128::from(task.period()) - i128::from(task.deadline());
            excess = excess.checked_add(share.checked_mul(gap)?)?;
            free = free.checked_sub(share)?;
        }
        Some((excess, free)).filter(|(_, free)| *free > 0)
    };
    let none = || BadCase::NoAnswer("the length has more than 128 bits".to_owned());
    let (excess, free) = exact().ok_or_else(none)?;
    if excess % free == 0 {
        let whole = u64::try_from(excess / free).map(ResultValue::Whole);
        return Ok(whole.unwrap_or(ResultValue::Number((excess / free) as f64)));
    }
    Ok(ResultValue::Number(excess as f64 / free as f64))
}

pub(crate) fn fifo(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let found = first_in::analyse(&task_set(&case.tasks)?);
    match name {
        "r_all" => Ok(of_all(&found)),
        _ => common(&found, name),
    }
}

/// One bound for all tasks; none if one has none.
fn of_all(found: &Analysis) -> ResultValue {
    let bounds: Option<Vec<u64>> = found.from_arrival().into_iter().collect();
    optional(bounds.and_then(|bounds| bounds.into_iter().max()))
}

pub(crate) fn equal_priorities(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let set = task_set(&case.tasks)?;
    let (sections, time) = (Sections::Preemptive, TimeModel::Discrete);
    match name {
        "r_fp" => Ok(bounds_of(fixed_priority::analyse(&set, sections, time).from_arrival())),
        "r_edf" => Ok(bounds_of(edf::response_times(&set, sections, time).from_arrival())),
        "r_fifo" => Ok(of_all(&first_in::analyse(&set))),
        _ => Err(BadCase::Asked(name.to_owned())),
    }
}

pub(crate) fn supply(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let (period, budget) = (missing(case.period, "period")?, missing(case.budget, "budget")?);
    let supply = Supply::with_deadline(period, budget, case.deadline.unwrap_or(period))
        .map_err(|why| BadCase::NoAnswer(why.to_string()))?;
    let number = |point: &str| point.parse::<u64>().ok();
    match name {
        "sbf" => {
            at_points(case, name, |point| Some(ResultValue::Whole(supply.least_in(number(point)?))))
        }
        "inv" => at_points(case, name, |point| {
            Some(ResultValue::Whole(supply.window_for(number(point)?)?))
        }),
        _ => common(&supply::fixed_priority(&task_set(&case.tasks)?, &supply), name),
    }
}
