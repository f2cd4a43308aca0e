//! Help and manual pages of `latency` and `noise`: their texts, and their tables of options.

use std::io::{self, Write};

use clap_mangen::roff::{Roff, bold, roman};

use crate::options::Groups;
use crate::options::help::{entry, heading, row, rows, section, sections, stacked, wrapped};

/// What help says of a command beside its options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HelpTexts {
    pub(crate) about: &'static str,
    pub(crate) usage: &'static str,
    /// Paragraphs below the usage.
    pub(crate) paragraphs: &'static [&'static str],
    pub(crate) exit_codes: &'static [(&'static str, &'static str)],
    pub(crate) examples: &'static [(&'static str, &'static str)],
}

/// The text of `--help`; print it through `anstream`.
pub(crate) fn text<T>(texts: &HelpTexts, groups: &Groups<T>) -> String {
    let mut out = format!("{}\n", texts.about);
    heading(&mut out, "Usage");
    out.push_str(&format!("  {}\n", texts.usage));
    for paragraph in texts.paragraphs {
        out.push('\n');
        wrapped(&mut out, paragraph, 0);
    }
    rows(&mut out, groups);
    heading(&mut out, "Exit codes");
    texts.exit_codes.iter().for_each(|(code, meaning)| row(&mut out, code, meaning));
    heading(&mut out, "Examples");
    texts.examples.iter().for_each(|(line, meaning)| stacked(&mut out, line, meaning));
    out
}

/// The manual page, behind its title and name.
pub(crate) fn page<T>(
    texts: &HelpTexts,
    groups: &Groups<T>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut page = Roff::new();
    section(&mut page, "SYNOPSIS");
    page.text([bold(texts.usage)]);
    section(&mut page, "DESCRIPTION");
    for paragraph in texts.paragraphs {
        page.control("PP", []).text([roman(*paragraph)]);
    }
    sections(&mut page, groups);
    section(&mut page, "Exit status");
    texts.exit_codes.iter().for_each(|(code, meaning)| entry(&mut page, code, meaning));
    section(&mut page, "Examples");
    texts.examples.iter().for_each(|(line, meaning)| entry(&mut page, line, meaning));
    page.to_writer(out)
}
