//! CPU bound: runs whenever it can.

use std::fmt;
use std::sync::Arc;

use super::{AnyExecution, Demand, LoopExecution, Model, ModelEntry, ThreadLoop};
use crate::measuring_counter::MeasuringCounter;
use crate::recorder::{NoWork, Recorder};

pub(super) const ENTRY: ModelEntry = ModelEntry {
    name: "CPU",
    synopsis: "CPU",
    about: "cpu-bound; makes an execution trace (default)",
    parameters: 0,
    parse: |words| {
        words.end()?;
        Ok(Arc::new(Cpu))
    },
};

#[derive(Clone, Copy, Debug)]
pub(super) struct Cpu;

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ENTRY.name)
    }
}

impl Model for Cpu {
    fn demand(&self) -> Demand {
        Demand { cpu_bound: true, ..Demand::default() }
    }

    fn prepare(&self, _seed: u64) -> Box<dyn AnyExecution> {
        Box::new(LoopExecution { model: *self, work: NoWork })
    }
}

impl ThreadLoop for Cpu {
    type Work = NoWork;

    fn run<C: MeasuringCounter>(&self, work: &mut NoWork, recorder: &mut Recorder<C>) {
        recorder.receive_all(work);
    }
}
