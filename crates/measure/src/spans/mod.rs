//! Spans of the program that calls, recorded into a run folder: which of them the scheduler disturbed, and how.
//!
//! ```
//! use hourglass_measure::spans::SpanRecording;
//!
//! # let home = tempfile::tempdir().unwrap();
//! # let folder = home.path().join("spans");
//! let recording = SpanRecording::start(folder, SpanRecording::SETTINGS)?;
//! let request = recording.sites().site("request");
//! let thread = recording.sites().current_thread()?; // once a thread
//! for _ in 0..10 {
//!     thread.run(request, || std::hint::black_box(42));
//! }
//! let kept = recording.finish()?; // hourglass show, report, diff, export --perfetto
//! # assert_eq!(kept.manifest().result.as_ref().unwrap().sites[0].spans, 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Owns: what surrounds [`hourglass_witness::sites`]: facts about the machine, the folder (`folder.rs`), dumps on a
//! signal (`dump.rs`). Must not: do anything when a span begins or ends.
//!
//! # What the folder holds
//!
//! Each thread of the program that ended spans is a thread of the run. Its intervals are the times within its spans:
//! between them nothing was observed, as during the waits of a periodic thread. A disturbed span has a gap of the length that
//! it lost at most. Where in its span that was is not known (`span_intervals.rs`): within the innermost span
//! that lost it, in the middle of its longest part without spans of its own. Gaps have causes by the counts of their
//! spans, as those of other runs; `result.sites` and `spans.parquet` keep what the witness itself said.

mod dump;
mod folder;
mod span_intervals;

use std::path::{Path, PathBuf};

use hourglass_clock::timekeeping::{Native, ReferenceClock, Timebase};
use hourglass_documents::host::Host;
use hourglass_machine::facts::HostReader;
use hourglass_runs::store::{CreateError, NewRunFolder, RunFolder, WriteError};

pub use dump::{DumpTarget, Dumper};
pub use hourglass_witness::sites::{Site, SiteSettings, SiteSpan, Sites, ThreadSites};

#[derive(Debug)]
pub struct SpanRecording {
    sites: Sites,
    folder: NewRunFolder,
    reader: HostReader,
    host: Host,
    begin_ns: u64,
    settings: SiteSettings,
}

impl SpanRecording {
    /// What is usual: 32 call sites, and 65,536 spans of each thread one by one, which take 3 MB.
    pub const SETTINGS: SiteSettings = SiteSettings { spans: 65_536, ..SiteSettings::DEFAULT };

    /// Makes the folder, which must not exist, and reads facts about the machine.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn start(
        folder: impl Into<PathBuf>,
        settings: SiteSettings,
    ) -> Result<SpanRecording, CreateError> {
        let folder = RunFolder::create(folder)?;
        let reader = HostReader::new(Path::new("/"));
        let host = reader.read();
        // The witness's own zero is before the run's.
        let sites = Sites::new(settings);
        let _ = hourglass_witness::Witness::new();
        let begin_ns = Native.reference_ns(ReferenceClock::Monotonic);
        Ok(SpanRecording { sites, folder, reader, host, begin_ns, settings })
    }

    /// The call sites. Clones of them may go on after the end; they are recorded no more.
    pub fn sites(&self) -> &Sites {
        &self.sites
    }

    /// Ends the recording and writes the folder. Spans that go on are not in it.
    ///
    /// # Errors
    /// The folder cannot be written; what was written stays, as a half-written folder.
    pub fn finish(self) -> Result<RunFolder, WriteError> {
        folder::write(self)
    }
}
