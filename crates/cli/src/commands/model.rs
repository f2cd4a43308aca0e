//! `model`: the threads of a recorded program as a file of tasks.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use hourglass_documents::task_model::ModelDocument;
use hourglass_report::text;
use hourglass_tasks::from_model::model_toml;

use crate::atomic_file;
use crate::exit::{self, Stop};
use crate::lab::{open_run, task_model};
use crate::messages;
use crate::output;
use crate::settings::Settings;

/// Model the threads of a recorded program as tasks, for check, simulate and predict
#[derive(Args, Debug)]
#[command(after_help = "\
DIR is a folder of hourglass watch --trace -o DIR, or of hourglass run -o DIR.
Each thread becomes a task: periodic with jitter, sporadic with a shortest
distance, or with bursts where neither fits; its longest execution time, the
waits within its jobs where they can be told apart, policy, CPUs, and the thread
that activates it. Comments in the file say what each was seen on.

What was seen is no bound: a longer job may come. A thread that is no task, as
one with less than 20 jobs, becomes a background thread, so that check has no
verdict for those below it.

Exit codes:
  0    every thread that ran is a task
  2    no run folder
  3    the file cannot be written
  4    a thread could not be modelled; the rest was, and is written
       (no file where none was)

Examples:
  sudo hourglass watch --comm player --trace -d 30s -o monday
  hourglass model monday                   a table
  hourglass model monday -o player.toml    the file of tasks
  hourglass check player.toml              will every deadline hold?
  hourglass model monday --json            the document (hourglass.model/1)")]
pub(crate) struct Model {
    /// A run folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Write the file of tasks to this file (TOML)
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// Models, and writes or prints.
///
/// # Errors
/// The folder cannot be read, or the file not be written.
pub(crate) fn model(model: &Model, settings: Settings) -> Result<ExitCode> {
    let run = open_run(&model.folder).map_err(Stop::bad_input)?;
    let found = task_model::of_run(&run).map_err(|error| super::damaged(error.into()))?;
    if let Some(file) = &model.output {
        keep("-o", file, &found, settings)?;
    }
    if model.output.is_none() || settings.json {
        output::unless_closed(output::shown(&found, text::task_model, settings))?;
    } else {
        say_unmodelled(&found);
    }
    Ok(if found.is_whole() { ExitCode::SUCCESS } else { ExitCode::from(exit::UNDECIDED) })
}

/// Writes the file of `watch --tasks`; whether all threads are tasks.
///
/// # Errors
/// The folder cannot be read, no thread is a task, or the file cannot be written.
pub(super) fn write_tasks(folder: &Path, file: &Path, settings: Settings) -> Result<bool> {
    let run = open_run(folder).map_err(Stop::bad_input)?;
    let found = task_model::of_run(&run).map_err(|error| super::damaged(error.into()))?;
    keep("--tasks", file, &found, settings)?;
    say_unmodelled(&found);
    Ok(found.is_whole())
}

fn keep(option: &str, file: &Path, found: &ModelDocument, settings: Settings) -> Result<(), Stop> {
    let nothing = |error| {
        let line = format!("{option} {} is not written: {error}", file.display());
        Stop::with(exit::UNDECIDED, vec![line])
    };
    let text = model_toml(found).map_err(nothing)?;
    atomic_file::keep(option, file, text.as_bytes())?;
    messages::wrote(file, settings.quiet);
    Ok(())
}

/// Names the threads that are no tasks.
fn say_unmodelled(found: &ModelDocument) {
    for (thread, why) in found.unmodelled() {
        messages::say(&format!("{}: no task: {why}", thread.name));
    }
}
