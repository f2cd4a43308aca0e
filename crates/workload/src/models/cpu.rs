//! CPU bound: runs whenever it can.

use std::fmt;
use std::sync::Arc;

use super::{AnyExecution, Demand, Entry, Execution, Model};
use crate::measuring_counter::MeasuringCounter;
use crate::recorder::{Recorder, Watching};

pub(super) const ENTRY: Entry = Entry {
    name: "CPU",
    synopsis: "CPU",
    about: "cpu-bound; makes an execution trace (default)",
    parameters: 0,
    parse: |words| {
        words.end()?;
        Ok(Arc::new(Cpu))
    },
};

/// A thread that never blocks.
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
        Box::new(Running(Watching))
    }
}

pub(super) struct Running(pub(super) Watching);

impl Execution for Running {
    type Work = Watching;

    fn work(&mut self) -> &mut Watching {
        &mut self.0
    }

    fn run<C: MeasuringCounter>(&mut self, recorder: &mut Recorder<C>) {
        recorder.receive_all(&mut self.0);
    }
}
