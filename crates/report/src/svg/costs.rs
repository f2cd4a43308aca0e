//! Single measurements in their order, on a logarithmic scale, with the means of the paper and those
//! found here.

use std::fmt::Write as _;

use hourglass_documents::paper::{Figure, Point, Series};

use super::chart::{self, Area, Axes, Chart, Division, Line, Texts, WIDTH, page};
use super::legend::{self, LegendEntry, thread_class};
use super::page::pixels;
use super::scale::{Axis, three_digits, time};
use crate::clean::{for_xml, shortened};

/// The edges of the plot, which ends further to the left where labels of means need the room.
const AREA: Area = Area { left: 72, right: WIDTH, top: 68, bottom: 488 };

/// Pixels from the plot's right edge to the labels of the means.
const LEADER: u32 = 34;

/// A label is cut to this many characters.
const LONGEST_LABEL: usize = 36;

/// Pixels between the labels of two means, at least.
const LABEL_DISTANCE: f64 = 16.0;

/// Draws a figure as one self-contained SVG. A series without points shows the paper's mean
/// alone.
#[must_use]
pub fn costs(figure: &Figure) -> String {
    let means = means(figure);
    let widest = means.iter().map(|mean| legend::width_of(&mean.label)).max().unwrap_or(0);
    let right = WIDTH - (widest + LEADER).min(WIDTH / 2);
    let points = figure.series.iter().flat_map(|series| series.points.iter().map(|point| point.ns));
    let up = Axis::ratios(points.chain(means.iter().map(|mean| mean.ns)), time);
    let axes = Axes {
        area: Area { right, ..AREA },
        up: up.captioned(format!("{} of a {}", figure.quantity, figure.counted)),
        across: Axis::counts(figure.count, &format!("number of the {}", figure.counted)),
        division: Division::Marks,
    };
    // One half of the dots in this order and the other in the opposite one: of two series at the
    // same height neither hides the other.
    let numbered = || figure.series.iter().enumerate();
    let first = numbered().filter_map(|(at, series)| dots(&axes, at, series, 0));
    let second = numbered().rev().filter_map(|(at, series)| dots(&axes, at, series, 1));
    let series = first.chain(second).collect();
    let marks = mean_lines(&axes, &means);
    let texts = Texts {
        title: &format!("Figure {}: {}", figure.id, figure.title),
        under: "",
        description: &description(figure),
        legend: &entries(figure),
        note: "",
    };
    page(&Chart { axes, series, marks }, &texts)
}

struct MeanLine {
    /// Which series, counted from 0.
    series: usize,
    /// Whether it is the paper's.
    there: bool,
    ns: f64,
    label: String,
}

/// All means that there are, the paper's before that found here.
fn means(figure: &Figure) -> Vec<MeanLine> {
    let of = |(at, series): (usize, &Series)| {
        let mean = |there: bool, ns: Option<f64>| {
            let who = if there { "paper" } else { "here" };
            let ns = ns.filter(|ns| *ns > 0.0)?;
            let label = format!("{}, {who} {}", series.name, three_digits(ns));
            Some(MeanLine { series: at, there, ns, label: shortened(&label, LONGEST_LABEL) })
        };
        [mean(true, series.paper_mean_ns), mean(false, series.mean_ns)]
    };
    figure.series.iter().enumerate().flat_map(of).flatten().collect()
}

fn description(figure: &Figure) -> String {
    let mut text = format!(
        "The {} of every {}, in the order of measuring, on a logarithmic scale; {} of each.",
        figure.quantity, figure.counted, figure.count
    );
    for series in &figure.series {
        let _ = write!(text, " {}:", series.name);
        match series.mean_ns {
            Some(ns) => _ = write!(text, " mean {} here", three_digits(ns)),
            None => text.push_str(" not measured here"),
        }
        if let Some(ns) = series.paper_mean_ns {
            let _ = write!(text, ", {} in the paper", three_digits(ns));
        }
        let greatest = series.points.iter().map(|point| point.ns).reduce(f64::max);
        if let Some(ns) = greatest {
            let _ = write!(text, ", the greatest {}", three_digits(ns));
        }
        text.push('.');
    }
    text
}

