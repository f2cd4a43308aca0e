//! A chart: axes, series and what stands beside them.
//!
//! Owns: everything that all charts share. Must not: know what is measured.

use std::fmt::Write as _;

use super::legend::{self, LegendEntry};
use super::page::{EDGE, head, heading, pixels};
use super::scale::Axis;
use crate::clean::for_xml;

/// Lines, dots and names, which the pictures of traces do not have.
const STYLE: &str = include_str!("chart.css");

/// Width of a picture in pixels.
pub(crate) const WIDTH: u32 = 960;

/// Minimum distance of labels of the lower axis, pixels.
const LABEL_DISTANCE: f64 = 60.0;

/// The edges of a plot, in pixels.
#[derive(Clone, Copy)]
pub(crate) struct Area {
    pub(crate) left: u32,
    pub(crate) right: u32,
    pub(crate) top: u32,
    pub(crate) bottom: u32,
}

/// How the lower axis is divided.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Division {
    /// Marks below the plot.
    Marks,
    /// Lines from the bottom to the top.
    Lines,
    /// Names only, of the things that stand there.
    Names,
}

pub(crate) struct Axes {
    pub(crate) area: Area,
    pub(crate) up: Axis,
    pub(crate) across: Axis,
    pub(crate) division: Division,
}

impl Axes {
    /// Where a value lies, from the left; `None` if the axis has no place for it.
    pub(crate) fn x(&self, value: f64) -> Option<f64> {
        let Area { left, right, .. } = self.area;
        Some(f64::from(left) + self.across.place(value)? * f64::from(right - left))
    }

    /// Where a value lies, from the top.
    pub(crate) fn y(&self, value: f64) -> Option<f64> {
        let Area { top, bottom, .. } = self.area;
        Some(f64::from(top) + (1.0 - self.up.place(value)?) * f64::from(bottom - top))
    }

    fn svg(&self) -> String {
        let Area { left, right, top, bottom } = self.area;
        let mut out = String::new();
        let mut labels = String::new();
        for tick in &self.up.ticks {
            let Some(y) = self.y(tick.at) else { continue };
            let class = if tick.label.is_empty() { "hg-minor" } else { "hg-grid" };
            let _ = writeln!(out, "<path class=\"{class}\" d=\"M{left} {}H{right}\"/>", pixels(y));
            if !tick.label.is_empty() {
                let (x, y) = (left - 8, pixels(y + 4.0));
                let _ = writeln!(labels, "<text x=\"{x}\" y=\"{y}\">{}</text>", tick.label);
            }
        }
        let _ = writeln!(
            out,
            "<path class=\"hg-axis\" d=\"M{left} {bottom}H{right}\"/>\n\
             <g class=\"hg-faint\" text-anchor=\"end\">\n{labels}</g>\n\
             <text class=\"hg-faint\" x=\"{EDGE}\" y=\"{}\">{}</text>",
            top - 16,
            for_xml(&self.up.caption)
        );
        out + &self.lower_axis()
    }

    fn lower_axis(&self) -> String {
        let Area { left, right, top, bottom } = self.area;
        let named = self.division == Division::Names;
        let (class, distance) = if named { ("hg-ink", 0.0) } else { ("hg-faint", LABEL_DISTANCE) };
        let (mut marks, mut labels) = (String::new(), String::new());
        let mut free = 0.0;
        for tick in &self.across.ticks {
            let Some(at) = self.x(tick.at) else { continue };
            let x = pixels(at);
            let _ = match self.division {
                Division::Marks => {
                    writeln!(marks, "<path class=\"hg-axis\" d=\"M{x} {bottom}v4\"/>")
                }
                Division::Lines => {
                    writeln!(marks, "<path class=\"hg-grid\" d=\"M{x} {top}V{bottom}\"/>")
                }
                Division::Names => Ok(()),
            };
            if !tick.label.is_empty() && at >= free {
                free = at + distance;
                let (y, label) = (bottom + 18, for_xml(&tick.label));
                let _ = writeln!(labels, "<text x=\"{x}\" y=\"{y}\">{label}</text>");
            }
        }
        if !self.across.caption.is_empty() {
            let (x, y, caption) = ((left + right) / 2, bottom + 38, for_xml(&self.across.caption));
            let _ = writeln!(labels, "<text x=\"{x}\" y=\"{y}\">{caption}</text>");
        }
        format!("{marks}<g class=\"{class}\" text-anchor=\"middle\">\n{labels}</g>\n")
    }
}

/// One thing that a chart shows.
#[derive(Default)]
pub(crate) struct Series {
    /// Class that gives its colour.
    pub(crate) class: String,
    /// What a pointer at it is shown; nothing if empty.
    pub(crate) title: String,
    pub(crate) line: Option<Line>,
    /// What else there is of it, as SVG.
    pub(crate) marks: String,
}

