//! The program `hourglass-paper`, which `hourglass paper` runs.
//!
//! Owns: `paper`'s lists, tables and figures as text, JSON and files, and its exit codes.
//! Must not: measure; the library does.

#![forbid(unsafe_code)]

mod command;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::FromArgMatches;
use hourglass_terminal::exit::Stop;
use hourglass_terminal::paper::{self, PROGRAM, PaperArgs};
use hourglass_terminal::settings::{Colour, Settings};
use hourglass_terminal::usage;

fn main() -> ExitCode {
    // Refused by no kernel; and if it were, the signals do what they do to any program.
    let _ = hourglass_measure::set_signal_dispositions();
    let words = hourglass_terminal::words().map_err(anyhow::Error::from);
    hourglass_terminal::concluded(words.and_then(|words| dispatch(&words)))
}

fn dispatch(words: &[String]) -> Result<ExitCode> {
    Colour::asked_in(words).choose();
    let program = std::iter::once(PROGRAM).chain(words.iter().map(String::as_str));
    let matches = match paper::command().try_get_matches_from(program) {
        Ok(matches) => matches,
        Err(error) if !error.use_stderr() => {
            error.print().context("cannot write to stdout")?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(refusal(&error).into()),
    };
    let asked = PaperArgs::from_arg_matches(&matches).map_err(|error| refusal(&error))?;
    let settings = Settings::from_arg_matches(&matches).map_err(|error| refusal(&error))?;
    command::paper(&asked, settings)
}

fn refusal(error: &clap::Error) -> Stop {
    let mut own = paper::command();
    own.build();
    usage::one_line(error, &own, Some(&own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_hold_together() {
        paper::command().debug_assert();
    }

    #[test]
    fn help() {
        let help = paper::command().term_width(80).render_help().to_string();
        insta::assert_snapshot!("paper-help", help);
    }
}
