//! `--openmetrics FILE` and `--junit FILE`: a result for monitoring and for servers of continuous integration.

use std::path::PathBuf;

use hourglass_documents::document::RunDocument;
use hourglass_report::export::{MeasuredTimes, junit_run, openmetrics_run};

use crate::atomic_file::{self, WholeFile};
use crate::exit::Stop;
use crate::lab::{Finished, RunOptions};

pub(crate) const OPENMETRICS: &str = "--openmetrics";
pub(crate) const JUNIT: &str = "--junit";

/// The files that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResultFiles {
    pub(crate) openmetrics: Option<PathBuf>,
    pub(crate) junit: Option<PathBuf>,
}

/// The same, made sure of before anything is measured.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    openmetrics: Option<WholeFile>,
    junit: Option<WholeFile>,
}

impl ResultFiles {
    /// The option that asks for one.
    pub(crate) fn asked(&self) -> Option<&'static str> {
        match self {
            ResultFiles { openmetrics: Some(_), .. } => Some(OPENMETRICS),
            ResultFiles { junit: Some(_), .. } => Some(JUNIT),
            _ => None,
        }
    }

    /// Opens them for the result of a run.
    ///
    /// # Errors
    /// One cannot be written, or the run has no limit to report.
    pub(crate) fn open(&self, request: &RunOptions) -> Result<OpenFiles, Stop> {
        let guard = &request.spec.guard;
        let stops = guard.stop_on_gap.is_some() || guard.stop_on_latency.is_some();
        if self.junit.is_some() && request.gates.limits.is_empty() && !stops {
            return Err(Stop::usage(format!(
                "{JUNIT}: its test cases are limits, and there is none; give for example --max-gap 100us"
            )));
        }
        Ok(OpenFiles {
            openmetrics: WholeFile::wanted(OPENMETRICS, self.openmetrics.as_deref())?,
            junit: WholeFile::wanted(JUNIT, self.junit.as_deref())?,
        })
    }
}

impl OpenFiles {
    /// Writes what came of a run of `command`.
    ///
    /// # Errors
    /// Writing fails.
    pub(crate) fn write(self, command: &str, finished: &Finished) -> Result<(), Stop> {
        let document: &RunDocument = &finished.document;
        if let Some(file) = self.openmetrics {
            let times: Vec<MeasuredTimes<'_>> = finished
                .measured
                .threads
                .iter()
                .map(|thread| MeasuredTimes {
                    thread: thread.id,
                    latencies: thread
                        .recorded
                        .lateness
                        .as_ref()
                        .map(|lateness| (&lateness.histogram, lateness.total_ns)),
                    gaps: &thread.recorded.gaps.histogram,
                })
                .collect();
            write(file, OPENMETRICS, &openmetrics_run(command, document, &times))?;
        }
        match self.junit {
            Some(file) => write(file, JUNIT, &junit_run(command, document)),
            None => Ok(()),
        }
    }
}

/// Writes a file that `option` names.
///
/// # Errors
/// Writing fails.
pub(crate) fn write(file: WholeFile, option: &str, text: &str) -> Result<(), Stop> {
    let name = file.name().to_path_buf();
    file.write(text.as_bytes()).map_err(|error| atomic_file::refused(option, &name, &error))
}
