//! What this command uses of the layer below, by one set of names, and how its runs are printed.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use hourglass_model::Interval;
use hourglass_model::document::RunDocument;
use hourglass_store::RunFolder;

pub(crate) use hourglass_lab::infer::CpuTimeline;
pub(crate) use hourglass_lab::workload::spec::MOST_THREADS;
pub(crate) use hourglass_lab::workload::{RunSpec, SpecError, ThreadSpec, models, wake};
pub(crate) use hourglass_lab::workload_file;
pub(crate) use hourglass_lab::{Failure, Finished, Refusal, Request, Watch, run};
use hourglass_lab::{RecallError, Recalled};

use crate::output::Source;

/// Picoseconds in a nanosecond.
const PS_PER_NS: u64 = 1_000;

/// A run that has just ended.
impl Source for Finished {
    fn document(&self) -> &RunDocument {
        &self.document
    }

    fn each_interval(&mut self, each: impl FnMut(Interval) -> io::Result<()>) -> Result<()> {
        Ok(self.intervals().try_for_each(each)?)
    }

    fn each_lateness(
        &mut self,
        thread: u32,
        each: impl FnMut(u64) -> io::Result<()>,
    ) -> Result<()> {
        Ok(self.latencies_ps(thread).try_for_each(each)?)
    }
}

/// A run in a folder.
#[derive(Debug)]
pub(crate) struct Kept {
    recalled: Recalled,
    folder: PathBuf,
}

/// Opens a run folder.
///
/// # Errors
/// It is none, or cannot be read.
pub(crate) fn recall(folder: &Path) -> Result<Kept, RecallError> {
    hourglass_lab::recall(folder).map(|recalled| Kept { recalled, folder: folder.to_path_buf() })
}

impl Source for Kept {
    fn document(&self) -> &RunDocument {
        &self.recalled.document
    }

    fn each_interval(&mut self, mut each: impl FnMut(Interval) -> io::Result<()>) -> Result<()> {
        for interval in self.recalled.intervals()? {
            each(interval?)?;
        }
        Ok(())
    }

    /// A folder keeps latencies as a histogram: they come sorted and to three digits, each as
    /// often as it was measured.
    fn each_lateness(
        &mut self,
        thread: u32,
        mut each: impl FnMut(u64) -> io::Result<()>,
    ) -> Result<()> {
        let latencies = RunFolder::open(&self.folder)?.latencies()?;
        let Some(histogram) = latencies.get(&thread) else { return Ok(()) };
        for step in histogram.iter_recorded() {
            let ns = step.value_iterated_to().min(histogram.max());
            for _ in 0..step.count_since_last_iteration() {
                each(ns.saturating_mul(PS_PER_NS))?;
            }
        }
        Ok(())
    }
}
