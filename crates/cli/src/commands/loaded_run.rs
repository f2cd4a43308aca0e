//! A run folder read as a whole, for the commands that show all of it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use hourglass_documents::document::RunDocument;
use hourglass_documents::kernel::KernelNames;
use hourglass_report::export::{self, WakeUpRow};
use hourglass_report::{LatencyCounts, RunView};
use hourglass_runs::store::StoredWakeUp;

use crate::exit::Stop;
use crate::lab::{self, OpenRun, RunContents};

const PS_PER_US: u64 = 1_000_000;

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
            jobs: &self.contents.jobs,
        }
    }

    pub(super) fn document(&self) -> &RunDocument {
        &self.recalled.document
    }

    /// Whether any thread measured the latency of a wake-up.
    pub(super) fn has_wake_ups(&self) -> bool {
        let mut threads = self.document().result.threads.iter();
        threads.any(|thread| thread.latency.is_some_and(|latency| latency.count > 0))
    }

    /// The numbers of the wake-ups, from 0, that were `limit_us` late or later, by thread: as many as cyclictest notes.
    /// Of threads whose latencies were not stored one by one there are none.
    pub(super) fn wake_ups_beyond(&self, limit_us: u64) -> Result<BTreeMap<u32, Vec<u64>>> {
        let most = usize::try_from(limit_us).unwrap_or(usize::MAX);
        let mut beyond = BTreeMap::new();
        for thread in self.document().result.threads.iter().filter(|one| one.latency.is_some()) {
            if !self.recalled.has_single_latencies(thread.id)? {
                continue;
            }
            let mut numbers = Vec::new();
            for (number, ps) in (0..).zip(self.recalled.latencies_ps(thread.id)?) {
                if ps? / PS_PER_US >= limit_us && numbers.len() < most {
                    numbers.push(number);
                }
            }
            beyond.insert(thread.id, numbers);
        }
        Ok(beyond)
    }

    /// Writes the wake-ups one by one, or the histograms where not all of them were stored.
    pub(super) fn write_wake_ups(&self, out: impl Write) -> Result<()> {
        let threads = || {
            let threads = self.document().result.threads.iter();
            threads.filter_map(|thread| Some((thread.id, thread.latency?.count)))
        };
        let mut all = Vec::new();
        for (id, count) in threads() {
            let single = self.recalled.has_single_latencies(id)?;
            if !single || self.recalled.wake_ups(id)?.count() as u64 != count {
                let counts = self.recalled.latency_counts()?;
                return Ok(export::csv_latency_counts(out, &counts)?);
            }
            all.push(id);
        }
        let rows = all.into_iter().flat_map(|thread| {
            let (wake_ups, error) = match self.recalled.wake_ups(thread) {
                Ok(wake_ups) => (Some(wake_ups), None),
                Err(error) => (None, Some(Err(error))),
            };
            wake_ups.into_iter().flatten().chain(error).map(move |one| {
                let StoredWakeUp { woke_ns, lateness_ps } = one?;
                Ok::<_, anyhow::Error>(WakeUpRow { thread, woke_ns, latency_ps: lateness_ps })
            })
        });
        export::csv_wake_ups(out, rows)
    }

    /// Records of the trace.
    pub(super) fn records(&self) -> usize {
        self.contents.intervals.len()
    }
}
