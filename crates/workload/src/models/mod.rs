//! Thread execution models (Hourglass paper, section 3.2).
//!
//! A model is one file here and one line in [`ALL`]. It describes itself by an [`ModelEntry`], its
//! parameters by a [`Model`], and does its work in an [`Execution`].

mod cpu;
mod cpu_move;
mod cpu_periodic;
mod cpu_scan;
mod cpu_scan_yield;
mod cpu_yield;
mod grid;
mod lat;
mod periodic;
mod scanning;

use std::fmt::{Debug, Display};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hourglass_time::Span;

use crate::jobs::JobTerms;
use crate::loop_time::{self, LoopTime};
use crate::measuring_counter::{AnyCounter, MeasuringCounter};
use crate::recorder::{AnyRecorder, Recorder, Work};
use crate::tokens::{TokenReader, WordError};

pub use grid::on_grid;

pub const ALL: [&ModelEntry; 9] = [
    &cpu::ENTRY,
    &cpu_scan::ENTRY,
    &cpu_move::ENTRY,
    &cpu_yield::ENTRY,
    &cpu_scan_yield::ENTRY,
    &periodic::ENTRY,
    &cpu_periodic::ENTRY,
    &lat::ENTRY,
    &grid::ENTRY,
];

#[derive(Debug)]
pub struct ModelEntry {
    pub name: &'static str,
    /// Name and parameters: `PERIODIC AMOUNT PERIOD`.
    pub synopsis: &'static str,
    pub about: &'static str,
    /// How many words follow the name.
    pub parameters: usize,
    pub parse: fn(TokenReader<'_>) -> Result<Arc<dyn Model>, WordError>,
}

/// A model with its parameters. Prints as it is written on the command line.
pub trait Model: Debug + Display + Send + Sync {
    fn demand(&self) -> Demand;

    /// Execution times that were read from a file, in their order; empty without a file.
    fn amounts(&self) -> &[Span] {
        &[]
    }

    /// Allocates and fills everything that a thread needs, before it is measured. `seed` starts
    /// its random sequence, if it has one.
    fn prepare(&self, seed: u64) -> Box<dyn AnyExecution>;
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// Never blocks by itself.
    pub cpu_bound: bool,
    pub period: Option<Span>,
    /// Longest amount of processor time in a period, where there is a limit.
    pub longest: Option<Span>,
    /// Average amount of processor time in a period, ns.
    pub mean_ns: Option<f64>,
    /// Measures the lateness of wake-ups instead of writing a trace.
    pub latency: bool,
    /// Its wake-ups lie on a grid that lateness does not move, so that periods can be lost.
    pub on_grid: bool,
    pub counts_work: bool,
    /// Deadlines of its jobs, where it has jobs.
    pub jobs: JobTerms,
    /// Memory for its own data, beside the records.
    pub bytes: usize,
}

/// A model at work.
///
/// `run` MUST return soon after [`Recorder`] says that the thread's time is over, and MUST NOT
/// allocate, do I/O, or make a system call that the recorder does not make for it.
pub trait Execution: Send {
    /// What the thread does between two reads of the counter.
    type Work: Work;

    /// The work, for measuring how long an iteration takes.
    fn work(&mut self) -> &mut Self::Work;

    /// Runs until the thread's time is over.
    fn run<C: MeasuringCounter>(&mut self, recorder: &mut Recorder<C>);
}

/// The loop of a model whose only state is its work.
pub(crate) trait ThreadLoop: Send {
    type Work: Work;

    /// Runs until the thread's time is over.
    fn run<C: MeasuringCounter>(&self, work: &mut Self::Work, recorder: &mut Recorder<C>);
}

pub(crate) struct LoopExecution<L: ThreadLoop> {
    model: L,
    work: L::Work,
}

impl<L: ThreadLoop> Execution for LoopExecution<L> {
    type Work = L::Work;

    fn work(&mut self) -> &mut L::Work {
        &mut self.work
    }

    fn run<C: MeasuringCounter>(&mut self, recorder: &mut Recorder<C>) {
        self.model.run(&mut self.work, recorder);
    }
}

/// An [`Execution`] behind a pointer: one dispatch at the start, none in the loop.
pub trait AnyExecution: Send {
    fn loop_time(&mut self, counter: AnyCounter) -> LoopTime;

    /// Runs its loop for a while without recording, or until `stop`.
    fn warm_up(&mut self, counter: AnyCounter, time: Span, stop: &AtomicBool);

    /// Runs until the thread's time is over.
    fn run(&mut self, recorder: &mut AnyRecorder);
}

impl<E: Execution> AnyExecution for E {
    fn loop_time(&mut self, counter: AnyCounter) -> LoopTime {
        crate::measuring_counter::with_counter!(counter, c => loop_time::measure(&c, self.work()))
    }

    fn warm_up(&mut self, counter: AnyCounter, time: Span, stop: &AtomicBool) {
        crate::measuring_counter::with_counter!(counter, c => loop_time::spin(&c, self.work(), time, stop));
    }

    fn run(&mut self, recorder: &mut AnyRecorder) {
        crate::measuring_counter::with_recorder!(recorder, r => Execution::run(self, r));
    }
}

/// The model of a thread of which nothing was said: cpu-bound.
pub fn default_model() -> Arc<dyn Model> {
    Arc::new(cpu::Cpu)
}

/// The entry with this name.
///
/// # Errors
/// No model has this name; the error lists all names.
pub fn find(name: &str) -> Result<&'static ModelEntry, WordError> {
    ALL.iter().copied().find(|entry| entry.name == name).ok_or_else(|| {
        let known = ALL.iter().map(|entry| entry.name).collect();
        WordError::UnknownWorkload { name: name.to_owned(), known }
    })
}

/// Reads a model from its name and parameters.
///
/// # Errors
/// An unknown name, a missing, superfluous or bad parameter.
pub fn parse(words: &[&str]) -> Result<Arc<dyn Model>, WordError> {
    let (name, parameters) = words.split_first().unwrap_or((&"", &[]));
    let entry = find(name)?;
    (entry.parse)(TokenReader::new(entry.synopsis, parameters))
}

/// Models at work, for the simulated machine. Times in ms.
#[cfg(test)]
pub(crate) mod simulated_executions {
    use hourglass_time::Span;

    use super::{Execution, LoopExecution, ThreadLoop, cpu, cpu_periodic, grid, lat, periodic};
    use crate::recorder::NoWork;

    fn running<L: ThreadLoop<Work = NoWork>>(model: L) -> impl Execution {
        LoopExecution { model, work: NoWork }
    }

    pub(crate) fn cpu() -> impl Execution {
        running(cpu::Cpu)
    }

    pub(crate) fn periodic(amount: i64, period: i64) -> impl Execution {
        periodic::PeriodicExecution::fixed(Span::from_millis(amount), Span::from_millis(period))
    }

    pub(crate) fn cpu_periodic(amount: i64, period: i64) -> impl Execution {
        let (amount, period) = (Span::from_millis(amount), Span::from_millis(period));
        running(cpu_periodic::CpuPeriodic { amount, period })
    }

    pub(crate) fn lat(period: i64) -> impl Execution {
        running(lat::Lat { period: Span::from_millis(period) })
    }

    pub(crate) fn grid(period: i64, cycles: Option<u64>) -> impl Execution {
        running(grid::Grid { period: Span::from_millis(period), cycles })
    }
}