/// A line: its class and other attributes, and its path.
pub(crate) struct Line {
    pub(crate) attributes: String,
    pub(crate) path: String,
}

impl Series {
    pub(crate) fn svg(&self) -> String {
        let mut out = format!("<g class=\"{}\">", self.class);
        if !self.title.is_empty() {
            let _ = write!(out, "<title>{}</title>", for_xml(&self.title));
        }
        if let Some(Line { attributes, path }) = &self.line {
            let _ = write!(out, "<path {attributes} d=\"{path}\"/>");
        }
        out + &self.marks + "</g>\n"
    }
}

/// A path from point to point.
pub(crate) fn joined(points: &[(f64, f64)]) -> String {
    let places = points.iter().map(|(x, y)| format!("{} {}", pixels(*x), pixels(*y)));
    let path = places.collect::<Vec<_>>().join("L");
    if path.is_empty() { path } else { format!("M{path}") }
}

/// The shapes of points.
#[derive(Clone, Copy)]
pub(crate) enum Mark {
    Dot,
    Square,
    Triangle,
    Diamond,
    Ring,
    Frame,
}

impl Mark {
    /// The mark of the curve with this number: one in six has the same.
    pub(super) fn of(number: usize) -> Mark {
        let all = [Mark::Dot, Mark::Square, Mark::Triangle, Mark::Ring, Mark::Diamond, Mark::Frame];
        all[number % all.len()]
    }

    pub(crate) fn at(self, x: f64, y: f64) -> String {
        let from = |dx: f64, dy: f64| format!("{} {}", pixels(x + dx), pixels(y + dy));
        let filled = |path: String| format!("<path class=\"hg-dot\" d=\"M{path}z\"/>");
        let round = |class: &str, radius: f64| {
            let (x, y) = (pixels(x), pixels(y));
            format!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>")
        };
        match self {
            Mark::Dot => round("hg-dot", 3.0),
            Mark::Ring => round("hg-ring", 3.6),
            Mark::Square => filled(from(-3.5, -3.5) + "h7v7h-7"),
            Mark::Triangle => filled(from(0.0, -5.0) + "l5 9h-10"),
            Mark::Diamond => filled(from(0.0, -5.0) + "l5 5l-5 5l-5 -5"),
            Mark::Frame => {
                format!("<path class=\"hg-ring\" d=\"M{}h4.8v4.8h-4.8z\"/>", from(-2.4, -2.4))
            }
        }
    }
}

pub(crate) struct Chart {
    pub(crate) axes: Axes,
    /// From the lowest to the uppermost.
    pub(crate) series: Vec<Series>,
    /// What stands above them, as SVG.
    pub(crate) marks: String,
}

impl Chart {
    pub(crate) fn svg(&self) -> String {
        let series: String = self.series.iter().map(Series::svg).collect();
        self.axes.svg() + &series + &self.marks
    }
}

/// The texts around a chart.
pub(super) struct Texts<'a> {
    pub(super) title: &'a str,
    /// A line under the title; nothing if empty.
    pub(super) under: &'a str,
    /// For readers who do not see the picture.
    pub(super) description: &'a str,
    pub(super) legend: &'a [LegendEntry],
    /// A line at the end; nothing if empty.
    pub(super) note: &'a str,
}

/// The attribute that breaks the line of the curve with this number, so that not its colour alone tells it from
/// others; nothing for the first.
pub(super) fn dashes(number: usize) -> String {
    match ["", "7 4", "2 3", "10 3 2 3", "4 2"][number % 5] {
        "" => String::new(),
        dashes => format!(" stroke-dasharray=\"{dashes}\""),
    }
}

/// A chart as one self-contained SVG.
pub(super) fn page(chart: &Chart, texts: &Texts<'_>) -> String {
    panels(std::slice::from_ref(chart), WIDTH, texts)
}

/// Charts below each other, in areas that do not overlap, as one self-contained SVG of this width.
pub(super) fn panels(charts: &[Chart], width: u32, texts: &Texts<'_>) -> String {
    let lower_end = |chart: &Chart| {
        let below = if chart.axes.across.caption.is_empty() { 44 } else { 62 };
        chart.axes.area.bottom + below
    };
    let bottom = charts.iter().map(lower_end).max().unwrap_or(0);
    let (legend, mut end) = legend::placed(texts.legend, width, bottom);
    let line = |y: u32, text: &str| match text {
        "" => String::new(),
        text => {
            format!("<text class=\"hg-faint\" x=\"{EDGE}\" y=\"{y}\">{}</text>\n", for_xml(text))
        }
    };
    if !texts.note.is_empty() {
        end += 24;
    }
    [
        head((width, end + EDGE), texts.title, &for_xml(texts.description), STYLE),
        heading(width, texts.title),
        line(46, texts.under),
        charts.iter().map(Chart::svg).collect(),
        legend,
        line(end, texts.note),
        "</svg>\n".to_owned(),
    ]
    .concat()
}
