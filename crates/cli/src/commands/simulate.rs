//! `simulate`: a set of tasks on virtual time.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum, ValueHint};
use hourglass_documents::simulation::SimulationDocument;
use hourglass_report::text;
use hourglass_tasks::Fraction;
use hourglass_time::Span;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::batch::{self, FileResult, Form};
use crate::exit::{self, NO, Stop, UNDECIDED, YES};
use crate::lab::sim::{OverrunPolicy, Throttling, smt};
use crate::lab::task_input as input;
use crate::lab::theory::simulate::{
    self as simulation, Releases, SimulationFailure, SimulationObserver, SimulationRequest,
};
use crate::output;
use crate::settings::Settings;

/// Simulate a set of tasks on virtual time: response times and missed deadlines, exactly
#[derive(Args, Debug)]
#[command(after_help = "\
Without --horizon a simulation goes on until everything repeats (the hyperperiod,
with offsets twice that), if that takes at most a million jobs and nothing is
drawn or taken in turns; else as long as a million jobs take, a day at most. At
most 10 000 tasks are simulated; a file may say its own horizon. Without -o and
--smt, a simulation keeps statistics only and is several times as fast.

A job is hit, missed (started, not finished in time) or lost (never started,
because an earlier one was still running). Jobs whose deadline lies beyond the
horizon do not count. A simulation without a miss proves nothing for other
phases and execution times: hourglass check does.

With --smt, real-time tasks of a core share its first CPU, and threads without a
deadline run on the others as the policy lets them (Inoue et al., 2006); older
names are in parentheses:
  ignore   always (unaware)
  disable  never while a real-time job runs on the core (disabling)
  monitor  until the slack of the real-time jobs is used up (slack)
The file says which CPUs share a core (machine.cores) and how much they slow each
other down (interference).

Exit codes:
  0    no deadline was missed
  1    some deadline was missed
  2    wrong usage, a file that cannot be read, tasks that cannot be simulated
  4    some deadline was missed, and none with wcet_at_least: nothing is known
  130  ended by Ctrl-C; what was simulated is printed and stored
With several files the worst of them counts, and an error in one does not stop
the others; --json prints one document of all (hourglass.batch/1).
Keys of a file: hourglass man tasks, the most frequent hourglass check --help.

