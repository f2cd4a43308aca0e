//! Rows as the papers' files make them.

use hourglass_documents::paper::{MeasurementKind, PaperRow};

use super::printed::size;

/// What was found: a number, of times in ns, and the single measurements behind it; or why there is none.
pub(super) type NumberResult = Result<(f64, u64), String>;

pub(super) fn row(
    name: impl Into<String>,
    unit: &str,
    paper: Option<f64>,
    how: MeasurementKind,
    found: NumberResult,
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

pub(super) fn measured(
    name: impl Into<String>,
    unit: &str,
    paper: Option<f64>,
    found: NumberResult,
) -> PaperRow {
    row(name, unit, paper, MeasurementKind::Measured, found)
}
