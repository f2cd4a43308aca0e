//! What is wrong with a command line, in one line.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use hourglass_documents::spelling;

use crate::exit::Stop;

/// The words that clap says of an error.
fn error_words(error: &clap::Error, kind: ContextKind) -> Vec<&str> {
    match error.get(kind) {
        Some(ContextValue::String(word)) => vec![word],
        Some(ContextValue::Strings(words)) => words.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The line about a word that is not known, with those that are near.
fn unknown_word(
    error: &clap::Error,
    all: &clap::Command,
    asked: Option<&clap::Command>,
) -> Option<String> {
    let first = |kind| error_words(error, kind).first().copied();
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = first(ContextKind::InvalidSubcommand)?;
            let names = all.get_subcommands().map(clap::Command::get_name);
            let question = spelling::did_you_mean(word, names);
            let advice = question.unwrap_or_else(|| "hourglass --help lists them".to_owned());
            Some(format!("unknown command '{word}'; {advice}"))
        }
        ErrorKind::UnknownArgument => {
            let word = first(ContextKind::InvalidArg).filter(|word| word.starts_with('-'))?;
            let asked = asked?;
            let options: Vec<String> = asked
                .get_arguments()
                .flat_map(|one| one.get_long_and_visible_aliases())
                .flatten()
                .map(|long| format!("--{long}"))
                .collect();
            let question = spelling::did_you_mean(word, options.iter().map(String::as_str));
            let name = asked.get_bin_name().unwrap_or_else(|| asked.get_name());
            let advice = question.unwrap_or_else(|| format!("{name} --help lists them"));
            Some(format!("{word}: unknown option; {advice}"))
        }
        ErrorKind::InvalidValue => {
            let word = first(ContextKind::InvalidValue).filter(|word| !word.is_empty())?;
            let known = error_words(error, ContextKind::ValidValue);
            let option = first(ContextKind::InvalidArg)?.split(' ').next()?;
            (!known.is_empty())
                .then(|| format!("{option}: {}", spelling::unknown("word", word, known)))
        }
        _ => None,
    }
}

/// clap's message in one line; the usage and the advice that it adds are left to `--help`. `all` is the whole command,
/// `asked` the one of it that the line is of; both are built.
#[must_use]
pub fn one_line(error: &clap::Error, all: &clap::Command, asked: Option<&clap::Command>) -> Stop {
    if let Some(line) = unknown_word(error, all, asked) {
        return Stop::usage(line);
    }
    let text = error.render().to_string();
    let (message, advice) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(stripped) = line.strip_prefix("error: ") {
        line = stripped.to_owned();
    }
    if let Some(tip) = advice.lines().find_map(|line| line.trim().strip_prefix("tip: ")) {
        line = format!("{line}; {tip}");
    } else if error.kind() == ErrorKind::MissingRequiredArgument {
        line.push_str("; see --help");
    }
    Stop::usage(line)
}
