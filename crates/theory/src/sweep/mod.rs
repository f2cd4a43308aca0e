//! Experiments of schedulability: how many random sets of tasks each analysis accepts, by their
//! utilisation.
//!
//! Owns: what an experiment is ([`ExperimentBuilder`], [`Experiment`]), the analyses that can be compared
//! ([`ANALYSES`]), spreading the work over threads, going on with what a folder holds,
//! cutting an experiment into parts and putting these together.
//! Must not: draw sets (`tasks::generate` does), judge (`sched` does), parse arguments, print.
//!
//! A set is known by seed, utilisation and number, so that the result depends neither on the number
//! of threads nor on how often the experiment was interrupted.

mod experiment;
mod experiment_keys;
mod file;
mod merge;
mod run;
mod template;
#[cfg(test)]
mod tests;
mod workers;

pub use experiment::{Experiment, SetSource, SweepError};
pub use experiment_keys::ExperimentBuilder;
pub use file::SweepFile;
pub use hourglass_sched::catalogue::{
    CONTENDERS as ANALYSES, ProcessorScope, SchedulabilityTest as Analysis, TestOutcome,
};
pub use merge::{is_experiment, merge, part_folder};
pub use run::{SweepObserver, SweepResult, run, run_until};
pub use template::Template;
