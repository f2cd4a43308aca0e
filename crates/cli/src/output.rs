//! What goes to stdout: the summary, the paper's lines, or the run document.

use std::io::{self, IsTerminal};

use anyhow::Result;
use hourglass_documents::document::RunDocument;
use hourglass_report::text::{RecordWriter, Style, summary};
pub(crate) use hourglass_terminal::output::*;
use hourglass_trace::Interval;
use serde::Serialize;

use crate::exit::Stop;
use crate::lab::CpuTimeline;
use crate::settings::Settings;

/// What is asked to be printed of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputOptions {
    /// `--json`.
    pub(crate) json: bool,
    /// `--records`, or what implies it.
    pub(crate) records: bool,
    /// `-c`.
    pub(crate) cycles: bool,
    /// `--summary`.
    pub(crate) summary: bool,
    /// The run is kept and nothing is to be said of it: `-q -o`.
    pub(crate) kept_quietly: bool,
}

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Not at all.
    Nothing,
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
    /// Two of document, lines and summary are asked for.
    pub(crate) fn choose(asked: OutputOptions) -> Result<Format, Stop> {
        Format::of(asked, io::stdout().is_terminal())
    }

    fn of(asked: OutputOptions, to_terminal: bool) -> Result<Format, Stop> {
        let OutputOptions { json, cycles, summary, kept_quietly, .. } = asked;
        let records = asked.records || cycles;
        let lines = if cycles { "-c" } else { "--records" };
        let twice = |one: &str, prints: &str, other: &str| {
            Err(Stop::usage(format!("{one} prints {prints} and {other}: leave one of them out")))
        };
        match (json, records, summary) {
            (true, true, _) => twice(lines, "lines", "--json a document"),
            (true, _, true) => twice("--summary", "a text", "--json a document"),
            (_, true, true) => twice(lines, "lines", "--summary a text"),
            (true, ..) => Ok(Format::Json),
            (_, true, _) => Ok(Format::Lines { cycles }),
            (_, _, true) => Ok(Format::Summary),
            _ if kept_quietly => Ok(Format::Nothing),
            _ if to_terminal => Ok(Format::Summary),
            _ => Ok(Format::Lines { cycles: false }),
        }
    }
}

/// Prints a document, as JSON or as text.
///
/// # Errors
/// Writing fails.
pub(crate) fn shown<D: Serialize>(
    document: &D,
    as_text: impl FnOnce(&D, Style) -> String,
    settings: Settings,
) -> Result<()> {
    if settings.json { json(document) } else { text(&as_text(document, style())) }
}

/// A run that can be shown: one that has just ended, or one in a folder.
pub(crate) trait Source {
    fn document(&self) -> &RunDocument;

    /// Hands over its records in the order of their starts.
    fn each_interval(&mut self, each: impl FnMut(Interval) -> io::Result<()>) -> Result<()>;

    /// Hands over how late a thread was woken, in picoseconds.
    fn each_lateness(&mut self, thread: u32, each: impl FnMut(u64) -> io::Result<()>)
    -> Result<()>;
}

/// Prints a run. A closed pipe is no failure.
///
/// # Errors
/// Writing or reading fails.
pub(crate) fn print(source: &mut impl Source, format: Format) -> Result<()> {
    let printed = match format {
        Format::Nothing => Ok(()),
        Format::Json => json(source.document()),
        Format::Summary => text(&summary(source.document(), style())),
        Format::Lines { cycles } => lines(source, cycles),
    };
    unless_closed(printed)
}

fn lines(source: &mut impl Source, cycles: bool) -> Result<()> {
    // What is read may fail, too.
    let named = |e: io::Error| io::Error::new(e.kind(), format!("cannot write to stdout: {e}"));
    let mut out = RecordWriter::new(io::stdout().lock());
    let mut timeline = CpuTimeline::default();
    source.each_interval(|interval| {
        let gap = timeline.push(&interval);
        out.record(&interval, gap).map_err(named)?;
        if cycles {
            out.raw_record(&interval, gap).map_err(named)?;
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
        source.each_lateness(thread, |ps| out.lateness(u128::from(ps)).map_err(named))?;
    }
    for thread in &source.document().result.threads {
        out.thread(thread).map_err(named)?;
    }
    Ok(out.finish().map(drop).map_err(named)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `-q -o DIR` in a script wrote a record line for every interval, and nothing asked for the summary in a pipe.
    #[test]
    fn what_is_printed_follows_from_what_is_asked_and_where_it_goes() {
        let plain = OutputOptions::default();
        let lines = Format::Lines { cycles: false };
        for (asked, on_terminal, in_pipe) in [
            (plain, Format::Summary, lines),
            (OutputOptions { summary: true, ..plain }, Format::Summary, Format::Summary),
            (OutputOptions { records: true, ..plain }, lines, lines),
            (OutputOptions { json: true, kept_quietly: true, ..plain }, Format::Json, Format::Json),
            (OutputOptions { kept_quietly: true, ..plain }, Format::Nothing, Format::Nothing),
            (OutputOptions { kept_quietly: true, records: true, ..plain }, lines, lines),
        ] {
            assert_eq!(Format::of(asked, true), Ok(on_terminal), "{asked:?}");
            assert_eq!(Format::of(asked, false), Ok(in_pipe), "{asked:?}");
        }
        for two in [
            OutputOptions { json: true, records: true, ..plain },
            OutputOptions { json: true, summary: true, ..plain },
            OutputOptions { cycles: true, summary: true, ..plain },
        ] {
            assert!(Format::of(two, true).is_err(), "{two:?}");
        }
    }
}
