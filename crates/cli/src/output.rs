//! What goes to stdout: the summary, the paper's lines, or the run document.

use std::io::{self, BufWriter, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use hourglass_model::Interval;
use hourglass_model::document::RunDocument;
use hourglass_report::text::{RecordWriter, Style, summary};
use serde::Serialize;

use crate::lab::CpuTimeline;
use crate::stop::Stop;

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Summary,
    /// For scripts: the paper's lines, with `-c` also in cycles.
    Lines { cycles: bool },
    /// For programs.
    Json,
}

impl Format {
    /// The summary on a terminal, lines to anything else, unless something else is asked for.
    ///
    /// # Errors
    /// A document and lines are asked for.
    pub(crate) fn choose(json: bool, records: bool, cycles: bool) -> Result<Format, Stop> {
        let lines = if cycles { "-c" } else { "--records" };
        match (json, records || cycles) {
            (true, true) => Err(Stop::usage(format!(
                "{lines} prints lines and --json a document: leave one of them out"
            ))),
            (true, false) => Ok(Format::Json),
            (false, asked) if asked || !io::stdout().is_terminal() => Ok(Format::Lines { cycles }),
            (false, _) => Ok(Format::Summary),
        }
    }
}

/// A run that can be shown: one that has just ended, or one in a folder.
pub(crate) trait Source {
    /// What it found.
    fn document(&self) -> &RunDocument;

    /// Hands over its records in the order of their starts.
    fn each_interval(&mut self, each: impl FnMut(Interval) -> io::Result<()>) -> Result<()>;

    /// Hands over how late a thread was woken, in picoseconds.
    fn each_lateness(&mut self, thread: u32, each: impl FnMut(u64) -> io::Result<()>)
    -> Result<()>;
}

/// Prints a run. That nobody reads any more is no failure.
///
/// # Errors
/// Writing or reading fails.
pub(crate) fn print(source: &mut impl Source, format: Format) -> Result<()> {
    let printed = match format {
        Format::Json => json(source.document()),
        Format::Summary => text(&summary(source.document(), style())),
        Format::Lines { cycles } => lines(source, cycles),
    };
    unless_closed(printed)
}

/// That nobody reads any more is no failure.
///
/// # Errors
/// Any other of `printed`.
pub(crate) fn unless_closed(printed: Result<()>) -> Result<()> {
    match printed {
        Err(error) if crate::is_closed_pipe(&error) => Ok(()),
        printed => printed,
    }
}

/// Prints one JSON document.
///
/// # Errors
/// Writing fails.
pub(crate) fn json(document: &impl Serialize) -> Result<()> {
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
pub(crate) fn text(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to stdout")
}

/// Prints a text with colours, which go away where there are to be none.
///
/// # Errors
/// Writing fails.
pub(crate) fn ansi(text: &impl std::fmt::Display) -> Result<()> {
    let mut out = anstream::stdout().lock();
    write!(out, "{text}").and_then(|()| out.flush()).context("cannot write to stdout")
}

/// Whether text on stdout is coloured.
pub(crate) fn style() -> Style {
    match AutoStream::choice(&io::stdout()) {
        ColorChoice::Never => Style::Plain,
        _ => Style::Colour,
    }
}

/// Whether text on stderr is coloured.
pub(crate) fn style_of_stderr() -> Style {
    match AutoStream::choice(&io::stderr()) {
        ColorChoice::Never => Style::Plain,
        _ => Style::Colour,
    }
}

/// Writes a text to stderr: what a command that has stdout for itself says.
pub(crate) fn to_stderr(text: &str) {
    // If stderr is closed there is nobody left to be told.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn lines(source: &mut impl Source, cycles: bool) -> Result<()> {
    let mut out = RecordWriter::new(io::stdout().lock());
    let mut timeline = CpuTimeline::new();
    source.each_interval(|interval| {
        let gap = timeline.push(&interval);
        out.record(&interval, gap)?;
        if cycles {
            out.raw_record(&interval, gap)?;
        }
        Ok(())
    })?;
    let with_latency: Vec<u32> = source
        .document()
        .result
        .threads
        .iter()
        .filter(|thread| thread.latency.is_some())
        .map(|thread| thread.id)
        .collect();
    for thread in with_latency {
        source.each_lateness(thread, |ps| out.lateness(u128::from(ps)))?;
    }
    for thread in &source.document().result.threads {
        out.thread(thread)?;
    }
    out.finish().map(drop).context("cannot write to stdout")
}