Examples:
  hourglass example tasks && hourglass simulate tasks.toml
  hourglass simulate tasks.toml --horizon 60s --releases random --seed 7
  hourglass simulate tasks.toml -o monday && hourglass render monday -o monday.svg
  hourglass simulate tasks.toml --rt-throttling 950ms/1s
  hourglass simulate smt.toml --smt monitor --alpha 1/2 --margin 10us
  hourglass simulate sets/*.toml --jsonl  a line of JSON for each file
  hourglass simulate tasks.toml --json    the document (hourglass.simulate/1)")]
pub(crate) struct Simulate {
    /// Files of tasks (TOML, JSON, rt-app's JSON), or folders of runs
    #[arg(value_name = "TASKS", value_hint = ValueHint::AnyPath, required = true)]
    files: Vec<PathBuf>,
    /// Print one line of JSON for each file
    #[arg(long)]
    jsonl: bool,
    /// How long to simulate
    #[arg(long, value_name = "TIME", value_parser = str::parse::<Span>)]
    #[arg(allow_hyphen_values = true)]
    horizon: Option<Span>,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// When jobs are released: critical (the longest jitter first, all together), nominal (at the
    /// arrival), random (within the jitter; sporadic ones up to a period later)
    #[arg(long, value_name = "HOW", default_value = "critical")]
    #[arg(value_parser = PossibleValuesParser::new(Releases::ALL.map(|(name, _)| name)))]
    releases: String,
    /// What happens to a job that is released while an earlier one runs
    #[arg(long, value_enum, value_name = "HOW", default_value = "queue", alias = "late")]
    on_overrun: LateArg,
    /// Limit on fixed priorities on each CPU, as the kernel's default 950ms/1s
    #[arg(long, value_name = "RUNTIME/PERIOD", value_parser = throttling)]
    rt_throttling: Option<Throttling>,
    /// Policy for the sibling CPUs of a core with real-time tasks
    #[arg(long, value_enum, value_name = "POLICY")]
    smt: Option<SmtAsked>,
    /// monitor: guaranteed minimum rate of progress while co-runners run, below 1
    /// [default: 0]
    #[arg(long, value_name = "FRACTION", value_parser = alpha)]
    alpha: Option<smt::ProgressRate>,
    /// monitor: co-runners stop when no more slack than this remains [default: 10us]
    #[arg(long, value_name = "TIME", value_parser = not_negative)]
    margin: Option<u64>,
    /// monitor: time that stopping co-runners takes [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = not_negative)]
    stop_latency: Option<u64>,
    /// monitor: time between two checks of the slack [default: as the slack allows]
    #[arg(long, value_name = "TIME", value_parser = above_zero)]
    interval: Option<u64>,
    /// monitor: source of progress: counted by the scheduler, or reported:STEPS by the program
    /// (also word:STEPS) [default: counted]
    #[arg(long, value_name = "HOW", value_parser = progress)]
    progress: Option<smt::ProgressModel>,
    /// Store the simulation in this folder, which must not exist
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,
    /// Intervals that the folder has room for
    #[arg(long, value_name = "N", default_value_t = simulation::DEFAULT_RECORDS)]
    records: u64,
}

/// What becomes of late jobs.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LateArg {
    /// It waits for its turn
    Queue,
    /// It never starts: it is lost, as with the threads of hourglass run
    Skip,
}

/// The policies of the SMT paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SmtAsked {
    /// Nothing
    #[value(alias = "unaware")]
    Ignore,
    /// They are idle
    #[value(alias = "disabling")]
    Disable,
    /// They run while slack lasts
    #[value(alias = "slack")]
    Monitor,
}

fn throttling(text: &str) -> Result<Throttling, String> {
    let (runtime, period) = text.split_once('/').ok_or("write RUNTIME/PERIOD, as in 950ms/1s")?;
    Ok(Throttling { runtime: not_negative(runtime)?, period: above_zero(period)? })
}

fn alpha(text: &str) -> Result<smt::ProgressRate, String> {
    let fraction: Fraction = text.parse().map_err(|error| format!("{error}"))?;
    smt::ProgressRate::new(fraction.numerator(), fraction.denominator())
        .ok_or_else(|| "it must be below 1: co-runners without a cost need no policy".to_owned())
}

fn not_negative(text: &str) -> Result<u64, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    u64::try_from(span.nanos()).map_err(|_| "it must not be negative".to_owned())
}

fn above_zero(text: &str) -> Result<u64, String> {
    match not_negative(text)? {
        0 => Err("it must be above zero".to_owned()),
        ns => Ok(ns),
    }
}

fn progress(text: &str) -> Result<smt::ProgressModel, String> {
    let steps = match text.split_once(':') {
        None if text == "counted" => return Ok(smt::ProgressModel::Counted),
        Some(("reported" | "word", steps)) => steps.parse::<u32>().ok().filter(|steps| *steps > 0),
        _ => None,
    };
    steps
        .map(smt::ProgressModel::Reported)
        .ok_or_else(|| "write counted, or reported:STEPS as in reported:256".to_owned())
}

/// Simulates and prints.
///
/// # Errors
/// The tasks cannot be read or simulated, or the folder cannot be made.
pub(crate) fn simulate(asked: &Simulate, settings: Settings) -> Result<ExitCode> {
    if asked.files.len() > 1 && asked.output.is_some() {
        return Err(Stop::usage("-o: a folder keeps one simulation; name one file").into());
    }
    let form = Form { command: "simulate", lines: asked.jsonl, settings };
    batch::each(&asked.files, form, |file| {
        // With several files, who reads must know which one is meant.
        let several = asked.files.len() > 1;
        simulate_file(asked, file, settings)
            .map_err(|stop| stop.about(several.then_some(file)).into())
    })
}

fn simulate_file(
    asked: &Simulate,
    file: &Path,
    settings: Settings,
) -> Result<FileResult<SimulationDocument>, Stop> {
    let request = request(asked, file)?;
    let mut progress = Progress::new(settings.quiet);
    let simulated = simulation::simulate(&request, &mut progress).map_err(refusal)?;
    progress.ended();
    let kept = super::say_kept(simulated.folder.as_ref(), "the simulation", settings.quiet);
    Ok(FileResult {
        text: text::simulation(&simulated.document, output::style()),
        exit_code: match simulated.signal {
            Some(signal) => exit::code_of(signal),
            None if simulated.undecided => UNDECIDED,
            None if simulated.document.failed() > 0 => NO,
            None => YES,
        },
        failed: kept.err(),
        document: simulated.document,
    })
}

fn request(asked: &Simulate, file: &Path) -> Result<SimulationRequest, Stop> {
    let input = input::read(file, None).map_err(Stop::bad_input)?;
    let releases = Releases::ALL.iter().find(|(name, _)| *name == asked.releases);
    Ok(SimulationRequest {
        notes: input.notes,
        horizon: asked.horizon,
        seed: asked.seed,
        releases: releases.map_or(Releases::default(), |(_, releases)| *releases),
        late: match asked.on_overrun {
            LateArg::Queue => OverrunPolicy::Queue,
            LateArg::Skip => OverrunPolicy::Skip,
        },
        throttling: asked.rt_throttling,
        smt: policy(asked)?,
        folder: asked.output.clone(),
        records: asked.records,
        command_line: std::env::args().collect(),
        ..SimulationRequest::new(input.set)
    })
}

/// The policy of shared cores. What belongs to one of them is not taken for another.
fn policy(asked: &Simulate) -> Result<Option<smt::SmtPolicy>, Stop> {
    let options = [
        ("--alpha", asked.alpha.is_some()),
        ("--margin", asked.margin.is_some()),
        ("--stop-latency", asked.stop_latency.is_some()),
        ("--interval", asked.interval.is_some()),
        ("--progress", asked.progress.is_some()),
    ];
    let given = options.into_iter().find(|(_, given)| *given);
    if let Some((option, _)) = given.filter(|_| asked.smt != Some(SmtAsked::Monitor)) {
        return Err(Stop::usage(format!(
            "{option} belongs to --smt monitor; add that, or drop it"
        )));
    }
    let usual = smt::Monitoring::default();
    Ok(asked.smt.map(|policy| match policy {
        SmtAsked::Ignore => smt::SmtPolicy::Ignore,
        SmtAsked::Disable => smt::SmtPolicy::Disable,
        SmtAsked::Monitor => smt::SmtPolicy::Monitor(smt::Monitoring {
            alpha: asked.alpha.unwrap_or(usual.alpha),
            margin: asked.margin.unwrap_or(usual.margin),
            latency: asked.stop_latency.unwrap_or(usual.latency),
            check: asked.interval.map_or(usual.check, smt::SlackCheck::Fixed),
            progress: asked.progress.unwrap_or(usual.progress),
        }),
    }))
}

fn refusal(failure: SimulationFailure) -> Stop {
    match failure {
        SimulationFailure::Folder(why) => super::run::no_folder(&why),
        failure => Stop::usage(failure.to_string()),
    }
}

/// A simulation that takes longer than this shows how far it is.
const PATIENCE: Duration = Duration::from_millis(500);

/// The bar counts thousandths of the horizon.
const STEPS: u64 = 1_000;

/// How far a simulation is, on stderr, if that is a terminal and may be written to.
struct Progress {
    shows: bool,
    began: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    fn new(quiet: bool) -> Progress {
        let shows = !quiet && io::stderr().is_terminal();
        Progress { shows, began: Instant::now(), bar: None }
    }

    fn ended(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl SimulationObserver for Progress {
    fn reached(&mut self, simulated: u64, horizon: u64) {
        if !self.shows || self.began.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let target = ProgressDrawTarget::stderr();
            let bar = ProgressBar::with_draw_target(Some(STEPS), target);
            match ProgressStyle::with_template("simulating {bar:40} {percent} %, {eta} left") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        let done = u128::from(simulated) * u128::from(STEPS) / u128::from(horizon.max(1));
        bar.set_position(u64::try_from(done).unwrap_or(STEPS));
    }
}
