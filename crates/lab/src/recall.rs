//! A run that was kept: its document, its trace and its latencies, from the folder.

use std::path::Path;

use hourglass_infer::{ThreadSummary, TraceSummary};
use hourglass_model::Interval;
use hourglass_model::document::{RUN_SCHEMA, RunDocument, RunResult, ThreadReport};
use hourglass_model::manifest::{Manifest, ThreadFacts};
use hourglass_store::{LatencyError, OpenError, RunFolder, TraceError};
use thiserror::Error;

/// Picoseconds in a nanosecond.
const PS_PER_NS: u64 = 1_000;

/// A run folder, opened.
#[derive(Debug)]
pub struct Recalled {
    /// What was found, as the run itself said it.
    pub document: RunDocument,
    folder: RunFolder,
}

/// A folder that tells no run.
#[derive(Debug, Error)]
pub enum RecallError {
    /// It is no run folder, or not one that this version reads.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Opens a run folder. Where the manifest carries no result, the trace is read for what it can
/// tell by itself.
///
/// # Errors
/// No run folder, half-written, another version, a damaged file.
pub fn recall(path: &Path) -> Result<Recalled, RecallError> {
    let folder = RunFolder::open(path)?;
    let mut manifest = folder.manifest().clone();
    let result = match manifest.result.take() {
        Some(result) => result,
        None => from_trace(&manifest, &folder)?,
    };
    let document = RunDocument { schema: RUN_SCHEMA.to_owned(), manifest, result };
    Ok(Recalled { document, folder })
}

impl Recalled {
    /// The execution trace, in order of start.
    ///
    /// # Errors
    /// The trace cannot be read; each interval may be the first that cannot.
    pub fn intervals(
        &self,
    ) -> Result<impl Iterator<Item = Result<Interval, TraceError>> + use<>, TraceError> {
        self.folder.intervals()
    }

    /// Lateness of the wake-ups of a latency test, one by one, in picoseconds, as far as they
    /// were stored. Where the folder keeps them as a histogram only, they come sorted and to its
    /// three digits, each as often as it was measured.
    ///
    /// # Errors
    /// They cannot be read; each may be the first that cannot.
    pub fn latencies_ps(
        &self,
        thread: u32,
    ) -> Result<impl Iterator<Item = Result<u64, LatencyError>> + use<>, LatencyError> {
        let single = self.folder.lateness_ps(thread)?;
        let rounded = if single.is_none() { rounded_ps(&self.folder, thread)? } else { Vec::new() };
        let repeated = rounded.into_iter().flat_map(|(ps, count)| (0..count).map(move |_| Ok(ps)));
        Ok(single.into_iter().flatten().chain(repeated))
    }
}

/// The steps of a thread's histogram, ascending: picoseconds, and how often.
fn rounded_ps(folder: &RunFolder, thread: u32) -> Result<Vec<(u64, u64)>, LatencyError> {
    let latencies = folder.latencies()?;
    let Some(histogram) = latencies.get(&thread) else { return Ok(Vec::new()) };
    let steps = histogram.iter_recorded().map(|step| {
        let ns = step.value_iterated_to().min(histogram.max());
        (ns.saturating_mul(PS_PER_NS), step.count_since_last_iteration())
    });
    Ok(steps.collect())
}

fn from_trace(manifest: &Manifest, folder: &RunFolder) -> Result<RunResult, RecallError> {
    let mut summary = TraceSummary::new();
    for interval in folder.intervals()? {
        summary.push(&interval?);
    }
    let threads = summary.threads().iter().map(|found| report(manifest, found)).collect();
    Ok(RunResult { threads, switches: summary.switches(), ..RunResult::default() })
}

/// What a trace alone tells of a thread; the manifest says what it was meant to be.
fn report(manifest: &Manifest, found: &ThreadSummary) -> ThreadReport {
    let facts = manifest.threads.iter().find(|facts| facts.id == found.thread);
    let of = |text: fn(&ThreadFacts) -> &String| facts.map(text).cloned().unwrap_or_default();
    ThreadReport {
        id: found.thread,
        workload: of(|facts| &facts.workload),
        wake_up: of(|facts| &facts.wake_up),
        emulated: None,
        policy: of(|facts| &facts.policy),
        cpus: Vec::new(),
        cpus_seen: found.cpus_seen.clone(),
        cpu_time_ns: found.received_ns,
        wall_ns: found.last_end_ns.saturating_sub(found.first_start_ns).max(0).unsigned_abs(),
        intervals: found.intervals,
        gaps: found.gaps,
        deadlines: None,
        latency: None,
        work: None,
        records_dropped: 0,
        migrations: found.migrations,
        kernel: None,
    }
}
