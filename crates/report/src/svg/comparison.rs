//! Two runs in one picture: the histograms of what was compared, and how it is distributed.

use std::fmt::Write as _;

use super::chart::{
    Area, Axes, Chart, Division, Line, Mark, Series, Texts, WIDTH, dashes, joined, panels,
};
use super::histogram::{BINS_A_DECADE, bins, path, steps};
use super::labels::{self, NamedCurve};
use super::legend::{LegendEntry, thread_class};
use super::scale::{Axis, microseconds};

/// Edges of a plot; each quantity has two, one below the other.
const LEFT: u32 = 72;
const RIGHT: u32 = WIDTH - 28;
const FIRST: u32 = 84;
const HEIGHT: u32 = 280;
const PITCH: u32 = 376;

/// Points of a curve that are closer than this to one another are one.
const POINT_DISTANCE: f64 = 0.5;

/// Marks on a curve.
const MARKS: usize = 12;

/// A quantity of two runs, or of two rows of rounds.
#[derive(Clone, Debug)]
pub struct ComparedQuantity {
    /// What it is: `wake-up latency`.
    pub name: &'static str,
    /// What is counted: `wake-ups`.
    pub counted: &'static str,
    /// Times (ns, ascending), and how often each was found, of A and of B.
    pub counts: [Vec<(u64, u64)>; 2],
}

/// Draws the histogram and the distribution of each quantity as one self-contained SVG; `runs` are the names of A and B.
#[must_use]
pub fn comparison(quantities: &[ComparedQuantity], runs: [&str; 2]) -> String {
    let mut charts = Vec::new();
    let mut description = "Histograms and empirical distributions of two runs.".to_owned();
    let mut texts: [String; 2] = runs.map(str::to_owned);
    for (at, quantity) in quantities.iter().enumerate() {
        let top = |panel: usize| FIRST + PITCH * (2 * at + panel) as u32;
        charts.push(histogram(quantity, top(0)));
        charts.push(distribution(quantity, top(1)));
        for (side, counts) in quantity.counts.iter().enumerate() {
            let _ = write!(texts[side], ", {} {}", total(counts), quantity.counted);
        }
    }
    for (side, text) in texts.iter().enumerate() {
        let _ = write!(description, " {}: {text}.", SIDES[side]);
    }
    let entry = |side: usize| {
        let marks = mark(side).at(8.0, 5.0);
        let sign = Series { marks, ..series(side, "M0 5H16".to_owned()) }.svg();
        LegendEntry { sign, text: format!("{}: {}", SIDES[side], texts[side]) }
    };
    let names: Vec<&str> = quantities.iter().map(|quantity| quantity.name).collect();
    let texts = Texts {
        title: &format!("A and B: {}", names.join(", ")),
        under: "",
        description: &description,
        legend: &[entry(0), entry(1)],
        note: "",
    };
    panels(&charts, WIDTH, &texts)
}

const SIDES: [&str; 2] = ["A", "B"];

fn mark(side: usize) -> Mark {
    [Mark::Dot, Mark::Triangle][side.min(1)]
}

/// The line of A is unbroken and that of B broken.
fn series(side: usize, path: String) -> Series {
    let attributes = format!("class=\"hg-curve\"{}", dashes(side));
    let line = Some(Line { attributes, path });
    Series {
        class: thread_class(side as u32),
        title: SIDES[side].to_owned(),
        line,
        ..Series::default()
    }
}

fn total(counts: &[(u64, u64)]) -> u64 {
    counts.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
}

fn area(top: u32) -> Area {
    Area { left: LEFT, right: RIGHT, top, bottom: top + HEIGHT }
}

fn across(quantity: &ComparedQuantity) -> Axis {
    let bins = quantity.counts.iter().map(|counts| bins(counts.iter().copied(), BINS_A_DECADE));
    let edges: Vec<f64> = bins
        .flat_map(|bins| steps(&bins, BINS_A_DECADE))
        .flat_map(|step| [step.0, step.1])
        .collect();
    Axis::ratios(edges.into_iter(), microseconds).captioned(format!("{}, us", quantity.name))
}

