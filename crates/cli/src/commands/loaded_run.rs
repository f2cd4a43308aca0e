//! A run folder read as a whole, for the commands that show all of it.

use std::path::Path;

use anyhow::Result;
use hourglass_documents::document::RunDocument;
use hourglass_documents::kernel::KernelNames;
use hourglass_report::{LatencyCounts, RunView};

use crate::exit::Stop;
use crate::lab::{self, OpenRun, RunContents};

pub(super) struct LoadedRun {
    pub(super) recalled: OpenRun,
    contents: RunContents,
    latencies: Vec<LatencyCounts>,
    names: KernelNames,
}

impl LoadedRun {
    /// Reads the folder.
    ///
    /// # Errors
    /// It holds no run, is half-written, or damaged.
    pub(super) fn read(folder: &Path) -> Result<LoadedRun> {
        let mut recalled = lab::open_run(folder).map_err(Stop::bad_input)?;
        let mut contents = recalled.contents(lab::has_room).map_err(Stop::bad_input)?;
        recalled.find_causes();
        let latencies = std::mem::take(&mut contents.latencies_us);
        let latencies = latencies.into_iter();
        let mut fine = std::mem::take(&mut contents.latencies_ns);
        let latencies = latencies.map(|(thread, counts)| LatencyCounts {
            thread,
            counts,
            fine: fine.remove(&thread).unwrap_or_default(),
        });
        let latencies = latencies.collect();
        let facts = recalled.document.manifest.kernel.as_ref();
        let names = facts.map(|facts| facts.names.clone()).unwrap_or_default();
        Ok(LoadedRun { latencies, names, contents, recalled })
    }

    pub(super) fn run(&self) -> RunView<'_> {
        RunView {
            document: self.document(),
            intervals: &self.contents.intervals,
            causes: &self.contents.causes,
            latencies: &self.latencies,
            wake_ups: &self.contents.wake_ups,
            latest: &self.contents.latest,
            events: &self.contents.events,
            names: &self.names,
            spans: &self.contents.spans,
        }
    }

    pub(super) fn document(&self) -> &RunDocument {
        &self.recalled.document
    }

    /// Records of the trace.
    pub(super) fn records(&self) -> usize {
        self.contents.intervals.len()
    }
}
