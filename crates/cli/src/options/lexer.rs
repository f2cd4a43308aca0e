//! The words of a command line, grouped by a table: each option with its values.

use hourglass_documents::spelling;

use super::{Applied, Effect, Extent, Groups, OptionDef, OptionValues, Values};
use crate::exit::Stop;
use crate::lab::models;

/// The options of a command, and how they are written.
#[derive(Debug)]
pub(crate) struct Language<T: 'static> {
    pub(crate) groups: &'static Groups<T>,
    /// Whether letters are combined and have their values attached, as getopt reads them: `-mSqp80`.
    pub(crate) combines: bool,
    /// The command that lists the options.
    pub(crate) help: &'static str,
}

/// An option with its values.
#[derive(Debug)]
pub(crate) struct Token<'a, T: 'static> {
    pub(crate) option: &'static OptionDef<T>,
    /// The heading of its group.
    pub(crate) group: &'static str,
    pub(crate) given: OptionValues<'a>,
}

impl<T> Token<'_, T> {
    /// Does to `to` what the option says.
    ///
    /// # Errors
    /// Its value is wrong.
    pub(crate) fn apply(&self, to: &mut T) -> Applied {
        match self.option.effect {
            Effect::Flag(set) => set(to),
            Effect::Value(take) => take(to, &self.given)?,
            // Both end the reading of a line before.
            Effect::Help | Effect::Refused => {}
        }
        Ok(())
    }
}

/// A command line, in its order.
#[derive(Debug)]
pub(crate) struct Tokens<'a, T: 'static> {
    pub(crate) options: Vec<Token<'a, T>>,
    /// Words that belong to no option, each with the number of options before it.
    pub(crate) words: Vec<(usize, &'a str)>,
}

impl<'a, T> Tokens<'a, T> {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.last(name).is_some()
    }

    /// The option where it stands last, which is the one that counts.
    pub(crate) fn last(&self, name: &str) -> Option<&OptionValues<'a>> {
        let mut backwards = self.options.iter().rev();
        backwards.find(|token| token.option.is_called(name)).map(|token| &token.given)
    }
}

impl<T> Language<T> {
    /// Whether help is asked for, whatever else is wrong with the line.
    pub(crate) fn asks_for_help(&self, words: &[String]) -> bool {
        let asks = |option: &OptionDef<T>| matches!(option.effect, Effect::Help);
        words.iter().any(|word| self.find(word).is_some_and(|(_, option)| asks(option)))
    }

    /// Groups the words behind the command.
    ///
    /// # Errors
    /// An option that is not in the table or is refused, or one without its values.
    pub(crate) fn lex<'a>(&self, words: &'a [String]) -> Result<Tokens<'a, T>, Stop> {
        let tokens = Tokens { options: Vec::new(), words: Vec::new() };
        let mut lexer = Lexer { language: self, rest: words, tokens };
        while let Some(word) = lexer.next_if(|_| true) {
            let is_option = word.len() > 1 && word.starts_with('-');
            if word == "--" && self.combines {
                while let Some(word) = lexer.next_if(|_| true) {
                    lexer.word(word);
                }
            } else if !is_option {
                lexer.word(word);
            } else if self.combines && !word.starts_with("--") {
                lexer.letters(word)?;
            } else {
                lexer.whole(word)?;
            }
        }
        Ok(lexer.tokens)
    }

    fn options(&self) -> impl Iterator<Item = (&'static str, &'static OptionDef<T>)> {
        let groups: &'static Groups<T> = self.groups;
        groups.iter().flat_map(|(group, options)| options.iter().map(|option| (*group, option)))
    }

    fn find(&self, name: &str) -> Option<(&'static str, &'static OptionDef<T>)> {
        self.options().find(|(_, option)| option.is_called(name))
    }

    fn is_option(&self, word: &str) -> bool {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        self.find(name).is_some()
    }

    fn unknown(&self, name: &str, shown: &str) -> Stop {
        let mut names = self.options().flat_map(|(_, option)| option.names());
        let joined = names.find_map(|known| {
            let value = name.strip_prefix(known).filter(|_| !self.combines)?;
            let is_number = value.starts_with(|c: char| c.is_ascii_digit());
            is_number.then(|| format!("did you mean {known} {value}?"))
        });
        let names: Vec<&str> = self.options().flat_map(|(_, option)| option.names()).collect();
        let (name, _) = name.split_once('=').unwrap_or((name, ""));
        let advice = joined
            .or_else(|| spelling::did_you_mean(name, names))
            .unwrap_or_else(|| format!("{} lists them", self.help));
        Stop::usage(format!("{shown}: unknown option; {advice}"))
    }
}

struct Lexer<'a, 'l, T: 'static> {
    language: &'l Language<T>,
    rest: &'a [String],
    tokens: Tokens<'a, T>,
}

