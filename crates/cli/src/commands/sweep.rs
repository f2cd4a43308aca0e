//! `sweep`: how many random sets of tasks each analysis accepts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use hourglass_documents::sweep::SweepDocument;
use hourglass_report::{svg, text};

use crate::atomic_file;
use crate::exit::{self, Stop};
use crate::lab::sweep::{
    self, ANALYSES, Analysis, Experiment, ExperimentBuilder, SweepError, SweepFile,
};
use crate::lab::task_input::{self as input, InputError};
use crate::messages;
use crate::output;
use crate::progress::SetsProgress;
use crate::settings::Settings;

/// Name of the picture in the folder.
const PICTURE: &str = "sweep.svg";

/// Parts that an experiment can be cut into.
const MOST_PARTS: u64 = 1_000_000_000;

/// Threads that can be asked for.
const MOST_THREADS: usize = 1_024;

/// Compare analyses on random sets of tasks: how many sets does each accept?
#[derive(Args, Debug)]
#[command(after_help = "\
FILE is an experiment, with the long options as its keys (cost_granularity,
keep_sets), or a task file: then the execution times of its one set are scaled
from utilisation to utilisation. Options come before what the file says. The
same options give the same result, on any number of threads.

Generators: uunifast (one CPU), uunifast-discard, randfixedsum (the default with
several CPUs), drs (bounds for each task; not always uniform where these are
uneven).
Periods: log-uniform:A,B uniform:A,B harmonic:A,B list:A,B,...
Deadlines: implicit, share:LOW,HIGH (of the period), slack:LOW,HIGH (of what the
cost leaves of it).

With -o every finished point is stored. Ctrl-C ends early; the same command
resumes it. The folder holds sweep.json, sweep.parquet, sweep.svg, and with
--keep-sets sets.parquet.
Keys of a task file: hourglass man tasks.

Examples:
  hourglass sweep --list                          the analyses
  hourglass sweep -o monday                       ten tasks on one CPU
  hourglass sweep -u 0.6:1:0.02 -n 20 -a rm,dm    another range, two analyses
  hourglass sweep -m 4 -n 16 -o tuesday           four CPUs
  hourglass sweep --deadlines share:0.7,1 -a dm,opa,edf-preemptive
  hourglass example experiment                    writes experiment.toml
  hourglass sweep experiment.toml -o wednesday    an experiment from a file
  hourglass sweep tasks.toml -u 0.5:1:0.01        how far can its set be scaled?
  hourglass sweep big.toml --shard 17/2000 -o big one part of 2000, from 0 on
  hourglass merge big -o whole                    all parts: as if done at once")]
pub(crate) struct Sweep {
    /// Experiment or task file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "list")]
    file: Option<PathBuf>,
    /// Output directory, created if missing; an unfinished sweep in it is resumed
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "list")]
    output: Option<PathBuf>,
    /// List the analyses
    #[arg(long)]
    list: bool,
    /// Utilisations of the points: FROM:TO:STEP, or numbers separated by commas
    #[arg(short, long, value_name = "RANGE", allow_negative_numbers = true)]
    utilisations: Option<String>,
    /// Task sets at each point [default: 1000]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    sets: Option<String>,
    /// Tasks in each set [default: 10]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true)]
    tasks: Option<String>,
    /// Number of CPUs [default: 1]
    #[arg(short = 'm', long, value_name = "M", allow_negative_numbers = true)]
    processors: Option<String>,
    /// Distribution of utilisations
    #[arg(short, long, value_name = "NAME")]
    generator: Option<String>,
    /// Bounds on the utilisation of tasks: MIN..MAX, for all or one for each
    #[arg(long, value_name = "BOUNDS")]
    bounds: Option<String>,
    /// Distribution of periods [default: log-uniform:10ms,1s]
    #[arg(long, value_name = "HOW")]
    periods: Option<String>,
    /// Granularity of periods and deadlines [default: 1us]
    #[arg(long, value_name = "TIME")]
    granularity: Option<String>,
    /// Granularity of execution times [default: 1ns]
    #[arg(long, value_name = "TIME")]
    cost_granularity: Option<String>,
    /// Distribution of deadlines [default: implicit]
    #[arg(long, value_name = "HOW")]
    deadlines: Option<String>,
    /// Release jitter as shares of the period: LOW,HIGH [default: 0]
    #[arg(long, value_name = "SHARES")]
    jitter: Option<String>,
    /// Random seed [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<String>,
    /// Analyses, separated by commas
    #[arg(short, long, value_name = "NAMES")]
    analyses: Option<String>,
    /// Keep the answer of each analysis for each set
    #[arg(long)]
    keep_sets: bool,
    /// Do one part of N only, K from 0; -o takes all parts, hourglass merge adds them
    #[arg(long, value_name = "K/N", requires = "output", allow_negative_numbers = true)]
    shard: Option<String>,
    /// Threads [default: one for each CPU]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Lists analyses, or compares them.
