//! Files of cases, read one case at a time, so that one that cannot be read hides no other.
//!
//! Owns: [`read`], [`UnreadableCase`], the rows of a job set by the names of their columns. Must not: open
//! files.

use thiserror::Error;

use super::{COLUMNS, Case};
use crate::TaskSetError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableCase {
    /// The name of the case, or its position in the file: `number 3`.
    pub id: String,
    /// The kind of the case; empty without one.
    pub kind: String,
    pub reason: String,
}

/// Reads a file of cases.
///
/// # Errors
/// The text is no JSON array; with line and column. A single case that is not understood is an
/// [`UnreadableCase`] in its place.
pub fn read(text: &str) -> Result<Vec<Result<Case, UnreadableCase>>, TaskSetError> {
    let text = text.trim_start_matches('\u{feff}');
    let rows: Vec<serde_json::Value> =
        serde_json::from_str(text).map_err(|error| crate::syntax(&error))?;
    Ok(rows.into_iter().enumerate().map(|(position, row)| read_case(position, row)).collect())
}

fn read_case(position: usize, row: serde_json::Value) -> Result<Case, UnreadableCase> {
    let word = |key: &str| match row.get(key) {
        Some(serde_json::Value::String(text)) => Some(text.clone()),
        Some(serde_json::Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let id = word("id").unwrap_or_else(|| format!("number {}", position + 1));
    let kind = word("kind").unwrap_or_default();
    let graph = kind.starts_with("cpa");
    let found = if graph { read_graph(row) } else { serde_json::from_value(row) };
    found.map_err(|error| UnreadableCase { id, kind, reason: error.to_string() })
}

/// Keys of a case that mean the same in all kinds.
const OF_ALL: [&str; 7] = ["id", "kind", "provenance", "source", "expect", "variant", "note"];

/// A task graph is written in more ways than a set of tasks: its tasks, chains and processors stay as
/// they are, in `other`.
fn read_graph(row: serde_json::Value) -> Result<Case, serde_json::Error> {
    let serde_json::Value::Object(row) = row else { return serde_json::from_value(row) };
    let (common, graph): (serde_json::Map<_, _>, serde_json::Map<_, _>) =
        row.into_iter().partition(|(key, _)| OF_ALL.contains(&key.as_str()));
    let mut case: Case = serde_json::from_value(serde_json::Value::Object(common))?;
    for (key, value) in graph {
        case.other.insert(key, serde_json::from_value(value)?);
    }
    Ok(case)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseJob {
    pub id: u64,
    /// The earliest and the latest release.
    pub release: (u64, u64),
    /// The least and the most cost.
    pub cost: (u64, u64),
    /// The absolute deadline.
    pub deadline: u64,
    /// The priority; the smaller number is more urgent.
    pub priority: u64,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadJobs {
    #[error("no column `{0}`; the usual ones are {COLUMNS}")]
    NoColumn(&'static str),
    #[error("row {0} of the jobs is shorter than its columns")]
    ShortRow(usize),
}

impl Case {
    /// The jobs of a job set, their columns found by name.
    ///
    /// # Errors
    /// A column that is missing, a row that is too short.
    pub fn job_set(&self) -> Result<Vec<CaseJob>, BadJobs> {
        let columns = self.columns.as_deref().unwrap_or(COLUMNS);
        // The text in brackets is a remark.
        let columns = columns.split('(').next().unwrap_or_default();
        let names: Vec<&str> = columns.split(',').map(str::trim).collect();
        let find = |name: &'static str| {
            names.iter().position(|known| *known == name).ok_or(BadJobs::NoColumn(name))
        };
        let (id, deadline, priority) = (find("id")?, find("deadline")?, find("prio")?);
        let (release, cost) = ((find("rmin")?, find("rmax")?), (find("cmin")?, find("cmax")?));
        let job = |(row, values): (usize, &Vec<u64>)| {
            let at = |column: usize| values.get(column).copied().ok_or(BadJobs::ShortRow(row + 1));
            Ok(CaseJob {
                id: at(id)?,
                release: (at(release.0)?, at(release.1)?),
                cost: (at(cost.0)?, at(cost.1)?),
                deadline: at(deadline)?,
                priority: at(priority)?,
            })
        };
        self.jobs.iter().enumerate().map(job).collect()
    }
}
