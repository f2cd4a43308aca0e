//! A run folder that is being written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use hourglass_documents::manifest::{Epoch, Manifest};
use hourglass_documents::sites::RecordedSpan;
use hourglass_documents::watched::WatchedSample;
use hourglass_trace::{JobRecord, KernelEvent};

use crate::store::error::{CreateError, WriteError};
use crate::store::folder::RunFolder;
use crate::store::jobs::Jobs;
use crate::store::kernel::Events;
use crate::store::partial::{PartialFile, sync_folder};
use crate::store::samples::{StoredWakeUp, WakeUps};
use crate::store::spans::Spans;
use crate::store::table::write::{EncodeRows, write_rows};
use crate::store::trace::TraceWriter;
use crate::store::watch_samples::WatchSamples;
use crate::store::{
    FILES, JOBS_FILE, KERNEL_FILE, LOOKS_FILE, MANIFEST_FILE, SAMPLES_FILE, SPANS_FILE, TRACE_FILE,
    latency, manifest,
};

/// A run folder that is being written.
///
/// Dropped before its trace is complete, it removes the folder again, so that a run that was
/// called off leaves nothing behind. Dropped later, it keeps what was measured: a trace without
/// a manifest, which [`RunFolder::open`] reports as half-written.
#[derive(Debug)]
pub struct NewRunFolder {
    path: PathBuf,
    trace: PartialFile,
    finished: bool,
}

impl RunFolder {
    /// Makes the run folder `path` and opens its trace for writing. To be called before the
    /// measurement, so that what was measured cannot fail to find its place.
    ///
    /// # Errors
    /// See [`CreateError`]; nothing is left behind.
    pub fn create(path: impl Into<PathBuf>) -> Result<NewRunFolder, CreateError> {
        let path = path.into();
        fs::create_dir(&path).map_err(|error| refused(&path, error))?;
        match PartialFile::create(&path, TRACE_FILE) {
            Ok(trace) => Ok(NewRunFolder { path, trace, finished: false }),
            Err(source) => {
                // It is empty and ours; failing to remove it is the lesser of the two errors.
                let _ = fs::remove_dir(&path);
                Err(refused(&path.join(TRACE_FILE), source))
            }
        }
    }
}

/// The refusal to make `path` in the user's terms.
pub(crate) fn refused(path: &Path, source: io::Error) -> CreateError {
    let path = path.to_path_buf();
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    match source.kind() {
        io::ErrorKind::AlreadyExists => CreateError::Exists(path),
        // The system refuses an empty name as if something were missing on the way to it.
        _ if path.as_os_str().is_empty() => CreateError::Io { path, source },
        io::ErrorKind::NotFound if !parent.exists() => CreateError::ParentMissing { path, parent },
        io::ErrorKind::NotADirectory => CreateError::ParentNotAFolder { path, parent },
        // Some file systems of the kernel (/proc) answer that nothing is there.
        io::ErrorKind::NotFound
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem => CreateError::NotWritable { path, source },
        _ => CreateError::Io { path, source },
    }
}

