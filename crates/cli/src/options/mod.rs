//! The options of `run`, `latency` and `noise`: one table-driven parser, with their help, manual pages and completions.
//!
//! Owns: what a row of a table is, reading a line by a table, values, and what the three commands take alike. Must not:
//! measure, print, ask the machine.
//!
//! clap reads the other commands. It cannot read these, nor can the small libraries: `-rh` is one option of Appendix A and
//! `-w` takes as many words as its workload, while cyclictest's `-mSqp80` is five options, its `-t` takes a number or
//! none, and a letter that is not honoured says what to use instead.

pub(crate) mod help;
mod lexer;
pub(crate) mod shared;
mod values;

pub(crate) use lexer::{Language, Token, Tokens};
pub(crate) use values::OptionValues;

use crate::exit::Stop;

/// Whether the value of an option was accepted.
pub(crate) type Applied = Result<(), Stop>;

/// What an option does to `T`, which collects what is asked for.
#[derive(Debug)]
pub(crate) enum Effect<T> {
    Flag(fn(&mut T)),
    Value(fn(&mut T, &OptionValues<'_>) -> Applied),
    Help,
    /// Nothing: its text says what to use instead.
    Refused,
}

/// How many words belong to an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// One for each value that the synopsis names.
    Named,
    /// The name of a workload, then as many as it takes.
    Workload,
    /// One, whatever it looks like: options within quotes.
    Quoted,
}

/// A row of a table.
#[derive(Debug)]
pub(crate) struct OptionDef<T> {
    /// Names and values as help shows them: `-p, --prio PRIO`, `-t, --threads [NUM]` (a value or none),
    /// `--json[=FILE]` (a value after `=`, or none), `-rh AMOUNT PERIOD`. The parser reads them from here.
    pub(crate) synopsis: &'static str,
    /// What help says of it.
    pub(crate) about: &'static str,
    pub(crate) effect: Effect<T>,
    extent: Extent,
}

/// What follows an option.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// A word for each of these names.
    Words(Vec<&'static str>),
    /// A value or none: a next word counts as one if it begins with a digit, `!` or `+`.
    Perhaps(&'static str),
    /// A value after `=`, or none.
    Attached(&'static str),
}

/// Options in groups, with their headings.
pub(crate) type Groups<T> = [(&'static str, &'static [OptionDef<T>])];

pub(crate) const fn flag<T>(
    synopsis: &'static str,
    about: &'static str,
    set: fn(&mut T),
) -> OptionDef<T> {
    OptionDef { synopsis, about, effect: Effect::Flag(set), extent: Extent::Named }
}

pub(crate) const fn value<T>(
    synopsis: &'static str,
    about: &'static str,
    take: fn(&mut T, &OptionValues<'_>) -> Applied,
) -> OptionDef<T> {
    OptionDef { synopsis, about, effect: Effect::Value(take), extent: Extent::Named }
}

pub(crate) const fn help<T>(synopsis: &'static str, about: &'static str) -> OptionDef<T> {
    OptionDef { synopsis, about, effect: Effect::Help, extent: Extent::Named }
}

pub(crate) const fn refused<T>(synopsis: &'static str, instead: &'static str) -> OptionDef<T> {
    OptionDef { synopsis, about: instead, effect: Effect::Refused, extent: Extent::Named }
}

impl<T> OptionDef<T> {
    pub(crate) const fn reaching(mut self, extent: Extent) -> OptionDef<T> {
        self.extent = extent;
        self
    }

    /// How it may be written.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<T> {
        let words = self.synopsis.split(' ').take_while(|word| word.starts_with('-'));
        words.map(|word| word.split([',', '=', '[']).next().unwrap_or(word))
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.names().any(|own| own == name)
    }

    pub(crate) fn values(&self) -> Values {
        let (names, values): (Vec<&str>, Vec<&str>) =
            self.synopsis.split(' ').partition(|word| word.starts_with('-'));
        let attached = names.last().and_then(|name| name.split_once('='));
        match (attached, &values[..]) {
            (Some((name, value)), _) if name.ends_with('[') => {
                Values::Attached(value.trim_end_matches(']'))
            }
            (Some((_, value)), _) => Values::Words(vec![value]),
            (None, [value]) if value.starts_with('[') => {
                Values::Perhaps(value.trim_matches(['[', ']']))
            }
            (None, _) => Values::Words(values),
        }
    }
}

/// For the tests of a table: each name stands in it once, and each word of a manual page.
#[cfg(test)]
pub(crate) fn assert_known<T>(groups: &Groups<T>, manual: &str) {
    let options = groups.iter().flat_map(|(_, options)| *options);
    let mut names: Vec<&str> = options.flat_map(OptionDef::names).collect();
    names.sort_unstable();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    for name in manual.split_whitespace() {
        assert!(names.contains(&name), "{name}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_synopsis_is_what_the_parser_reads() {
        for (synopsis, names, values) in [
            ("-q", "-q", Values::Words(vec![])),
            ("-p, --prio PRIO", "-p --prio", Values::Words(vec!["PRIO"])),
            ("-rh AMOUNT PERIOD", "-rh", Values::Words(vec!["AMOUNT", "PERIOD"])),
            ("--percentile pX=TIME", "--percentile", Values::Words(vec!["pX=TIME"])),
            ("--latency=USEC", "--latency", Values::Words(vec!["USEC"])),
            ("-t, --threads [NUM]", "-t --threads", Values::Perhaps("NUM")),
            ("--json[=FILE]", "--json", Values::Attached("FILE")),
        ] {
            let option: OptionDef<()> = refused(synopsis, "");
            assert_eq!(option.names().collect::<Vec<_>>().join(" "), names);
            assert_eq!(option.values(), values, "{synopsis}");
        }
    }
}
