//! Cases about bounds, admission, sets of jobs, short traces and slack.
//!
//! Owns: the answers' shapes, numbers as fractions. Must not: compute a bound.

use hourglass_tasks::corpus::{Case, CaseJob, ResultValue};

use crate::admission::{self, Fraction};
use crate::bounds as limits;
use crate::cbs::{self, CbsServer};
use crate::effort::StepLimit;
use crate::fixed_priority::{self, Sections, TimeModel};
use crate::jobset::{self, Ties, UncertainJob};
use crate::task::TaskSet;
use hourglass_sim::slack::{Decision, ProgressRate, SlackReservation, slack_of_each};

use super::{BadCase, at_points, is_feasible, missing, task_set};

pub(crate) fn bounds(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let set = task_set(&case.tasks)?;
    match (name, case.expect.get(name)) {
        ("ll", Some(ResultValue::Map(_))) => at_points(case, name, |tasks| {
            Some(ResultValue::Number(limits::liu_layland_limit(tasks.parse().ok()?)))
        }),
        ("ll", _) => Ok(is_feasible(limits::liu_layland(&set))),
        ("hyperbolic", _) => Ok(is_feasible(limits::hyperbolic(&set))),
        ("schedulable", _) => {
            let found = fixed_priority::analyse(&set, Sections::Preemptive, TimeModel::Discrete);
            Ok(is_feasible(found.verdict()))
        }
        _ => Err(BadCase::Asked(name.to_owned())),
    }
}

/// `3/5`, `4` or a number.
fn fraction(field: &'static str, text: &str) -> Result<Fraction, BadCase> {
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    match (above.trim().parse(), below.trim().parse()) {
        (Ok(numerator), Ok(denominator)) if denominator > 0 => {
            Ok(Fraction { numerator, denominator })
        }
        _ => Err(BadCase::Field { field, value: text.to_owned(), wanted: "no fraction" }),
    }
}

fn fraction_of(field: &'static str, value: Option<&ResultValue>) -> Result<Fraction, BadCase> {
    match value {
        None => Ok(Fraction { numerator: 0, denominator: 1 }),
        Some(ResultValue::Whole(whole)) => Ok(Fraction { numerator: *whole, denominator: 1 }),
        Some(ResultValue::Text(text)) => fraction(field, text),
        Some(other) => {
            let value = format!("{other:?}");
            Err(BadCase::Field { field, value, wanted: "no fraction as text" })
        }
    }
}

pub(crate) fn admission(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let set = task_set(&case.tasks)?;
    let no_answer = || BadCase::NoAnswer("a fraction has more than 64 bits".to_owned());
    match name {
        "u" => {
            let u = admission::utilisation(&set).ok_or_else(no_answer)?;
            Ok(ResultValue::Text(format!("{}/{}", u.numerator, u.denominator)))
        }
        "admit" => {
            let cap = fraction("cap", missing(case.cap.as_deref(), "cap")?)?;
            let admits = admission::admits(&set, cap, case.m.unwrap_or(1));
            admits.map(ResultValue::Bool).ok_or_else(no_answer)
        }
        _ => Err(BadCase::Asked(name.to_owned())),
    }
}

pub(crate) fn jobset(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let read = case.job_set().map_err(|why| BadCase::NoAnswer(why.to_string()))?;
    let job = |job: &CaseJob| UncertainJob {
        id: job.id,
        release: job.release,
        cost: job.cost,
        deadline: job.deadline,
        priority: job.priority,
    };
    let jobs: Vec<UncertainJob> = read.iter().map(job).collect();
    let found = jobset::explore(&jobs, Ties::ById, StepLimit::default())
        .map_err(|why| BadCase::NoAnswer(why.to_string()))?;
    match name {
        "schedulable" => Ok(is_feasible(found.verdict)),
        "finish" => at_points(case, name, |id| {
            let id: u64 = id.parse().ok()?;
            let position = jobs.iter().position(|job| job.id == id)?;
            let (earliest, latest) = found.finish[position]?;
            Some(ResultValue::List(vec![ResultValue::Whole(earliest), ResultValue::Whole(latest)]))
        }),
        _ => Err(BadCase::Asked(name.to_owned())),
    }
}

pub(crate) fn trace(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let horizon = missing(case.horizon, "horizon")?;
    let tasks = if case.kind == "cbs" { &case.periodic } else { &case.tasks };
    let tasks: TaskSet = task_set(tasks)?;
    let server = |server: &hourglass_tasks::corpus::CaseServer| CbsServer {
        budget: server.q,
        period: server.p,
        jobs: server.jobs.iter().map(|[at, cost]| (*at, *cost)).collect(),
    };
    let servers: Vec<CbsServer> = case.servers.iter().map(server).collect();
    let found = cbs::run(tasks.tasks(), &servers, horizon, StepLimit::default())
        .map_err(|why| BadCase::NoAnswer(why.to_string()))?;
    match name {
        "server_finish" => {
            Ok(as_asked(case, name, lists(&found.server_finish, |t| ResultValue::Whole(*t))))
        }
        "finish" => Ok(as_asked(case, name, lists(&found.task_finish, |t| ResultValue::Whole(*t)))),
        "first_events" => {
            let pair = |(at, due): &(u64, u64)| {
                ResultValue::List(vec![ResultValue::Whole(*at), ResultValue::Whole(*due)])
            };
            Ok(as_asked(case, name, lists(&found.deadlines, pair)))
        }
        "last_deadline" => {
            let last = found.deadlines.last().and_then(|of_server| of_server.last());
            Ok(super::optional(last.map(|(_, deadline)| *deadline)))
        }
        _ => Err(BadCase::Asked(name.to_owned())),
    }
}

