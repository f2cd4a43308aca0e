//! Worked examples with known answers, as they are kept in JSON: one array of cases a file.
//!
//! Owns: the shape of a case and of an answer. All times are integers without a unit.
//! Must not: answer, compare.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A value of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// None: no bound, no miss.
    Null,
    /// A verdict.
    Bool(bool),
    /// A time or a count.
    Whole(u64),
    /// A time that may be negative.
    Signed(i64),
    /// A share, for display.
    Number(f64),
    /// A fraction or a decimal as text.
    Text(String),
    /// Values in order.
    List(Vec<Value>),
    /// Values by point, task or job.
    Map(BTreeMap<String, Value>),
}

/// Answers by name.
pub type Answers = BTreeMap<String, Value>;

/// A task of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseTask {
    /// Cost.
    pub c: u64,
    /// Period or minimum separation.
    pub t: u64,
    /// Relative deadline; absent: the period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d: Option<u64>,
    /// Release jitter.
    #[serde(default)]
    pub j: u64,
    /// Blocking.
    #[serde(default)]
    pub b: u64,
    /// Self-suspension.
    #[serde(default)]
    pub s: u64,
    /// Longest non-preemptive section.
    #[serde(default)]
    pub np: u64,
    /// Last non-preemptive section.
    #[serde(default)]
    pub last: u64,
    /// Priority: tasks that follow each other with the same number are equal. Where tasks are
    /// partitioned, their processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<u64>,
}

/// A server of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseServer {
    /// Budget.
    pub q: u64,
    /// Period.
    pub p: u64,
    /// Arrival and cost of each job.
    #[serde(default)]
    pub jobs: Vec<[u64; 2]>,
}

/// A chain of steps on several processors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseFlow {
    /// Period.
    pub t: u64,
    /// End-to-end deadline.
    pub d: u64,
    /// Cost, processor and priority of each step.
    pub steps: Vec<(u64, String, u64)>,
}

/// One worked example. Which fields count depends on its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// What is asked.
    pub kind: String,
    /// The tasks; under fixed priorities the most urgent first.
    #[serde(default)]
    pub tasks: Vec<CaseTask>,
    /// The known answers.
    pub expect: Answers,
    /// How many processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub m: Option<u64>,
    /// `discrete` (blocking is C - 1) or `continuous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which variant of an analysis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Period of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<u64>,
    /// Budget of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// Deadline of the server, or of the work that is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// The work that is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub c: Option<u64>,
    /// Jobs: number, release from and to, cost from and to, deadline, priority.
    #[serde(default)]
    pub jobs: Vec<[u64; 7]>,
    /// Chains.
    #[serde(default)]
    pub flows: Vec<CaseFlow>,
    /// Servers.
    #[serde(default)]
    pub servers: Vec<CaseServer>,
    /// Periodic tasks beside servers.
    #[serde(default)]
    pub periodic: Vec<CaseTask>,
    /// End of a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon: Option<u64>,
    /// Time and what is done by then.
    #[serde(default)]
    pub progress: Vec<[u64; 2]>,
    /// Remaining time and remaining reserve, in the order of deadlines.
    #[serde(default)]
    pub procs: Vec<[u64; 2]>,
    /// Progress per unit of time while neighbours run, a fraction as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// The worst such rate, a number or a fraction as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<Value>,
    /// The slack at which neighbours are stopped, a number or a fraction as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eps: Option<Value>,
    /// Share of a processor that may be reserved, a fraction as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<String>,
    /// Length of a critical section.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cs: Option<u64>,
}
