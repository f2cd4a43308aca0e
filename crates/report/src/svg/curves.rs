//! One quantity against another: the paper's numbers beside those found here.

use std::fmt::Write as _;

use hourglass_documents::paper::{Curve, CurveOrigin, CurvePoint, Curves, EdgeUnit};

use super::edge_axis::EdgeAxis;
use super::legend::{self, LegendEntry, thread_class};
use super::log_axis::three_digits;
use super::page::{EDGE, head, heading, pixels};
use crate::clean::for_xml;

/// Lines and dots, which the pictures of traces do not have.
const STYLE: &str = include_str!("costs.css");

/// Width of the picture in pixels.
const WIDTH: u32 = 960;

/// Upper edge and height of the plot, in pixels.
const TOP: u32 = 68;
const HEIGHT: u32 = 420;

/// Left and right edges of the plot: the room that the labels of the axes need.
const LEFT: u32 = 72;
const RIGHT: u32 = WIDTH - 40;

/// Points of a joined curve that are closer than this to one another, in pixels, have no marks.
const MARK_DISTANCE: usize = 4;

/// Minimum distance of labels of the lower edge, pixels.
const LABEL_DISTANCE: f64 = 60.0;

/// Draws curves as one self-contained SVG: what was found here as full dots and lines, the paper's
/// numbers as rings and broken lines, simulated ones as squares and dotted lines.
#[must_use]
pub fn curves(curves: &Curves) -> String {
    let places = || curves.curves.iter().flat_map(|curve| &curve.points);
    let plot = Plot {
        curves,
        across: EdgeAxis::holding(&curves.across, places().map(|place| place.across)),
        up: EdgeAxis::holding(&curves.up, places().map(|place| place.up)),
    };
    let mut body = plot.grid();
    // What was found here lies above the rest.
    for last in [false, true] {
        let layer =
            curves.curves.iter().filter(|curve| (curve.origin == CurveOrigin::Here) == last);
        layer.for_each(|curve| body.push_str(&plot.curve(curve)));
    }
    let (legend, mut end) = legend::placed(&entries(curves), WIDTH, TOP + HEIGHT + 62);
    let mut note = String::new();
    if !curves.note.is_empty() {
        end += 24;
        let text = for_xml(&curves.note);
        let _ = writeln!(note, "<text class=\"hg-faint\" x=\"{EDGE}\" y=\"{end}\">{text}</text>");
    }
    let title = format!("Figure {}: {}", curves.id, curves.title);
    let mut out = head((WIDTH, end + EDGE), &title, &for_xml(&description(curves)), STYLE);
    out.push_str(&heading(WIDTH, &title));
    out.push_str(&body);
    out.push_str(&legend);
    out.push_str(&note);
    out.push_str("</svg>\n");
    out
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

fn entries(curves: &Curves) -> Vec<LegendEntry> {
    let entry = |curve: &Curve| {
        let class = thread_class(curve.colour);
        let line = if curve.joined {
            format!("<path class=\"hg-curve{}\" d=\"M0 5H16\"/>", dashes(curve.origin))
        } else {
            String::new()
        };
        // Not measured, or nothing that such an edge can show, as what is below zero.
        let missing = if curve.points.is_empty() { " (no points)" } else { "" };
        let mark = if is_limit(curve) { String::new() } else { mark(curve.origin, 8.0, 5.0) };
        LegendEntry {
            sign: format!("<g class=\"{class}\">{line}{mark}</g>"),
            text: format!("{}{missing}", curve.name),
        }
    };
    curves.curves.iter().map(entry).collect()
}

/// Whether it is a level line, which has no marks at its ends.
fn is_limit(curve: &Curve) -> bool {
    let level = |pair: &[CurvePoint]| matches!(pair, [a, b] if a.up == b.up);
    let several = curve.points.len() > 1 && curve.points.windows(2).all(level);
    curve.joined && curve.origin == CurveOrigin::Paper && several
}

/// The class of a line from there.
fn dashes(origin: CurveOrigin) -> &'static str {
    match origin {
        CurveOrigin::Here => "",
        CurveOrigin::Paper => " hg-there",
        CurveOrigin::Simulated => " hg-simulated",
    }
}

