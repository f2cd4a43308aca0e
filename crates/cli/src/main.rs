//! The command `hourglass`.
//!
//! Owns: the command line, what goes to stdout and what to stderr, colour, exit codes.
//! Must not: hold an algorithm. What a program may want as well lives in `hourglass-measure` and the crates beside it, and how
//! a result looks in `hourglass-report`.

#![forbid(unsafe_code)]

mod args;
mod cli;
mod commands;
mod compat;
mod dispatch;
mod lab;
mod options;
mod output;
mod picture;
mod progress;
mod result_files;

use std::panic;
use std::process::ExitCode;

use hourglass_terminal::{atomic_file, exit, is_closed_pipe, messages, settings};

fn main() -> ExitCode {
    suppress_decoder_output();
    // Refused by no kernel; and if it were, the signals do what they do to any program.
    let _ = hourglass_measure::set_signal_dispositions();
    let words = hourglass_terminal::words().map_err(anyhow::Error::from);
    hourglass_terminal::concluded(words.and_then(|words| dispatch::dispatch(&words)))
}

/// Replaces the panic message of a decoder: the caller reports the damaged file in one line.
fn suppress_decoder_output() {
    let say = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if !hourglass_runs::store::is_decoding() {
            say(panicked);
        }
    }));
}
