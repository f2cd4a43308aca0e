//! `predict`: what theory says of a set of tasks, and what happens when it runs here.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use hourglass_documents::CpuSet;
use hourglass_documents::predict::AgainstFacts;
use hourglass_documents::task_model::ModelDocument;
use hourglass_report::text;
use hourglass_time::Span;

use crate::commands::run;
use crate::exit::{self, NO, Stop};
use crate::lab::task_input as input;
use crate::lab::theory::predict::{self, PredictError, PredictRequest, RunRequest};
use crate::lab::workload_file;
use crate::lab::{open_run, task_model};
use crate::messages;
use crate::output;
use crate::progress::Progress;
use crate::settings::Settings;

/// Put bounds, simulation and a real run of the same tasks side by side, and explain differences
#[derive(Args, Debug)]
#[command(after_help = "\
Tasks run as threads of their priorities, on their CPUs, woken by their timers, with the phases
and locks of an rt-app file. The processor time of a job is that of its thread's own intervals.
Where a job takes longer than its bound, the analysis is repeated with what was measured: late
timers as release jitter, busy waiting as execution time, what others take as one more task.
Exit code 0: every deadline held, and the analysis says that it always will; 1: some did not, or
need not; 2: the file cannot be read or run; 3: the machine refuses a privilege; 4: they need
not only because a wcet is an upper bound (wcet_at_least). With --against,
0: every bound held; 1: one did not; 4: the record does not show one, or an assumption failed.
Keys of the file: hourglass man tasks, the most frequent hourglass check --help.

Examples:
  hourglass example tasks                       writes tasks.toml
  hourglass predict tasks.toml                  run them for 10 s, and compare
  hourglass predict tasks.toml --no-run         bounds and simulation only
  hourglass predict video.json -d 1m -o monday  a file of rt-app; store the run
  hourglass predict player.toml --against monday    do bounds hold in a record of watch --trace?
  hourglass predict tasks.toml --json           the document (hourglass.predict/1)")]
pub(crate) struct Predict {
    /// File of tasks (TOML, JSON, rt-app), or a run folder
    #[arg(value_name = "TASKS", value_hint = ValueHint::AnyPath)]
    file: PathBuf,
    /// Analyse and simulate only
    #[arg(long)]
    no_run: bool,
    /// Run nothing: hold each bound against what the threads of these names did in a run folder, such as of
    /// watch --trace
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(conflicts_with_all = ["no_run", "duration", "cpu", "jitter", "best_effort", "output"])]
    against: Option<PathBuf>,
    /// How long to run the tasks
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = positive)]
    #[arg(conflicts_with = "no_run")]
    duration: Span,
    /// CPUs for tasks of a file that names none [default: 0]
    #[arg(long, value_name = "CPUS", value_parser = cpus, conflicts_with = "no_run")]
    cpu: Option<CpuSet>,
    /// Delay each release by a random part of its task's jitter
    #[arg(long, conflicts_with = "no_run")]
    jitter: bool,
    /// Run without a priority that the machine refuses
    #[arg(long, conflicts_with = "no_run")]
    best_effort: bool,
    /// Virtual time to simulate [default: as the tasks suggest]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    horizon: Option<Span>,
    /// Random seed
    #[arg(long, value_name = "N", default_value = "0", value_parser = workload_file::read_seed)]
    seed: u64,
    /// Keep the run in this folder, which must not exist
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(conflicts_with = "no_run")]
    output: Option<PathBuf>,
}

fn positive(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if span.is_positive() { Ok(span) } else { Err("give a time above zero".to_owned()) }
}

fn cpus(text: &str) -> Result<CpuSet, String> {
    let wanted: CpuSet = text.parse().map_err(|error| format!("{error}"))?;
    let online = workload_file::online_cpus();
    workload_file::check_cpus(&wanted, online.as_ref()).map_err(|error| error.to_string())?;
    Ok(wanted)
}

/// Predicts, runs and prints.
///
/// # Errors
/// The file cannot be read or run, or the machine refuses what the run needs.
pub(crate) fn predict(predict: &Predict, settings: Settings) -> Result<ExitCode> {
    let input = input::read(&predict.file, None).map_err(Stop::bad_input)?;
    let input = input.on(predict.cpu.as_ref());
    let record = predict.against.as_deref().map(recorded).transpose()?;
    let set = input.set.clone();
    let request = PredictRequest {
        set: input.set,
        name: predict.file.display().to_string(),
        notes: input.notes,
        run: (!predict.no_run && record.is_none()).then(|| run_request(predict)),
        seed: predict.seed,
        horizon: predict.horizon,
    };
    // Warnings stand in the document and below the table.
    let mut progress = Progress::new(settings.quiet, true);
    let mut predicted = predict::predict(request, &mut progress).map_err(|error| match error {
        PredictError::Plan(error) => Stop::usage(format!("{}: {error}", predict.file.display())),
        PredictError::Run(failure) => run::refusal(failure),
    })?;
    if let Some((folder, model)) = record {
        predict::hold_against(&mut predicted.document, &set, &model, folder);
    }
    output::shown(&predicted.document, text::predict, settings)?;
    if let Some(AgainstFacts { broken, unknown, .. }) = &predicted.document.against {
        let failed = predicted.document.assumptions.iter().any(|row| row.held == Some(false));
        return Ok(ExitCode::from(match (broken, unknown) {
            (1.., _) => NO,
            (0, 0) if !failed => exit::YES,
            _ => exit::UNDECIDED,
        }));
    }
    if let Some(reason) = &predicted.not_kept {
        return Err(Stop::machine(vec![format!("-o: {reason}")]).into());
    }
    let folder = predicted.document.run.as_ref().and_then(|run| run.folder.as_ref());
    if let Some(folder) = folder.filter(|_| !settings.quiet) {
        messages::say(&format!("wrote {folder}"));
    }
    Ok(match predicted.signal {
        Some(signal) => exit::ended_by(signal),
        None if predicted.holds() => ExitCode::SUCCESS,
        None if predicted.is_undecided() => ExitCode::from(exit::UNDECIDED),
        None => ExitCode::from(NO),
    })
}

/// The model of a run folder, and its name.
fn recorded(folder: &Path) -> Result<(String, ModelDocument)> {
    let run = open_run(folder).map_err(Stop::bad_input)?;
    let model = task_model::of_run(&run).map_err(|error| super::damaged(error.into()))?;
    Ok((folder.display().to_string(), model))
}

fn run_request(predict: &Predict) -> RunRequest {
    RunRequest {
        cpus: predict.cpu.clone(),
        draws_jitter: predict.jitter,
        best_effort: predict.best_effort,
        folder: predict.output.clone(),
        command_line: std::env::args().collect(),
        ..RunRequest::with_duration(predict.duration)
    }
}
