//! What `hourglass` and `hourglass-paper` have in common on a terminal.
//!
//! Owns: the options of every command, text and JSON on stdout, lines on stderr, exit codes, files that are there
//! whole or not at all; the options of `hourglass paper`, which both programs describe.
//! Must not: measure, compute a result.

#![forbid(unsafe_code)]

pub mod atomic_file;
pub mod exit;
pub mod messages;
pub mod output;
pub mod paper;
pub mod settings;
pub mod usage;

use std::env;
use std::io;
use std::process::ExitCode;

use anyhow::Result;

use crate::exit::Stop;

/// The words of the command line.
///
/// # Errors
/// One of them is not UTF-8.
pub fn words() -> Result<Vec<String>, Stop> {
    let words = env::args_os().skip(1).map(|word| {
        word.into_string().map_err(|word| {
            let word = word.to_string_lossy();
            Stop::usage(format!("'{word}' is not UTF-8, and only UTF-8 is taken"))
        })
    });
    words.collect()
}

/// The exit code of what was done; where there is no result, says why.
pub fn concluded(done: Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| explain(&error))
}

/// Says why there is no result, and gives the exit code for it.
fn explain(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        // Who reads has read enough; that is no failure.
        return ExitCode::SUCCESS;
    }
    if let Some(stop) = error.downcast_ref::<Stop>() {
        stop.lines().iter().for_each(|line| messages::say(line));
        return stop.exit_code();
    }
    messages::say(&format!("{error:#}"));
    ExitCode::from(exit::MACHINE)
}

/// Whether writing failed because the reader closed the pipe (`hourglass ... | head`).
#[must_use]
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}
