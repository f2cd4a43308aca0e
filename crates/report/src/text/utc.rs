//! UTC and who vouches for it.

use std::fmt::Write;

use hourglass_documents::clocks::UtcFacts;

use super::Style;
use super::table::{NARROW, TextStyle, paint, wrapped_within};
use crate::clean;
use crate::units::rounded;

/// Who vouches for UTC, how far it may be off, and what everybody said.
#[must_use]
pub fn utc(facts: &UtcFacts, style: Style) -> String {
    let mut out = paint("UTC", TextStyle::Heading, style);
    // Writing to a string cannot fail.
    let _ = match (facts.earliest_ns, facts.latest_ns, facts.error_ns) {
        (Some(earliest), Some(latest), Some(error)) => writeln!(
            out,
            ": {} vouches for it, within {}\n\nearliest  {}\nlatest    {}\n",
            clean::for_terminal(&facts.source),
            rounded(error),
            seconds(earliest),
            seconds(latest),
        ),
        _ => writeln!(out, ": no source vouches for this clock; it may be off by any time\n"),
    };
    if !facts.narrower.is_empty() {
        let head = if facts.error_ns.is_some() { "narrower: " } else { "remedy: " };
        let remedy = format!("{head}{}", clean::for_terminal(&facts.narrower));
        let _ = writeln!(out, "{}", wrapped_within(NARROW, &remedy, 0, 2));
    }
    for source in &facts.sources {
        let said = match (source.error_ns, source.growth_ppb, source.age_ns) {
            (Some(error), Some(ppb), Some(age)) => format!(
                "within {}, at most {} old, grows by {}.{:03} us a second",
                rounded(error),
                rounded(age),
                ppb / 1_000,
                ppb % 1_000
            ),
            _ => format!("does not vouch: {}", clean::for_terminal(&source.reason)),
        };
        let line = format!("{}: {said}", clean::for_terminal(&source.name));
        let _ = writeln!(out, "\n{}", wrapped_within(NARROW, &line, 0, 2));
        for item in &source.evidence {
            let found = wrapped_within(NARROW, &clean::for_terminal(&item.found), 36, 36);
            let _ = writeln!(out, "  {:<8} {:<24} {found}", item.verdict, item.id);
        }
    }
    out
}

/// What the columns of [`utc_line`] mean.
#[must_use]
pub fn utc_header() -> String {
    columns(["realtime_s", "error_ns", "growth_ppb", "age_ns", "source"].map(String::from))
}

/// One look, in columns for people and scripts.
#[must_use]
pub fn utc_line(facts: &UtcFacts) -> String {
    let or_dash = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |it| it.to_string());
    columns([
        seconds(facts.realtime_ns),
        or_dash(facts.error_ns),
        or_dash(facts.growth_ppb),
        or_dash(facts.age_ns),
        clean::for_terminal(&facts.source),
    ])
}

fn columns([time, error, growth, age, source]: [String; 5]) -> String {
    format!("{time:>20} {error:>14} {growth:>10} {age:>14} {source}")
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use hourglass_documents::clocks::UtcSourceFacts;

    use super::*;

    #[test]
    fn who_vouches_is_said_and_none_too() {
        let silent = UtcSourceFacts {
            name: "chronyd".to_owned(),
            reason: "no chronyd on UDP port 323".to_owned(),
            ..UtcSourceFacts::default()
        };
        let mut facts = UtcFacts {
            source: "none".to_owned(),
            realtime_ns: 1_000_000_005,
            sources: vec![silent],
            ..UtcFacts::default()
        };
        let text = utc(&facts, Style::Plain);
        assert!(text.contains("no source vouches"), "{text}");
        assert!(text.contains("chronyd: does not vouch: no chronyd on"), "{text}");
        assert_eq!(utc_line(&facts).split_whitespace().nth(1), Some("-"));
        facts.source = "kernel".to_owned();
        (facts.earliest_ns, facts.latest_ns) = (Some(1_000_000_000), Some(1_000_000_010));
        (facts.error_ns, facts.growth_ppb, facts.age_ns) = (Some(5), Some(500_000), Some(10_000));
        let text = utc(&facts, Style::Plain);
        assert!(text.contains("kernel vouches for it"), "{text}");
        assert!(text.contains("earliest  1.000000000\n"), "{text}");
        let line = utc_line(&facts);
        let columns: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(columns, ["1.000000005", "5", "500000", "10000", "kernel"]);
    }
}
