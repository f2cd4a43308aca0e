//! An option that was given, and its values.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use hourglass_documents::{CpuSet, spelling};
use hourglass_time::Span;

use crate::compat::HostCpus;
use crate::exit::Stop;

/// Why `-o -` makes no run folder: elsewhere it is stdout.
const NO_FOLDER: &str =
    "- is stdout, and a run is stored in a folder; name one (a folder of that name is -o ./-)";

/// An option as it was written, with its values. What it reads from them is refused with a line that begins with its name.
#[derive(Debug)]
pub(crate) struct OptionValues<'a> {
    pub(crate) name: &'static str,
    pub(crate) values: Vec<&'a str>,
}

impl<'a> OptionValues<'a> {
    pub(crate) fn value(&self) -> Option<&'a str> {
        self.values.first().copied()
    }

    /// The first value; empty if there is none.
    pub(crate) fn text(&self) -> &'a str {
        self.value().unwrap_or_default()
    }

    /// The words of the option.
    pub(crate) fn written(&self) -> Vec<String> {
        std::iter::once(self.name).chain(self.values.iter().copied()).map(str::to_owned).collect()
    }

    /// What is wrong with it.
    pub(crate) fn wrong(&self, reason: impl Display) -> Stop {
        Stop::usage(format!("{}: {reason}", self.name))
    }

    pub(crate) fn number<N: FromStr>(&self, what: &str) -> Result<N, Stop> {
        let text = self.text();
        text.parse().map_err(|_| self.wrong(format!("bad {what} '{text}'")))
    }

    pub(crate) fn number_in<N>(&self, what: &str, range: RangeInclusive<N>) -> Result<N, Stop>
    where
        N: FromStr + PartialOrd + Display,
    {
        let text = self.text();
        let (min, max) = (range.start(), range.end());
        let wrong = || self.wrong(format!("bad {what} '{text}': give one from {min} to {max}"));
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(wrong)
    }

    /// A time that is not negative. A bare number counts in `unit`, as the peers write it; without a `unit` it is refused.
    pub(crate) fn time(&self, unit: &str) -> Result<Span, Stop> {
        let text = self.text();
        match self.span(unit)? {
            span if span.is_negative() => {
                Err(self.wrong(format!("bad time '{text}': it must not be negative")))
            }
            span => Ok(span),
        }
    }

    pub(crate) fn above_zero(&self, unit: &str) -> Result<Span, Stop> {
        let text = self.text();
        match self.span(unit)? {
            span if span > Span::ZERO => Ok(span),
            _ => Err(self.wrong(format!("bad time '{text}': it must be above zero"))),
        }
    }

    fn span(&self, unit: &str) -> Result<Span, Stop> {
        let text = self.text();
        let is_bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let with_unit = match (unit, is_bare) {
            ("", _) => text.to_owned(),
            (unit, true) => format!("{text}{unit}"),
            // oslat and cyclictest take M, H and D for minutes, hours and days, too.
            (_, false) => text.to_ascii_lowercase(),
        };
        with_unit.parse().map_err(|error| self.wrong(format!("bad time '{text}': {error}")))
    }

    /// One of the words of an enumeration.
    pub(crate) fn word<E: ValueEnum>(&self) -> Result<E, Stop> {
        let text = self.text();
        let values = E::value_variants().iter().filter_map(E::to_possible_value);
        let known: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        let known = || known.iter().map(String::as_str);
        E::from_str(text, false).map_err(|_| self.wrong(spelling::unknown("word", text, known())))
    }

    /// A new folder for a run.
    pub(crate) fn folder(&self) -> Result<PathBuf, Stop> {
        match self.text() {
            "" => Err(self.wrong("the name of the folder is empty")),
            "-" => Err(self.wrong(NO_FOLDER)),
            name => Ok(name.into()),
        }
    }

    /// A set of CPUs: `0-3,5` of those that may be named; `!2` is all but 2 of those that are meant where none is.
    pub(crate) fn cpus(&self, machine: &HostCpus) -> Result<CpuSet, Stop> {
        let HostCpus { cpus: usual, permitted, .. } = machine;
        let text = self.text();
        let (negated, list) = match text.strip_prefix('!') {
            Some(list) => (true, list),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let named: CpuSet = list.parse().map_err(|error| self.wrong(error))?;
        let set = if negated { usual.difference(&named) } else { named };
        let missing = set.difference(permitted);
        if let Some(cpu) = missing.iter().next() {
            return Err(self.wrong(format!(
                "CPU {cpu} is not online, or not in the cpuset of this process; use some of {permitted}"
            )));
        }
        if set.is_empty() {
            return Err(self.wrong(format!("'{text}' leaves no CPU of {usual}")));
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(value: &str) -> OptionValues<'_> {
        OptionValues { name: "-x", values: vec![value] }
    }

    #[test]
    fn bare_numbers_have_the_options_unit() {
        for (text, wanted) in [("200", "200us"), ("1ms", "1ms"), ("1H", "1h"), ("0", "0s")] {
            assert_eq!(given(text).time("us").unwrap(), wanted.parse().unwrap(), "{text}");
        }
        assert!(given("-1").time("us").is_err() && given("").time("us").is_err());
        assert!(given("0").above_zero("us").is_err() && given("200").time("").is_err());
    }

    #[test]
    fn cpus_may_be_named_by_what_is_left_out() {
        // Started on 0-3, with CPU 4 isolated.
        let (usual, permitted) = ((0..4).collect(), (0..5).collect());
        let machine = HostCpus { cpus: usual, permitted, ..HostCpus::default() };
        for (text, wanted) in [("1-2", "1-2"), ("!1-2", "0,3"), ("+3", "3"), ("3-4", "3-4")] {
            assert_eq!(given(text).cpus(&machine).unwrap().to_string(), wanted);
        }
        for (text, wanted) in [
            ("5", "-x: CPU 5 is not online, or not in the cpuset of this process; use some of 0-4"),
            ("!0-3", "-x: '!0-3' leaves no CPU of 0-3"),
            ("a", "-x: 'a' is not a list of CPUs; write for example 0, 0-3 or 0,2-3"),
        ] {
            assert_eq!(given(text).cpus(&machine).unwrap_err().to_string(), wanted);
        }
    }
}