///
/// # Errors
/// The experiment cannot be meant, or the folder cannot hold it.
pub(crate) fn sweep(sweep: &Sweep, settings: Settings) -> Result<ExitCode> {
    if sweep.list {
        return list(settings);
    }
    let mut experiment = sweep.experiment()?;
    if let Some(shard) = &sweep.shard {
        experiment.shard = Some(part(shard)?);
        return one_part(sweep, &experiment, settings);
    }
    let mut progress = SetsProgress::new(settings.quiet);
    let folder = sweep.output.as_deref();
    let swept = sweep::run(&experiment, folder, sweep.threads()?, &mut progress)
        .map_err(|error| refused("", &error))?;
    if let Some(folder) = folder {
        draw(&swept.document, folder, settings)?;
    }
    if folder.is_none() || settings.json || !settings.quiet {
        show(&swept.document, settings)?;
    }
    Ok(swept.signal.map_or(ExitCode::SUCCESS, exit::ended_by))
}

/// Does one part, in a folder of its own below the one that was named.
fn one_part(sweep: &Sweep, experiment: &Experiment, settings: Settings) -> Result<ExitCode> {
    let (Some(all), Some(shard)) = (sweep.output.as_deref(), experiment.shard) else {
        return Err(Stop::usage("--shard: the parts need a folder; add -o DIR").into());
    };
    if sweep::is_experiment(all) {
        let text = format!("-o: {} holds an experiment; name a folder for parts", all.display());
        return Err(Stop::usage(text).into());
    }
    if let Err(error) = fs::create_dir(all)
        && !all.is_dir()
    {
        return Err(Stop::usage(format!("-o: {} cannot be made: {error}", all.display())).into());
    }
    let folder = sweep::part_folder(all, shard);
    let mut progress = SetsProgress::new(settings.quiet);
    let swept = sweep::run(experiment, Some(&folder), sweep.threads()?, &mut progress)
        .map_err(|error| refused("", &error))?;
    if settings.json {
        output::json(&swept.document)?;
    } else if !settings.quiet {
        let sets: u64 = swept.document.points.iter().map(|point| point.sets).sum();
        let ((index, of), place) = (shard, all.display());
        messages::say(&format!(
            "wrote {}: part {index} of {of}, {sets} sets; hourglass merge {place} -o OUT adds the parts",
            folder.display()
        ));
    }
    Ok(swept.signal.map_or(ExitCode::SUCCESS, exit::ended_by))
}

/// A part's number, and how many there are.
fn part(text: &str) -> Result<(u64, u64), Stop> {
    let numbers = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((index, of)) if index < of && of <= MOST_PARTS => Ok((index, of)),
        Some((_, of)) if of > MOST_PARTS => {
            Err(Stop::usage(format!("--shard: '{text}' has too many parts; at most {MOST_PARTS}")))
        }
        _ => Err(Stop::usage(format!(
            "--shard: '{text}' is not K/N with K from 0 to N-1; 17/2000, say"
        ))),
    }
}

