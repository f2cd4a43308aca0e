//! One quantity against another: the paper's numbers beside those found here.

use std::fmt::Write as _;

use hourglass_documents::paper::{Curve, CurveOrigin, CurvePoint, Curves, EdgeUnit};

use super::chart::{Area, Axes, Chart, Division, Line, Mark, Series, Texts, WIDTH, joined, page};
use super::legend::{LegendEntry, thread_class};
use super::scale::{Axis, three_digits};

/// The edges of the plot: the room that the labels of the axes need.
const AREA: Area = Area { left: 72, right: WIDTH - 40, top: 68, bottom: 488 };

/// Points of a joined curve that are closer than this to one another, in pixels, have no marks.
const MARK_DISTANCE: usize = 4;

/// Draws curves as one self-contained SVG: what was found here as full dots and lines, the paper's
/// numbers as rings and broken lines, simulated ones as squares and dotted lines.
#[must_use]
pub fn curves(curves: &Curves) -> String {
    let points = || curves.curves.iter().flat_map(|curve| &curve.points);
    let axes = Axes {
        area: AREA,
        up: Axis::of_edge(&curves.up, points().map(|point| point.up)),
        across: Axis::of_edge(&curves.across, points().map(|point| point.across)),
        division: Division::Marks,
    };
    // What was found here lies above the rest.
    let (here, others): (Vec<&Curve>, Vec<&Curve>) =
        curves.curves.iter().partition(|curve| curve.origin == CurveOrigin::Here);
    let series = others.into_iter().chain(here).filter_map(|curve| drawn(&axes, curve)).collect();
    let texts = Texts {
        title: &match &*curves.id {
            "" => curves.title.clone(),
            id => format!("Figure {id}: {}", curves.title),
        },
        under: "",
        description: &description(curves),
        legend: &curves.curves.iter().map(entry).collect::<Vec<_>>(),
        note: &curves.note,
    };
    page(&Chart { axes, series, marks: String::new() }, &texts)
}

fn description(curves: &Curves) -> String {
    let mut text = format!("The {} by the {}.", curves.up.text, curves.across.text);
    let value = |up: f64| match curves.up.unit {
        EdgeUnit::Time => three_digits(up),
        EdgeUnit::Number => up.to_string(),
    };
    for curve in &curves.curves {
        let points: Vec<&CurvePoint> = curve.points.iter().filter(|p| p.up.is_finite()).collect();
        let ends = points.first().zip(points.last());
        let _ = match ends {
            Some((first, last)) => write!(
                text,
                " {}: from {} to {}, {} points.",
                curve.name,
                value(first.up),
                value(last.up),
                points.len()
            ),
            None => write!(text, " {}: none.", curve.name),
        };
    }
    text
}

fn entry(curve: &Curve) -> LegendEntry {
    let marks = if is_limit(curve) { String::new() } else { mark(curve).at(8.0, 5.0) };
    let sign = Series { marks, ..series(curve, "M0 5H16".to_owned()) };
    // Not measured, or nothing that such an edge can show, as what is below zero.
    let missing = if curve.points.is_empty() { " (no points)" } else { "" };
    LegendEntry { sign: sign.svg(), text: format!("{}{missing}", curve.name) }
}

/// Whether it is a level line, which has no marks at its ends.
fn is_limit(curve: &Curve) -> bool {
    let level = |pair: &[CurvePoint]| matches!(pair, [a, b] if a.up == b.up);
    let several = curve.points.len() > 1 && curve.points.windows(2).all(level);
    curve.joined && curve.origin == CurveOrigin::Paper && several
}

fn mark(curve: &Curve) -> Mark {
    match curve.origin {
        CurveOrigin::Here => Mark::Dot,
        CurveOrigin::Paper => Mark::Ring,
        CurveOrigin::Simulated => Mark::Frame,
    }
}

/// A curve without marks; with its line if its points are joined.
fn series(curve: &Curve, path: String) -> Series {
    let dashes = match curve.origin {
        CurveOrigin::Here => "",
        CurveOrigin::Paper => " hg-there",
        CurveOrigin::Simulated => " hg-simulated",
    };
    let line = Line { attributes: format!("class=\"hg-curve{dashes}\""), path };
    Series {
        class: thread_class(curve.colour),
        line: curve.joined.then_some(line),
        ..Series::default()
    }
}

/// A curve with those of its points for which the axes have a place; `None` without any.
fn drawn(axes: &Axes, curve: &Curve) -> Option<Series> {
    let place = |point: &CurvePoint| Some((axes.x(point.across)?, axes.y(point.up)?));
    let places: Vec<(f64, f64)> = curve.points.iter().filter_map(place).collect();
    if places.is_empty() {
        return None;
    }
    let crowded = places.len() * MARK_DISTANCE > (AREA.right - AREA.left) as usize;
    let marked = !curve.joined || !(crowded || is_limit(curve));
    let marks = places.iter().filter(|_| marked).map(|(x, y)| mark(curve).at(*x, *y)).collect();
    Some(Series { marks, ..series(curve, joined(&places)) })
}
