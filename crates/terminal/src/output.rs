//! What goes to stdout, and whether it is coloured.

use std::io::{self, BufWriter, Write};

use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use hourglass_report::text::Style;
use serde::Serialize;

/// A closed pipe is no failure.
///
/// # Errors
/// Any other of `printed`.
pub fn unless_closed(printed: Result<()>) -> Result<()> {
    match printed {
        Err(error) if crate::is_closed_pipe(&error) => Ok(()),
        printed => printed,
    }
}

/// Prints one JSON document.
///
/// # Errors
/// Writing fails.
pub fn json(document: &impl Serialize) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, document)
        .map_err(io::Error::from)
        .and_then(|()| writeln!(out))
        .and_then(|()| out.flush())
        .context("cannot write to stdout")
}

/// Prints a text.
///
/// # Errors
/// Writing fails.
pub fn text(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to stdout")
}

/// Prints a text with colours, which go away where there are to be none.
///
/// # Errors
/// Writing fails.
pub fn ansi(text: &impl std::fmt::Display) -> Result<()> {
    let mut out = anstream::stdout().lock();
    write!(out, "{text}").and_then(|()| out.flush()).context("cannot write to stdout")
}

/// Whether text on stdout is coloured.
pub fn style() -> Style {
    match AutoStream::choice(&io::stdout()) {
        ColorChoice::Never => Style::Plain,
        _ => Style::Colour,
    }
}

/// Whether text on stderr is coloured.
pub fn style_of_stderr() -> Style {
    match AutoStream::choice(&io::stderr()) {
        ColorChoice::Never => Style::Plain,
        _ => Style::Colour,
    }
}

/// Writes a text to stderr: what a command that has stdout for itself says.
pub fn to_stderr(text: &str) {
    // A closed stderr leaves no place to report the error.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
