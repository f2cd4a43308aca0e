//! CPU bound, scanning and yielding.

use std::fmt;
use std::sync::Arc;

use hourglass_time::Span;

use super::cpu_yield::yield_after;
use super::scanning::Scan;
use super::{AnyExecution, Demand, LoopExecution, Model, ModelEntry, ThreadLoop};
use crate::measuring_counter::MeasuringCounter;
use crate::recorder::Recorder;

pub(super) const ENTRY: ModelEntry = ModelEntry {
    name: "CPU_SCAN_YIELD",
    synopsis: "CPU_SCAN_YIELD SIZE AMOUNT",
    about: "combines scanning and yielding",
    parameters: 2,
    parse: |mut words| {
        let bytes = words.size("SIZE")?;
        let amount = words.time("AMOUNT")?;
        words.end()?;
        Ok(Arc::new(CpuScanYield { bytes, amount }))
    },
};

#[derive(Clone, Copy, Debug)]
struct CpuScanYield {
    bytes: usize,
    amount: Span,
}

impl fmt::Display for CpuScanYield {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", ENTRY.name, self.bytes >> 10, self.amount)
    }
}

impl Model for CpuScanYield {
    fn demand(&self) -> Demand {
        Demand { cpu_bound: true, counts_work: true, bytes: self.bytes, ..Demand::default() }
    }

    fn prepare(&self, _seed: u64) -> Box<dyn AnyExecution> {
        Box::new(LoopExecution { model: *self, work: Scan::new(self.bytes) })
    }
}

impl ThreadLoop for CpuScanYield {
    type Work = Scan;

    fn run<C: MeasuringCounter>(&self, work: &mut Scan, recorder: &mut Recorder<C>) {
        work.restart();
        yield_after(self.amount, work, recorder);
        recorder.tally.work = Some(work.passes);
    }
}