fn entries(figure: &Figure) -> Vec<LegendEntry> {
    let entry = |sign: String, text: String| LegendEntry { sign, text };
    let colour = |(at, series): (usize, &Series)| {
        let class = thread_class(at as u32);
        let dot =
            format!("<circle class=\"{class}\" fill=\"currentColor\" cx=\"8\" cy=\"5\" r=\"4\"/>");
        let missing = if series.mean_ns.is_some() { "" } else { " (not measured here)" };
        entry(dot, format!("{}{missing}", series.name))
    };
    let line = |class: &str| format!("<path class=\"hg-faint-line {class}\" d=\"M0 5H16\"/>");
    let mut entries: Vec<LegendEntry> = figure.series.iter().enumerate().map(colour).collect();
    entries.push(entry(line(""), "mean here".into()));
    entries.push(entry(line("hg-there"), "mean in the paper".into()));
    let counted = &figure.counted;
    let points = match figure.thinning {
        0 | 1 => format!("dots: every {counted}"),
        many => {
            format!("dots: of every {many} {counted}s the least, the greatest and one at random")
        }
    };
    let dots = "<path class=\"hg-faint-line\" stroke-linecap=\"round\" d=\"M2 8h0M8 2h0M14 6h0\"/>";
    entries.push(entry(dots.into(), points));
    entries
}

/// Every second dot of a series, beginning with that numbered `first`; `None` without any.
fn dots(axes: &Axes, at: usize, series: &Series, first: usize) -> Option<chart::Series> {
    let bottom = f64::from(axes.area.bottom);
    let dot = |point: &Point| {
        let x = axes.x(point.number as f64)?;
        Some(format!("M{x:.1} {:.1}h0", axes.y(point.ns).unwrap_or(bottom)))
    };
    let path: String = series.points.iter().skip(first).step_by(2).filter_map(dot).collect();
    let line = Line { attributes: "class=\"hg-dots\"".to_owned(), path };
    let class = thread_class(at as u32);
    (series.points.len() > first).then(|| chart::Series {
        class,
        line: Some(line),
        ..chart::Series::default()
    })
}

/// A line for each mean, and beside the plot its label.
fn mean_lines(axes: &Axes, means: &[MeanLine]) -> String {
    let Area { left, right, top, bottom } = axes.area;
    let mut by_height: Vec<(f64, &MeanLine)> =
        means.iter().filter_map(|mean| Some((axes.y(mean.ns)?, mean))).collect();
    by_height.sort_by(|a, b| a.0.total_cmp(&b.0));
    let wanted: Vec<f64> = by_height.iter().map(|(y, _)| *y).collect();
    let heights = spread(&wanted, f64::from(top), f64::from(bottom));
    let mut halos = String::new();
    let mut lines = String::new();
    for ((y, mean), label_y) in by_height.iter().zip(heights) {
        let class = thread_class(mean.series as u32);
        let y = pixels(*y);
        let path = format!("d=\"M{left} {y}H{right}\"");
        let dashes = match (mean.there, mean.series % 2) {
            (false, _) => "",
            (true, 0) => " hg-there",
            // In the gaps of another one, should both lie at the same height.
            (true, _) => " hg-there hg-gaps",
        };
        let _ = writeln!(halos, "<path class=\"hg-halo\" {path}/>");
        let _ = writeln!(
            lines,
            "<g class=\"{class}\"><path class=\"hg-mean{dashes}\" {path}/>\
             <path class=\"hg-leader\" d=\"M{right} {y}L{} {}h10\"/></g>\n\
             <text class=\"hg-ink\" x=\"{}\" y=\"{}\">{}</text>",
            right + 12,
            pixels(label_y),
            right + LEADER - 8,
            pixels(label_y + 4.0),
            for_xml(&mean.label)
        );
    }
    halos + &lines
}

/// Heights in ascending order, moved as little as one pass down and one up can so that
/// neighbours keep their distance between `top` and `bottom`.
fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut heights = wanted.to_vec();
    let mut least = top;
    for height in &mut heights {
        *height = height.max(least);
        least = *height + LABEL_DISTANCE;
    }
    let mut most = bottom;
    for height in heights.iter_mut().rev() {
        *height = height.min(most);
        most = *height - LABEL_DISTANCE;
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_distance_inside_the_plot() {
        assert_eq!(spread(&[50.0, 100.0], 0.0, 200.0), [50.0, 100.0]);
        assert_eq!(spread(&[50.0, 51.0, 52.0], 0.0, 200.0), [50.0, 66.0, 82.0]);
        assert_eq!(spread(&[190.0, 199.0, 200.0], 0.0, 200.0), [168.0, 184.0, 200.0]);
        assert_eq!(spread(&[-5.0], 0.0, 200.0), [0.0]);
        assert_eq!(spread(&[], 0.0, 1.0), [0.0; 0]);
    }
}
