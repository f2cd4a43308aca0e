//! The table of time sources, for people.

use std::fmt::Write;

use hourglass_model::clocks::{ClocksDocument, SourceFacts};

use super::Style;
use super::table::{Column, NARROW, Table, Tone, paint, wrapped_within};
use crate::clean;

/// What one column means, and where to find more.
const BOUND: &str =
    "bound: of one comparison with CLOCK_MONOTONIC; --watch shows that of the running
clock, --evidence what speaks for and against each source\n\n";
/// What stands where there is nothing to show.
const NOTHING: &str = "-";

/// The time sources of a machine: a table, why each is trusted or not, and, if `evidence`, item
/// by item what was found; then the offsets between CPUs.
#[must_use]
pub fn clocks(document: &ClocksDocument, evidence: bool, style: Style) -> String {
    let mut out = String::new();
    let chosen =
        clean::for_terminal(&format!("{} by policy {}", document.selected, document.policy));
    out.push_str(&paint(&chosen, Tone::Heading, style));
    let reason = format!(": {}", clean::for_terminal(&document.reason));
    out.push_str(&wrapped_within(NARROW, &reason, chosen.chars().count(), 2));
    out.push_str("\n\n");
    let (there, missing): (Vec<_>, Vec<_>) = document.sources.iter().partition(|s| s.available);
    table(&there).write(&mut out, style);
    out.push_str(BOUND);
    // Writing to a string cannot fail.
    for source in &missing {
        let why = wrapped_within(NARROW, &format!("not available: {}", why_not(source)), 17, 17);
        let _ = writeln!(out, "{:<16} {why}", source.name);
    }
    for source in there.iter().filter(|source| evidence || source.name == document.selected) {
        let reason = format!("{}: {}", source.name, clean::for_terminal(&source.reason));
        let _ = writeln!(out, "\n{}", wrapped_within(NARROW, &reason, 0, 2));
        for item in &source.evidence {
            let found = wrapped_within(NARROW, &clean::for_terminal(&item.found), 36, 36);
            let _ = writeln!(out, "  {:<8} {:<24} {found}", item.verdict, item.id);
        }
    }
    for pair in &document.cross_cpu {
        let (a, b, lo, hi) = (pair.a, pair.b, pair.offset_lo_ns, pair.offset_hi_ns);
        let _ = match lo > hi {
            true => writeln!(out, "\nCPU {b} against CPU {a}: the rounds contradict each other"),
            false => writeln!(out, "\nCPU {b} against CPU {a}: from {lo} to {hi} ns ahead"),
        };
    }
    if let Some(found) = &document.monotonicity {
        let _ = writeln!(
            out,
            "\n{} reads handed between {} CPUs: {} backwards",
            found.reads, found.cpus, found.violations
        );
    }
    out
}

fn why_not(source: &SourceFacts) -> String {
    let remedy = if source.remedy.is_empty() { "" } else { "; " };
    clean::for_terminal(&format!("{}{remedy}{}", source.reason, source.remedy))
}

/// The name of what speaks against a source; `--evidence` has the sentence.
fn against(reason: &str) -> &str {
    let named = reason.split_once(':').map(|(name, _)| name);
    named.filter(|name| !name.contains(' ')).unwrap_or("by policy")
}

fn table(sources: &[&SourceFacts]) -> Table {
    let mut table = Table::new("Sources, ns".to_owned())
        .narrow()
        .column(Column::Text, "source")
        .column(Column::Text, "trusted")
        .column(Column::Number, "MHz")
        .column(Column::Number, "step")
        .column(Column::Number, "read")
        .column(Column::Number, "p99")
        .column(Column::Number, "bound")
        .column(Column::Elastic, "why not");
    let number = |value: Option<f64>, digits: usize| {
        (value.map_or(NOTHING.to_owned(), |v| format!("{v:.digits$}")), Tone::Normal)
    };
    for source in sources {
        let against = if source.trusted { "" } else { against(&source.reason) };
        let trusted = if source.trusted { ("yes", Tone::Good) } else { ("no", Tone::Normal) };
        table.row(vec![
            (source.name.clone(), Tone::Normal),
            (trusted.0.to_owned(), trusted.1),
            number(source.frequency_hz.map(|hz| hz / 1e6), 3),
            number(source.resolution_ns, 1),
            number(source.read_p50_ns, 1),
            number(source.read_p99_ns, 1),
            number(source.error_bound_ns, 0),
            (clean::for_terminal(against), Tone::Faint),
        ]);
    }
    table
}
