//! Two ways of running compared, as text.

use std::collections::BTreeMap;

use hourglass_documents::diff::{DiffDocument, DiffMetric, DiffSide, DiffVerdict, Statement};
use hourglass_documents::document::GateReport;

use super::Style;
use super::table::{ColumnFormat, TextStyle, TextTable, paint, wrapped};
use crate::clean;
use crate::units::{amount as gate_amount, rounded};

/// Width of the words that stand before the lines.
const LABEL: usize = 13;

/// A command line is cut behind this.
const LONGEST_COMMAND: usize = 300;

/// What stands where there is nothing to show.
const NOTHING: &str = "-";

/// What was compared, the metrics, what is undecided and why, a verdict in one line, and warnings with
/// what mends them. At most 100 columns wide.
#[must_use]
pub fn diff(document: &DiffDocument, style: Style) -> String {
    let mut out = String::new();
    side(&mut out, "A", &document.a, style);
    side(&mut out, "B", &document.b, style);
    for difference in &document.differences {
        let text = format!("{}: {} in A, {} in B", difference.what, difference.a, difference.b);
        line(&mut out, "Differs", &text, TextStyle::Faint, style);
    }
    out.push('\n');
    table(document).write(&mut out, style);
    undecided(&mut out, document, style);
    line(&mut out, "Basis", &basis(document), TextStyle::Faint, style);
    gates(&mut out, document, style);
    for statement in &document.statements {
        line(&mut out, "Follows", &follows(statement), TextStyle::Normal, style);
    }
    if let Some(control) = &document.control {
        line(&mut out, "Control", &control.statement, TextStyle::Normal, style);
    }
    let (text, tone) = verdict(document);
    line(&mut out, "Verdict", &text, tone, style);
    // Beside a control nothing is asked, so that nothing has to be decided.
    if document.verdict == DiffVerdict::Unknown && document.control.is_none() {
        line(&mut out, "", &what_would_decide(document), TextStyle::Normal, style);
    }
    for warning in &document.warnings {
        line(&mut out, "Warning", &warning.text, TextStyle::Caution, style);
        if !warning.remedy.is_empty() {
            line(&mut out, "", &warning.remedy, TextStyle::Normal, style);
        }
    }
    out
}

fn side(out: &mut String, label: &str, side: &DiffSide, style: Style) {
    let mut text = clean::shortened(&clean::for_terminal(&side.what), LONGEST_COMMAND);
    match &side.folders[..] {
        [] => {}
        [one] => text.push_str(&format!(" ({one})")),
        [first, .., last] => text.push_str(&format!(" ({first} to {last})")),
    }
    line(out, label, &text, TextStyle::Normal, style);
}

fn line(out: &mut String, label: &str, text: &str, tone: TextStyle, style: Style) {
    out.push_str(&paint(label, TextStyle::Heading, style));
    out.extend(std::iter::repeat_n(' ', LABEL.saturating_sub(label.len())));
    let text = wrapped(&clean::for_terminal(text), LABEL, LABEL);
    out.push_str(&paint(&text, tone, style));
    out.push('\n');
}

fn table(document: &DiffDocument) -> TextTable {
    let title = match document.method.as_str() {
        "rounds" => format!("{} rounds", document.rounds),
        _ => "One run each".to_owned(),
    };
    let interval = format!("{:.0} % interval", document.confidence * 100.0);
    let mut table = TextTable::new(title)
        .column(ColumnFormat::Elastic, "metric")
        .columns(ColumnFormat::Number, ["A", "B", "change", "of A"])
        .column(ColumnFormat::Number, interval)
        .column(ColumnFormat::Text, "verdict");
    for metric in &document.metrics {
        table.row(row(metric));
    }
    table
}

fn row(metric: &DiffMetric) -> Vec<(String, TextStyle)> {
    let or_nothing =
        |text: Option<String>| (text.unwrap_or_else(|| NOTHING.to_owned()), TextStyle::Normal);
    let unit = metric.unit.as_str();
    // Shares differ by percentage points; the column behind says by how many per cent.
    let moved_unit = if unit == "percent" { "points" } else { unit };
    let interval = metric.ci_lo.zip(metric.ci_hi);
    vec![
        (clean::for_terminal(&metric.name), TextStyle::Normal),
        or_nothing(metric.a.map(|a| amount(a, unit))),
        or_nothing(metric.b.map(|b| amount(b, unit))),
        or_nothing(metric.change.map(|change| signed(change, moved_unit))),
        or_nothing(metric.change_percent.map(|percent| format!("{percent:+.1} %"))),
        or_nothing(
            interval.map(|(lo, hi)| {
                format!("{} to {}", signed(lo, moved_unit), signed(hi, moved_unit))
            }),
        ),
        (metric.verdict.name().to_owned(), tone(metric.verdict)),
    ]
}

fn tone(verdict: DiffVerdict) -> TextStyle {
    match verdict {
        DiffVerdict::Same => TextStyle::Normal,
        DiffVerdict::Better => TextStyle::Good,
        DiffVerdict::Worse => TextStyle::Bad,
        DiffVerdict::Unknown => TextStyle::Faint,
    }
}

/// A quantity with its unit: `2.18 us`, `0.132 %`, `251.0/s`.
fn amount(value: f64, unit: &str) -> String {
    let size = value.abs();
    let text = match unit {
        // Above u64 the conversion saturates.
        "ns" => rounded(size.round() as u64),
        "percent" => format!("{} %", digits(size)),
        "points" => format!("{} pp", digits(size)),
        _ if size < 100.0 => format!("{size:.2}/s"),
        _ => format!("{size:.0}/s"),
    };
    if value < 0.0 { format!("-{text}") } else { text }
}

