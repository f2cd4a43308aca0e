//! Latency test on a grid: wakes up at every whole period, notes how late.

use std::fmt;
use std::sync::Arc;

use hourglass_time::Span;

use super::periodic::Grid as Boundaries;
use super::{AnyExecution, Demand, LoopExecution, Model, ModelEntry, ThreadLoop};
use crate::measuring_counter::MeasuringCounter;
use crate::recorder::{NoWork, Recorder, RecordingEnd};

pub(super) const ENTRY: ModelEntry = ModelEntry {
    name: "GRID",
    synopsis: "GRID PERIOD",
    about: "dispatch latency test: wakes at every whole PERIOD from its start, notes how late it \
            woke and which periods were lost, as cyclictest does",
    parameters: 1,
    parse: |mut words| {
        let period = words.time("PERIOD")?;
        words.end()?;
        Ok(on_grid(period, None))
    },
};

/// The model; with `cycles`, the first thread that has woken that often ends the run.
pub fn on_grid(period: Span, cycles: Option<u64>) -> Arc<dyn Model> {
    Arc::new(Grid { period, cycles })
}

/// Each wake-up is asked for on a grid that lateness does not move, so that a thread which comes
/// too late for the next period loses it. A lost period is a wake-up that never took place, not
/// one that was not late: it is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub(super) period: Span,
    pub(super) cycles: Option<u64>,
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", ENTRY.name, self.period)
    }
}

impl Model for Grid {
    fn demand(&self) -> Demand {
        Demand { period: Some(self.period), latency: true, on_grid: true, ..Demand::default() }
    }

    fn prepare(&self, _seed: u64) -> Box<dyn AnyExecution> {
        Box::new(LoopExecution { model: *self, work: NoWork })
    }
}

impl ThreadLoop for Grid {
    type Work = NoWork;

    fn run<C: MeasuringCounter>(&self, _work: &mut NoWork, recorder: &mut Recorder<C>) {
        let grid = Boundaries::new(recorder, self.period);
        let (mut period, mut woken) = (1, 0);
        while recorder.wait_until(grid.boundary(period)) == RecordingEnd::Done {
            let woke = recorder.now();
            recorder.record_lateness(woke.saturating_sub(grid.boundary(period)));
            let next = grid.next_at(woke).max(period + 1);
            recorder.lose_wake_ups(next - period - 1);
            period = next;
            woken += 1;
            if self.cycles.is_some_and(|cycles| woken >= cycles) {
                recorder.end_run();
                return;
            }
        }
        // A wake-up that did not come before the thread's time was over is as late as that, at
        // least, if another period has begun since.
        let ended = recorder.now();
        let next = grid.next_at(ended);
        if next > period + 1 {
            recorder.record_lateness(ended.saturating_sub(grid.boundary(period)));
            recorder.lose_wake_ups(next - period - 1);
        }
    }
}
