//! Options as getopt reads them: combined letters (`-mSqp80`), attached and detached values, long
//! names with `=`. The options of a command are a table, which help, man page and completions read too.

use std::fmt::Display;

use hourglass_documents::spelling;

use crate::exit::Stop;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Nothing,
    /// A value: attached to the letter, after `=`, or the next word.
    Value(&'static str),
    /// A value or none: a next word counts as one if it begins with a digit, `!` or `+`.
    Perhaps(&'static str),
    /// A value after `=`, or none.
    Attached(&'static str),
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OptionEffect<K> {
    Does(K),
    /// It is refused; this is to be used instead.
    Refused(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LetterDef<K> {
    /// How it may be written: `-p`, `--prio`.
    pub(crate) names: &'static [&'static str],
    pub(crate) takes: ValueKind,
    pub(crate) answer: OptionEffect<K>,
    /// What help says of it.
    pub(crate) about: &'static str,
}

impl<K> LetterDef<K> {
    pub(crate) const fn does(
        key: K,
        names: &'static [&'static str],
        takes: ValueKind,
        about: &'static str,
    ) -> LetterDef<K>
    where
        K: Copy,
    {
        LetterDef { names, takes, answer: OptionEffect::Does(key), about }
    }

    pub(crate) const fn refused(
        names: &'static [&'static str],
        takes: ValueKind,
        instead: &'static str,
    ) -> LetterDef<K>
    where
        K: Copy,
    {
        LetterDef { names, takes, answer: OptionEffect::Refused(instead), about: instead }
    }

    /// `-p, --prio PRIO`.
    pub(crate) fn synopsis(&self) -> String {
        let mut text = self.names.join(", ");
        let long = self.names.iter().any(|name| name.starts_with("--"));
        match self.takes {
            ValueKind::Nothing => {}
            ValueKind::Value(value) if long && self.names.len() == 1 => {
                text.push_str(&format!("={value}"))
            }
            ValueKind::Value(value) => text.push_str(&format!(" {value}")),
            ValueKind::Perhaps(value) => text.push_str(&format!(" [{value}]")),
            ValueKind::Attached(value) => text.push_str(&format!("[={value}]")),
        }
        text
    }
}

/// Options in groups, as help shows them.
pub(crate) type Groups<K> = [(&'static str, &'static [LetterDef<K>])];

/// All options of the groups.
pub(crate) fn table<K: Copy>(groups: &Groups<K>) -> Vec<LetterDef<K>> {
    groups.iter().flat_map(|(_, letters)| *letters).copied().collect()
}

/// A command line, understood.
#[derive(Debug)]
pub(crate) enum ParsedCommand<T> {
    /// Help is asked for.
    Help,
    Run(Box<T>),
}

/// An option that was given.
#[derive(Debug)]
pub(crate) struct LetterOption<'a, K> {
    pub(crate) key: K,
    /// As it was written, for messages.
    pub(crate) name: String,
    pub(crate) value: Option<&'a str>,
}

impl<'a, K> LetterOption<'a, K> {
    /// The option's value; empty for an option without a value.
    pub(crate) fn text(&self) -> &'a str {
        self.value.unwrap_or_default()
    }

    /// What is wrong with it.
    pub(crate) fn wrong(&self, reason: impl Display) -> Stop {
        Stop::usage(format!("{}: {reason}", self.name))
    }
}

/// A command line, read.
#[derive(Debug)]
pub(crate) struct LetterTokens<'a, K> {
    /// The options in their order.
    pub(crate) options: Vec<LetterOption<'a, K>>,
    /// Words that belong to no option.
    pub(crate) words: Vec<&'a str>,
}

/// Reads the words behind the command by its table.
///
/// # Errors
/// An option that is not in the table or is refused, or one without its value.
pub(crate) fn lex<'a, K: Copy>(
    words: &'a [String],
    table: &[LetterDef<K>],
) -> Result<LetterTokens<'a, K>, Stop> {
    let mut lexer = Lexer {
        table,
        rest: words,
        lexed: LetterTokens { options: Vec::new(), words: Vec::new() },
    };
    while let Some((word, rest)) = lexer.rest.split_first() {
        lexer.rest = rest;
        match word.as_str() {
            "--" => {
                lexer.lexed.words.extend(rest.iter().map(String::as_str));
                break;
            }
            word if word.starts_with("--") => lexer.long(word)?,
            word if word.len() > 1 && word.starts_with('-') => lexer.letters(word)?,
            word => lexer.lexed.words.push(word),
        }
    }
    Ok(lexer.lexed)
}

struct Lexer<'a, 't, K> {
    table: &'t [LetterDef<K>],
    rest: &'a [String],
    lexed: LetterTokens<'a, K>,
}

