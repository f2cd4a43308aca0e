//! Curves and edges of figures.

use hourglass_documents::paper::{
    AxisScale, Curve, CurveOrigin, CurvePoint, Curves, Edge, EdgeUnit, Figure, PaperFigure, Series,
};

pub(super) fn edge(text: &str, unit: EdgeUnit, scale: AxisScale) -> Edge {
    Edge { text: text.into(), unit, scale }
}

pub(super) fn curve(
    name: impl Into<String>,
    origin: CurveOrigin,
    colour: u32,
    points: impl IntoIterator<Item = (f64, f64)>,
) -> Curve {
    let points = points.into_iter().map(|(across, up)| CurvePoint { across, up }).collect();
    Curve { name: name.into(), origin, colour, joined: true, points }
}

pub(super) fn curves(
    (id, title): (&str, &str),
    [across, up]: [Edge; 2],
    curves: Vec<Curve>,
    note: &str,
) -> Curves {
    Curves { id: id.into(), title: title.into(), across, up, curves, note: note.into() }
}

/// A figure of single measurements: what is measured of what, and how many there were of each series, of which one of
/// `thinning` is drawn.
pub(super) fn measurements(
    (id, title): (&str, &str),
    (quantity, counted, count): (&str, &str, u64),
    thinning: u64,
    series: Vec<Series>,
) -> PaperFigure {
    PaperFigure::Measurements(Figure {
        id: id.into(),
        title: title.into(),
        quantity: quantity.into(),
        counted: counted.into(),
        count,
        thinning,
        series,
    })
}
