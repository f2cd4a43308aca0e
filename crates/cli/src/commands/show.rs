//! `show`: prints a run from its folder.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use hourglass_documents::document::RunDocument;
use hourglass_report::text;

use crate::exit::Stop;
use crate::lab;
use crate::messages;
use crate::output::{self, Format, OutputOptions, Source};
use crate::settings::Settings;

/// Print a stored run: on a terminal its summary, into a pipe its records
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  hourglass show monday              the summary, as after the run
  hourglass show monday | head       the lines for scripts, as from the run
  hourglass show monday --summary | less
  hourglass show monday --json       the run document (hourglass.run/1)
  hourglass show monday tuesday      both summaries, one below the other

The lines are those of the run, byte for byte. Only if the folder has no
latency.parquet do those of latencies come from a histogram: sorted and to three
digits.")]
pub(crate) struct ShowArgs {
    /// Folders that `run -o` wrote; --records and --json take one
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required = true)]
    folders: Vec<PathBuf>,
    /// Print the record lines also on a terminal
    #[arg(long)]
    records: bool,
    /// Print the summary also to a pipe or a file
    #[arg(long)]
    summary: bool,
    /// Print each record also in cycles of the raw counter; implies --records
    #[arg(short)]
    cycles: bool,
}

/// Prints runs.
///
/// # Errors
/// A folder holds none, or cannot be read; then nothing is printed of any.
pub(crate) fn show(show: &ShowArgs, settings: Settings) -> Result<ExitCode> {
    let format = Format::choose(OutputOptions {
        json: settings.json,
        records: show.records,
        cycles: show.cycles,
        summary: show.summary,
        kept_quietly: false,
    })?;
    let several = show.folders.len() > 1;
    if several && format != Format::Summary {
        let what = if format == Format::Json { "--json" } else { "lines" };
        return Err(
            Stop::usage(format!("{what}: of one run only; give one folder, or --summary")).into()
        );
    }
    let open_run = |folder: &PathBuf| lab::open_run(folder).map_err(Stop::bad_input);
    let runs = show.folders.iter().map(open_run).collect::<Result<Vec<_>, _>>()?;
    for (number, (mut recalled, folder)) in runs.into_iter().zip(&show.folders).enumerate() {
        if several {
            let gap = if number > 0 { "\n" } else { "" };
            output::unless_closed(output::text(&format!("{gap}{}\n\n", folder.display())))?;
        }
        // Lines are of records, of which some folders have none.
        let asked = show.records || show.cycles;
        let format = match format {
            Format::Lines { .. } if !asked && has_no_records(recalled.document()) => {
                Format::Summary
            }
            format => format,
        };
        if !matches!(format, Format::Lines { .. }) {
            recalled.find_causes();
            recalled.infer();
        }
        if format != Format::Summary {
            let broken = text::broken(&recalled.document().result);
            broken.for_each(|premise| messages::no_verdict(premise, ""));
        }
        if !settings.quiet && format != Format::Summary {
            recalled.document().result.warnings.iter().for_each(messages::warn);
        }
        output::print(&mut recalled, format).map_err(super::damaged)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Of a reservation, or of threads that were watched without the kernel's trace.
fn has_no_records(document: &RunDocument) -> bool {
    let result = &document.result;
    result.reservation.is_some() || result.watched.is_some() && document.manifest.kernel.is_none()
}
