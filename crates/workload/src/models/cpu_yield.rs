//! CPU bound, yielding: gives up the processor each time it has received a fixed amount of it.

use std::fmt;
use std::sync::Arc;

use hourglass_time::Span;

use super::{AnyExecution, Demand, LoopExecution, Model, ModelEntry, ThreadLoop};
use crate::measuring_counter::MeasuringCounter;
use crate::recorder::{NoWork, Recorder, RecordingEnd, Work};

pub(super) const ENTRY: ModelEntry = ModelEntry {
    name: "CPU_YIELD",
    synopsis: "CPU_YIELD AMOUNT",
    about: "yields the processor after getting AMOUNT of CPU time",
    parameters: 1,
    parse: |mut words| {
        let amount = words.time("AMOUNT")?;
        words.end()?;
        Ok(Arc::new(CpuYield { amount }))
    },
};

#[derive(Clone, Copy, Debug)]
struct CpuYield {
    amount: Span,
}

impl fmt::Display for CpuYield {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", ENTRY.name, self.amount)
    }
}

impl Model for CpuYield {
    fn demand(&self) -> Demand {
        Demand { cpu_bound: true, ..Demand::default() }
    }

    fn prepare(&self, _seed: u64) -> Box<dyn AnyExecution> {
        Box::new(LoopExecution { model: *self, work: NoWork })
    }
}

impl ThreadLoop for CpuYield {
    type Work = NoWork;

    fn run<C: MeasuringCounter>(&self, work: &mut NoWork, recorder: &mut Recorder<C>) {
        yield_after(self.amount, work, recorder);
    }
}

/// Receives `amount`, yields, and so on until the thread's time is over.
pub(super) fn yield_after<C: MeasuringCounter>(
    amount: Span,
    work: &mut impl Work,
    recorder: &mut Recorder<C>,
) {
    while recorder.receive(amount, work) == RecordingEnd::Done
        && recorder.yield_now() == RecordingEnd::Done
    {}
}
