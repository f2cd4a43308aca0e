//! What a run warns of, and limits that it had to keep.

use serde::{Deserialize, Serialize};

/// Something that spoils the numbers, and what helps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable name for scripts: `rt-throttling`.
    pub id: String,
    /// What is so.
    pub text: String,
    /// What mends it; a command where there is one.
    pub remedy: String,
}

/// Something that a measurement rests on and that did not hold to its end: there is no verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Premise {
    /// Stable name for scripts: `threads-unseen`.
    pub id: String,
    /// What is so.
    pub text: String,
    /// When it was first found, counted from the start of the measurement.
    pub at_ns: u64,
}

/// A limit, and whether it was kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateReport {
    /// The option that set it, without its dashes: `max-latency`, `percentile p99.9`.
    pub name: String,
    /// The limit; a time is in nanoseconds.
    pub limit: f64,
    /// What was found, likewise; of several threads that of the worst.
    pub value: f64,
    /// Of limit and value: `ns` or `periods`.
    #[serde(default)]
    pub unit: String,
    /// Whether it was kept.
    pub passed: bool,
}
