//! An experiment in words: the keys of its file, which are also the options of the command.
//!
//! Owns: [`ExperimentBuilder`], the keys and what each may say. Must not: check one key against another; that is
//! done when the draft becomes an [`Experiment`](super::Experiment).

use std::str::FromStr;

use hourglass_tasks::generate::{Bound, Deadlines, Millionths, Periods, Recipe, UtilisationMethod};
use hourglass_time::Span;

use super::experiment::SweepError;

/// Points that a curve has at most.
const MOST_POINTS: u64 = 10_000;

/// Sets a point, at most.
const MOST_SETS: u64 = 1_000_000;

/// What was said about an experiment so far. What was not said is `None`.
///
/// A file is TOML with these keys: `utilisations` (`"0.5:1:0.05"`, from, to and step, or a list),
/// `sets` (a point), `tasks`, `processors`, `generator`, `bounds` (of the utilisation of one task,
/// `"0.1..0.5"`, or a list with one for each), `periods`, `granularity`, `cost_granularity`,
/// `deadlines`, `jitter`, `seed`, `analyses` (a list), `keep_sets`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExperimentBuilder {
    pub(super) utilisations: Option<Vec<Millionths>>,
    pub(super) sets: Option<u64>,
    pub(super) tasks: Option<usize>,
    pub(super) processors: Option<u32>,
    pub(super) generator: Option<UtilisationMethod>,
    pub(super) bounds: Option<Vec<Bound>>,
    pub(super) periods: Option<Periods>,
    pub(super) granularity: Option<Span>,
    pub(super) cost_granularity: Option<Span>,
    pub(super) deadlines: Option<Deadlines>,
    pub(super) jitter: Option<(Millionths, Millionths)>,
    pub(super) seed: Option<u64>,
    /// The words by which the analyses were requested.
    pub(super) analyses: Option<Vec<String>>,
    pub(super) keep_sets: Option<bool>,
}

impl ExperimentBuilder {
    /// The keys of a file.
    pub const KEYS: [&str; 14] = [
        "utilisations",
        "sets",
        "tasks",
        "processors",
        "generator",
        "bounds",
        "periods",
        "granularity",
        "cost_granularity",
        "deadlines",
        "jitter",
        "seed",
        "analyses",
        "keep_sets",
    ];

    /// Reads a file.
    ///
    /// # Errors
    /// It is no TOML, has an unknown key, or a value that is not understood.
    pub fn from_toml(text: &str) -> Result<ExperimentBuilder, SweepError> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| {
                1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count()
            });
            SweepError::NoToml { line, reason: error.message().to_owned() }
        })?;
        let mut draft = ExperimentBuilder::default();
        for (key, value) in &table {
            let texts = texts(key, value)?;
            draft.set(key, &texts)?;
        }
        Ok(draft)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == ExperimentBuilder::default()
    }

    /// Says something; a list is written with commas.
    ///
    /// # Errors
    /// No such key, or a value that is not understood.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SweepError> {
        match key {
            "utilisations" => self.utilisations = Some(utilisations(value)?),
            "sets" => self.sets = Some(count(key, value, MOST_SETS)?),
            "tasks" => self.tasks = Some(whole(key, value, "10")?),
            "processors" => self.processors = Some(whole(key, value, "4")?),
            "generator" => self.generator = Some(read(key, value)?),
            "bounds" => {
                self.bounds = Some(each(value, |part| read(key, part))?);
            }
            "periods" => self.periods = Some(read(key, value)?),
            "granularity" => self.granularity = Some(time(key, value)?),
            "cost_granularity" => self.cost_granularity = Some(time(key, value)?),
            "deadlines" => self.deadlines = Some(read(key, value)?),
            "jitter" => {
                let range = Recipe::jitter_of(value).map_err(|error| wrong(key, error))?;
                self.jitter = Some(range);
            }
            "seed" => self.seed = Some(whole(key, value, "1")?),
            "analyses" => self.analyses = Some(each(value, analysis)?),
            "keep_sets" => self.keep_sets = Some(truth(key, value)?),
            _ => return Err(SweepError::UnknownKey(key.to_owned())),
        }
        Ok(())
    }
}