/// Shares of all, since one run may be longer than the other.
fn histogram(quantity: &ComparedQuantity, top: u32) -> Chart {
    let shares = quantity.counts.each_ref().map(|counts| {
        let all = total(counts).max(1) as f64;
        let mut steps = steps(&bins(counts.iter().copied(), BINS_A_DECADE), BINS_A_DECADE);
        steps.iter_mut().for_each(|step| step.2 *= 100.0 / all);
        steps
    });
    let least = shares.iter().flatten().fold(100.0, |least: f64, step| least.min(step.2));
    let percent = |share: f64| format!("{} %", (share * 1e9).round() / 1e9);
    let up = Axis::decades(least * 0.6, 100.0, percent);
    let axes = Axes {
        area: area(top),
        up: up.captioned(format!("share of the {}", quantity.counted)),
        across: across(quantity),
        division: Division::Lines,
    };
    let drawn = shares.iter().enumerate();
    let drawn =
        drawn.map(|(side, steps)| (series(side, path(steps, &axes)), outline(steps, &axes)));
    let drawn = drawn.collect();
    labelled(axes, drawn)
}

/// The corners of a line of steps.
fn outline(steps: &[(f64, f64, f64)], axes: &Axes) -> Vec<(f64, f64)> {
    let corners = |step: &(f64, f64, f64)| {
        let y = axes.y(step.2)?;
        Some([(axes.x(step.0)?, y), (axes.x(step.1)?, y)])
    };
    steps.iter().filter_map(corners).flatten().collect()
}

/// The share of all that is not longer, by length.
fn distribution(quantity: &ComparedQuantity, top: u32) -> Chart {
    let percent = |share: f64| format!("{} %", (share * 100.0).round());
    let up = Axis::even(0.0, 1.0, 0.2, percent);
    let axes = Axes {
        area: area(top),
        up: up.captioned(format!("cumulative share of the {}", quantity.counted)),
        across: across(quantity),
        division: Division::Lines,
    };
    let drawn = quantity.counts.iter().enumerate().map(|(side, counts)| {
        let points = cumulated(counts, &axes);
        let every = points.len().div_ceil(MARKS).max(1);
        let marks = points.iter().step_by(every).map(|(x, y)| mark(side).at(*x, *y)).collect();
        (Series { marks, ..series(side, joined(&points)) }, points)
    });
    let drawn = drawn.collect();
    labelled(axes, drawn)
}

/// The steps of an empirical distribution, each as two points.
fn cumulated(counts: &[(u64, u64)], axes: &Axes) -> Vec<(f64, f64)> {
    let all = total(counts).max(1) as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let (mut sum, mut last) = (0.0, f64::from(axes.area.bottom));
    for (ns, count) in counts {
        sum += *count as f64;
        let Some((x, y)) = axes.x((*ns).max(1) as f64).zip(axes.y(sum / all)) else { continue };
        match points.last_mut() {
            Some(point) if x - point.0 < POINT_DISTANCE => point.1 = y,
            _ => points.extend([(x, last), (x, y)]),
        }
        last = y;
    }
    points
}

/// A chart of two curves, each with its letter.
fn labelled(axes: Axes, drawn: Vec<(Series, Vec<(f64, f64)>)>) -> Chart {
    let (mut series, mut named) = (Vec::new(), Vec::new());
    for (side, (one, points)) in drawn.into_iter().enumerate() {
        series.push(one);
        named.push(NamedCurve {
            points,
            name: SIDES[side].to_owned(),
            looks: vec![(thread_class(side as u32), mark(side))],
        });
    }
    let marks = labels::names(axes.area, &named);
    Chart { axes, series, marks }
}