impl<'a, K: Copy> Lexer<'a, '_, K> {
    fn long(&mut self, word: &'a str) -> Result<(), Stop> {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let Some(letter) = find(self.table, name) else { return Err(unknown(self.table, name)) };
        if letter.takes == ValueKind::Nothing && attached.is_some() {
            return Err(Stop::usage(format!("{name}: takes no value")));
        }
        self.take(letter, name.to_owned(), attached)
    }

    /// `-mSqp80`: letters until one takes the rest for its value.
    fn letters(&mut self, word: &'a str) -> Result<(), Stop> {
        let mut behind = word.strip_prefix('-').unwrap_or(word);
        while let Some(letter) = behind.chars().next() {
            let name = format!("-{letter}");
            behind = &behind[letter.len_utf8()..];
            let Some(entry) = find(self.table, &name) else {
                let meant = if word.len() > 2 { format!("{name} (in {word})") } else { name };
                return Err(unknown(self.table, &meant));
            };
            let takes_rest = match entry.takes {
                ValueKind::Nothing | ValueKind::Attached(_) => false,
                ValueKind::Value(_) => !behind.is_empty(),
                // Unlike getopt, which would take the q of -tq for a number of threads.
                ValueKind::Perhaps(_) => begins_like_value(behind),
            };
            let attached = takes_rest.then(|| behind.strip_prefix('=').unwrap_or(behind));
            if takes_rest {
                behind = "";
            }
            // Only the last letter of a word can have the next word for its value.
            if !takes_rest && !behind.is_empty() && matches!(entry.takes, ValueKind::Perhaps(_)) {
                self.give(entry, name, None)?;
            } else {
                self.take(entry, name, attached)?;
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        letter: LetterDef<K>,
        name: String,
        attached: Option<&'a str>,
    ) -> Result<(), Stop> {
        let next = self.rest.first().map(String::as_str);
        let value = match (letter.takes, attached, next) {
            (_, Some(value), _) => Some(value),
            (ValueKind::Nothing | ValueKind::Attached(_), None, _) => None,
            (ValueKind::Perhaps(_), None, Some(next)) if begins_like_value(next) => Some(next),
            (ValueKind::Perhaps(_), None, _) => None,
            // What is refused is refused, with or without its value.
            (ValueKind::Value(_), None, _) if matches!(letter.answer, OptionEffect::Refused(_)) => {
                None
            }
            (ValueKind::Value(_), None, Some(next)) if !self.is_option(next) => Some(next),
            (ValueKind::Value(value), None, _) => {
                let help = if name == "-h" { "; help is --help" } else { "" };
                return Err(Stop::usage(format!("{name}: {value} is missing{help}")));
            }
        };
        if attached.is_none() && value.is_some() {
            self.rest = &self.rest[1..];
        }
        self.give(letter, name, value)
    }

    fn give(
        &mut self,
        letter: LetterDef<K>,
        name: String,
        value: Option<&'a str>,
    ) -> Result<(), Stop> {
        match letter.answer {
            OptionEffect::Does(key) => self.lexed.options.push(LetterOption { key, name, value }),
            OptionEffect::Refused(instead) => {
                return Err(Stop::usage(format!("{name}: {instead}")));
            }
        }
        Ok(())
    }

    fn is_option(&self, word: &str) -> bool {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        find(self.table, name).is_some()
    }
}

fn begins_like_value(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '!' | '+' | '='))
}

fn find<K: Copy>(table: &[LetterDef<K>], name: &str) -> Option<LetterDef<K>> {
    table.iter().find(|letter| letter.names.contains(&name)).copied()
}

fn unknown<K>(table: &[LetterDef<K>], name: &str) -> Stop {
    let known = table.iter().flat_map(|letter| letter.names).copied();
    let question = spelling::did_you_mean(name, known);
    let advice = question.unwrap_or_else(|| "--help lists them".to_owned());
    Stop::usage(format!("{name}: unknown option; {advice}"))
}

/// For the tests of a table: each name stands in it once, and each word of a manual page.
#[cfg(test)]
pub(crate) fn assert_known<K: Copy>(groups: &Groups<K>, manual: &str) {
    let table = table(groups);
    let mut names: Vec<&str> = table.iter().flat_map(|letter| letter.names).copied().collect();
    names.sort_unstable();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    for name in manual.split_whitespace() {
        assert!(names.contains(&name), "{name}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [LetterDef<char>; 6] = [
        LetterDef::does('m', &["-m", "--mlockall"], ValueKind::Nothing, ""),
        LetterDef::does('p', &["-p", "--prio"], ValueKind::Value("PRIO"), ""),
        LetterDef::does('t', &["-t", "--threads"], ValueKind::Perhaps("N"), ""),
        LetterDef::does('q', &["-q"], ValueKind::Nothing, ""),
        LetterDef::does('j', &["--json"], ValueKind::Attached("FILE"), ""),
        LetterDef::refused(&["-x"], ValueKind::Nothing, "use -m"),
    ];

    fn read(line: &str) -> Result<String, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let lexed = lex(&words, &TABLE).map_err(|stop| stop.to_string())?;
        let options = lexed.options.iter().map(|given| match given.value {
            Some(value) => format!("{}={value}", given.key),
            None => given.key.to_string(),
        });
        Ok(options
            .chain(lexed.words.iter().map(|word| (*word).to_owned()))
            .collect::<Vec<_>>()
            .join(" "))
    }

    #[test]
    fn as_getopt_reads_them() {
        for (line, wanted) in [
            ("-mqp80", "m q p=80"),
            ("-m -q -p 80", "m q p=80"),
            ("-mp 80 -q", "m p=80 q"),
            ("--prio=80 --mlockall", "p=80 m"),
            ("--prio 80", "p=80"),
            ("-t", "t"),
            ("-t5", "t=5"),
            ("-t 5", "t=5"),
            ("-t -q", "t q"),
            ("-tq", "t q"),
            ("-mtq 5", "m t q 5"),
            ("--threads=5", "t=5"),
            ("--json --prio 5", "j p=5"),
            ("--json=a.json", "j=a.json"),
            ("--json a.json", "j a.json"),
            ("-m -- -q", "m -q"),
            ("-p -5", "p=-5"),
        ] {
            assert_eq!(read(line).as_deref(), Ok(wanted), "{line}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (line, wanted) in [
            ("-p", "-p: PRIO is missing"),
            ("-p -q", "-p: PRIO is missing"),
            ("-mz", "-z (in -mz): unknown option; --help lists them"),
            ("--pri 5", "--pri: unknown option; did you mean --prio?"),
            ("-mx", "-x: use -m"),
            ("--mlockall=1", "--mlockall: takes no value"),
        ] {
            assert_eq!(read(line).unwrap_err(), wanted, "{line}");
        }
    }
}
