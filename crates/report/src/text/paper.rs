//! A paper's tables beside what was measured, for people.

use std::fmt::Write;

use hourglass_documents::paper::{
    Decision, MachineFacts, MeasurementKind, PaperDocument, PaperList, PaperRow, PaperTable,
};

use super::Style;
use super::paper_grid::grid;
use super::table::{
    ColumnFormat, NARROW as PAGE, TextCell, TextStyle, TextTable, paint, paint_line, wrapped_within,
};
use crate::clean;

/// Significant digits of the least of the numbers that are in one unit, and decimals at most.
const DIGITS: i32 = 3;
const MOST_DECIMALS: i32 = 4;

/// A paper's tables, each with what differs and why.
#[must_use]
pub fn paper(document: &PaperDocument, style: Style) -> String {
    let mut out = String::new();
    line(&mut out, TextStyle::Heading, &document.title, style);
    line(&mut out, TextStyle::Normal, &document.source, style);
    line(&mut out, TextStyle::Normal, &format!("here: {}", machine(&document.machine)), style);
    for table in &document.tables {
        out.push('\n');
        write_table(&mut out, table, style);
    }
    if document.interrupted {
        let text = "\nInterrupted: the tables that were not complete are left out.\n";
        out.push_str(&paint(text, TextStyle::Caution, style));
    }
    out
}

/// The papers there are, with their tables.
#[must_use]
pub fn papers(list: &PaperList, style: Style) -> String {
    let mut out = String::new();
    for paper in &list.papers {
        let name = paint(&clean::for_terminal(&paper.name), TextStyle::Heading, style);
        let indent = paper.name.chars().count() + 2;
        let text = format!("{} ({})", paper.title, paper.source);
        let text = wrapped_within(PAGE, &clean::for_terminal(&text), indent, 4);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name}: {text}");
        for table in &paper.tables {
            let _ = writeln!(out, "    {:<5} {}", table.id, table.title);
        }
    }
    out
}

/// A line of text, wrapped.
fn line(out: &mut String, tone: TextStyle, text: &str, style: Style) {
    let text = wrapped_within(PAGE, &clean::for_terminal(text), 0, 2);
    paint_line(out, &text, tone, style);
}

fn machine(facts: &MachineFacts) -> String {
    let mut parts = vec![facts.processor.clone().unwrap_or_else(|| "unknown processor".into())];
    parts.extend(facts.counter_hz.map(|hz| format!("counter of {:.3} MHz", hz / 1e6)));
    parts.push(format!("Linux {}", facts.kernel));
    parts.extend(facts.clock_source.as_ref().map(|name| format!("clock source {name}")));
    parts.extend(facts.virtual_machine.as_ref().map(|kind| format!("virtual machine ({kind})")));
    parts.join(", ")
}

fn write_table(out: &mut String, table: &PaperTable, style: Style) {
    grid(table).unwrap_or_else(|| rows(table)).write(out, style);
    for (rows, why) in missing(&table.rows) {
        line(out, TextStyle::Caution, &format!("not measured ({}): {why}", rows.join("; ")), style);
    }
    line(out, TextStyle::Normal, &format!("there: {}", table.paper_machine), style);
    line(out, TextStyle::Normal, &format!("here: {}", table.method), style);
    line(out, TextStyle::Normal, &table.difference, style);
    write_decisions(out, &table.decisions);
    for note in &table.notes {
        line(out, TextStyle::Faint, &format!("Note: {note}"), style);
    }
    if let Some(figure) = &table.figure {
        line(out, TextStyle::Normal, &format!("Figure: {figure}"), style);
    }
}

/// What is above a table: tables have numbers, figures have `figure-` before theirs.
pub(super) fn heading(table: &PaperTable) -> String {
    match table.id.strip_prefix("figure-") {
        Some(number) => format!("Figure {number}: {}", table.title),
        None => format!("Table {}: {}", table.id, table.title),
    }
}

/// What is chosen, one below the other, each with the numbers it is chosen by and why.
fn write_decisions(out: &mut String, decisions: &[Decision]) {
    let longest = decisions.iter().map(|decision| decision.chosen.chars().count()).max();
    let Some(width) = longest else { return };
    out.push_str("The paper's rule chooses\n");
    for Decision { given, chosen, because } in decisions {
        let text = clean::for_terminal(&format!("by {given}: {because}"));
        let text = wrapped_within(PAGE, &text, width + 4, width + 6);
        let _ = writeln!(out, "  {:width$}  {text}", clean::for_terminal(chosen));
    }
}

