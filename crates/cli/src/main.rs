//! The command `hourglass`.
//!
//! Owns: the command line, what goes to stdout and what to stderr, colour, exit codes.
//! Must not: hold an algorithm. What a program may want as well lives in `hourglass-lab` and the crates beside it, and how
//! a result looks in `hourglass-report`.

#![forbid(unsafe_code)]

mod args;
mod atomic_file;
mod cli;
mod commands;
mod compat;
mod dispatch;
mod exit;
mod lab;
mod messages;
mod output;
mod progress;
mod settings;

use std::ffi::OsString;
use std::io;
use std::panic;
use std::process::ExitCode;

use crate::exit::Stop;

fn main() -> ExitCode {
    suppress_decoder_output();
    // Refused by no kernel; and if it were, the signals do what they do to any program.
    let _ = hourglass_lab::set_signal_dispositions();
    let words: Result<Vec<String>, OsString> =
        std::env::args_os().skip(1).map(OsString::into_string).collect();
    let done = match words {
        Ok(words) => dispatch::dispatch(&words),
        Err(word) => {
            let word = word.to_string_lossy();
            Err(Stop::usage(format!("'{word}' is not UTF-8, and only UTF-8 is taken")).into())
        }
    };
    done.unwrap_or_else(|error| explain(&error))
}

/// A decoder that panics on a damaged file becomes one clear line; its panic is not told besides.
fn suppress_decoder_output() {
    let say = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if !hourglass_lab::store::is_decoding() {
            say(panicked);
        }
    }));
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

/// Whether writing failed because nobody reads any more (`hourglass ... | head`).
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}