/// A share with as many decimals as its size asks for.
fn digits(size: f64) -> String {
    match size {
        size if size < 1.0 => format!("{size:.3}"),
        size if size < 10.0 => format!("{size:.2}"),
        size => format!("{size:.1}"),
    }
}

fn signed(value: f64, unit: &str) -> String {
    if value > 0.0 { format!("+{}", amount(value, unit)) } else { amount(value, unit) }
}

/// What is unknown, by the reason.
fn undecided(out: &mut String, document: &DiffDocument, style: Style) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for metric in document.metrics.iter().filter(|m| m.verdict == DiffVerdict::Unknown) {
        reasons.entry(&metric.reason).or_default().push(&metric.name);
    }
    for (reason, names) in reasons {
        let text = format!("{}: {reason}", names.join(", "));
        line(out, "Undecided", &text, TextStyle::Faint, style);
    }
}

/// How often each limit was broken on each side, and in which round by the most.
fn gates(out: &mut String, document: &DiffDocument, style: Style) {
    let mut limits: BTreeMap<(&str, &str), Vec<(u64, &GateReport)>> = BTreeMap::new();
    for round in &document.gates {
        for gate in &round.gates {
            limits.entry((&round.side, &gate.name)).or_default().push((round.round, gate));
        }
    }
    for ((side, name), rounds) in limits {
        let broken = rounds.iter().filter(|(_, gate)| !gate.passed).count();
        let worst = rounds.iter().max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
        let Some((round, worst)) = worst else { continue };
        let counted = match (broken, rounds.len()) {
            (0, 1) => "kept".to_owned(),
            (1, 1) => "broken".to_owned(),
            (0, all) => format!("kept in all {all} rounds"),
            (broken, all) => format!("broken in {broken} of {all} rounds"),
        };
        let found = match rounds.len() {
            1 => String::new(),
            _ => format!(" in round {round}"),
        };
        let text = format!(
            "{name} in {}: {counted}; {} found{found}, {} allowed",
            side.to_uppercase(),
            gate_amount(worst.value, &worst.unit),
            gate_amount(worst.limit, &worst.unit)
        );
        line(out, "Gate", &text, if broken == 0 { TextStyle::Good } else { TextStyle::Bad }, style);
    }
}

/// A statement that follows from both runs, with how sure it is.
pub(super) fn follows(statement: &Statement) -> String {
    match statement.confidence {
        confidence if confidence > 0.0 => {
            // A sample is no proof: at most 0.999 is shown.
            format!("{} (confidence {:.3})", statement.text, confidence.min(0.999))
        }
        _ => statement.text.clone(),
    }
}

fn basis(document: &DiffDocument) -> String {
    let has_gaps = document.metrics.iter().any(|metric| metric.name.starts_with("gaps."));
    let gaps = match document.gap_ns {
        0 => String::new(),
        _ if !has_gaps => String::new(),
        ns => format!("gaps longer than {} on both sides; ", rounded(ns)),
    };
    format!(
        "{gaps}changes up to {} % count as none; seed {}",
        document.margin_percent, document.seed
    )
}

/// What can decide a comparison that decided nothing.
fn what_would_decide(document: &DiffDocument) -> String {
    let needed = leading(document).map(|metric| metric.rounds_needed).max().unwrap_or(0);
    let more = match document.method.as_str() {
        "rounds" if document.rounds < needed => &format!("{needed} rounds or more can decide"),
        "rounds" => "more rounds, or longer runs, decide",
        _ => "rounds decide what one run each does not: hourglass run --against 'OPTIONS'",
    };
    format!("{more}; the exit code is 4, with --fail-on worse it is 0")
}

/// The metrics that decide whether nothing changed.
fn leading(document: &DiffDocument) -> impl Iterator<Item = &DiffMetric> {
    document.metrics.iter().filter(|metric| metric.leads && !metric.name.starts_with("causes."))
}

fn verdict(document: &DiffDocument) -> (String, TextStyle) {
    let names = |verdict: DiffVerdict| {
        let of = document.metrics.iter().filter(|metric| metric.verdict == verdict);
        // What explains others is listed in the table.
        let plain = of.filter(|metric| !metric.name.starts_with("causes."));
        plain.map(|metric| clean::for_terminal(&metric.name)).collect::<Vec<_>>().join(", ")
    };
    let (worse, better) = (names(DiffVerdict::Worse), names(DiffVerdict::Better));
    let text = match document.verdict {
        DiffVerdict::Worse if better.is_empty() => format!("B is worse than A in {worse}"),
        DiffVerdict::Worse => format!("B is worse than A in {worse}, and better in {better}"),
        DiffVerdict::Better => format!("B is better than A in {better}"),
        DiffVerdict::Same => {
            format!("nothing moved; {} did not change", names(DiffVerdict::Same))
        }
        DiffVerdict::Unknown => {
            let open = leading(document).filter(|metric| metric.verdict == DiffVerdict::Unknown);
            let open: Vec<String> = open.map(|metric| clean::for_terminal(&metric.name)).collect();
            match open.is_empty() {
                true => "unknown: nothing could be decided".to_owned(),
                false => format!("unknown: whether {} changed is not decided", open.join(", ")),
            }
        }
    };
    let tone = match document.verdict {
        DiffVerdict::Same | DiffVerdict::Better => TextStyle::Good,
        DiffVerdict::Worse => TextStyle::Bad,
        DiffVerdict::Unknown => TextStyle::Caution,
    };
    (text, tone)
}