/// A point from there.
fn mark(origin: CurveOrigin, x: f64, y: f64) -> String {
    let (cx, cy) = (pixels(x), pixels(y));
    match origin {
        CurveOrigin::Here => {
            format!("<circle class=\"hg-dot\" cx=\"{cx}\" cy=\"{cy}\" r=\"3.2\"/>")
        }
        CurveOrigin::Paper => {
            format!("<circle class=\"hg-ring\" cx=\"{cx}\" cy=\"{cy}\" r=\"3.6\"/>")
        }
        CurveOrigin::Simulated => {
            let (x, y) = (pixels(x - 2.4), pixels(y - 2.4));
            format!("<rect class=\"hg-ring\" x=\"{x}\" y=\"{y}\" width=\"4.8\" height=\"4.8\"/>")
        }
    }
}

struct Plot<'a> {
    curves: &'a Curves,
    across: EdgeAxis,
    up: EdgeAxis,
}

impl Plot<'_> {
    fn x(&self, value: f64) -> Option<f64> {
        Some(f64::from(LEFT) + self.across.place(value)? * f64::from(RIGHT - LEFT))
    }

    fn y(&self, value: f64) -> Option<f64> {
        Some(f64::from(TOP) + (1.0 - self.up.place(value)?) * f64::from(HEIGHT))
    }

    /// Where a point is; none if an edge has no place for it.
    fn at(&self, place: &CurvePoint) -> Option<(f64, f64)> {
        Some((self.x(place.across)?, self.y(place.up)?))
    }

    /// Lines across the plot, and what they stand for.
    fn grid(&self) -> String {
        let bottom = TOP + HEIGHT;
        let mut out = String::new();
        let mut labels = String::new();
        for line in self.up.lines() {
            let Some(y) = self.y(line.at) else { continue };
            let class = if line.label.is_empty() { "hg-minor" } else { "hg-grid" };
            let _ = writeln!(out, "<path class=\"{class}\" d=\"M{LEFT} {}H{RIGHT}\"/>", pixels(y));
            if !line.label.is_empty() {
                let (x, y) = (LEFT - 8, pixels(y + 4.0));
                let _ = writeln!(labels, "<text x=\"{x}\" y=\"{y}\">{}</text>", line.label);
            }
        }
        let _ = writeln!(
            out,
            "<path class=\"hg-axis\" d=\"M{LEFT} {bottom}H{RIGHT}\"/>\n\
             <g class=\"hg-faint\" text-anchor=\"end\">\n{labels}</g>\n\
             <text class=\"hg-faint\" x=\"{EDGE}\" y=\"{}\">{}</text>",
            TOP - 16,
            for_xml(&self.curves.up.text)
        );
        out.push_str(&self.lower_edge());
        out
    }

    fn lower_edge(&self) -> String {
        let bottom = TOP + HEIGHT;
        let mut marks = String::new();
        let mut labels = String::new();
        let mut free = f64::from(LEFT) - LABEL_DISTANCE;
        for line in self.across.lines() {
            let Some(x) = self.x(line.at) else { continue };
            let _ = writeln!(marks, "<path class=\"hg-axis\" d=\"M{} {bottom}v4\"/>", pixels(x));
            if !line.label.is_empty() && x >= free + LABEL_DISTANCE {
                free = x;
                let (x, y) = (pixels(x), bottom + 18);
                let _ = writeln!(labels, "<text x=\"{x}\" y=\"{y}\">{}</text>", line.label);
            }
        }
        format!(
            "{marks}<g class=\"hg-faint\" text-anchor=\"middle\">\n{labels}\
             <text x=\"{}\" y=\"{}\">{}</text>\n</g>\n",
            (LEFT + RIGHT) / 2,
            bottom + 38,
            for_xml(&self.curves.across.text)
        )
    }

    fn curve(&self, curve: &Curve) -> String {
        let places: Vec<(f64, f64)> = curve.points.iter().filter_map(|p| self.at(p)).collect();
        if places.is_empty() {
            return String::new();
        }
        let mut out = format!("<g class=\"{}\">", thread_class(curve.colour));
        if curve.joined {
            let _ = write!(out, "<path class=\"hg-curve{}\" d=\"", dashes(curve.origin));
            for (at, (x, y)) in places.iter().enumerate() {
                let letter = if at == 0 { 'M' } else { 'L' };
                let _ = write!(out, "{letter}{} {}", pixels(*x), pixels(*y));
            }
            out.push_str("\"/>\n");
        }
        let crowded = places.len() * MARK_DISTANCE > (RIGHT - LEFT) as usize;
        if !curve.joined || !(crowded || is_limit(curve)) {
            places.iter().for_each(|(x, y)| out.push_str(&mark(curve.origin, *x, *y)));
        }
        out.push_str("</g>\n");
        out
    }
}
