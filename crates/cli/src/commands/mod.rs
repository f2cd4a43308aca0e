//! The commands, one each.

pub(crate) mod baseline;
pub(crate) mod batch;
pub(crate) mod cache_cost;
pub(crate) mod check;
pub(crate) mod clocks;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod example;
pub(crate) mod export;
mod loaded_run;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod model;
pub(crate) mod paper;
pub(crate) mod predict;
pub(crate) mod render;
pub(crate) mod report;
pub(crate) mod reserve;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod simulate;
pub(crate) mod sweep;
mod task_file;
pub(crate) mod watch;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::atomic_file;
use crate::exit::Stop;
use crate::lab::{self, WriteError};
use crate::messages;
use crate::output;
use crate::settings::Settings;

/// Says where `what` was kept.
///
/// # Errors
/// It could not be kept.
pub(crate) fn say_kept(
    folder: Option<&Result<PathBuf, WriteError>>,
    what: &str,
    quiet: bool,
) -> Result<(), Stop> {
    match folder {
        Some(Ok(folder)) => messages::wrote(folder, quiet),
        Some(Err(error @ WriteError::Whole { path, .. })) => {
            messages::say(&format!("warning: {error}"));
            messages::wrote(path, quiet);
        }
        Some(Err(error)) => {
            return Err(Stop::machine(vec![format!("-o: {}", error.said_of(what))]));
        }
        None => {}
    }
    Ok(())
}

/// Writes what `command` makes, a page or a picture, to the file of `-o`, and prints the `document` about it; `-` is stdout.
fn write_output(
    (command, what): (&str, &str),
    path: &Path,
    content: &[u8],
    document: &Value,
    settings: Settings,
) -> Result<ExitCode> {
    if path.as_os_str() == "-" {
        no_json(&format!("{command} -o -"), what, settings)?;
        io::stdout().lock().write_all(content).context("cannot write to stdout")?;
        return Ok(ExitCode::SUCCESS);
    }
    atomic_file::keep("-o", path, content)?;
    match settings.json {
        true => output::json(document)?,
        false => messages::wrote(path, settings.quiet),
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses `--json` for a command whose output is a format of its own.
fn no_json(command: &str, prints: &str, settings: Settings) -> Result<()> {
    if settings.json {
        return Err(Stop::usage(format!("--json: {command} prints {prints}, not JSON")).into());
    }
    Ok(())
}

/// A folder that turns out to be damaged while it is read is bad input like any other.
pub(crate) fn damaged(error: anyhow::Error) -> anyhow::Error {
    if error.is::<lab::TraceError>() || error.is::<lab::LatencyError>() {
        return Stop::usage(error.to_string()).into();
    }
    error
}
