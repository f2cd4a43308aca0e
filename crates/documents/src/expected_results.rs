//! Answers of worked examples, by name.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A value of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ResultValue {
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
    List(Vec<ResultValue>),
    /// Values by point, task or job.
    Map(BTreeMap<String, ResultValue>),
}

/// As in JSON.
impl fmt::Display for ResultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// Answers by name.
pub type ExpectedResults = BTreeMap<String, ResultValue>;
