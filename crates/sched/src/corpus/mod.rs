//! Worked examples answered: from a case as it is kept to answers of the same shape.
//!
//! Owns: the shapes of answers, and whether two answers agree. Of what is expected, only the names and
//! the points asked for are read, never the answers. Which analysis answers which kind is for
//! [`crate::catalogue`] to say.
//! Must not: read files, know the catalogue.

pub(crate) mod busy;
pub(crate) mod chains;
pub(crate) mod global;
pub(crate) mod graph;
pub(crate) mod misc_cases;

use hourglass_tasks::corpus::{Case, CaseTask, ExpectedResults, ResultValue};

use crate::fixed_priority::TimeModel;
use crate::task::{Task, TaskError, TaskSet};
use crate::verdict::Verdict;

/// A case that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCase {
    /// No analysis here answers this kind.
    #[error("cases of the kind `{0}` are not supported")]
    Unsupported(String),
    /// A key that is not known and may change the question.
    #[error("the key `{0}` is not known")]
    UnknownKey(String),
    /// A field is missing.
    #[error("the case has no `{0}`")]
    Missing(&'static str),
    /// A field cannot be read.
    #[error("`{field}` is `{value}`, which is {wanted}")]
    Field {
        /// The field.
        field: &'static str,
        /// The value of the field.
        value: String,
        /// The expected form.
        wanted: &'static str,
    },
    /// The case requests an answer that the analysis does not give.
    #[error("`{0}` is asked for, which cases of this kind do not have")]
    Asked(String),
    /// A task cannot be meant.
    #[error("task {position}: {source}")]
    Task {
        /// The position of the task in the case.
        position: usize,
        /// The reason.
        source: TaskError,
    },
    /// A number does not fit, or the analysis has no answer.
    #[error("no answer: {0}")]
    NoAnswer(String),
}

/// Whether an answer is the expected one: numbers to six places, those named `_near` to 0.02.
#[must_use]
pub fn agrees(name: &str, expected: &ResultValue, got: &ResultValue) -> bool {
    let near = if name.ends_with("_near") { 0.02 } else { 5e-7 };
    match (expected, got) {
        (ResultValue::Text(_), _) | (_, ResultValue::Text(_)) if name.ends_with("_near") => {
            matches!((number(expected), number(got)), (Some(a), Some(b)) if (a - b).abs() <= near)
        }
        (ResultValue::Number(a), b) | (b, ResultValue::Number(a)) => {
            number(b).is_some_and(|b| (a - b).abs() <= near)
        }
        (ResultValue::List(a), ResultValue::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agrees(name, a, b))
        }
        (ResultValue::Map(a), ResultValue::Map(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| agrees(name, a, b)))
        }
        (a, b) => a == b,
    }
}

/// The names of what is expected and not given, or given otherwise, in alphabetical order.
#[must_use]
pub fn disagreements<'a>(case: &'a Case, got: &ExpectedResults) -> Vec<&'a str> {
    let differs = |(name, expected): &(&String, &ResultValue)| {
        !got.get(*name).is_some_and(|got| agrees(name, expected, got))
    };
    case.expect.iter().filter(differs).map(|(name, _)| name.as_str()).collect()
}

fn number(value: &ResultValue) -> Option<f64> {
    match value {
        ResultValue::Number(number) => Some(*number),
        ResultValue::Whole(number) => Some(*number as f64),
        ResultValue::Signed(number) => Some(*number as f64),
        ResultValue::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// The tasks of a case, the first the most urgent; those that follow each other with the same `p`
/// are equal.
fn task_set(tasks: &[CaseTask]) -> Result<TaskSet, BadCase> {
    let mut priority = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
    let mut before = None;
    let mut found = Vec::with_capacity(tasks.len());
    for (position, task) in tasks.iter().enumerate() {
        if position > 0 && (task.p.is_none() || task.p != before) {
            priority -= 1;
        }
        before = task.p;
        let made = Task::new(task.c, task.t, task.d.unwrap_or(task.t))
            .and_then(|made| made.with_segments(task.np.max(task.last), task.last))
            .map_err(|source| BadCase::Task { position, source })?;
        let made = made.with_jitter(task.j).with_blocking(task.b).with_suspension(task.s);
        found.push(made.with_priority(priority));
    }
    Ok(TaskSet::new(found))
}

fn time_model(case: &Case) -> Result<TimeModel, BadCase> {
    match case.model.as_deref() {
        Some("discrete") => Ok(TimeModel::Discrete),
        Some("continuous") | None => Ok(TimeModel::Continuous),
        Some(other) => Err(BadCase::Field {
            field: "model",
            value: other.to_owned(),
            wanted: "neither discrete nor continuous",
        }),
    }
}

/// `yes` only of what is certain.
fn is_feasible(verdict: Verdict) -> ResultValue {
    ResultValue::Bool(verdict == Verdict::Feasible)
}

fn bounds_of(bounds: Vec<Option<u64>>) -> ResultValue {
    ResultValue::List(bounds.into_iter().map(optional).collect())
}

fn optional(value: Option<u64>) -> ResultValue {
    value.map_or(ResultValue::Null, ResultValue::Whole)
}

fn missing<T>(field: Option<T>, name: &'static str) -> Result<T, BadCase> {
    field.ok_or(BadCase::Missing(name))
}

/// The points at which the case requests an answer: the keys of its map.
fn at_points(
    case: &Case,
    name: &str,
    value: impl Fn(&str) -> Option<ResultValue>,
) -> Result<ResultValue, BadCase> {
    let Some(ResultValue::Map(points)) = case.expect.get(name) else {
        return Err(BadCase::Asked(name.to_owned()));
    };
    let answer = |key: &String| {
        let value = value(key).ok_or_else(|| BadCase::Asked(format!("{name} at {key}")))?;
        Ok((key.clone(), value))
    };
    Ok(ResultValue::Map(points.keys().map(answer).collect::<Result<_, BadCase>>()?))
}
