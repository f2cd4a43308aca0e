//! Help, manual page and completions of the peers' letters, from their tables.

use std::io::{self, Write};

use clap::{Arg, ArgAction, ValueHint};
use clap_mangen::roff::{Roff, bold, roman};

use super::short_options::{LetterDef, OptionEffect, ValueKind};
use crate::args::help::{heading, row, stacked, wrapped};

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

/// The options of a command, in groups with their headings.
pub(crate) type Groups<K> = [(&'static str, &'static [LetterDef<K>])];

/// The text of `--help`; print it through `anstream`.
pub(crate) fn text<K>(texts: &HelpTexts, groups: &Groups<K>) -> String {
    let mut out = format!("{}\n", texts.about);
    heading(&mut out, "Usage");
    out.push_str(&format!("  {}\n", texts.usage));
    for paragraph in texts.paragraphs {
        out.push('\n');
        wrapped(&mut out, paragraph, 0);
    }
    for (name, letters) in groups {
        heading(&mut out, name);
        letters.iter().for_each(|letter| row(&mut out, &letter.synopsis(), letter.about));
    }
    heading(&mut out, "Exit codes");
    texts.exit_codes.iter().for_each(|(code, meaning)| row(&mut out, code, meaning));
    heading(&mut out, "Examples");
    texts.examples.iter().for_each(|(line, meaning)| stacked(&mut out, line, meaning));
    out
}

/// The manual page, behind its title and name.
pub(crate) fn page<K>(
    texts: &HelpTexts,
    groups: &Groups<K>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut page = Roff::new();
    let section = |page: &mut Roff, heading: &str| {
        page.control("SH", [heading.to_uppercase().as_str()]);
    };
    let entry = |page: &mut Roff, name: &str, meaning: &str| {
        page.control("TP", []).text([bold(name)]).text([roman(meaning)]);
    };
    section(&mut page, "SYNOPSIS");
    page.text([bold(texts.usage)]);
    section(&mut page, "DESCRIPTION");
    for paragraph in texts.paragraphs {
        page.control("PP", []).text([roman(*paragraph)]);
    }
    for (name, letters) in groups {
        section(&mut page, name);
        letters.iter().for_each(|letter| entry(&mut page, &letter.synopsis(), letter.about));
    }
    section(&mut page, "Exit status");
    texts.exit_codes.iter().for_each(|(code, meaning)| entry(&mut page, code, meaning));
    section(&mut page, "Examples");
    texts.examples.iter().for_each(|(line, meaning)| entry(&mut page, line, meaning));
    page.to_writer(out)
}

/// The options as completions know them, without those of every command and those refused.
pub(crate) fn completed<K>(groups: &Groups<K>) -> impl Iterator<Item = Arg> {
    const OF_EVERY_COMMAND: [&str; 4] = ["--json", "--color", "--quiet", "--help"];
    let all = groups.iter().flat_map(|(_, letters)| *letters);
    let honoured = all.filter(|letter| matches!(letter.answer, OptionEffect::Does(_)));
    let own = honoured.filter(|l| !l.names.iter().any(|name| OF_EVERY_COMMAND.contains(name)));
    own.map(argument)
}

fn argument<K>(letter: &LetterDef<K>) -> Arg {
    let long = |name: &&'static str| name.strip_prefix("--");
    let short =
        |name: &&'static str| name.strip_prefix('-').filter(|n| n.len() == 1)?.chars().next();
    let mut longs = letter.names.iter().filter_map(long);
    let mut argument = Arg::new(letter.names[0]).help(letter.about);
    if let Some(first) = longs.next() {
        argument = argument.long(first).aliases(longs);
    }
    let mut shorts = letter.names.iter().filter_map(short);
    if let Some(first) = shorts.next() {
        argument = argument.short(first).short_aliases(shorts);
    }
    match letter.takes {
        ValueKind::Nothing => argument.action(ArgAction::SetTrue),
        ValueKind::Value("DIR") => argument.value_name("DIR").value_hint(ValueHint::DirPath),
        ValueKind::Value("FILE") => argument.value_name("FILE").value_hint(ValueHint::FilePath),
        ValueKind::Value(value) => argument.value_name(value),
        ValueKind::Perhaps(value) | ValueKind::Attached(value) => {
            argument.value_name(value).num_args(0..=1)
        }
    }
}
