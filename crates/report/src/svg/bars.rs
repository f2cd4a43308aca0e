//! Quantities of several things side by side: the paper's numbers beside those found here.

use std::fmt::Write as _;

use hourglass_documents::paper::{AxisScale, BarSeries, Bars, CurveOrigin, Edge, EdgeUnit};

use super::chart::{Area, Axes, Chart, Division, Series, Texts, WIDTH, page};
use super::legend::{LegendEntry, thread_class};
use super::page::pixels;
use super::scale::{Axis, Tick};

/// The edges of the plot: the room that the labels need.
const AREA: Area = Area { left: 56, right: WIDTH - 24, top: 68, bottom: 368 };

/// The parts of their places that a group and a bar fill.
const GROUP_SHARE: f64 = 0.82;
const BAR_SHARE: f64 = 0.86;

/// Draws bars as one self-contained SVG: what was found here filled, the paper's numbers as broken
/// frames, simulated ones as dotted frames; each with its number.
#[must_use]
pub fn bars(bars: &Bars) -> String {
    let edge = Edge { text: bars.up.clone(), unit: EdgeUnit::Number, scale: AxisScale::Linear };
    let values = bars.series.iter().flat_map(|series| series.values.iter().flatten().copied());
    let groups = bars.groups.iter().enumerate();
    let groups = groups.map(|(at, name)| Tick { at: at as f64 + 0.5, label: name.clone() });
    let mut across = Axis::even(0.0, bars.groups.len().max(1) as f64, 1.0, |_| String::new());
    across.ticks = groups.collect();
    let up = Axis::of_edge(&edge, values);
    let axes = Axes { area: AREA, up, across, division: Division::Names };
    let mut chart = Chart { axes, series: Vec::new(), marks: String::new() };
    for (place, series) in bars.series.iter().enumerate() {
        let (drawn, numbers) = drawn(&chart.axes, place, bars, series);
        chart.series.push(drawn);
        let _ = writeln!(
            chart.marks,
            "<g class=\"hg-ink hg-note\" text-anchor=\"middle\">\n{numbers}</g>"
        );
    }
    let texts = Texts {
        title: &format!("Figure {}: {}", bars.id, bars.title),
        under: "",
        description: &description(bars),
        legend: &bars.series.iter().map(entry).collect::<Vec<_>>(),
        note: "",
    };
    page(&chart, &texts)
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

/// The bars of a series, and their numbers.
fn drawn(axes: &Axes, place: usize, bars: &Bars, series: &BarSeries) -> (Series, String) {
    let room = f64::from(AREA.right - AREA.left) / bars.groups.len().max(1) as f64;
    let step = room * GROUP_SHARE / bars.series.len().max(1) as f64;
    let (class, width) = (class(series.origin), step * BAR_SHARE);
    let (mut marks, mut numbers) = (String::new(), String::new());
    for (group, value) in series.values.iter().enumerate() {
        let Some((value, top)) = value.and_then(|value| Some((value, axes.y(value)?))) else {
            continue;
        };
        let left = f64::from(AREA.left)
            + (group as f64 + (1.0 - GROUP_SHARE) / 2.0) * room
            + place as f64 * step;
        let _ = writeln!(
            marks,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            pixels(left),
            pixels(top),
            pixels(width),
            pixels(f64::from(AREA.bottom) - top)
        );
        let (x, y) = (pixels(left + width / 2.0), pixels(top - 5.0));
        let _ = writeln!(numbers, "<text x=\"{x}\" y=\"{y}\">{value:.2}</text>");
    }
    let class = thread_class(series.colour);
    (Series { class, marks, ..Series::default() }, numbers)
}
