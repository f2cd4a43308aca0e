//! Latency test: wakes up, notes how late, sleeps again.

use std::fmt;
use std::sync::Arc;

use hourglass_time::Span;

use super::{AnyExecution, Demand, LoopExecution, Model, ModelEntry, ThreadLoop};
use crate::measuring_counter::MeasuringCounter;
use crate::recorder::{NoWork, Recorder, RecordingEnd};

pub(super) const ENTRY: ModelEntry = ModelEntry {
    name: "LAT",
    synopsis: "LAT PERIOD",
    about: "dispatch latency test: sleeps for PERIOD from each waking, notes how late it woke",
    parameters: 1,
    parse: |mut words| {
        let period = words.time("PERIOD")?;
        words.end()?;
        Ok(Arc::new(Lat { period }))
    },
};

/// Each wake-up is asked for one period after the last waking, so that the thread falls in step
/// with its timer and lateness does not accumulate (section 3.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Lat {
    pub(super) period: Span,
}

impl fmt::Display for Lat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", ENTRY.name, self.period)
    }
}

impl Model for Lat {
    fn demand(&self) -> Demand {
        Demand { period: Some(self.period), latency: true, ..Demand::default() }
    }

    fn prepare(&self, _seed: u64) -> Box<dyn AnyExecution> {
        Box::new(LoopExecution { model: *self, work: NoWork })
    }
}

impl ThreadLoop for Lat {
    type Work = NoWork;

    fn run<C: MeasuringCounter>(&self, _work: &mut NoWork, recorder: &mut Recorder<C>) {
        let period = recorder.timeline().ticks_at_least(self.period);
        let mut due = recorder.now().saturating_add(period);
        while recorder.wait_until(due) == RecordingEnd::Done {
            let woke = recorder.now();
            recorder.record_lateness(woke.saturating_sub(due));
            due = woke.saturating_add(period);
        }
    }
}