impl NewRunFolder {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts the trace. A writer that is dropped unfinished may be followed by another.
    ///
    /// # Errors
    /// The trace is complete already, or the file refuses.
    pub fn trace(&mut self) -> Result<TraceWriter<'_>, WriteError> {
        TraceWriter::start(&self.trace)
    }

    /// Writes `latency.hlog`: one histogram of latencies in nanoseconds for each thread, given
    /// by its number. Writes no file without a histogram.
    ///
    /// The log is HdrHistogram's interval log, version 2, compressed, which its tools in every
    /// language read. Each histogram has the tag `thread-N` and stands for the whole run, which
    /// began at `epoch` and took `elapsed_ns`.
    ///
    /// # Errors
    /// The file refuses.
    pub fn write_latencies(
        &mut self,
        epoch: &Epoch,
        elapsed_ns: u64,
        threads: &[(u32, &Histogram<u64>)],
    ) -> Result<(), WriteError> {
        if threads.is_empty() {
            return Ok(());
        }
        latency::write(&self.path, epoch, elapsed_ns, threads)
    }

    /// Writes `latency.parquet`: each wake-up in the order of waking, for each thread, given by its
    /// number; the numbers ascend. Writes no file if there are no threads.
    ///
    /// # Errors
    /// The threads do not ascend or have a number that the format cannot hold; or the file
    /// refuses.
    pub fn write_samples<S: IntoIterator<Item = StoredWakeUp>>(
        &mut self,
        threads: impl IntoIterator<Item = (u32, S)>,
    ) -> Result<(), WriteError> {
        let mut threads = threads.into_iter().peekable();
        if threads.peek().is_none() {
            return Ok(());
        }
        let of_thread =
            |(thread, all): (u32, S)| all.into_iter().map(move |wake_up| (thread, wake_up));
        self.write_table::<WakeUps, 3>(SAMPLES_FILE, threads.flat_map(of_thread)).map(drop)
    }

    /// Writes `kernel.parquet`: the kernel's trace events, in order of `ticks`.
    /// Returns the number of events.
    ///
    /// # Errors
    /// The events are not in order or have a CPU that the format cannot hold; or the file refuses.
    pub fn write_kernel_events(
        &mut self,
        events: impl IntoIterator<Item = KernelEvent>,
    ) -> Result<u64, WriteError> {
        self.write_table::<Events, 7>(KERNEL_FILE, events)
    }

    /// Writes `looks.parquet`: what the kernel counted for watched threads, in order of time.
    ///
    /// # Errors
    /// A CPU has a number that the format cannot hold; or the file refuses.
    pub fn write_looks(
        &mut self,
        looks: impl IntoIterator<Item = WatchedSample>,
    ) -> Result<(), WriteError> {
        self.write_table::<WatchSamples, 8>(LOOKS_FILE, looks).map(drop)
    }

    /// Writes `spans.parquet`: the spans that a program recorded one by one, in order of their starts.
    ///
    /// # Errors
    /// They are not in order, or have a number that the format cannot hold; or the file refuses.
    pub fn write_spans(
        &mut self,
        spans: impl IntoIterator<Item = RecordedSpan>,
    ) -> Result<(), WriteError> {
        self.write_table::<Spans, 9>(SPANS_FILE, spans).map(drop)
    }

    /// Writes `jobs.parquet`: the jobs of periodic threads, by thread. Writes no file if there are none.
    ///
    /// # Errors
    /// The threads do not ascend, a job ends before it starts, or a number is one that the format cannot hold; or
    /// the file refuses.
    pub fn write_jobs(
        &mut self,
        jobs: impl IntoIterator<Item = JobRecord>,
    ) -> Result<(), WriteError> {
        let mut jobs = jobs.into_iter().peekable();
        if jobs.peek().is_none() {
            return Ok(());
        }
        self.write_table::<Jobs, 6>(JOBS_FILE, jobs).map(drop)
    }

    /// Writes the file `name`. Returns the number of rows.
    fn write_table<E: EncodeRows<N>, const N: usize>(
        &self,
        name: &str,
        rows: impl IntoIterator<Item = E::Row>,
    ) -> Result<u64, WriteError> {
        let partial = PartialFile::create(&self.path, name)
            .map_err(|error| WriteError::file(self.path.join(name), error))?;
        write_rows::<E, N>(&partial, rows)
    }

    /// Writes `manifest.json`, which completes the folder, and opens it for reading.
    ///
    /// # Errors
    /// The trace is not complete, the manifest has no `result` or a number that JSON cannot
    /// hold, or the file refuses. The trace is kept.
    pub fn finish(mut self, manifest: &Manifest) -> Result<RunFolder, WriteError> {
        if !self.trace.is_committed() {
            return Err(WriteError::TraceMissing(self.trace.target().to_path_buf()));
        }
        manifest::write(&self.path, manifest)?;
        self.finished = true;
        if let Some(parent) = self.path.parent() {
            // The folder's own name. A parent that may be written but not read is no failure:
            // the files are safe, and the name will follow.
            let _ = sync_folder(parent);
        }
        RunFolder::open(&self.path).map_err(|error| WriteError::Whole {
            path: self.path.clone(),
            doubt: "cannot be read back",
            source: error.into(),
        })
    }

    /// Removes the folder and all that was written into it: the run was called off.
    ///
    /// # Errors
    /// The system refuses, for example because the folder has a foreign file.
    pub fn abandon(mut self) -> Result<(), WriteError> {
        self.finished = true;
        self.trace.discard();
        for name in FILES {
            let path = self.path.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(WriteError::file(path, error));
                }
                _ => {}
            }
        }
        fs::remove_dir(&self.path).map_err(|error| WriteError::file(&self.path, error))
    }
}

impl Drop for NewRunFolder {
    fn drop(&mut self) {
        if self.finished || self.trace.is_committed() {
            return;
        }
        self.trace.discard();
        // A drop cannot report an error; a reader recognises remaining files as half-written.
        for name in FILES.into_iter().filter(|name| ![TRACE_FILE, MANIFEST_FILE].contains(name)) {
            let _ = fs::remove_file(self.path.join(name));
        }
        let _ = fs::remove_dir(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests often run as root, whom no permission stops; so the mapping is tested by itself.
    #[test]
    fn refusals_say_what_the_user_can_do() {
        let kind = |kind: io::ErrorKind| refused(Path::new("a/b"), io::Error::from(kind));
        assert!(matches!(
            kind(io::ErrorKind::ReadOnlyFilesystem),
            CreateError::NotWritable { path, .. } if path == Path::new("a/b")
        ));
        assert!(matches!(kind(io::ErrorKind::PermissionDenied), CreateError::NotWritable { .. }));
        assert!(matches!(
            kind(io::ErrorKind::NotADirectory),
            CreateError::ParentNotAFolder { parent, .. } if parent == Path::new("a")
        ));
        assert!(matches!(kind(io::ErrorKind::StorageFull), CreateError::Io { .. }));
    }
}