fn rows(table: &PaperTable) -> TextTable {
    let all_measured = table.rows.iter().all(|row| row.how == MeasurementKind::Measured);
    TextTable::of(clean::for_terminal(&heading(table)), &table.rows)
        .text("", |row| row.name.as_str())
        .number("paper", |row| row.paper.map(|number| number.to_string()))
        .number("here", |row| {
            let decimals = decimals(in_unit(&table.rows, &row.unit));
            row.measured.map(|number| format!("{number:.decimals$}"))
        })
        .number("ratio", |row| {
            let ratio = row.measured.zip(row.paper).map_or(String::new(), ratio);
            TextCell::toned(ratio, TextStyle::Faint)
        })
        .text("unit", |row| row.unit.as_str())
        .column_if(!all_measured, ColumnFormat::Text, "how", |row| row.how.name())
        .table()
}

/// Reasons, each with the rows that it is of.
fn missing(rows: &[PaperRow]) -> Vec<(Vec<&str>, &str)> {
    let mut reasons: Vec<(Vec<&str>, &str)> = Vec::new();
    for row in rows {
        let Some(why) = row.missing.as_deref() else { continue };
        match reasons.iter_mut().find(|(_, known)| *known == why) {
            Some((names, _)) => names.push(&row.name),
            None => reasons.push((vec![&row.name], why)),
        }
    }
    reasons
}

fn in_unit<'a>(rows: &'a [PaperRow], unit: &'a str) -> impl Iterator<Item = &'a PaperRow> {
    rows.iter().filter(move |row| row.unit == unit)
}

/// Decimals of all measured numbers of these rows, so that the least of them keeps its digits; none
/// where all are whole.
pub(super) fn decimals<'a>(rows: impl Iterator<Item = &'a PaperRow>) -> usize {
    let measured: Vec<f64> = rows.filter_map(|row| row.measured.map(f64::abs)).collect();
    if measured.iter().all(|number| number.fract() == 0.0) {
        return 0;
    }
    let least = measured.into_iter().filter(|number| *number > 0.0).reduce(f64::min);
    // The exponent of the least number, -2 for 0.05: a few units, never near the ends of an i32.
    let exponent = least.map_or(0, |least| least.log10().floor() as i32);
    usize::try_from((DIGITS - 1 - exponent).clamp(0, MOST_DECIMALS)).unwrap_or(0)
}

/// How many times the paper's number the one measured here is.
fn ratio((measured, paper): (f64, f64)) -> String {
    let ratio = measured / paper;
    match ratio {
        // A difference that turned round has no ratio.
        size if !size.is_finite() || size < 0.0 => String::new(),
        size if size > 0.0 && size < 0.001 => format!("{ratio:.1e}"),
        size if size < 0.1 => format!("{ratio:.3}"),
        size if size < 100.0 => format!("{ratio:.2}"),
        _ => format!("{ratio:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(measured: Option<f64>, unit: &str) -> PaperRow {
        PaperRow {
            name: "a quantity".into(),
            paper: None,
            measured,
            unit: unit.into(),
            how: MeasurementKind::Measured,
            count: None,
            missing: None,
            cell: None,
        }
    }

    #[test]
    fn numbers_of_one_unit_share_their_decimals() {
        let rows = [
            row(Some(8.7), "ns"),
            row(Some(-0.52), "ns"),
            row(Some(0.0), "ns"),
            row(Some(0.00006), "us"),
            row(Some(4_000.5), "ms"),
            row(Some(1.0), "timers"),
            row(Some(27_401.0), "timers"),
            row(None, "s"),
        ];
        let units = ["ns", "us", "ms", "timers", "s"];
        let found = units.map(|unit| decimals(in_unit(&rows, unit)));
        assert_eq!(found, [3, 4, 0, 0, 0]);
    }

    #[test]
    fn ratios_of_any_size() {
        let ratios = [
            (0.0135, 33.0, "4.1e-4"),
            (8.7, 10.2, "0.85"),
            (22.0, 1129.4, "0.019"),
            (5e5, 1.0, "500000"),
        ];
        for (measured, paper, text) in ratios {
            assert_eq!(ratio((measured, paper)), text);
        }
        assert_eq!(ratio((1.0, 0.0)) + &ratio((-1.0, 2.0)), "");
    }
}
