//! What may be asked of every command, anywhere on its line.

use anstream::ColorChoice;
use clap::{Args, ValueEnum};

/// Where help lists the options of every command.
const HEADING: &str = "Options of every command";

/// Options of every command.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Print one JSON document and nothing else
    #[arg(long, global = true, help_heading = HEADING)]
    pub json: bool,
    /// When to use colour; auto respects NO_COLOR
    #[arg(long, global = true, help_heading = HEADING)]
    #[arg(value_enum, value_name = "WHEN", default_value_t)]
    pub color: Colour,
    /// Nothing but errors on stderr: no progress, no warnings
    #[arg(short, long, global = true, help_heading = HEADING)]
    pub quiet: bool,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Colour {
    /// What the words of any command ask for. A bad value is left to that command to refuse.
    pub fn asked_in(words: &[String]) -> Colour {
        // What stands behind -- is a command's own.
        let mut words = words.iter().take_while(|word| *word != "--");
        let mut asked = Colour::Auto;
        while let Some(word) = words.next() {
            let value = match word.strip_prefix("--color") {
                Some("") => words.next().map(String::as_str),
                Some(attached) => attached.strip_prefix('='),
                None => None,
            };
            if let Some(colour) = value.and_then(|value| Colour::from_str(value, false).ok()) {
                asked = colour;
            }
        }
        asked
    }

    /// Makes it the choice of everything that this process prints.
    pub fn choose(self) {
        match self {
            Colour::Auto => ColorChoice::Auto,
            Colour::Always => ColorChoice::Always,
            Colour::Never => ColorChoice::Never,
        }
        .write_global();
    }
}