fn wrong(key: &str, reason: impl std::fmt::Display) -> SweepError {
    SweepError::Word { key: key.to_owned(), reason: reason.to_string() }
}

/// The errors of these texts name the text themselves.
fn read<T: FromStr>(key: &str, value: &str) -> Result<T, SweepError>
where
    T::Err: std::fmt::Display,
{
    value.trim().parse().map_err(|error| wrong(key, error))
}

fn whole<T: FromStr>(key: &str, value: &str, example: &str) -> Result<T, SweepError> {
    let value = value.trim();
    value.parse().map_err(|_| {
        wrong(key, format!("'{value}' is not a whole number in range; write for example {example}"))
    })
}

fn time(key: &str, value: &str) -> Result<Span, SweepError> {
    let value = value.trim();
    value.parse().map_err(|error| wrong(key, format!("'{value}': {error}")))
}

fn truth(key: &str, value: &str) -> Result<bool, SweepError> {
    let value = value.trim();
    value.parse().map_err(|_| wrong(key, format!("'{value}' is neither; write true or false")))
}

fn each<T>(
    value: &str,
    read: impl Fn(&str) -> Result<T, SweepError>,
) -> Result<Vec<T>, SweepError> {
    value.split(',').map(|part| read(part.trim())).collect()
}

fn count(key: &str, value: &str, most: u64) -> Result<u64, SweepError> {
    let count: u64 = whole(key, value, "1000")?;
    if count == 0 || count > most {
        return Err(wrong(key, format!("'{count}' is out of range; take 1 to {most}")));
    }
    Ok(count)
}

fn analysis(word: &str) -> Result<String, SweepError> {
    let found = hourglass_sched::catalogue::contender(word).map(|_| word.to_owned());
    found.ok_or_else(|| SweepError::UnknownAnalysis(word.to_owned()))
}

/// `FROM:TO:STEP`, or numbers with commas; ascending, each once.
fn utilisations(value: &str) -> Result<Vec<Millionths>, SweepError> {
    const KEY: &str = "utilisations";
    let number = |part: &str| -> Result<Millionths, SweepError> {
        part.parse().map_err(|error| wrong(KEY, error))
    };
    let parts: Vec<&str> = value.split(':').map(str::trim).collect();
    let mut points = match parts[..] {
        [from, to, step] => {
            let (from, to, step) = (number(from)?, number(to)?, number(step)?);
            if step == Millionths::ZERO {
                return Err(wrong(KEY, "the step is 0; write FROM:TO:STEP, as 0.5:1:0.05"));
            }
            if from > to {
                return Err(wrong(
                    KEY,
                    format!("'{value}' ends before it begins; give the smaller one first"),
                ));
            }
            let steps = (to.count() - from.count()) / step.count();
            if steps >= MOST_POINTS {
                return Err(wrong(
                    KEY,
                    format!("'{value}' has over {MOST_POINTS} points; take a larger step"),
                ));
            }
            (0..=steps).map(|at| Millionths::new(from.count() + at * step.count())).collect()
        }
        [list] => each(list, number)?,
        _ => {
            let text = format!(
                "'{value}' is not understood; write FROM:TO:STEP, as 0.5:1:0.05, or a list"
            );
            return Err(wrong(KEY, text));
        }
    };
    points.sort_unstable();
    points.dedup();
    if points.len() as u64 > MOST_POINTS {
        return Err(wrong(KEY, format!("over {MOST_POINTS} points; take fewer")));
    }
    Ok(points)
}

/// A value of a file as it would be written on the command line.
fn texts(key: &str, value: &toml::Value) -> Result<String, SweepError> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(truth) => Ok(truth.to_string()),
        toml::Value::Array(all) => {
            let all: Vec<String> =
                all.iter().map(|value| texts(key, value)).collect::<Result<_, _>>()?;
            Ok(all.join(","))
        }
        toml::Value::Datetime(_) | toml::Value::Table(_)
            if !ExperimentBuilder::KEYS.contains(&key) =>
        {
            Err(SweepError::UnknownKey(key.to_owned()))
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => {
            Err(wrong(key, "has a value of another kind; write a number, a text or a list"))
        }
    }
}
