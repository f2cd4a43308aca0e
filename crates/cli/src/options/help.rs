//! Help, manual pages and completions, from the tables of options.

use std::fmt::Write;

use clap::builder::PossibleValuesParser;
use clap::builder::styling::{AnsiColor, Style};
use clap::{Arg, ArgAction, ValueHint};
use clap_mangen::roff::{Inline, Roff, bold, roman};

use hourglass_documents::load::{LoadKind, LoadSpec};

use super::{Effect, Groups, OptionDef, Values};

/// How wide help is.
pub(crate) const WIDTH: usize = 80;

/// Where the right column begins.
const COLUMN: usize = 26;

/// How headings look where colour is wanted.
const HEADING: Style = AnsiColor::Green.on_default().bold();

pub(crate) fn heading(out: &mut String, text: &str) {
    let _ = writeln!(out, "\n{}{text}:{}", HEADING.render(), HEADING.render_reset());
}

/// A name and what it means, in two columns; below each other if the name is long.
pub(crate) fn row(out: &mut String, name: &str, meaning: &str) {
    row_at(out, name, meaning, COLUMN);
}

/// The same, with the right column at `column`.
pub(crate) fn row_at(out: &mut String, name: &str, meaning: &str, column: usize) {
    let start = out.len();
    let _ = write!(out, "  {name}");
    if out.len() - start + 2 > column {
        out.push('\n');
        wrapped(out, meaning, column);
        return;
    }
    let used = out.len() - start;
    let mut text = String::new();
    wrapped(&mut text, meaning, column);
    out.push_str(&text[used..]);
}

/// A line to be typed or read, and what it means, below each other.
pub(crate) fn stacked(out: &mut String, line: &str, meaning: &str) {
    let _ = writeln!(out, "  {line}");
    wrapped(out, meaning, 6);
}

/// The options, with the headings of their groups.
pub(crate) fn rows<T>(out: &mut String, groups: &Groups<T>) {
    for (name, options) in groups {
        heading(out, name);
        options.iter().for_each(|option| row(out, option.synopsis, option.about));
    }
}

/// Breaks a text between words and indents it.
pub(crate) fn wrapped(out: &mut String, text: &str, indent: usize) {
    let mut line = " ".repeat(indent);
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out.push_str(&line);
    out.push('\n');
}

/// The heading of a section of a manual page.
pub(crate) fn section(page: &mut Roff, heading: &str) {
    page.control("SH", [heading.to_uppercase().as_str()]);
}

/// A name and what it means, in a manual page.
pub(crate) fn entry(page: &mut Roff, name: &str, meaning: &str) {
    entry_of(page, name, vec![roman(meaning)]);
}

pub(crate) fn entry_of(page: &mut Roff, name: &str, meaning: Vec<Inline>) {
    page.control("TP", []).text([bold(name)]).text(meaning);
}

/// The options as sections of a manual page.
pub(crate) fn sections<T>(page: &mut Roff, groups: &Groups<T>) {
    for (name, options) in groups {
        section(page, name);
        options.iter().for_each(|option| entry(page, option.synopsis, option.about));
    }
}

/// The options as completions know them, without those of every command and those refused.
pub(crate) fn completed<T>(groups: &Groups<T>) -> impl Iterator<Item = Arg> {
    const OF_EVERY_COMMAND: [&str; 4] = ["--json", "--color", "--quiet", "--help"];
    let all = groups.iter().flat_map(|(_, options)| *options);
    let honoured = all.filter(|option| !matches!(option.effect, Effect::Refused));
    let own = honoured.filter(|option| !OF_EVERY_COMMAND.iter().any(|name| option.is_called(name)));
    own.filter_map(argument)
}

/// The value of `--load`.
const LOAD: &str = "SPEC";

/// What begins one.
fn loads() -> impl Iterator<Item = &'static str> {
    [LoadSpec::ALL].into_iter().chain(LoadKind::NAMES)
}

/// `None` for what clap cannot express: it would take `-rh` for `-r` with the value `h`.
fn argument<T>(option: &OptionDef<T>) -> Option<Arg> {
    let mut longs = Vec::new();
    let mut shorts = Vec::new();
    for name in option.names() {
        let mut letters = name.chars().skip(1);
        match (name.strip_prefix("--"), letters.next(), letters.next()) {
            (Some(long), ..) => longs.push(long),
            (None, Some(letter), None) => shorts.push(letter),
            _ => return None,
        }
    }
    let mut argument = Arg::new(option.names().next()?).help(option.about);
    if let Some((first, others)) = longs.split_first() {
        argument = argument.long(*first).aliases(others.to_vec());
    }
    if let Some((first, others)) = shorts.split_first() {
        argument = argument.short(*first).short_aliases(others.to_vec());
    }
    Some(match option.values() {
        Values::Words(names) => match names[..] {
            [] => argument.action(ArgAction::SetTrue),
            [LOAD] => argument.value_name(LOAD).value_parser(PossibleValuesParser::new(loads())),
            ["DIR"] => argument.value_name("DIR").value_hint(ValueHint::DirPath),
            ["FILE"] => argument.value_name("FILE").value_hint(ValueHint::FilePath),
            _ => argument.value_names(names),
        },
        Values::Perhaps(name) | Values::Attached(name) => argument.value_name(name).num_args(0..=1),
    })
}
