//! The command line of `run`: an ordered language that no option parser knows (`-rh` is one
//! option, `-w` takes as many words as its workload, `-t` and `-a` say for whom the options after
//! them are).
//!
//! Owns: the options and their help, reading them in order, putting them on the threads.
//! Must not: run anything, print, ask the machine (what it must know of it is passed in).

mod apply;
mod baseline;
pub(crate) mod help;
mod lexer;
pub(crate) mod options;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use hourglass_documents::CpuSet;

use crate::commands::diff::FailOn;
use crate::exit::Stop;
use crate::lab::{Gates, RunSpec};
use crate::settings::Settings;

/// What the parser must know of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostDefaults {
    /// CPUs that can run threads, where the kernel tells.
    pub(crate) online: Option<CpuSet>,
    /// The seed of a run that is given none.
    pub(crate) seed: u64,
}

/// A command line of `run`, understood.
#[derive(Debug)]
pub(crate) enum RunCommand {
    /// `--help` stands in it.
    Help,
    Run(Box<RunArguments>),
}

/// What a run is asked to do, and how its result is shown.
#[derive(Debug)]
pub(crate) struct RunArguments {
    pub(crate) spec: RunSpec,
    pub(crate) dma_latency_us: Option<u32>,
    pub(crate) folder: Option<PathBuf>,
    /// What the threads do not do as the file says.
    pub(crate) notes: Vec<String>,
    pub(crate) gates: Gates,
    /// `--trace`.
    pub(crate) trace: bool,
    /// Whether the seed was made up: then the user needs it to repeat the run, and it is printed.
    pub(crate) seed_is_made_up: bool,
    /// `--records`, or what implies it.
    pub(crate) records: bool,
    /// `--summary`.
    pub(crate) summary: bool,
    /// `-c`.
    pub(crate) cycles: bool,
    pub(crate) settings: Settings,
    /// The other way to run, and the words of both.
    pub(crate) against: Option<Box<BaselineRun>>,
    /// `--rounds`.
    pub(crate) rounds: Option<u32>,
    /// `--fail-on`.
    pub(crate) fail_on: Option<FailOn>,
    /// `--control`.
    pub(crate) control: bool,
}

/// What `--against` describes.
#[derive(Debug)]
pub(crate) struct BaselineRun {
    pub(crate) spec: RunSpec,
    pub(crate) gates: Gates,
    pub(crate) dma_latency_us: Option<u32>,
    /// The words that describe the run itself.
    pub(crate) own_words: Vec<String>,
    /// The words that describe the other.
    pub(crate) words: Vec<String>,
}

/// Reads the words behind `run`.
///
/// # Errors
/// The first thing that is wrong, in one line that names the option.
pub(crate) fn parse(words: &[String], around: &HostDefaults) -> Result<RunCommand, Stop> {
    let lexed = lexer::lex(words)?;
    if lexed.has(options::OptionKey::Help) {
        return Ok(RunCommand::Help);
    }
    let mut run = apply::apply(&lexed, around)?;
    baseline::compare(&mut run, &lexed, around)?;
    Ok(RunCommand::Run(Box::new(run)))
}
