//! Worked examples with known answers: the corpus against which analyses are checked.
//!
//! Owns: the format, read as it stands and written back without loss; the case as a
//! [`TaskSet`](super::TaskSet); the comparison of answers. Must not: compute an answer.
//!
//! A file is a JSON array of cases. Times are integers without a unit; as a set of tasks one unit
//! is a nanosecond. Fixed-priority tasks are listed in decreasing priority. Keys that are not
//! known are kept in `other`, and kinds that are not known in [`Kind::Other`].

mod answer;
mod convert;
mod kind;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use answer::{Answer, Answers};
pub use kind::Kind;

use super::{Fraction, TaskSetError};

/// One worked example.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Its name in the corpus.
    pub id: String,
    /// What is asked.
    pub kind: Kind,
    /// What sort of source it comes from.
    pub provenance: String,
    /// Where it comes from.
    pub source: String,
    /// The tasks; empty where the question has none.
    pub tasks: Vec<CaseTask>,
    /// The right answers by name.
    pub expect: Answers,
    /// Number of CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub m: Option<u32>,
    /// Whether blocking ends before (`discrete`) or when (`continuous`) a section does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<TimeModel>,
    /// Period of a server or resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<u64>,
    /// Budget of a server or resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// Deadline of a server, or of the monitored job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// Up to when is simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon: Option<u64>,
    /// Servers with the jobs that arrive at them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<CaseServer>>,
    /// Periodic tasks beside servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub periodic: Option<Vec<CaseTask>>,
    /// Jobs of a job set, by `columns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<Vec<i64>>>,
    /// What the columns of `jobs` are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<String>,
    /// Chains across processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<Flow>>,
    /// Cost of the monitored job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub c: Option<u64>,
    /// Length of each critical section.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cs: Option<u64>,
    /// What the monitored job has done by when: (time, done).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Vec<(u64, u64)>>,
    /// (remaining time, remaining reserve) in the order of deadlines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub procs: Option<Vec<(u64, u64)>>,
    /// Lowest rate of progress that is relied on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<Number>,
    /// Progress per unit of time beside the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Number>,
    /// Slack below which the other is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eps: Option<Number>,
    /// Largest admitted utilisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<Number>,
    /// Which variant of an analysis is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// A remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// A task of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseTask {
    /// Cost.
    pub c: u64,
    /// Period or minimum separation.
    pub t: u64,
    /// Relative deadline; the period without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d: Option<u64>,
    /// Release jitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub j: Option<u64>,
    /// Blocking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<u64>,
    /// Self-suspension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s: Option<u64>,
    /// Longest non-preemptive segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub np: Option<u64>,
    /// Last non-preemptive segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// Priority, or the processor in [`Kind::MpSpinlock`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<u32>,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// A server of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseServer {
    /// Budget.
    pub q: u64,
    /// Period.
    pub p: u64,
    /// (arrival, cost) of each job.
    pub jobs: Vec<(u64, u64)>,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// A chain across processors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Period.
    pub t: u64,
    /// End-to-end deadline.
    pub d: u64,
    /// (cost, processor, priority) of each step; the larger number is more urgent.
    pub steps: Vec<(u64, String, u32)>,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// How time runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeModel {
    /// In whole units: a section that has just begun blocks for one unit less.
    Discrete,
    /// Without steps.
    Continuous,
}

/// A number as a case has it: whole, or a fraction as a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// A whole number.
    Whole(u64),
    /// `3/5` or `0.6`.
    Text(String),
}

impl Number {
    /// The number; `None` for a text that is no fraction.
    #[must_use]
    pub fn fraction(&self) -> Option<Fraction> {
        match self {
            Number::Whole(number) => Fraction::new(*number, 1),
            Number::Text(text) => text.parse().ok(),
        }
    }
}

/// Reads a file of the corpus.
///
/// # Errors
/// The text is no JSON array of cases; with line and column.
pub fn read(text: &str) -> Result<Vec<Case>, TaskSetError> {
    serde_json::from_str(text).map_err(|error| super::read::syntax(&error))
}
