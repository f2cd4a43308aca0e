//! Values as the peers write them: plain numbers whose unit the option knows, or times with a unit.

use hourglass_documents::CpuSet;
use hourglass_time::Span;

use super::HostCpus;
use super::short_options::LetterOption;
use crate::exit::Stop;

pub(super) fn number<K, T: std::str::FromStr>(
    given: &LetterOption<'_, K>,
    what: &str,
) -> Result<T, Stop> {
    let text = given.text();
    text.parse().map_err(|_| given.wrong(format!("bad {what} '{text}'")))
}

/// A time; a bare number counts in `unit`.
pub(super) fn time<K>(given: &LetterOption<'_, K>, unit: &str) -> Result<Span, Stop> {
    let text = given.text();
    let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // oslat and cyclictest take M, H and D for minutes, hours and days, too.
    let lower = text.to_ascii_lowercase();
    let with_unit = if bare { format!("{text}{unit}") } else { lower };
    match with_unit.parse::<Span>() {
        Ok(span) if !span.is_negative() => Ok(span),
        Ok(_) => Err(given.wrong(format!("bad time '{text}': it must not be negative"))),
        Err(error) => Err(given.wrong(format!("bad time '{text}': {error}"))),
    }
}

pub(super) fn above_zero<K>(given: &LetterOption<'_, K>, unit: &str) -> Result<Span, Stop> {
    match time(given, unit)? {
        Span::ZERO => {
            Err(given.wrong(format!("bad time '{}': it must be above zero", given.text())))
        }
        span => Ok(span),
    }
}

pub(super) fn priority<K>(given: &LetterOption<'_, K>, least: u8) -> Result<u8, Stop> {
    match number::<K, u8>(given, "priority") {
        Ok(priority) if (least..=99).contains(&priority) => Ok(priority),
        _ => {
            Err(given
                .wrong(format!("bad priority '{}': give one from {least} to 99", given.text())))
        }
    }
}

/// A set of CPUs: `0-3,5` of those that may be named; `!2` is all but 2 of those that are meant where none is.
pub(super) fn cpus<K>(given: &LetterOption<'_, K>, machine: &HostCpus) -> Result<CpuSet, Stop> {
    let HostCpus { cpus: usual, permitted, .. } = machine;
    let text = given.text();
    let (negated, list) = match text.strip_prefix('!') {
        Some(list) => (true, list),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let named: CpuSet = list.parse().map_err(|error| given.wrong(error))?;
    let set = if negated { usual.difference(&named) } else { named };
    let missing = set.difference(permitted);
    if let Some(cpu) = missing.iter().next() {
        return Err(given.wrong(format!(
            "CPU {cpu} is not online, or not in the cpuset of this process; use some of {permitted}"
        )));
    }
    if set.is_empty() {
        return Err(given.wrong(format!("'{text}' leaves no CPU of {usual}")));
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(value: &str) -> LetterOption<'_, ()> {
        LetterOption { key: (), name: "-x".to_owned(), value: Some(value) }
    }

    #[test]
    fn bare_numbers_have_the_options_unit() {
        for (text, wanted) in [("200", "200us"), ("1ms", "1ms"), ("1H", "1h"), ("0", "0s")] {
            assert_eq!(time(&given(text), "us").unwrap(), wanted.parse().unwrap(), "{text}");
        }
        assert!(time(&given("-1"), "us").is_err() && time(&given(""), "us").is_err());
        assert!(above_zero(&given("0"), "us").is_err());
    }

    #[test]
    fn cpus_may_be_named_by_what_is_left_out() {
        // Started on 0-3, with CPU 4 isolated.
        let (usual, permitted) = ((0..4).collect(), (0..5).collect());
        let machine = HostCpus { cpus: usual, permitted, ..HostCpus::default() };
        for (text, wanted) in [("1-2", "1-2"), ("!1-2", "0,3"), ("+3", "3"), ("3-4", "3-4")] {
            assert_eq!(cpus(&given(text), &machine).unwrap().to_string(), wanted);
        }
        for (text, wanted) in [
            ("5", "-x: CPU 5 is not online, or not in the cpuset of this process; use some of 0-4"),
            ("!0-3", "-x: '!0-3' leaves no CPU of 0-3"),
            ("a", "-x: 'a' is not a list of CPUs; write for example 0, 0-3 or 0,2-3"),
        ] {
            assert_eq!(cpus(&given(text), &machine).unwrap_err().to_string(), wanted);
        }
    }
}
