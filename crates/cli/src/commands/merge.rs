//! `merge`: the parts of an experiment, or the runs of many nodes, put together.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use hourglass_documents::merged::FleetDocument;
use hourglass_report::text;

use super::sweep::{draw, refused, show};
use crate::exit::Stop;
use crate::lab::fleet::{self, FleetError};
use crate::lab::sweep;
use crate::messages;
use crate::output;
use crate::settings::Settings;

/// Put the parts of an experiment together, or the runs of many nodes.
#[derive(Args, Debug)]
#[command(after_help = "\
Each DIR is a folder of one of these kinds, or has such folders in it:

- a part that hourglass sweep --shard made. All parts have to be there, each
  once, finished, and of one experiment. What is written is what hourglass sweep
  would have written that did the whole experiment, byte for byte.
- what hourglass run, noise or latency wrote with -o, or what merge made of
  those. Each run has to be there once, finished, and all of one measurement.
  histogram.parquet has a row for each step of each histogram: run, node,
  thread, metric (gap, latency), cause, lo_ns, hi_ns, count, with the steps of
  HdrHistogram at three digits, from lo_ns to below hi_ns. merged.json has counts,
  sums, and maxima with their place. Neither depends on the order of the folders.
  hourglass report OUT shows the nodes.

Else nothing is written. A node is called what HOURGLASS_NODE said when it was
measured, or by its host name.

Examples:
  hourglass sweep big.toml --shard 0/2 -o parts   on one machine
  hourglass sweep big.toml --shard 1/2 -o parts   on another one
  hourglass merge parts -o whole                  sweep.json, sweep.parquet, sweep.svg
  sbatch --array=0-1999 --wrap 'hourglass sweep big.toml --shard \
    $SLURM_ARRAY_TASK_ID/2000 -o parts'           with Slurm
  srun -N 64 sh -c 'hourglass noise -D10s -o \
    runs/$(hostname)'                             the noise of 64 nodes
  hourglass merge runs -o fleet                   one table of all")]
pub(crate) struct Merge {
    /// Folders with parts, or with runs
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    folders: Vec<PathBuf>,
    /// Output directory; of parts it may be there
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::DirPath)]
    output: PathBuf,
}

/// Puts them together, and shows the result.
///
/// # Errors
/// Parts that do not make a whole, runs that do not belong together; the folder cannot be written.
pub(crate) fn merge(merge: &Merge, settings: Settings) -> Result<ExitCode> {
    if merge.folders.iter().any(|folder| fleet::holds_runs(folder)) {
        return runs(merge, settings);
    }
    let merged =
        sweep::merge(&merge.folders, &merge.output).map_err(|error| refused("", &error))?;
    draw(&merged.document, &merge.output, settings)?;
    show(&merged.document, settings)?;
    Ok(ExitCode::SUCCESS)
}

fn runs(merge: &Merge, settings: Settings) -> Result<ExitCode> {
    fleet::merge(&merge.folders, &merge.output).map_err(refusal)?;
    messages::wrote(&merge.output, settings.quiet);
    show_fleet(&merge.output, settings)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints runs that were put together, node by node.
///
/// # Errors
/// The folder cannot be read; printing fails.
pub(super) fn show_fleet(folder: &Path, settings: Settings) -> Result<()> {
    let document: FleetDocument = fleet::summary(folder).map_err(refusal)?;
    output::shown(&document, text::fleet, settings)
}

fn refusal(error: FleetError) -> Stop {
    match error.is_of_machine() {
        true => Stop::machine(vec![error.to_string()]),
        false => Stop::usage(error.to_string()),
    }
}