pub(super) fn lists<T>(
    values: &[Vec<T>],
    value: impl Fn(&T) -> ResultValue,
) -> Vec<Vec<ResultValue>> {
    values.iter().map(|list| list.iter().map(&value).collect()).collect()
}

/// The beginning of each list: the case requests a trace as far as its source shows it.
pub(super) fn as_asked(case: &Case, name: &str, mut found: Vec<Vec<ResultValue>>) -> ResultValue {
    if let Some(ResultValue::List(asked)) = case.expect.get(name) {
        for (list, asked) in found.iter_mut().zip(asked) {
            if let ResultValue::List(asked) = asked {
                list.truncate(asked.len());
            }
        }
    }
    ResultValue::List(found.into_iter().map(ResultValue::List).collect())
}

/// Units of a case are divided into as many, so that rates need not be whole.
const PARTS: u64 = 1_000_000_000;

/// Checks after which a case is given up.
const MOST_CHECKS: usize = 10_000;

pub(crate) fn slack_monitor(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let trace = monitor(case)?;
    let last = trace.last().copied().unwrap_or((0, 0));
    match name {
        "trace" => {
            let pair = |(at, slack): &(u64, i128)| {
                ResultValue::List(vec![units(i128::from(*at)), units(*slack)])
            };
            Ok(ResultValue::List(trace.iter().map(pair).collect()))
        }
        "interrupts" => Ok(ResultValue::Whole(trace.len() as u64 - 1)),
        "preempt_at" => Ok(units(last.0.into())),
        "preempt_near" => {
            let hundredths = (u128::from(last.0) * 100 + u128::from(PARTS) / 2) / u128::from(PARTS);
            Ok(ResultValue::Text(format!("{}.{:02}", hundredths / 100, hundredths % 100)))
        }
        _ => Err(BadCase::Asked(name.to_owned())),
    }
}

/// Time and slack at each check, in parts, up to the one that stops the co-runners.
fn monitor(case: &Case) -> Result<Vec<(u64, i128)>, BadCase> {
    let too_large = || BadCase::NoAnswer("a time has more than 64 bits".to_owned());
    let parts = |units: u64| units.checked_mul(PARTS).ok_or_else(too_large);
    let alpha = fraction_of("alpha", case.alpha.as_ref())?;
    let value = || format!("{}/{}", alpha.numerator, alpha.denominator);
    let rate = ProgressRate::new(alpha.numerator, alpha.denominator);
    let alpha = rate.ok_or_else(|| BadCase::Field {
        field: "alpha",
        value: value(),
        wanted: "not below 1",
    })?;
    let eps = fraction_of("eps", case.eps.as_ref())?;
    let margin = parts(eps.numerator)? / eps.denominator;
    let deadline = parts(missing(case.deadline, "deadline")?)?;
    let promise = SlackReservation::new(deadline, parts(missing(case.c, "c")?)?, alpha, margin);
    let rate = case.rate.as_deref().map(|rate| fraction("rate", rate)).transpose()?;
    let done = |now: u64| match rate {
        Some(rate) => {
            let done = u128::from(now) * u128::from(rate.numerator) / u128::from(rate.denominator);
            u64::try_from(done).unwrap_or(u64::MAX)
        }
        None => {
            let known = case.progress.iter().rev().find(|[at, _]| at.saturating_mul(PARTS) <= now);
            known.map_or(0, |[_, done]| done.saturating_mul(PARTS))
        }
    };
    let (mut now, mut trace) = (0, Vec::new());
    while trace.len() < MOST_CHECKS {
        let slack = promise.slack(now, done(now));
        trace.push((now, slack));
        match promise.decide_as_published(now, slack) {
            Decision::RunUntil(next) => now = next,
            Decision::Stop => return Ok(trace),
        }
    }
    Err(BadCase::NoAnswer(format!("more than {MOST_CHECKS} checks")))
}

/// Parts as units, whole where they are.
fn units(parts: i128) -> ResultValue {
    let (whole, rest) = (parts / i128::from(PARTS), parts % i128::from(PARTS));
    match (rest, u64::try_from(whole), i64::try_from(whole)) {
        (0, Ok(whole), _) => ResultValue::Whole(whole),
        (0, _, Ok(whole)) => ResultValue::Signed(whole),
        _ => ResultValue::Number(parts as f64 / PARTS as f64),
    }
}

pub(crate) fn slack_multi(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let processes: Vec<(u64, u64)> = case.procs.iter().map(|[t, c]| (*t, *c)).collect();
    let (each, system) = slack_of_each(&processes);
    let value = |slack: &i128| match (u64::try_from(*slack), i64::try_from(*slack)) {
        (Ok(whole), _) => ResultValue::Whole(whole),
        (_, Ok(signed)) => ResultValue::Signed(signed),
        _ => ResultValue::Number(*slack as f64),
    };
    match name {
        "slack" => Ok(ResultValue::List(each.iter().map(value).collect())),
        "system" => Ok(system.as_ref().map_or(ResultValue::Null, value)),
        _ => Err(BadCase::Asked(name.to_owned())),
    }
}
