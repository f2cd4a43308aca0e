//! A run that was kept: its document, its trace and its latencies, from the folder.

use std::path::Path;

use crate::store::{LatencyError, OpenError, RunFolder, StoredWakeUp, TraceError};
use hourglass_documents::document::{RUN_SCHEMA, RunDocument, Warning};
use hourglass_trace::{Interval, JobRecord, KernelEvent};

use crate::causes::{self, Explanation};
use crate::drift;
use crate::inferences;
use crate::late_jobs;

const PS_PER_NS: u64 = 1_000;

#[derive(Debug)]
pub struct OpenRun {
    pub document: RunDocument,
    pub(crate) folder: RunFolder,
}

/// Opens a run folder.
///
/// # Errors
/// No run folder, half-written, another version, a damaged file.
pub fn open_run(path: &Path) -> Result<OpenRun, OpenError> {
    let folder = RunFolder::open(path)?;
    let mut manifest = folder.manifest().clone();
    let result = manifest.result.take().ok_or_else(|| OpenError::NoResult(path.to_path_buf()))?;
    let document = RunDocument { schema: RUN_SCHEMA.to_owned(), manifest, result };
    let mut recalled = OpenRun { document, folder };
    recalled.warn(drift::warning(&recalled.document.manifest));
    recalled.warn(recalled.log_warning());
    Ok(recalled)
}

impl OpenRun {
    fn warn(&mut self, warning: Option<Warning>) {
        let warnings = &mut self.document.result.warnings;
        warnings.extend(warning.filter(|new| warnings.iter().all(|known| known.id != new.id)));
    }

    /// Warns that the log of latencies is damaged, or another run's. Needed where single latencies are stored: nothing
    /// else would show the fault.
    fn log_warning(&self) -> Option<Warning> {
        let counted: Vec<(u32, u64)> = { &self.document.result.threads }
            .iter()
            .filter_map(|thread| Some((thread.id, thread.latency?.count)))
            .collect();
        if counted.is_empty() {
            return None;
        }
        let what = match self.folder.latencies() {
            Err(error) => error.to_string(),
            Ok(logged) => {
                let differs = |(id, count): &&(u32, u64)| {
                    logged.get(id).map_or(0, |histogram| histogram.len()) != *count
                };
                let (id, count) = counted.iter().find(differs)?;
                let found = logged.get(id).map_or(0, |histogram| histogram.len());
                format!(
                    "latency.hlog has {found} wake-ups of thread {id}, of {count} that were measured"
                )
            }
        };
        let single = counted.iter().all(|(id, _)| self.has_single_latencies(*id).unwrap_or(false));
        let instead = match single {
            true => "; the numbers shown are those of the manifest and of latency.parquet",
            false => "; the numbers shown are those of the manifest",
        };
        Some(Warning {
            id: "latency-log".to_owned(),
            text: format!("{what}{instead}"),
            remedy: "do not export --hdr from this folder; copy it again, or measure again"
                .to_owned(),
        })
    }

    /// Infers from the trace what the document lacks, as one of an earlier version does. A damaged trace
    /// is read as far as it is sound; a simulated one has no costs to infer.
    pub fn infer(&mut self) {
        let known = !self.document.result.inferences.is_empty();
        // Where the losses of spans are drawn proves nothing of the order in which threads ran.
        let drawn = !self.document.result.sites.is_empty();
        if known || drawn || self.document.manifest.simulation.is_some() {
            return;
        }
        let Ok(trace) = self.folder.trace().intervals() else { return };
        let threads = self.document.result.threads.iter();
        let tested = threads.filter(|thread| thread.latency.is_some()).map(|thread| thread.id);
        let latencies = tested.filter_map(|thread| {
            let samples = self.latencies_ps(thread).ok()?;
            Some((thread, samples.map_while(Result::ok)))
        });
        let trace = trace.map_while(Result::ok);
        self.document.result.inferences = inferences::of_run(&self.document, trace, latencies);
    }

