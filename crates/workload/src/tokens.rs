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

    /// The next word as a time above zero, or as a frequency whose period is one.
    ///
    /// # Errors
    /// The text has no further word, or it is no such time.
    pub fn time(&mut self, what: &'static str) -> Result<Span, WordError> {
        let given = self.word(what)?;
        if let Some(period) = period_of_frequency(given) {
            return period.map_err(|reason| self.bad(what, given, reason));
        }
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

/// The period of a frequency, `1kHz` or `48kHz/64`, where it is a whole number of nanoseconds; `None` for another word.
fn period_of_frequency(text: &str) -> Option<Result<Span, String>> {
    const NS_PER_S: u128 = 1_000_000_000;
    let (frequency, divisor) = text.split_once('/').unwrap_or((text, "1"));
    let number = ["Hz", "hz", "HZ"].iter().find_map(|unit| frequency.trim().strip_suffix(unit))?;
    let (number, factor) = match number.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1_000),
        None => number.strip_suffix('M').map_or((number, 1), |number| (number, 1_000_000)),
    };
    let (whole, part) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
    let scale =
        10_u128.checked_pow(u32::try_from(part.len()).ok().filter(|digits| *digits < 10)?)?;
    let scaled: u64 = format!("{whole}{part}").parse().ok()?;
    let divisor: u64 = divisor.trim().parse().ok().filter(|divisor| *divisor > 0)?;
    let (ns, per) = (NS_PER_S * scale * u128::from(divisor), u128::from(scaled) * factor);
    if per == 0 {
        return Some(Err("a frequency is above zero".to_owned()));
    }
    let rounded = i64::try_from((ns + per / 2) / per).map(Span::from_nanos).ok();
    Some(match rounded.filter(|rounded| *rounded > Span::ZERO) {
        None => Err("its period is no time above zero".to_owned()),
        Some(period) if ns % per == 0 => Ok(period),
        Some(period) => {
            let ns = period.nanos();
            let (us, rest) = (ns / 1_000, ns % 1_000);
            Err(format!("its period is no whole number of nanoseconds; write {us}.{rest:03}us"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Audio and control loops are told by their rates; a list of units was the answer.
    #[test]
    fn a_frequency_is_a_period_where_it_is_exact() {
        for (text, wanted) in [
            ("1kHz", Ok("1ms")),
            ("48kHz/48", Ok("1ms")),
            ("2.5kHz", Ok("400us")),
            ("0.5Hz", Ok("2s")),
            ("1MHz", Ok("1us")),
            ("750Hz", Err("write 1333.333us")),
            ("48kHz/64", Err("write 1333.333us")),
            ("0Hz", Err("above zero")),
            ("1kHz/0", Err("unknown unit")),
            ("99999999999999999999Hz", Err("unit")),
            ("1mHz", Err("unit")),
            ("Hz", Err("")),
            ("10GHz", Err("unit")),
            ("9000MHz", Err("no time above zero")),
        ] {
            let found = TokenReader::new("PERIODIC AMOUNT PERIOD", &[text]).time("PERIOD");
            match wanted {
                Ok(span) => assert_eq!(found, Ok(span.parse().unwrap()), "{text}"),
                Err(part) => {
                    let error = found.unwrap_err().to_string();
                    assert!(error.contains(part), "{text}: {error}");
                }
            }
        }
    }
}
