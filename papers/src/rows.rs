//! Rows and tables as the papers' files make them.

use hourglass_documents::paper::{Figure, MeasurementKind, PaperFigure, PaperRow, PaperTable};

use super::MeasuredTable;

/// A number that was found, and the number of single measurements behind it.
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

/// A table with its figure.
pub(super) fn with_figure(table: PaperTable, figure: Figure) -> MeasuredTable {
    MeasuredTable { table, figure: Some(PaperFigure::Measurements(figure)) }
}
