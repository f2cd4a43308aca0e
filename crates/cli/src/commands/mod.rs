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
pub(crate) mod paper;
pub(crate) mod predict;
pub(crate) mod render;
pub(crate) mod report;
pub(crate) mod reserve;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod simulate;
pub(crate) mod sweep;
pub(crate) mod watch;

use anyhow::Result;

use crate::exit::Stop;
use crate::lab;
use crate::settings::Settings;

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
