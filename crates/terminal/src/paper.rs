//! The options of `hourglass paper`. `hourglass` describes them in its completions and manual pages and hands the words on;
//! `hourglass-paper` reads them.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::settings::Settings;

/// The program that measures.
pub const PROGRAM: &str = "hourglass-paper";

/// Measure a paper's tables on this machine and show them beside the paper's numbers
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  hourglass paper --list                      the papers and their tables
  hourglass paper highpertimer --quick        all tables of one, in seconds
  hourglass paper highpertimer -o figures     measure more, draw the figures
  hourglass paper highpertimer --table 2.1    one table
  hourglass paper highpertimer --json         the document (hourglass.paper/1)
  hourglass paper hrtimers                    half an hour: all its loops

Ctrl-C ends the measurement; tables that are complete are printed, and drawn.")]
pub struct PaperArgs {
    /// Name of the paper, from the list
    #[arg(value_name = "NAME", required_unless_present = "list", conflicts_with = "list")]
    pub name: Option<String>,
    /// List the papers and their tables
    #[arg(long)]
    pub list: bool,
    /// Measure for seconds instead of minutes
    #[arg(long, conflicts_with = "list")]
    pub quick: bool,
    /// Measure only this table; may be repeated
    #[arg(long = "table", value_name = "ID", conflicts_with = "list")]
    pub tables: Vec<String>,
    /// Output directory for the figures, created if missing; figures in it are replaced
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "list")]
    pub output: Option<PathBuf>,
}

/// The command line of the program, whose help shows it as a command of `hourglass`.
#[must_use]
pub fn command() -> clap::Command {
    let command = clap::Command::new(PROGRAM).bin_name("hourglass paper").max_term_width(100);
    PaperArgs::augment_args(Settings::augment_args(command))
}
