//! The reservations in force on a machine, one a line.

use hourglass_documents::reservations::{ReservationInForce, ReservationsDocument};
use hourglass_time::Span;

use super::Style;
use super::table::{TextStyle, paint_line};
use crate::clean;

/// Columns of a command.
const COMMAND: usize = 40;

/// One line for each; warnings are left out.
#[must_use]
pub fn reservations(document: &ReservationsDocument, style: Style) -> String {
    if document.reservations.is_empty() {
        return "nothing is reserved\n".to_owned();
    }
    const HEADS: [&str; 8] =
        ["PID", "USER", "CPU", "BUDGET/PERIOD", "BACKEND", "PERIODS", "MISSED", "COMMAND"];
    let rows: Vec<[String; 8]> = document.reservations.iter().map(row).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([HEADS[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let line = |cells: &[String; 8]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut out = String::new();
    paint_line(&mut out, &line(&HEADS.map(str::to_owned)), TextStyle::Heading, style);
    for (cells, one) in rows.iter().zip(&document.reservations) {
        let tone = if one.kept == Some(false) { TextStyle::Bad } else { TextStyle::Normal };
        paint_line(&mut out, &line(cells), tone, style);
    }
    out
}

fn row(one: &ReservationInForce) -> [String; 8] {
    let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
    // As the command line takes it.
    let exact = |ns: u64| Span::saturating_from_nanos(ns).to_string();
    let more = if one.reclaims == Some(true) { "+" } else { "" };
    let cpus: hourglass_documents::CpuSet = one.cpus.iter().copied().collect();
    [
        number(one.pid.map(u64::from)),
        number(one.user.map(u64::from)),
        cpus.to_string(),
        format!("{}/{}{more}", exact(one.budget_ns), exact(one.period_ns)),
        one.backend.clone(),
        number(one.periods),
        number(one.missed),
        clean::shortened(&clean::for_terminal(&one.command), COMMAND).to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_a_line() {
        let one = ReservationInForce {
            pid: Some(4711),
            tid: None,
            command: "hourglass reserve 3.1ms/8ms -- player\u{1b}[2J".to_owned(),
            user: Some(0),
            cpus: vec![0, 1],
            budget_ns: 3_100_000,
            period_ns: 8_000_000,
            deadline_ns: 8_000_000,
            reclaims: None,
            backend: "user".to_owned(),
            periods: Some(1_000),
            missed: Some(3),
            kept: Some(false),
        };
        let unknown = ReservationInForce {
            pid: None,
            user: None,
            periods: None,
            missed: None,
            kept: None,
            command: String::new(),
            ..one.clone()
        };
        let reclaims = ReservationInForce { reclaims: Some(true), ..unknown.clone() };
        let document = |reservations| ReservationsDocument {
            schema: String::new(),
            reservations,
            warnings: Vec::new(),
        };
        let text = reservations(&document(vec![one, unknown, reclaims]), Style::Plain);
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(lines[1][..7], ["4711", "0", "0-1", "3.1ms/8ms", "user", "1000", "3"]);
        assert_eq!(lines[2], ["-", "-", "0-1", "3.1ms/8ms", "user", "-", "-"]);
        assert_eq!(lines[3][3], "3.1ms/8ms+");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!(reservations(&document(Vec::new()), Style::Plain), "nothing is reserved\n");
    }
}
