//! Periodic: receives an amount of processor time in every period, then blocks until the next.

use std::fmt;
use std::sync::Arc;

use hourglass_documents::document::Deadlines;
use hourglass_documents::{ExecutionTime, Sampler};
use hourglass_time::Span;

use super::{AnyExecution, Demand, Execution, Model, ModelEntry};
use crate::jobs::JobTerms;
use crate::measuring_counter::MeasuringCounter;
use crate::recorder::{NoWork, Recorder, RecordingEnd};

pub(super) const ENTRY: ModelEntry = ModelEntry {
    name: "PERIODIC",
    synopsis: "PERIODIC AMOUNT PERIOD",
    about: "receives AMOUNT in every PERIOD, then blocks; AMOUNT may be a distribution, PERIOD a frequency (1kHz)",
    parameters: 2,
    parse: |mut words| {
        let amount: ExecutionTime = words.value("AMOUNT")?;
        let period = words.period_of(&amount, amount.longest())?;
        words.end()?;
        Ok(Arc::new(Periodic { amount, period }))
    },
};

#[derive(Clone, Debug)]
struct Periodic {
    amount: ExecutionTime,
    period: Span,
}

impl fmt::Display for Periodic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", ENTRY.name, self.amount, self.period)
    }
}

impl Model for Periodic {
    fn demand(&self) -> Demand {
        Demand {
            period: Some(self.period),
            longest: self.amount.longest(),
            mean_ns: Some(self.amount.mean_ns()),
            jobs: JobTerms {
                deadline: Some(self.period),
                grid: Some(self.period),
                until_end: true,
            },
            ..Demand::default()
        }
    }

    fn amounts(&self) -> &[Span] {
        self.amount.table()
    }

    fn prepare(&self, seed: u64) -> Box<dyn AnyExecution> {
        Box::new(PeriodicExecution {
            period: self.period,
            amounts: Sampler::new(&self.amount, seed),
            work: NoWork,
        })
    }
}

pub(super) struct PeriodicExecution {
    period: Span,
    amounts: Sampler,
    work: NoWork,
}

#[cfg(test)]
impl PeriodicExecution {
    pub(super) fn fixed(amount: Span, period: Span) -> PeriodicExecution {
        let amounts = Sampler::new(&ExecutionTime::Fixed(amount), 0);
        PeriodicExecution { period, amounts, work: NoWork }
    }
}

impl Execution for PeriodicExecution {
    type Work = NoWork;

    fn work(&mut self) -> &mut NoWork {
        &mut self.work
    }

    fn run<C: MeasuringCounter>(&mut self, recorder: &mut Recorder<C>) {
        let grid = Grid::new(recorder, self.period);
        let mut periods = Periods::default();
        while recorder.wait_until(grid.boundary(periods.current)) == RecordingEnd::Done {
            recorder.begin_job(grid.boundary(periods.current));
            let amount = self.amounts.draw();
            if recorder.receive(amount, &mut self.work) == RecordingEnd::TimeOver {
                break;
            }
            recorder.end_job();
            let deadline = grid.boundary(periods.current + 1);
            periods.finished(&grid, recorder.now());
            let late = recorder.now().saturating_sub(deadline);
            if late > 0 && late <= recorder.lost_below {
                recorder.tally.missed_below = recorder.tally.missed_below.saturating_add(1);
            }
        }
        recorder.tally.deadlines = Some(periods.close(&grid, recorder.now()));
    }
}

/// The fixed grid on which periods begin: the thread's start plus whole periods.
pub(super) struct Grid {
    timeline: crate::timeline::Timeline,
    start: u64,
    finish: u64,
    period_ns: u64,
}

impl Grid {
    pub(super) fn new<C: MeasuringCounter>(recorder: &Recorder<C>, period: Span) -> Grid {
        Grid {
            timeline: *recorder.timeline(),
            start: recorder.start(),
            finish: recorder.finish_at(),
            period_ns: period.nanos_or_zero().max(1),
        }
    }

    /// The counter at the beginning of period `number`. Computed anew for each, so that no
    /// rounding accumulates.
    pub(super) fn boundary(&self, number: u64) -> u64 {
        let ns = number.saturating_mul(self.period_ns);
        self.start.saturating_add(self.timeline.calibration.rate.ticks_ceil(ns))
    }

    /// The number of the first period that begins at `ticks` or later.
    pub(super) fn next_at(&self, ticks: u64) -> u64 {
        let mut number = self.whole_until(ticks);
        while self.boundary(number) < ticks {
            number += 1;
        }
        number
    }

    /// How many whole periods lie between the thread's start and `ticks`, or its finish if that
    /// is earlier.
    pub(super) fn whole_until(&self, ticks: u64) -> u64 {
        let passed = ticks.min(self.finish).saturating_sub(self.start);
        let mut number = self.timeline.ns_in(passed) / self.period_ns;
        // The division works on rounded ns; the boundary itself decides.
        if self.boundary(number + 1) <= ticks.min(self.finish) {
            number += 1;
        }
        number
    }
}

/// The account of a periodic thread. Every whole period of the thread's time is hit, missed or
/// lost, once.
#[derive(Default)]
struct Periods {
    /// The period whose job is running, or is released next.
    current: u64,
    /// Hits, misses and losses of the periods before `current`.
    counted: Deadlines,
    /// Whether the job before `current` finished in time.
    last_was_hit: bool,
}

impl Periods {
    /// The job of the current period has received its amount at `now`.
    fn finished(&mut self, grid: &Grid, now: u64) {
        self.counted.completed += 1;
        let deadline = self.current + 1;
        self.last_was_hit = now <= grid.boundary(deadline);
        if self.last_was_hit {
            self.counted.hit += 1;
            self.current = deadline;
        } else {
            let next = grid.next_at(now);
            self.counted.missed += 1;
            self.counted.lost += next - deadline;
            self.current = next;
        }
    }

    /// The thread's time ended at `now`: only periods that are over by then count.
    fn close(mut self, grid: &Grid, now: u64) -> Deadlines {
        let whole = grid.whole_until(now);
        if self.current < whole {
            // Its job was released and did not finish in time; the later ones never started.
            self.counted.missed += 1;
            self.counted.lost += whole - self.current - 1;
        } else if self.current > whole {
            // The last job finished, but the last period that it settled does not end within the
            // thread's time. After a late job that period is one of the lost.
            let last =
                if self.last_was_hit { &mut self.counted.hit } else { &mut self.counted.lost };
            *last = last.saturating_sub(1);
        }
        self.counted
    }
}
