//! Worked examples with known answers, answered: a folder of them against the analyses.
//!
//! Owns: which files of a folder are read, and the document about them. Must not: know an analysis or
//! compare answers (`sched::corpus` does).

use std::fs;
use std::path::{Path, PathBuf};

use hourglass_documents::check::{CHECK_CORPUS_SCHEMA, CaseFacts, CaseStatus, CheckCorpusDocument};
use hourglass_sched::catalogue::answer;
use hourglass_sched::corpus::{BadCase, disagreements};
use hourglass_tasks::TaskSetError;
use hourglass_tasks::corpus::{self, Case, ExpectedResults, UnreadableCase};
use thiserror::Error;

use hourglass_measure::task_input::{self, InputError};

/// The reason why a folder of worked examples cannot be read.
#[derive(Debug, Error)]
pub enum ExamplesError {
    /// The folder cannot be listed.
    #[error("{}: {reason}", .path.display())]
    Unreadable { path: PathBuf, reason: std::io::Error },
    #[error("{}: no file in it ends in .json; name a folder of worked examples", .0.display())]
    NoFiles(PathBuf),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] Box<InputError>),
    /// A file is no array of cases.
    #[error("{}: {source}; a file of worked examples is a JSON array of cases", .path.display())]
    NoCases { path: PathBuf, source: Box<TaskSetError> },
}

/// Answers every case of a folder's `.json` files, or of a single file. A case that is not
/// understood is unsupported and stops no other.
///
/// # Errors
/// The folder or one of its files cannot be read.
pub fn check(folder: &Path) -> Result<CheckCorpusDocument, ExamplesError> {
    let mut cases = Vec::new();
    for path in files(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let read = corpus::read(&task_input::text(&path).map_err(Box::new)?).map_err(|source| {
            ExamplesError::NoCases { path: path.clone(), source: Box::new(source) }
        })?;
        cases.extend(read.into_iter().map(|case| facts(case, &name)));
    }
    let count = |status| cases.iter().filter(|case| case.status == status).count() as u64;
    Ok(CheckCorpusDocument {
        schema: CHECK_CORPUS_SCHEMA.to_owned(),
        passed: count(CaseStatus::Pass),
        failed: count(CaseStatus::Fail),
        unsupported: count(CaseStatus::Unsupported),
        cases,
    })
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, ExamplesError> {
    if folder.is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let unreadable = |reason| ExamplesError::Unreadable { path: folder.to_owned(), reason };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "json") && path.is_file() {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(ExamplesError::NoFiles(folder.to_owned()));
    }
    files.sort();
    Ok(files)
}

fn facts(case: Result<Case, UnreadableCase>, file: &str) -> CaseFacts {
    let file = file.to_owned();
    let (none, reason) = (ExpectedResults::new(), String::new());
    let case = match case {
        Ok(case) => case,
        Err(UnreadableCase { id, kind, reason }) => {
            let status = CaseStatus::Unsupported;
            return CaseFacts { id, kind, status, got: none.clone(), expected: none, file, reason };
        }
    };
    let (id, kind) = (case.id.clone(), case.kind.clone());
    match answer(&case) {
        Ok(got) => {
            let wrong = disagreements(&case, &got);
            let expected = case.expect.iter().filter(|(name, _)| wrong.contains(&name.as_str()));
            let expected: ExpectedResults =
                expected.map(|(n, value)| (n.clone(), value.clone())).collect();
            let status = if wrong.is_empty() { CaseStatus::Pass } else { CaseStatus::Fail };
            CaseFacts { id, kind, status, got, expected, file, reason }
        }
        Err(why) => {
            let status = match why {
                BadCase::Unsupported(_)
                | BadCase::UnknownKey(_)
                | BadCase::Asked(_)
                | BadCase::Missing(_)
                | BadCase::Field { .. } => CaseStatus::Unsupported,
                BadCase::Task { .. } | BadCase::NoAnswer(_) => CaseStatus::Fail,
            };
            let expected =
                if status == CaseStatus::Fail { case.expect.clone() } else { none.clone() };
            CaseFacts { id, kind, status, got: none, expected, file, reason: why.to_string() }
        }
    }
}
