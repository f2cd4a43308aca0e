//! CPU bound, periodic: never blocks; when it has received its amount it begins the next period.

use std::fmt;
use std::sync::Arc;

use hourglass_documents::document::Deadlines;
use hourglass_time::Span;

use super::periodic::Grid;
use super::{AnyExecution, Demand, LoopExecution, Model, ModelEntry, ThreadLoop};
use crate::measuring_counter::MeasuringCounter;
use crate::recorder::{NoWork, Recorder, RecordingEnd};

pub(super) const ENTRY: ModelEntry = ModelEntry {
    name: "CPU_PERIODIC",
    synopsis: "CPU_PERIODIC AMOUNT PERIOD",
    about: "cpu-bound, needs AMOUNT at least once in every PERIOD and takes more if it can",
    parameters: 2,
    parse: |mut words| {
        let amount = words.time("AMOUNT")?;
        let period = words.period_of(&amount, Some(amount))?;
        words.end()?;
        Ok(Arc::new(CpuPeriodic { amount, period }))
    },
};

/// A game that must produce a frame in every period and produces more when it can.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuPeriodic {
    pub(super) amount: Span,
    pub(super) period: Span,
}

impl fmt::Display for CpuPeriodic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", ENTRY.name, self.amount, self.period)
    }
}

impl Model for CpuPeriodic {
    fn demand(&self) -> Demand {
        Demand {
            cpu_bound: true,
            period: Some(self.period),
            longest: Some(self.amount),
            mean_ns: Some(self.amount.nanos() as f64),
            ..Demand::default()
        }
    }

    fn prepare(&self, _seed: u64) -> Box<dyn AnyExecution> {
        Box::new(LoopExecution { model: *self, work: NoWork })
    }
}

impl ThreadLoop for CpuPeriodic {
    type Work = NoWork;

    fn run<C: MeasuringCounter>(&self, work: &mut NoWork, recorder: &mut Recorder<C>) {
        let grid = Grid::new(recorder, self.period);
        let mut windows = Windows::default();
        while recorder.receive(self.amount, work) == RecordingEnd::Done {
            windows.completed(&grid, recorder.now());
        }
        recorder.tally.deadlines = Some(windows.close(&grid, recorder.now()));
    }
}

/// The account of whole periods of wall time: hit if the amount was completed in it at least
/// once, else missed.
#[derive(Default)]
struct Windows {
    counted: Deadlines,
    /// Periods before this one are counted.
    next: u64,
}

impl Windows {
    fn completed(&mut self, grid: &Grid, now: u64) {
        self.counted.completed += 1;
        // The period in which `now` lies; a completion on a boundary belongs to the one it ends.
        let begun = grid.next_at(now).saturating_sub(1);
        if begun >= self.next {
            self.counted.missed += begun - self.next;
            self.counted.hit += 1;
            self.next = begun + 1;
        }
    }

    fn close(mut self, grid: &Grid, now: u64) -> Deadlines {
        let whole = grid.whole_until(now);
        self.counted.missed += whole.saturating_sub(self.next);
        if self.next > whole {
            // Completed in a period that did not end within the thread's time.
            self.counted.hit = self.counted.hit.saturating_sub(1);
        }
        self.counted
    }
}