impl Sweep {
    /// The options by the names of the keys.
    fn given_keys(&self) -> [(&'static str, Option<&str>); 13] {
        [
            ("utilisations", self.utilisations.as_deref()),
            ("sets", self.sets.as_deref()),
            ("tasks", self.tasks.as_deref()),
            ("processors", self.processors.as_deref()),
            ("generator", self.generator.as_deref()),
            ("bounds", self.bounds.as_deref()),
            ("periods", self.periods.as_deref()),
            ("granularity", self.granularity.as_deref()),
            ("cost_granularity", self.cost_granularity.as_deref()),
            ("deadlines", self.deadlines.as_deref()),
            ("jitter", self.jitter.as_deref()),
            ("seed", self.seed.as_deref()),
            ("analyses", self.analyses.as_deref()),
        ]
    }

    /// What the file says, and the options after it.
    fn experiment(&self) -> Result<Experiment, Stop> {
        let (mut draft, mut template) = (ExperimentBuilder::default(), None);
        if let Some(file) = &self.file {
            let place = format!("{}: ", file.display());
            let text = match input::text(file) {
                // All defaults.
                Err(InputError::Empty(_)) => String::new(),
                text => text.map_err(Stop::bad_input)?,
            };
            match SweepFile::read(&text).map_err(|error| refused(&place, &error))? {
                SweepFile::Experiment(found) => draft = *found,
                SweepFile::Tasks(found) => template = Some(*found),
            }
        }
        let said = self.given_keys();
        for (key, value) in said.iter().filter_map(|(key, value)| Some((key, (*value)?))) {
            draft.set(key, value).map_err(|error| refused("--", &error))?;
        }
        if self.keep_sets {
            draft.set("keep_sets", "true").map_err(|error| refused("--", &error))?;
        }
        draft.finish(template).map_err(|error| refused("", &error))
    }

    fn threads(&self) -> Result<usize, Stop> {
        match self.threads {
            Some(threads) if threads == 0 || threads > MOST_THREADS => Err(Stop::usage(format!(
                "--threads: '{threads}' is out of range; take 1 to {MOST_THREADS}"
            ))),
            Some(threads) => Ok(threads),
            None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
        }
    }
}

/// The line about an error.
pub(super) fn refused(place: &str, error: &SweepError) -> Stop {
    if let SweepError::NoThread(_) = error {
        return Stop::machine(vec![error.to_string()]);
    }
    let line = format!("{place}{error}");
    if matches!(error, SweepError::Folder(why) if why.is_full()) {
        return Stop::machine(vec![line]);
    }
    // An option is written with dashes where a key has underscores.
    Stop::usage(match line.strip_prefix("--cost_granularity") {
        Some(rest) => format!("--cost-granularity{rest}"),
        None => line,
    })
}

fn list(settings: Settings) -> Result<ExitCode> {
    if settings.json {
        return Err(Stop::usage("--list: the list is text; leave --json out").into());
    }
    let widest = ANALYSES.iter().map(|analysis| analysis.name.len()).max().unwrap_or(0);
    let line = |analysis: &Analysis| {
        let about = text::wrapped_within(text::NARROW, analysis.about, widest + 2, widest + 2);
        format!("{:<widest$}  {about}\n", analysis.name)
    };
    output::text(&ANALYSES.iter().map(line).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn draw(
    document: &SweepDocument,
    folder: &Path,
    settings: Settings,
) -> Result<(), Stop> {
    let path = folder.join(PICTURE);
    atomic_file::keep("-o", &path, svg::acceptance(document).as_bytes())?;
    messages::wrote(folder, settings.quiet);
    Ok(())
}

pub(super) fn show(document: &SweepDocument, settings: Settings) -> Result<()> {
    output::shown(document, text::sweep, settings)
}
