//! The words of the command line, grouped: each option with the values behind it.

use hourglass_documents::spelling;

use super::options::{self, OptionDef, OptionKey, OptionValues};
use crate::exit::Stop;
use crate::lab::models;

/// How the name of a workload file ends. Elsewhere than in front a word must end so to be taken
/// for one.
const FILE_ENDING: &str = ".toml";

/// An option with its values.
#[derive(Debug)]
pub(super) struct ParsedOption<'a> {
    pub(super) key: OptionKey,
    /// The option as it was written, for messages.
    pub(super) name: &'a str,
    pub(super) values: Vec<&'a str>,
}

impl<'a> ParsedOption<'a> {
    /// Its first value.
    pub(super) fn value(&self) -> &'a str {
        self.values.first().copied().unwrap_or_default()
    }
}

/// A command line of `run`, in its order.
#[derive(Debug, Default)]
pub(super) struct RunTokens<'a> {
    pub(super) options: Vec<ParsedOption<'a>>,
    pub(super) file: Option<&'a str>,
}

impl<'a> RunTokens<'a> {
    pub(super) fn has(&self, key: OptionKey) -> bool {
        self.last(key).is_some()
    }

    /// The option where it stands last, which is the one that counts.
    pub(super) fn last(&self, key: OptionKey) -> Option<&ParsedOption<'a>> {
        self.options.iter().rev().find(|given| given.key == key)
    }
}

/// Groups the words.
pub(super) fn lex(words: &[String]) -> Result<RunTokens<'_>, Stop> {
    // Who asks for help gets it, whatever else is wrong with the line.
    let helps =
        |word: &&String| options::find(word).is_some_and(|entry| entry.key == OptionKey::Help);
    if let Some(word) = words.iter().find(helps) {
        let help = ParsedOption { key: OptionKey::Help, name: word, values: Vec::new() };
        return Ok(RunTokens { options: vec![help], file: None });
    }
    let mut lexed = RunTokens::default();
    let mut rest = words.iter().map(String::as_str).peekable();
    while let Some(word) = rest.next() {
        if !is_option_like(word) {
            take_file(&mut lexed, word)?;
            continue;
        }
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (word, None),
        };
        let Some(entry) = options::find(name) else { return Err(unknown(word)) };
        let values = match attached {
            Some(value) => attached_value(entry, name, value)?,
            None => following_values(entry, name, &mut rest)?,
        };
        lexed.options.push(ParsedOption { key: entry.key, name, values });
    }
    Ok(lexed)
}

fn is_option_like(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

fn take_file<'a>(lexed: &mut RunTokens<'a>, word: &'a str) -> Result<(), Stop> {
    let may_be_file = lexed.options.is_empty() || word.ends_with(FILE_ENDING);
    match (lexed.file, lexed.options.last()) {
        (None, _) if may_be_file => {
            lexed.file = Some(word);
            Ok(())
        }
        (Some(file), _) if may_be_file => Err(Stop::usage(format!(
            "'{word}' is one file too many beside '{file}'; a run has one workload file"
        ))),
        (_, Some(last)) => {
            let before = [&[last.name], &last.values[..]].concat().join(" ");
            Err(Stop::usage(format!(
                "{}: '{word}' is one word too many after '{before}'",
                last.name
            )))
        }
        (_, None) => Err(Stop::usage(format!("unexpected word '{word}'"))),
    }
}

fn attached_value<'a>(entry: &OptionDef, name: &str, value: &'a str) -> Result<Vec<&'a str>, Stop> {
    match entry.values {
        OptionValues::Words([_]) | OptionValues::Quoted(_) => Ok(vec![value]),
        OptionValues::Words([]) => {
            Err(Stop::usage(format!("{name}: takes no value, '{value}' is one too many")))
        }
        _ => Err(Stop::usage(format!(
            "{name}: give its values as words of their own: {}",
            entry.synopsis()
        ))),
    }
}

fn following_values<'a>(
    entry: &OptionDef,
    name: &str,
    rest: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
) -> Result<Vec<&'a str>, Stop> {
    // A known option is never a value, so that a forgotten value is noticed where it is missing.
    // Other words with a dash may be values, so that the error for `-s -5ms` names the wrong value.
    let quoted = matches!(entry.values, OptionValues::Quoted(_));
    let mut next = || rest.next_if(|word| quoted || !is_known_option(word));
    let mut values = Vec::new();
    match entry.values {
        OptionValues::Words(names) | OptionValues::Quoted(names) => {
            for value_name in names {
                let missing = || {
                    Stop::usage(format!(
                        "{name}: {value_name} is missing; use {}",
                        entry.synopsis()
                    ))
                };
                values.push(next().ok_or_else(missing)?);
            }
        }
        OptionValues::Workload => {
            let known = || models::ALL.map(|model| model.name).join(", ");
            let missing =
                || Stop::usage(format!("{name}: the workload is missing; use one of {}", known()));
            let workload = next().ok_or_else(missing)?;
            let model = models::find(workload).map_err(|e| Stop::usage(format!("{name}: {e}")))?;
            values.push(workload);
            // Words that are missing here the model itself misses by name.
            values.extend(std::iter::from_fn(next).take(model.parameters));
        }
    }
    Ok(values)
}

fn is_known_option(word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    options::find(name).is_some()
}

fn unknown(word: &str) -> Stop {
    let joined = options::OPTIONS.iter().flat_map(|entry| entry.names).find_map(|name| {
        let value = word.strip_prefix(name)?;
        value.starts_with(|c: char| c.is_ascii_digit()).then(|| format!("{name} {value}"))
    });
    let names = || options::OPTIONS.iter().flat_map(|entry| entry.names).copied();
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let question = match joined {
        Some(joined) => Some(format!("did you mean {joined}?")),
        None => spelling::did_you_mean(name, names()),
    };
    let advice = question.unwrap_or_else(|| "hourglass run --help lists them".to_owned());
    Stop::usage(format!("{word}: unknown option; {advice}"))
}
