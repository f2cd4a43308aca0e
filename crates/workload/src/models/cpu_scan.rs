//! CPU bound, scanning: a task with a working set in the data caches.

use std::fmt;
use std::sync::Arc;

use super::scanning::Scan;
use super::{AnyExecution, Demand, LoopExecution, Model, ModelEntry, ThreadLoop};
use crate::measuring_counter::MeasuringCounter;
use crate::recorder::Recorder;

pub(super) const ENTRY: ModelEntry = ModelEntry {
    name: "CPU_SCAN",
    synopsis: "CPU_SCAN SIZE",
    about: "cpu-bound, and scans an array of SIZE KB (or 4M); counts the passes",
    parameters: 1,
    parse: |mut words| {
        let bytes = words.size("SIZE")?;
        words.end()?;
        Ok(Arc::new(CpuScan { bytes }))
    },
};

#[derive(Clone, Copy, Debug)]
struct CpuScan {
    bytes: usize,
}

impl fmt::Display for CpuScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", ENTRY.name, self.bytes >> 10)
    }
}

impl Model for CpuScan {
    fn demand(&self) -> Demand {
        Demand { cpu_bound: true, counts_work: true, bytes: self.bytes, ..Demand::default() }
    }

    fn prepare(&self, _seed: u64) -> Box<dyn AnyExecution> {
        Box::new(LoopExecution { model: *self, work: Scan::new(self.bytes) })
    }
}

impl ThreadLoop for CpuScan {
    type Work = Scan;

    fn run<C: MeasuringCounter>(&self, work: &mut Scan, recorder: &mut Recorder<C>) {
        work.restart();
        recorder.receive_all(work);
        recorder.tally.work = Some(work.passes);
    }
}
