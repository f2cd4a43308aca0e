//! Worked examples with known answers, as they are kept in JSON: one array of cases a file.
//!
//! Owns: the shape of a case and of an answer, read as it stands and written back without loss; the
//! case as a [`TaskSet`](crate::TaskSet). All times are integers without a unit; as a set
//! of tasks one unit is a nanosecond. Fixed-priority tasks are listed in decreasing priority.
//! Keys that are not known are kept in `other`, and the kind is any text.
//!
//! Must not: answer, compare.

mod convert;
mod read;

use std::collections::BTreeMap;

pub use hourglass_documents::expected_results::{ExpectedResults, ResultValue};
use serde::{Deserialize, Serialize};

pub use read::{BadJobs, CaseJob, UnreadableCase, read};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseTask {
    /// Cost.
    pub c: u64,
    /// Period or minimum separation.
    pub t: u64,
    /// Relative deadline; absent: the period.
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
    pub p: Option<u64>,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, ResultValue>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseServer {
    /// Budget.
    pub q: u64,
    /// Period.
    pub p: u64,
    /// Arrival and cost of each job.
    #[serde(default)]
    pub jobs: Vec<[u64; 2]>,
    #[serde(flatten)]
    pub other: BTreeMap<String, ResultValue>,
}

/// A chain of steps on several processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseFlow {
    /// Period.
    pub t: u64,
    /// End-to-end deadline.
    pub d: u64,
    /// Cost, processor and priority of each step.
    pub steps: Vec<(u64, String, u64)>,
    #[serde(flatten)]
    pub other: BTreeMap<String, ResultValue>,
}

/// One worked example. Which fields count depends on its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    pub id: String,
    pub kind: String,
    #[serde(default)]
    pub provenance: String,
    #[serde(default)]
    pub source: String,
    /// The tasks; under fixed priorities the most urgent first.
    #[serde(default)]
    pub tasks: Vec<CaseTask>,
    pub expect: ExpectedResults,
    pub m: Option<u64>,
    /// `discrete` (blocking is C - 1) or `continuous`.
    pub model: Option<String>,
    pub variant: Option<String>,
    pub period: Option<u64>,
    pub budget: Option<u64>,
    /// Deadline of the server, or of the work that is watched.
    pub deadline: Option<u64>,
    /// The work that is watched.
    pub c: Option<u64>,
    /// Jobs of a job set, one row each, by `columns`; [`Case::job_set`] reads them.
    #[serde(default)]
    pub jobs: Vec<Vec<u64>>,
    /// The columns of `jobs`; [`COLUMNS`] by default.
    pub columns: Option<String>,
    #[serde(default)]
    pub flows: Vec<CaseFlow>,
    #[serde(default)]
    pub servers: Vec<CaseServer>,
    /// Periodic tasks beside servers.
    #[serde(default)]
    pub periodic: Vec<CaseTask>,
    /// End of a trace.
    pub horizon: Option<u64>,
    /// Time and what is done by then.
    #[serde(default)]
    pub progress: Vec<[u64; 2]>,
    /// Remaining time and remaining reserve, in the order of deadlines.
    #[serde(default)]
    pub procs: Vec<[u64; 2]>,
    /// Progress per unit of time while co-runners run, a fraction as text.
    pub rate: Option<String>,
    /// The worst such rate, a number or a fraction as text.
    pub alpha: Option<ResultValue>,
    /// The slack at which co-runners are stopped, a number or a fraction as text.
    pub eps: Option<ResultValue>,
    /// Share of a processor that may be reserved, a fraction as text.
    pub cap: Option<String>,
    /// Length of a critical section.
    pub cs: Option<u64>,
    pub note: Option<String>,
    #[serde(flatten)]
    pub other: BTreeMap<String, ResultValue>,
}

/// The usual columns of a job set: its number, the earliest and latest release, the least and
/// most cost, the absolute deadline, the priority (the smaller number is more urgent).
pub const COLUMNS: &str = "id,rmin,rmax,cmin,cmax,deadline,prio";

impl Case {
    /// The keys of the case and its parts that this version does not know and that are more than
    /// a remark: a text says something to the reader, anything else may change the question.
    #[must_use]
    pub fn unknown_keys(&self) -> Vec<&str> {
        let tasks = self.tasks.iter().chain(&self.periodic).map(|task| &task.other);
        let servers = self.servers.iter().map(|server| &server.other);
        let flows = self.flows.iter().map(|flow| &flow.other);
        let all = std::iter::once(&self.other).chain(tasks).chain(servers).chain(flows);
        let meant = all.flatten().filter(|(_, value)| !matches!(value, ResultValue::Text(_)));
        let mut keys: Vec<&str> = meant.map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}
