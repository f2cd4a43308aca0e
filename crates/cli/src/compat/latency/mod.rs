//! `latency`: how late threads are woken, with the options of cyclictest.

mod options;
mod parse;
mod print;
mod status;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;

use self::parse::Latency;
use self::status::Status;
use super::top;
use super::{HostCpus, ParsedCommand, help};
use crate::atomic_file::WholeFile;
use crate::commands::run::{exit_code, refusal};
use crate::commands::say_kept;
use crate::output::{self, Format};

pub(crate) use options::{GROUPS, TEXTS};

/// Runs what the words behind `latency` ask for.
///
/// # Errors
/// The line is wrong, or the machine cannot do it.
pub(crate) fn latency(words: &[String]) -> Result<ExitCode> {
    match parse::parse(words, HostCpus::for_this_machine())? {
        ParsedCommand::Run(run) => measure(*run),
        ParsedCommand::Help => {
            output::ansi(&help::text(&TEXTS, &GROUPS))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn measure(run: Latency) -> Result<ExitCode> {
    let Latency { mut request, top, idle_refused, view, settings } = run;
    if top {
        top::check_terminal()?;
    }
    let json_file = WholeFile::wanted("--json", view.json_file.as_deref())?;
    let files = view.files.open(&request)?;
    let histogram_file = WholeFile::wanted("--histfile", view.histogram_file.as_deref())?;
    request.command_line = std::env::args().collect();
    let mut status = Status::new(&view, settings.quiet, settings.json);
    let ran = top::run("latency", true, request, top, &mut status);
    let mut finished = ran.map_err(refusal)?;
    if settings.json {
        output::print(&mut finished, Format::Json)?;
    } else {
        let printed = print::result(&finished, &view, settings.quiet, idle_refused, histogram_file);
        output::unless_closed(printed)?;
    }
    if !settings.quiet {
        status.warn_rest(&finished.document.result.warnings);
    }
    if let Some(file) = json_file {
        file.write_json("--json", &finished.document)?;
    }
    files.write("latency", &finished)?;
    say_kept(finished.folder.as_ref(), "the run", settings.quiet)?;
    Ok(exit_code(&finished))
}