impl<'a, T> Lexer<'a, '_, T> {
    fn next_if(&mut self, wanted: impl FnOnce(&str) -> bool) -> Option<&'a str> {
        let (word, rest) = self.rest.split_first()?;
        if !wanted(word) {
            return None;
        }
        self.rest = rest;
        Some(word)
    }

    fn word(&mut self, word: &'a str) {
        self.tokens.words.push((self.tokens.options.len(), word));
    }

    /// An option that is a word of its own, or has its value after `=`.
    fn whole(&mut self, word: &'a str) -> Applied {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (word, None),
        };
        let found = self.language.find(name);
        let found = found.ok_or_else(|| self.language.unknown(name, name))?;
        self.take(found, name, attached, true)
    }

    /// `-mSqp80`: letters until one takes the rest for its value.
    fn letters(&mut self, word: &'a str) -> Applied {
        let mut behind = word.strip_prefix('-').unwrap_or(word);
        while let Some(letter) = behind.chars().next() {
            behind = &behind[letter.len_utf8()..];
            let name = format!("-{letter}");
            let shown = if word.len() > 2 { format!("{name} (in {word})") } else { name.clone() };
            let found = self.language.find(&name);
            let found = found.ok_or_else(|| self.language.unknown(&name, &shown))?;
            let takes_rest = match found.1.values() {
                Values::Words(names) => !names.is_empty() && !behind.is_empty(),
                // Unlike getopt, which would take the q of -tq for a number of threads.
                Values::Perhaps(_) => begins_like_value(behind),
                Values::Attached(_) => false,
            };
            let attached = takes_rest.then(|| behind.strip_prefix('=').unwrap_or(behind));
            if takes_rest {
                behind = "";
            }
            // Only the last letter of a word can have the next word for its value.
            self.take(found, &name, attached, behind.is_empty())?;
        }
        Ok(())
    }

    /// Notes an option with its values: the attached one, or those that follow if it `is_last` in its word.
    fn take(
        &mut self,
        (group, option): (&'static str, &'static OptionDef<T>),
        name: &str,
        attached: Option<&'a str>,
        is_last: bool,
    ) -> Applied {
        let name = option.names().find(|own| *own == name).unwrap_or_default();
        let mut given = OptionValues { name, values: attached.into_iter().collect() };
        if matches!(option.effect, Effect::Refused) {
            return Err(given.wrong(option.about));
        }
        match (option.values(), attached) {
            (Values::Words(names), Some(value)) if names.is_empty() => {
                return Err(given.wrong(format!("takes no value, '{value}' is one too many")));
            }
            (Values::Words(names), Some(_))
                if names.len() > 1 || option.extent == Extent::Workload =>
            {
                let synopsis = option.synopsis;
                return Err(
                    given.wrong(format!("give its values as words of their own: {synopsis}"))
                );
            }
            (Values::Words(names), None) => {
                given.values = self.following(option, &given, &names)?
            }
            (Values::Perhaps(_), None) if is_last => {
                given.values = self.next_if(begins_like_value).into_iter().collect();
            }
            (Values::Words(_) | Values::Perhaps(_) | Values::Attached(_), _) => {}
        }
        self.tokens.options.push(Token { option, group, given });
        Ok(())
    }

    /// The words behind an option that are its values.
    fn following(
        &mut self,
        option: &OptionDef<T>,
        given: &OptionValues<'_>,
        names: &[&'static str],
    ) -> Result<Vec<&'a str>, Stop> {
        // A known option is never a value, so that a forgotten value is noticed where it is missing.
        // Other words with a dash may be values, so that the error for `-s -5ms` names the wrong value.
        let language = self.language;
        let quoted = option.extent == Extent::Quoted;
        let mut values = Vec::new();
        for name in names {
            let next = self.next_if(|word| quoted || !language.is_option(word));
            values.push(next.ok_or_else(|| missing(option, given, name))?);
        }
        if option.extent == Extent::Workload
            && let Some(workload) = values.first()
        {
            let model = models::find(workload).map_err(|error| given.wrong(error))?;
            // Words that are missing here the model itself misses by name.
            let next = || self.next_if(|word| !language.is_option(word));
            values.extend(std::iter::from_fn(next).take(model.parameters));
        }
        Ok(values)
    }
}

fn missing<T>(option: &OptionDef<T>, given: &OptionValues<'_>, name: &str) -> Stop {
    match (option.extent, given.name) {
        (Extent::Workload, _) => {
            let known = models::ALL.map(|model| model.name).join(", ");
            given.wrong(format!("the workload is missing; use one of {known}"))
        }
        (_, "-h") => given.wrong(format!("{name} is missing; help is --help")),
        _ => given.wrong(format!("{name} is missing; use {}", option.synopsis)),
    }
}

fn begins_like_value(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '!' | '+' | '='))
}

#[cfg(test)]
mod tests {
    use super::super::{flag, refused, value};
    use super::*;

    static TABLE: [(&str, &[OptionDef<()>]); 1] = [(
        "Options",
        &[
            flag("-m, --mlockall", "", |_| {}),
            value("-p, --prio PRIO", "", |_, _| Ok(())),
            value("-t, --threads [N]", "", |_, _| Ok(())),
            flag("-q", "", |_| {}),
            value("--json[=FILE]", "", |_, _| Ok(())),
            refused("-x", "use -m"),
        ],
    )];

    const LETTERS: Language<()> = Language { groups: &TABLE, combines: true, help: "--help" };

    fn read(line: &str) -> Result<String, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let tokens = LETTERS.lex(&words).map_err(|stop| stop.to_string())?;
        let options = tokens.options.iter().map(|Token { option, given, .. }| {
            let letter = option.names().next().unwrap().trim_start_matches('-').chars().next();
            let value = given.value().map(|value| format!("={value}")).unwrap_or_default();
            format!("{}{value}", letter.unwrap())
        });
        let words = tokens.words.iter().map(|(_, word)| (*word).to_owned());
        Ok(options.chain(words).collect::<Vec<_>>().join(" "))
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
            ("-p", "-p: PRIO is missing; use -p, --prio PRIO"),
            ("-p -q", "-p: PRIO is missing; use -p, --prio PRIO"),
            ("-mz", "-z (in -mz): unknown option; --help lists them"),
            ("--pri 5", "--pri: unknown option; did you mean --prio?"),
            ("-mx", "-x: use -m"),
            ("--mlockall=1", "--mlockall: takes no value, '1' is one too many"),
        ] {
            assert_eq!(read(line).unwrap_err(), wanted, "{line}");
        }
    }
}
