//! Two ways of running compared, as text.

use std::collections::BTreeMap;

use hourglass_documents::diff::{DiffDocument, DiffMetric, DiffSide, DiffVerdict, Statement};
use hourglass_documents::document::GateReport;
use hourglass_documents::premise::PREMISE_BROKEN;

use super::Style;
use super::table::{ColumnFormat, LabelledLines, NARROW, TextCell, TextStyle, TextTable};
use crate::clean;
use crate::units::{amount as gate_amount, rounded};

/// Width of the words that stand before the lines.
const LABEL: usize = 13;

/// A command line is cut behind this.
const LONGEST_COMMAND: usize = 300;

/// What was compared, the metrics, what is undecided and why, a verdict in one line, and warnings with
/// what mends them. At most 80 columns wide.
#[must_use]
pub fn diff(document: &DiffDocument, style: Style) -> String {
    let mut lines = LabelledLines { out: String::new(), style, indent: LABEL, page: NARROW };
    side(&mut lines, "A", &document.a);
    side(&mut lines, "B", &document.b);
    for difference in &document.differences {
        let text = format!("{}: {} in A, {} in B", difference.what, difference.a, difference.b);
        lines.line("Differs", &text, TextStyle::Faint);
    }
    lines.out.push('\n');
    table(document).write(&mut lines.out, style);
    opposite(&mut lines, document);
    undecided(&mut lines, document);
    lines.line("Basis", &basis(document), TextStyle::Faint);
    gates(&mut lines, document);
    for statement in &document.statements {
        lines.line("Follows", &follows(statement), TextStyle::Normal);
    }
    if let Some(control) = &document.control {
        lines.line("Control", &control.statement, TextStyle::Normal);
    }
    let (text, tone) = verdict(document);
    lines.line("Verdict", &text, tone);
    // Beside a control nothing is asked, so that nothing has to be decided.
    if document.verdict == DiffVerdict::Unknown && document.control.is_none() {
        lines.below(&what_would_decide(document));
    }
    document.warnings.iter().for_each(|warning| lines.warning(warning));
    lines.out
}

fn side(lines: &mut LabelledLines, label: &str, side: &DiffSide) {
    let mut text = clean::shortened(&clean::for_terminal(&side.what), LONGEST_COMMAND);
    match &side.folders[..] {
        [] => {}
        [one] => text.push_str(&format!(" ({one})")),
        [first, .., last] => text.push_str(&format!(" ({first} to {last})")),
    }
    lines.line(label, &text, TextStyle::Normal);
}

fn table(document: &DiffDocument) -> TextTable {
    let title = match document.method.as_str() {
        "rounds" => format!("{} rounds", document.rounds),
        _ => "One run each".to_owned(),
    };
    let interval = format!("{:.0} % interval", document.confidence * 100.0);
    let change = |metric: &DiffMetric, value: f64| signed(value, moved_unit(metric));
    TextTable::of(title, &document.metrics)
        .elastic("metric", |metric| metric.name.as_str())
        .number("A", |metric| metric.a.map(|a| amount(a, &metric.unit)))
        .number("B", |metric| metric.b.map(|b| amount(b, &metric.unit)))
        .number("change", |metric| {
            // Of A; the interval has the amounts.
            let percent = metric.change_percent.map(|percent| format!("{percent:+.1} %"));
            percent.or_else(|| metric.change.map(|value| change(metric, value)))
        })
        .column(ColumnFormat::Elastic, interval, |metric| {
            let (lo, hi) = metric.ci_lo.zip(metric.ci_hi)?;
            Some(format!("{} to {}", change(metric, lo), change(metric, hi)))
        })
        .text("verdict", |metric| TextCell::toned(metric.verdict.name(), tone(metric.verdict)))
        .narrow()
}

/// Shares differ by percentage points; the column behind says by how many per cent.
fn moved_unit(metric: &DiffMetric) -> &str {
    if metric.unit == "percent" { "points" } else { &metric.unit }
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

/// Changes that seem to contradict the columns beside them: these are medians of all rounds, and those of the pairs.
fn opposite(lines: &mut LabelledLines, document: &DiffDocument) {
    let contradicts = |metric: &&DiffMetric| {
        let moved = metric.a.zip(metric.b).map(|(a, b)| b - a);
        moved.zip(metric.change).is_some_and(|(moved, change)| moved * change < 0.0)
    };
    let names: Vec<&str> =
        document.metrics.iter().filter(contradicts).map(|metric| &*metric.name).collect();
    if !names.is_empty() {
        let text = format!(
            "{}: the change is that of round by round, against the order of the two medians: rounds differ more than A \
             and B do",
            names.join(", ")
        );
        lines.line("Note", &text, TextStyle::Faint);
    }
}

/// What is unknown, by the reason.
fn undecided(lines: &mut LabelledLines, document: &DiffDocument) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for metric in document.metrics.iter().filter(|m| m.verdict == DiffVerdict::Unknown) {
        reasons.entry(&metric.reason).or_default().push(&metric.name);
    }
    for (reason, names) in reasons {
        let text = format!("{}: {reason}", names.join(", "));
        lines.line("Undecided", &text, TextStyle::Faint);
    }
}

/// How often each limit was broken on each side, and in which round by the most.
fn gates(lines: &mut LabelledLines, document: &DiffDocument) {
    let mut limits: BTreeMap<(&str, &str), Vec<(u64, &GateReport)>> = BTreeMap::new();
    for round in &document.gates {
        for gate in &round.gates {
            limits.entry((&round.side, &gate.name)).or_default().push((round.round, gate));
        }
    }
    let holds = document.warnings.iter().all(|warning| warning.id != PREMISE_BROKEN);
    for ((side, name), rounds) in limits {
        let broken = rounds.iter().filter(|(_, gate)| !gate.passed).count();
        let worst = rounds.iter().max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
        let Some((round, worst)) = worst else { continue };
        let counted = match (broken, rounds.len()) {
            (0, _) if !holds => "no verdict".to_owned(),
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
        let tone = match broken {
            0 if holds => TextStyle::Good,
            0 => TextStyle::Caution,
            _ => TextStyle::Bad,
        };
        lines.line("Gate", &text, tone);
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
