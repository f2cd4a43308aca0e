//! Rows as the papers' files make them.

use hourglass_model::paper::{MeasurementKind, PaperRow, PaperTable};

use super::printed::{MeasuredTable, size};

/// What was found: a number, of times in ns, and the single measurements behind it; or why there is none.
pub(super) type Found = Result<(f64, u64), String>;

/// A row, with its number in `unit`.
pub(super) fn row(
    name: impl Into<String>,
    unit: &str,
    paper: Option<f64>,
    how: MeasurementKind,
    found: Found,
) -> PaperRow {
    let (number, missing) = match found {
        Ok(number) => (Some(number), None),
        Err(why) => (None, Some(why)),
    };
    PaperRow {
        name: name.into(),
        paper,
        measured: number.map(|(number, _)| number / size(unit).unwrap_or(1.0)),
        unit: unit.into(),
        how,
        count: number.map(|(_, count)| count),
        missing,
        cell: None,
    }
}

/// A row of something that was measured here as the paper did.
pub(super) fn measured(
    name: impl Into<String>,
    unit: &str,
    paper: Option<f64>,
    found: Found,
) -> PaperRow {
    row(name, unit, paper, MeasurementKind::Measured, found)
}

pub(super) fn found(
    name: String,
    number: f64,
    unit: &str,
    how: MeasurementKind,
    count: u64,
) -> PaperRow {
    PaperRow {
        name,
        paper: None,
        measured: Some(number),
        unit: unit.into(),
        how,
        count: Some(count),
        missing: None,
        cell: None,
    }
}

/// A number that could not be found, and why.
pub(super) fn lacking(name: String, unit: &str, how: MeasurementKind, why: &str) -> PaperRow {
    let missing = Some(why.to_owned());
    PaperRow { measured: None, count: None, missing, ..found(name, 0.0, unit, how, 0) }
}

/// The row with the paper's number, if it has one.
pub(super) fn beside(paper: Option<f64>, row: PaperRow) -> PaperRow {
    PaperRow { paper, ..row }
}

/// A table that has nothing to draw.
pub(super) fn without_figure(table: PaperTable) -> MeasuredTable {
    MeasuredTable { table, figure: None }
}
