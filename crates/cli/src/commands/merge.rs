//! `merge`: the parts of an experiment, put together.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};

use super::sweep::{draw, refused, show};
use crate::lab::sweep;
use crate::settings::Settings;

/// Put the parts of an experiment together that hourglass sweep --shard made.
#[derive(Args, Debug)]
#[command(after_help = "\
Each DIR is the folder of a part, or one with such folders in it. All parts have
to be there, each once, finished, and of one experiment; else nothing is
written. What is written is what hourglass sweep would have written that did
the whole experiment, byte for byte.

Examples:
  hourglass sweep big.toml --shard 0/2 -o parts   on one machine
  hourglass sweep big.toml --shard 1/2 -o parts   on another one
  hourglass merge parts -o whole                  sweep.json, sweep.parquet, sweep.svg
  sbatch --array=0-1999 --wrap 'hourglass sweep big.toml --shard \
    $SLURM_ARRAY_TASK_ID/2000 -o parts'           with Slurm")]
pub(crate) struct Merge {
    /// Folders with parts
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    folders: Vec<PathBuf>,
    /// Output directory, created if missing
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::DirPath)]
    output: PathBuf,
}

/// Puts them together, and shows the result.
///
/// # Errors
/// Parts that do not make a whole; the folder cannot be written.
pub(crate) fn merge(merge: &Merge, settings: Settings) -> Result<ExitCode> {
    let merged =
        sweep::merge(&merge.folders, &merge.output).map_err(|error| refused("", &error))?;
    draw(&merged.document, &merge.output, settings)?;
    show(&merged.document, settings)?;
    Ok(ExitCode::SUCCESS)
}
