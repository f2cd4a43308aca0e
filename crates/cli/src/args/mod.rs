//! The command line of `run`: an ordered language that no option parser knows (`-rh` is one
//! option, `-w` takes as many words as its workload, `-t` and `-a` say for whom the options after
//! them are).
//!
//! Owns: the options and their help, reading them in order, putting them on the threads.
//! Must not: run anything, print, ask the machine (what it must know of it is passed in).

mod baseline;
pub(crate) mod fail_on;
pub(crate) mod help;
pub(crate) mod options;
#[cfg(test)]
mod tests;

use std::path::Path;

use hourglass_documents::CpuSet;

use self::fail_on::FailOn;
use self::options::{LANGUAGE, RunDraft};
use crate::compat::ParsedCommand;
use crate::exit::Stop;
use crate::lab::workload_file::{self, WorkloadFile};
use crate::lab::{Gates, MOST_THREADS, RunOptions, RunSpec, SpecError, ThreadSpec};
use crate::options::{OptionValues, Tokens};
use crate::result_files::ResultFiles;
use crate::settings::Settings;

/// How the name of a workload file ends. Elsewhere than in front a word must end so to be taken
/// for one.
const FILE_ENDING: &str = ".toml";

/// What the parser must know of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostDefaults {
    /// CPUs that can run threads, where the kernel tells.
    pub(crate) online: Option<CpuSet>,
    /// The seed of a run that is given none.
    pub(crate) seed: u64,
}

/// What a run is asked to do, and how its result is shown.
#[derive(Debug)]
pub(crate) struct RunArguments {
    pub(crate) request: RunOptions,
    /// What the threads do not do as the file says.
    pub(crate) notes: Vec<String>,
    /// Whether the seed was made up: then the user needs it to repeat the run, and it is printed.
    pub(crate) seed_is_made_up: bool,
    /// `--records`, or what implies it.
    pub(crate) records: bool,
    /// `--summary`.
    pub(crate) summary: bool,
    /// `-c`.
    pub(crate) cycles: bool,
    pub(crate) settings: Settings,
    pub(crate) files: ResultFiles,
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
pub(crate) fn parse(
    words: &[String],
    around: &HostDefaults,
) -> Result<ParsedCommand<RunArguments>, Stop> {
    if LANGUAGE.asks_for_help(words) {
        return Ok(ParsedCommand::Help);
    }
    let tokens = LANGUAGE.lex(words)?;
    let mut run = apply(&tokens, around)?;
    baseline::compare(&mut run, &tokens, around)?;
    Ok(ParsedCommand::Run(Box::new(run)))
}

/// Puts the options on the threads, in their order.
fn apply(tokens: &Tokens<'_, RunDraft>, around: &HostDefaults) -> Result<RunArguments, Stop> {
    let path = file_of(tokens)?;
    let file = match path {
        Some(path) => workload_file::read(Path::new(path)).map_err(Stop::bad_input)?,
        None => WorkloadFile::default(),
    };
    let spec =
        RunSpec { snapshots: true, ..RunSpec::new(threads(tokens.last("-n"), path, &file)?) };
    let request = RunOptions {
        dma_latency_us: file.dma_latency_us,
        gates: file.gates.clone(),
        trace: file.trace.unwrap_or(false),
        ..RunOptions::new(spec)
    };
    let mut draft = RunDraft {
        scope: 0..request.spec.threads.len(),
        online: around.online.clone(),
        run: RunArguments {
            request,
            notes: file.notes.clone(),
            seed_is_made_up: file.seed.is_none() && !tokens.has("--seed"),
            records: false,
            summary: false,
            cycles: false,
            settings: Settings::default(),
            files: ResultFiles::default(),
            against: None,
            rounds: None,
            fail_on: None,
            control: false,
        },
    };
    file.put_into(&mut draft.run.request.spec, around.seed);
    tokens.options.iter().try_for_each(|token| token.apply(&mut draft))?;
    let RunDraft { run, .. } = draft;
    let RunOptions { spec, gates, .. } = &run.request;
    spec.check().map_err(|error| contradiction(&error, spec, &file))?;
    gates.check(spec).map_err(Stop::bad_input)?;
    Ok(run)
}

/// The workload file: a word in front of the options, or one that looks like a file.
fn file_of<'a>(tokens: &Tokens<'a, RunDraft>) -> Result<Option<&'a str>, Stop> {
    let mut found = None;
    for &(position, word) in &tokens.words {
        let may_be_file = position == 0 || word.ends_with(FILE_ENDING);
        let before = position.checked_sub(1).and_then(|last| tokens.options.get(last));
        found = match (found, before) {
            (None, _) if may_be_file => Some(word),
            (Some(file), _) if may_be_file => {
                return Err(Stop::usage(format!(
                    "'{word}' is a second file after '{file}'; a run has one workload file"
                )));
            }
            (_, Some(before)) => {
                let written = before.given.written().join(" ");
                let reason = format!("'{word}' is one word too many after '{written}'");
                return Err(before.given.wrong(reason));
            }
            (_, None) => return Err(Stop::usage(format!("unexpected word '{word}'"))),
        };
    }
    Ok(found)
}

fn threads(
    count: Option<&OptionValues<'_>>,
    path: Option<&str>,
    file: &WorkloadFile,
) -> Result<Vec<ThreadSpec>, Stop> {
    match (count, path) {
        (None, Some(_)) => Ok(file.threads.clone()),
        (None, None) => Ok(vec![ThreadSpec::default()]),
        (Some(given), Some(path)) => Err(given.wrong(format!(
            "{path} says how many threads there are; leave -n out, or change the file"
        ))),
        (Some(given), None) => {
            let count = given.number_in("number of threads", 1..=MOST_THREADS)?;
            Ok(vec![ThreadSpec::default(); count])
        }
    }
}

/// A contradiction between options, with the place in the file where one thread is described.
fn contradiction(error: &SpecError, spec: &RunSpec, file: &WorkloadFile) -> Stop {
    let text = match error {
        SpecError::NeverRuns { thread, start, .. } if *start >= spec.duration => format!(
            "-s: thread {thread} would start ({start}) when the run (-d {}) is over",
            spec.duration
        ),
        SpecError::NeverRuns { thread, start, finish } => {
            format!("-f: thread {thread} would finish ({finish}) before it starts (-s {start})")
        }
        other => other.to_string(),
    };
    match file.place_of(error) {
        "" => Stop::usage(text),
        place => Stop::usage(format!("{place}: {text}")),
    }
}
