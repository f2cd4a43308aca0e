//! Quantities of several things side by side: the paper's numbers beside those found here.

use std::fmt::Write as _;

use hourglass_documents::paper::{AxisScale, BarSeries, Bars, CurveOrigin, Edge, EdgeUnit};

use super::edge_axis::EdgeAxis;
use super::legend::{self, LegendEntry, thread_class};
use super::page::{EDGE, head, heading, pixels};
use crate::clean::for_xml;

/// Lines and frames, which the pictures of traces do not have.
const STYLE: &str = concat!(include_str!("costs.css"), include_str!("bars.css"));

/// Width of the picture in pixels.
const WIDTH: u32 = 960;

/// Upper edge and height of the plot, in pixels.
const TOP: u32 = 68;
const HEIGHT: u32 = 300;

/// Left and right edges of the plot: the room that the labels of the left edge need.
const LEFT: u32 = 56;
const RIGHT: u32 = WIDTH - 24;

/// The parts of their places that a group and a bar fill.
const GROUP_SHARE: f64 = 0.82;
const BAR_SHARE: f64 = 0.86;

/// Draws bars as one self-contained SVG: what was found here filled, the paper's numbers as broken
/// frames, simulated ones as dotted frames; each with its number.
#[must_use]
pub fn bars(bars: &Bars) -> String {
    let edge = Edge { text: bars.up.clone(), unit: EdgeUnit::Number, scale: AxisScale::Linear };
    let values = bars.series.iter().flat_map(|series| series.values.iter().flatten().copied());
    let plot = Plot { bars, up: EdgeAxis::holding(&edge, values) };
    let entries: Vec<LegendEntry> = bars.series.iter().map(entry).collect();
    let (legend, end) = legend::placed(&entries, WIDTH, TOP + HEIGHT + 44);
    let title = format!("Figure {}: {}", bars.id, bars.title);
    let mut out = head((WIDTH, end + EDGE), &title, &for_xml(&description(bars)), STYLE);
    out.push_str(&heading(WIDTH, &title));
    out.push_str(&plot.grid());
    for (place, series) in bars.series.iter().enumerate() {
        out.push_str(&plot.series(place, series));
    }
    out.push_str(&legend);
    out.push_str("</svg>\n");
    out
}

fn description(bars: &Bars) -> String {
    let mut text = format!("{}.", bars.up);
    for series in &bars.series {
        let _ = write!(text, " {}:", series.name);
        for (group, value) in bars.groups.iter().zip(&series.values) {
            let value = value.map_or("none".to_owned(), |value| format!("{value:.2}"));
            let _ = write!(text, " {group} {value};");
        }
    }
    text
}

fn entry(series: &BarSeries) -> LegendEntry {
    let missing =
        if series.values.iter().all(Option::is_none) { " (not measured here)" } else { "" };
    let (class, colour) = (class(series.origin), thread_class(series.colour));
    LegendEntry {
        sign: format!("<rect class=\"{class} {colour}\" x=\"1\" width=\"13\" height=\"10\"/>"),
        text: format!("{}{missing}", series.name),
    }
}

fn class(origin: CurveOrigin) -> &'static str {
    match origin {
        CurveOrigin::Here => "hg-bar",
        CurveOrigin::Paper => "hg-frame hg-there",
        CurveOrigin::Simulated => "hg-frame hg-simulated",
    }
}

struct Plot<'a> {
    bars: &'a Bars,
    up: EdgeAxis,
}

impl Plot<'_> {
    fn y(&self, value: f64) -> f64 {
        f64::from(TOP) + (1.0 - self.up.place(value).unwrap_or(0.0)) * f64::from(HEIGHT)
    }

    /// Width of a group's place.
    fn room(&self) -> f64 {
        f64::from(RIGHT - LEFT) / self.bars.groups.len().max(1) as f64
    }

    /// Lines across the plot, and what they and the groups are.
    fn grid(&self) -> String {
        let bottom = TOP + HEIGHT;
        let mut out = String::new();
        let mut labels = String::new();
        for line in self.up.lines() {
            let y = self.y(line.at);
            let _ = writeln!(out, "<path class=\"hg-grid\" d=\"M{LEFT} {}H{RIGHT}\"/>", pixels(y));
            let (x, y) = (LEFT - 8, pixels(y + 4.0));
            let _ = writeln!(labels, "<text x=\"{x}\" y=\"{y}\">{}</text>", line.label);
        }
        let mut groups = String::new();
        for (place, group) in self.bars.groups.iter().enumerate() {
            let x = pixels(f64::from(LEFT) + (place as f64 + 0.5) * self.room());
            let _ =
                writeln!(groups, "<text x=\"{x}\" y=\"{}\">{}</text>", bottom + 20, for_xml(group));
        }
        let _ = writeln!(
            out,
            "<path class=\"hg-axis\" d=\"M{LEFT} {bottom}H{RIGHT}\"/>\n\
             <g class=\"hg-faint\" text-anchor=\"end\">\n{labels}</g>\n\
             <g class=\"hg-ink\" text-anchor=\"middle\">\n{groups}</g>\n\
             <text class=\"hg-faint\" x=\"{EDGE}\" y=\"{}\">{}</text>",
            TOP - 16,
            for_xml(&self.bars.up)
        );
        out
    }

    /// The bars of a series, with their numbers.
    fn series(&self, place: usize, series: &BarSeries) -> String {
        let bottom = f64::from(TOP + HEIGHT);
        let step = self.room() * GROUP_SHARE / self.bars.series.len().max(1) as f64;
        let class = class(series.origin);
        let mut out = format!("<g class=\"{}\">", thread_class(series.colour));
        let mut numbers = String::new();
        for (group, value) in series.values.iter().enumerate() {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            let left = f64::from(LEFT)
                + (group as f64 + (1.0 - GROUP_SHARE) / 2.0) * self.room()
                + place as f64 * step;
            let (top, width) = (self.y(value), step * BAR_SHARE);
            let _ = writeln!(
                out,
                "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                pixels(left),
                pixels(top),
                pixels(width),
                pixels(bottom - top)
            );
            let (x, y) = (pixels(left + width / 2.0), pixels(top - 5.0));
            let _ = writeln!(numbers, "<text x=\"{x}\" y=\"{y}\">{value:.2}</text>");
        }
        let _ = writeln!(
            out,
            "</g>\n<g class=\"hg-ink hg-note\" text-anchor=\"middle\">\n{numbers}</g>"
        );
        out
    }
}
