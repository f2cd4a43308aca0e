//! `show`: prints a run from its folder.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};

use crate::lab;
use crate::messages;
use crate::output::{self, Format, Source};
use crate::settings::Settings;
use crate::stop::Stop;

/// Print a run again from the folder in which it was kept
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  hourglass show monday              the summary, as after the run
  hourglass show monday | head       the lines for scripts, as from the run
  hourglass show monday --json       the run document (hourglass.run/1)

The lines are those of the run, byte for byte. Only if the folder has no
latency.parquet do those of latencies come from a histogram: sorted and to three
digits.")]
pub(crate) struct Show {
    /// Folder that `run -o` wrote
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Print the lines for scripts also on a terminal
    #[arg(long)]
    records: bool,
    /// Print each record also in cycles of the raw counter; implies --records
    #[arg(short)]
    cycles: bool,
}

/// Prints a run.
///
/// # Errors
/// The folder holds none, or cannot be read.
pub(crate) fn show(show: &Show, settings: Settings) -> Result<ExitCode> {
    let mut recalled = lab::recall(&show.folder).map_err(|error| Stop::usage(error.to_string()))?;
    let format = Format::choose(settings.json, show.records, show.cycles)?;
    if !matches!(format, Format::Lines { .. }) {
        recalled.find_causes();
        recalled.infer();
    }
    if !settings.quiet && format != Format::Summary {
        recalled.document().result.warnings.iter().for_each(messages::warn);
    }
    output::print(&mut recalled, format).map_err(super::damaged)?;
    Ok(ExitCode::SUCCESS)
}
