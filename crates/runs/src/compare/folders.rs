//! Comparing what was kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::store::rounds::find_rounds;
use crate::store::{LatencyError, OpenError, TraceError};
use hourglass_documents::diff::{DiffDocument, DiffSide};
use hourglass_documents::document::Warning;
use thiserror::Error;

use super::side::ComparedRun;
use super::{Rules, document};
use crate::open_run;

/// Why nothing can be compared. Each is one line that names the culprit.
#[derive(Debug, Error)]
pub enum CompareError {
    /// No run folder, half-written, of another version.
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Latency(#[from] LatencyError),
    #[error("{a} before --with and {b} behind it; name as many on both sides, round by round")]
    Unequal {
        /// Runs of the first side, counted.
        a: String,
        b: String,
    },
    #[error(
        "{} holds no rounds (a-01, b-01, ...); name two run folders, or what `hourglass run \
         --against` wrote with -o", .0.display()
    )]
    NoRounds(PathBuf),
    #[error("{} is given on both sides; compare it with another run", .0.display())]
    Twice(PathBuf),
}

/// Compares the runs of each round: `a[0]` with `b[0]`, `a[1]` with `b[1]`... With one on each side,
/// part by part. Gaps not longer than `least_gap_ns` are left out.
///
/// # Errors
/// A folder cannot be read, or has no partner.
pub fn compare(
    a: &[PathBuf],
    b: &[PathBuf],
    rules: &Rules,
    least_gap_ns: u64,
) -> Result<DiffDocument, CompareError> {
    if a.len() != b.len() || a.is_empty() {
        let counted = |n: usize| if n == 1 { "1 run".to_owned() } else { format!("{n} runs") };
        return Err(CompareError::Unequal { a: counted(a.len()), b: counted(b.len()) });
    }
    // What cannot be resolved is refused by name when it is opened.
    let resolved = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let others: Vec<PathBuf> = b.iter().map(resolved).collect();
    if let Some(twice) = a.iter().find(|one| others.contains(&resolved(one))) {
        return Err(CompareError::Twice(twice.clone()));
    }
    Ok(document(read(a)?, read(b)?, rules, least_gap_ns))
}

/// Compares the rounds in a folder, as `run --against` writes it.
///
/// # Errors
/// It holds no rounds, or one of them cannot be read.
pub fn compare_rounds(
    path: &Path,
    rules: &Rules,
    least_gap_ns: u64,
) -> Result<DiffDocument, CompareError> {
    let found = find_rounds(path)?;
    if found.a.is_empty() {
        return Err(CompareError::NoRounds(path.to_path_buf()));
    }
    let mut document = compare(&found.a, &found.b, rules, least_gap_ns)?;
    if !found.alone.is_empty() {
        let names: Vec<String> =
            found.alone.iter().map(|path| path.display().to_string()).collect();
        document.warnings.push(Warning {
            id: "half-round".to_owned(),
            text: format!(
                "left out, because the other run of the round is missing: {}",
                names.join(", ")
            ),
            remedy: "measure whole rounds with run --against".to_owned(),
        });
    }
    Ok(document)
}

/// What was compared, of all runs of a side together: times (ns, ascending), and how often each was found.
#[derive(Debug, Default)]
pub struct ComparedCounts {
    pub latencies: BTreeMap<u64, u64>,
    /// Lengths of gaps, of those that were not left out.
    pub gaps: BTreeMap<u64, u64>,
}

/// What the two sides of a comparison were compared by.
///
/// # Errors
/// A folder cannot be read any more.
pub fn compared_counts(document: &DiffDocument) -> Result<[ComparedCounts; 2], CompareError> {
    let of = |side: &DiffSide| -> Result<ComparedCounts, CompareError> {
        let mut all = ComparedCounts::default();
        for folder in &side.folders {
            let path = PathBuf::from(folder);
            let mut run = ComparedRun::from_folder(&open_run(&path)?, path)?;
            run.sample.drop_gaps_to(document.gap_ns);
            let add = |sum: &mut BTreeMap<u64, u64>, counts: BTreeMap<u64, u64>| {
                for (ns, count) in counts {
                    *sum.entry(ns).or_default() += count;
                }
            };
            add(&mut all.latencies, run.sample.latency_counts());
            add(&mut all.gaps, run.sample.gap_counts());
        }
        Ok(all)
    };
    Ok([of(&document.a)?, of(&document.b)?])
}

fn read(folders: &[PathBuf]) -> Result<Vec<ComparedRun>, CompareError> {
    folders.iter().map(|path| ComparedRun::from_folder(&open_run(path)?, path.clone())).collect()
}
