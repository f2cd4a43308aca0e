//! `clocks`: what can tell the time on this machine, and what speaks for it.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use hourglass_report::text::{self, Style};

use crate::lab::{self, ClockPolicy};
use crate::output;
use crate::settings::Settings;
use crate::stop::Stop;

/// Show this machine's clocks: which can be trusted, why, and what a read costs
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  hourglass clocks                   the table, and the evidence for the clock chosen
  hourglass clocks --evidence        the evidence for every clock
  hourglass clocks --verify          all CPUs against each other, for some seconds
  hourglass clocks --policy thesis   the choice by the rule of Fedotova's thesis (2012)
  hourglass clocks --json            the document (hourglass.clocks/1)")]
pub(crate) struct Clocks {
    /// Rule of the choice: strict, thesis, permissive or forced:NAME
    #[arg(long, value_name = "RULE", default_value = "strict", value_parser = str::parse::<ClockPolicy>)]
    policy: ClockPolicy,
    /// Measure all pairs of CPUs, and for longer
    #[arg(long)]
    verify: bool,
    /// Print what was found about every clock, item by item
    #[arg(long)]
    evidence: bool,
}

/// Probes, measures and prints.
///
/// # Errors
/// A source that was to be forced cannot be read.
pub(crate) fn show(clocks: &Clocks, settings: Settings) -> Result<ExitCode> {
    let document = lab::clocks(clocks.policy, clocks.verify)
        .map_err(|error| Stop::machine(vec![error.to_string()]))?;
    if settings.json {
        output::json(&document)?;
    } else {
        // anstream takes the colours away again where there are to be none.
        let style = if std::io::stdout().is_terminal() { Style::Colour } else { Style::Plain };
        anstream::print!("{}", text::clocks(&document, clocks.evidence, style));
    }
    Ok(ExitCode::SUCCESS)
}