    /// The execution trace, in order of start.
    ///
    /// # Errors
    /// The trace cannot be read; each interval may be the first that cannot.
    pub fn intervals(
        &self,
    ) -> Result<impl Iterator<Item = Result<Interval, TraceError>> + use<>, TraceError> {
        self.folder.trace().intervals()
    }

    /// The kernel's trace events, in order of time; nothing if it was not traced.
    ///
    /// # Errors
    /// They cannot be read; each may be the first that cannot.
    pub fn kernel_events(
        &self,
    ) -> Result<impl Iterator<Item = Result<KernelEvent, TraceError>> + use<>, TraceError> {
        Ok(self.folder.kernel_events()?.into_iter().flatten())
    }

    /// The jobs of periodic threads, by thread; nothing if they were not kept one by one.
    ///
    /// # Errors
    /// They cannot be read; each may be the first that cannot.
    pub fn jobs(
        &self,
    ) -> Result<impl Iterator<Item = Result<JobRecord, TraceError>> + use<>, TraceError> {
        Ok(self.folder.jobs()?.into_iter().flatten())
    }

    /// What gives each gap of the trace its cause.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn explanation(&self) -> Result<Explanation, TraceError> {
        Explanation::new(&self.document, self.intervals()?)
    }

    /// Puts the causes of gaps and the latest jobs into the document, if the run itself did not, as one of an older
    /// version or of another machine. What cannot be read is said in a warning.
    pub fn find_causes(&mut self) {
        let known = !self.document.result.causes.is_empty();
        let found = if known { Ok(()) } else { self.try_find_causes() };
        if let Err(error) = found.and_then(|()| self.try_find_late_jobs()) {
            self.document.result.warnings.push(Warning {
                id: "causes-incomplete".to_owned(),
                text: format!("gaps have causes only as far as the folder can be read: {error}"),
                remedy: String::new(),
            });
        }
    }

    fn try_find_late_jobs(&mut self) -> Result<(), TraceError> {
        let known = !self.document.result.late_jobs.is_empty();
        if !known && late_jobs::has_late_jobs(&self.document) {
            let jobs = self.jobs()?.collect::<Result<Vec<_>, _>>()?;
            let gaps = if jobs.is_empty() { Vec::new() } else { self.gaps()? };
            self.document.result.late_jobs = late_jobs::latest(&self.document, jobs, gaps);
        }
        Ok(())
    }

    fn try_find_causes(&mut self) -> Result<(), TraceError> {
        if self.document.manifest.simulation.is_some() {
            let intervals = self.intervals()?.collect::<Result<Vec<_>, _>>()?;
            let gaps = causes::of_simulation(&self.document, &intervals);
            causes::fill_simulated(&mut self.document, &gaps);
            return Ok(());
        }
        let explanation = self.explanation()?;
        let intervals = self.intervals()?;
        let (events, unreadable) = match self.kernel_events() {
            Ok(events) => (Some(events), None),
            Err(error) => (None, Some(Err(error))),
        };
        let events = events.into_iter().flatten().chain(unreadable);
        explanation.fill(&mut self.document, intervals, events)
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
        Ok(self.wake_ups(thread)?.map(|one| one.map(|wake_up| wake_up.lateness_ps)))
    }

    /// The same with the time of each wake-up, where it was kept.
    ///
    /// # Errors
    /// As [`OpenRun::latencies_ps`].
    pub fn wake_ups(
        &self,
        thread: u32,
    ) -> Result<impl Iterator<Item = Result<StoredWakeUp, LatencyError>> + use<>, LatencyError>
    {
        let single = self.folder.wake_ups(thread)?;
        let rounded = if single.is_none() { rounded_ps(&self.folder, thread)? } else { Vec::new() };
        let repeated = rounded.into_iter().flat_map(|(lateness_ps, count)| {
            (0..count).map(move |_| Ok(StoredWakeUp { woke_ns: None, lateness_ps }))
        });
        Ok(single.into_iter().flatten().chain(repeated))
    }
}

impl OpenRun {
    /// Whether the latencies of a thread were stored one by one, in the order of waking.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn has_single_latencies(&self, thread: u32) -> Result<bool, LatencyError> {
        Ok(self.folder.lateness_ps(thread)?.is_some())
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
