//! The words of a workload or a wake-up method, taken one after the other.

use std::str::FromStr;

use hourglass_documents::spelling;
use hourglass_time::Span;
use thiserror::Error;

/// A word that is missing or is not what must stand there.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WordError {
    #[error("{}", spelling::unknown("workload", name, known.iter().copied()))]
    UnknownWorkload { name: String, known: Vec<&'static str> },
    #[error("{}", spelling::unknown("timer", name, known.iter().copied()))]
    UnknownTimer { name: String, known: Vec<&'static str> },
    #[error("{synopsis}: {what} is missing")]
    Missing { synopsis: &'static str, what: &'static str },
    #[error("{synopsis}: '{extra}' is one word too many")]
    Extra { synopsis: &'static str, extra: String },
    /// A word is not what must stand there.
    #[error("{synopsis}: bad {what} '{given}': {reason}")]
    Bad { synopsis: &'static str, what: &'static str, given: String, reason: String },
    #[error("{synopsis}: {reason}")]
    Together { synopsis: &'static str, reason: String },
    /// The method exists, but not on Linux.
    #[error("timer MM is Windows only (multimedia timers); use HR, NATIVE or another")]
    WindowsOnly,
}

/// Words given to one model or method, with its synopsis for messages.
#[derive(Debug)]
pub struct TokenReader<'a> {
    synopsis: &'static str,
    rest: std::slice::Iter<'a, &'a str>,
}

impl<'a> TokenReader<'a> {
    pub fn new(synopsis: &'static str, words: &'a [&'a str]) -> TokenReader<'a> {
        TokenReader { synopsis, rest: words.iter() }
    }

    /// The next word.
    ///
    /// # Errors
    /// The text has no further word.
    pub fn word(&mut self, what: &'static str) -> Result<&'a str, WordError> {
        self.rest.next().copied().ok_or(WordError::Missing { synopsis: self.synopsis, what })
    }

    /// The next word as a value.
    ///
    /// # Errors
    /// The text has no further word, or it does not parse.
    pub fn value<T: FromStr<Err: std::fmt::Display>>(
        &mut self,
        what: &'static str,
    ) -> Result<T, WordError> {
        let given = self.word(what)?;
        given.parse().map_err(|reason: T::Err| self.bad(what, given, reason.to_string()))
    }

    /// The next word as a time above zero.
    ///
    /// # Errors
    /// The text has no further word, or it is no such time.
    pub fn time(&mut self, what: &'static str) -> Result<Span, WordError> {
        let given = self.word(what)?;
        match given.parse::<Span>() {
            Ok(span) if span > Span::ZERO => Ok(span),
            Ok(_) => Err(self.bad(what, given, "it must be above zero".to_owned())),
            Err(error) => Err(self.bad(what, given, error.to_string())),
        }
    }

    /// The next word as the period of `amount`, whose longest value, if it has one, must fit it.
    ///
    /// # Errors
    /// The text has no further word, it is no time above zero, or the amount is longer.
    pub fn period_of(
        &mut self,
        amount: &dyn std::fmt::Display,
        longest: Option<Span>,
    ) -> Result<Span, WordError> {
        let period = self.time("PERIOD")?;
        match longest {
            Some(longest) if longest > period => {
                Err(self.together(format!("AMOUNT {amount} is longer than PERIOD {period}")))
            }
            _ => Ok(period),
        }
    }

    /// The next word as a size in bytes: a number of KB, as the paper has it, or with a unit
    /// (`32K`, `4M`).
    ///
    /// # Errors
    /// The text has no further word, or it is no size from 1 KB to 64 GB.
    pub fn size(&mut self, what: &'static str) -> Result<usize, WordError> {
        const LARGEST_KB: usize = 64 << 20;
        let given = self.word(what)?;
        let (digits, factor) = match given.strip_suffix(['K', 'k']) {
            Some(digits) => (digits, 1),
            None => match given.strip_suffix(['M', 'm']) {
                Some(digits) => (digits, 1 << 10),
                None => (given, 1),
            },
        };
        digits
            .parse::<usize>()
            .ok()
            .and_then(|n| n.checked_mul(factor))
            .filter(|kb| (1..=LARGEST_KB).contains(kb))
            .map(|kb| kb << 10)
            .ok_or_else(|| {
                self.bad(what, given, "give a number of KB from 1, or for example 4M".to_owned())
            })
    }

    /// Checks that all words were taken.
    ///
    /// # Errors
    /// One was left over.
    pub fn end(mut self) -> Result<(), WordError> {
        match self.rest.next() {
            None => Ok(()),
            Some(extra) => {
                Err(WordError::Extra { synopsis: self.synopsis, extra: (*extra).to_owned() })
            }
        }
    }

    pub fn together(&self, reason: String) -> WordError {
        WordError::Together { synopsis: self.synopsis, reason }
    }

    fn bad(&self, what: &'static str, given: &str, reason: String) -> WordError {
        WordError::Bad { synopsis: self.synopsis, what, given: given.to_owned(), reason }
    }
}
