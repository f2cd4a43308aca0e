//! `model`: the threads of a recorded program as a file of tasks, and what counts alone say of one that runs.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use hourglass_documents::task_model::{ModelDocument, ModelSource};
use hourglass_report::text;
use hourglass_tasks::from_model::model_toml;
use hourglass_time::Span;

use crate::atomic_file;
use crate::exit::{self, Stop};
use crate::lab::watch_process::{self, ProcessSelector, WatchRequest};
use crate::lab::{open_run, task_model};
use crate::messages;
use crate::output;
use crate::settings::Settings;

use super::watch::{length, pause, pid, refusal};

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

With --pid a running program is modelled without root, from the kernel's counts
in /proc alone: utilisation, wakings, the time for which each thread waited for
a CPU, and bounds on the longest execution time from a waking to the next wait.
Counts do not show when a thread was woken. So no thread is a task, the file
(-o) has background threads alone, and the exit code is 4.

Exit codes:
  0    every thread that ran is a task
  2    no run folder, or one without switches (watch without --trace); no such
       process; no place where this user may write the file
  3    no space for the file; this user may not see the process
  4    a thread could not be modelled, as always with --pid; the rest was, and
       is written (where none was, there is no file, nor one from before)
  130  --pid: ended by Ctrl-C; what was counted is printed and written

Examples:
  sudo hourglass watch --comm player --trace -d 30s -o monday
  hourglass model monday                   a table
  hourglass model monday -o player.toml    the file of tasks
  hourglass check player.toml              will every deadline hold?
  hourglass model monday --json            the document (hourglass.model/1)
  hourglass model --pid 1234 -d 10s        what counts alone say, without root")]
pub(crate) struct Model {
    /// A run folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "pid")]
    folder: Option<PathBuf>,
    /// Instead, count what this process does, with all its threads; or a single thread, by its own number
    #[arg(long, value_name = "PID", value_parser = pid, conflicts_with = "folder")]
    pid: Option<u32>,
    /// --pid: duration; without it, until Ctrl-C or the end of the program
    #[arg(short, long, value_name = "TIME", value_parser = length, conflicts_with = "folder")]
    duration: Option<Span>,
    /// --pid: time between two samples, 10ms or more: shorter gives closer bounds
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10ms",
        value_parser = pause,
        conflicts_with = "folder"
    )]
    interval: Span,
    /// Write the file of tasks to this file (TOML)
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// Models, and writes or prints.
///
/// # Errors
/// The folder cannot be read, or the file not be written.
pub(crate) fn model(model: &Model, settings: Settings) -> Result<ExitCode> {
    let (found, signal) = match (&model.folder, model.pid) {
        (Some(folder), _) => (of_folder(folder)?, None),
        (None, Some(pid)) => count(pid, model)?,
        (None, None) => return Err(Stop::usage("give a run folder, or --pid PID").into()),
    };
    let is_written = match &model.output {
        Some(file) => keep("-o", file, &found, settings)?,
        None => true,
    };
    if model.output.is_none() || settings.json {
        output::unless_closed(output::shown(&found, text::task_model, settings))?;
    } else {
        say_unmodelled(&found);
    }
    if model.output.is_some() || settings.json {
        say_warnings(&found, settings);
    }
    found.premises.iter().for_each(|premise| messages::no_verdict(premise, ""));
    if let Some(signal) = signal {
        return Ok(exit::ended_by(signal));
    }
    let is_decided = is_written && found.is_whole();
    Ok(if is_decided { ExitCode::SUCCESS } else { ExitCode::from(exit::UNDECIDED) })
}

fn of_folder(folder: &Path) -> Result<ModelDocument> {
    let run = open_run(folder).map_err(Stop::bad_input)?;
    task_model::of_run(&run).map_err(|error| super::damaged(error.into()))
}

/// Looks at a process until it is time, and the signal that ended it.
fn count(pid: u32, model: &Model) -> Result<(ModelDocument, Option<i32>)> {
    let request = WatchRequest {
        whom: ProcessSelector::Numbers(vec![pid]),
        every: model.interval,
        length: model.duration,
        trace: false,
        model: true,
        folder: None,
        command_line: Vec::new(),
    };
    let finished = watch_process::watch(&request, |_| ControlFlow::Continue(()));
    let finished = finished.map_err(|failure| refusal(failure, "", false))?;
    Ok((finished.model.unwrap_or_default(), finished.signal))
}

/// Writes the file of `watch --tasks`; whether all threads are tasks, and nothing where no file is written, as none is.
///
/// # Errors
/// The folder cannot be read, or the file cannot be written.
pub(super) fn write_tasks(folder: &Path, file: &Path, settings: Settings) -> Result<Option<bool>> {
    let found = of_folder(folder)?;
    let is_written = keep("--tasks", file, &found, settings)?;
    say_unmodelled(&found);
    Ok(is_written.then(|| found.is_whole()))
}

/// Writes the file of tasks; false, and says so, where no thread is one.
fn keep(
    option: &str,
    file: &Path,
    found: &ModelDocument,
    settings: Settings,
) -> Result<bool, Stop> {
    let text = match model_toml(found) {
        Ok(text) => text,
        Err(error) => {
            // What is there is of other threads, and would be taken for these.
            let removed = atomic_file::remove(option, file)?;
            let old = if removed { "; the file that was there is removed" } else { "" };
            messages::say(&format!("{option} {} is not written: {error}{old}", file.display()));
            if !found.never_ran.is_empty() {
                messages::say(&format!("did not run: {}", found.never_ran.join(", ")));
            }
            return Ok(false);
        }
    };
    atomic_file::keep(option, file, text.as_bytes())?;
    messages::wrote(file, settings.quiet);
    Ok(true)
}

/// Says what must be known of the counts, but for broken premises, of which each has a line.
fn say_warnings(found: &ModelDocument, settings: Settings) {
    let is_premise = |id: &String| found.premises.iter().any(|premise| premise.id == *id);
    let others = found.warnings.iter().filter(|warning| !is_premise(&warning.id));
    others.filter(|_| !settings.quiet).for_each(messages::warn);
}

/// Names the threads that are no tasks.
fn say_unmodelled(found: &ModelDocument) {
    if found.source == ModelSource::Counts {
        return messages::say(text::NO_TASK_BY_COUNTS);
    }
    text::unmodelled(found).iter().for_each(|line| messages::say(line));
}
