//! A run folder that is complete.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use hourglass_documents::manifest::Manifest;
use hourglass_documents::sites::RecordedSpan;
use hourglass_documents::watched::WatchedSample;
use hourglass_trace::JobRecord;

use crate::store::error::{LatencyError, OpenError, TraceError};
use crate::store::jobs::Jobs;
use crate::store::kernel::KernelEvents;
use crate::store::merged::MergedFolder;
use crate::store::partial::partial_path;
use crate::store::samples::StoredWakeUp;
use crate::store::spans::Spans;
use crate::store::table::read::Rows;
use crate::store::trace::Trace;
use crate::store::watch_samples::WatchSamples;
use crate::store::{
    FILES, JOBS_FILE, KERNEL_FILE, LATENCY_FILE, LOOKS_FILE, MANIFEST_FILE, SAMPLES_FILE,
    SPANS_FILE, TRACE_FILE,
};
use crate::store::{latency, manifest, samples, sweep};

#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    manifest: Manifest,
    trace: Trace,
}

impl RunFolder {
    /// Opens the run folder `path`: reads the manifest and the trace's description, not yet its
    /// records.
    pub fn open(path: impl Into<PathBuf>) -> Result<RunFolder, OpenError> {
        let path = path.into();
        let kind = fs::metadata(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => OpenError::NotFound(path.clone()),
            io::ErrorKind::NotADirectory => OpenError::NotFound(path.clone()),
            _ => OpenError::Io { path: path.clone(), source },
        })?;
        if !kind.is_dir() {
            return Err(OpenError::NotAFolder(path));
        }
        let manifest = path.join(MANIFEST_FILE);
        if !manifest.exists() {
            return Err(if is_half_written(&path) {
                OpenError::HalfWritten(path)
            } else if MergedFolder::is_at(&path) {
                OpenError::Merged(path)
            } else if path.join(sweep::RESULT_FILE).exists() {
                OpenError::Sweep(path)
            } else {
                OpenError::NotARunFolder(path)
            });
        }
        let manifest = manifest::read(&manifest)?;
        let trace = Trace::open(path.join(TRACE_FILE))?;
        Ok(RunFolder { path, manifest, trace })
    }

    /// Whether `path` is a run folder, or one that is half-written.
    pub fn is_at(path: &Path) -> bool {
        path.join(MANIFEST_FILE).exists() || is_half_written(path)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest. Its `result` is there.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Histograms of the threads' latencies in nanoseconds, by the threads' numbers. Empty if
    /// the run recorded none.
    ///
    /// # Errors
    /// The log is missing although the manifest reports latencies, or is damaged.
    pub fn latencies(&self) -> Result<BTreeMap<u32, Histogram<u64>>, LatencyError> {
        let path = self.path.join(LATENCY_FILE);
        let reported = self
            .manifest
            .result
            .iter()
            .flat_map(|result| &result.threads)
            .any(|thread| thread.latency.is_some());
        let known = self.manifest.threads.iter().map(|thread| thread.id).collect();
        match fs::read(&path) {
            Ok(text) => latency::read(&path, &text, &known),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(LatencyError::Io { path, source: error })
            }
            Err(_) if reported => Err(LatencyError::Missing(path)),
            Err(_) => Ok(BTreeMap::new()),
        }
    }

    /// The wake-ups of `thread`, one by one, in the order of waking and decoded as they are asked
    /// for; as far as they were stored. `None` if the folder has none, as those of earlier versions.
    ///
    /// # Errors
    /// The file is damaged; each wake-up may be the first that cannot be read.
    pub fn wake_ups(
        &self,
        thread: u32,
    ) -> Result<
        Option<impl Iterator<Item = Result<StoredWakeUp, LatencyError>> + use<>>,
        LatencyError,
    > {
        match samples::read(self.path.join(SAMPLES_FILE), thread) {
            Ok(samples) => Ok(Some(samples.map(|sample| sample.map_err(LatencyError::from)))),
            Err(TraceError::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// How late they were, in picoseconds.
    pub fn lateness_ps(
        &self,
        thread: u32,
    ) -> Result<Option<impl Iterator<Item = Result<u64, LatencyError>> + use<>>, LatencyError> {
        let wake_ups = self.wake_ups(thread)?;
        Ok(wake_ups.map(|all| all.map(|one| one.map(|wake_up| wake_up.lateness_ps))))
    }

    /// Iterates over the kernel's trace events, in order of `ticks`; decodes them one by one. `None` if the run
    /// did not trace the kernel.
    ///
    /// # Errors
    /// The file is missing although the manifest tells of it, or is damaged; each event may be
    /// the first that cannot be read.
    pub fn kernel_events(&self) -> Result<Option<KernelEvents>, TraceError> {
        match KernelEvents::open(self.path.join(KERNEL_FILE)) {
            Err(TraceError::Missing(_)) if self.manifest.kernel.is_none() => Ok(None),
            events => events.map(Some),
        }
    }

    /// The looks at watched threads, in order of time and decoded as they are asked for. `None` if the folder has
    /// none.
    ///
    /// # Errors
    /// The file is damaged; each look may be the first that cannot be read.
    pub fn watch_samples(
        &self,
    ) -> Result<Option<impl Iterator<Item = Result<WatchedSample, TraceError>> + use<>>, TraceError>
    {
        match Rows::<WatchSamples, 8>::open(self.path.join(LOOKS_FILE)) {
            Err(TraceError::Missing(_)) => Ok(None),
            looks => looks.map(Some),
        }
    }

    /// The jobs of periodic threads, by thread and decoded as they are asked for, as far as they were stored. `None`
    /// if the folder has none, as those of earlier versions.
    ///
    /// # Errors
    /// The file is damaged; each job may be the first that cannot be read.
    pub fn jobs(
        &self,
    ) -> Result<Option<impl Iterator<Item = Result<JobRecord, TraceError>> + use<>>, TraceError>
    {
        match Rows::<Jobs, 6>::open(self.path.join(JOBS_FILE)) {
            Err(TraceError::Missing(_)) => Ok(None),
            jobs => jobs.map(Some),
        }
    }

    /// The spans that a program recorded one by one, in order of their starts and decoded as they are asked for.
    /// `None` if the folder has none.
    ///
    /// # Errors
    /// The file is missing although the manifest has call sites, or is damaged; each span may be the first that
    /// cannot be read.
    pub fn spans(
        &self,
    ) -> Result<Option<impl Iterator<Item = Result<RecordedSpan, TraceError>> + use<>>, TraceError>
    {
        let has_sites = self.manifest.result.as_ref().is_some_and(|found| !found.sites.is_empty());
        match Rows::<Spans, 9>::open(self.path.join(SPANS_FILE)) {
            Err(TraceError::Missing(_)) if !has_sites => Ok(None),
            spans => spans.map(Some),
        }
    }
}

/// Whether a folder without manifest holds anything that a run leaves before it.
fn is_half_written(folder: &Path) -> bool {
    FILES.iter().any(|name| folder.join(name).exists() || partial_path(folder, name).exists())
}
