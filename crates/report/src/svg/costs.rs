//! Single measurements in their order, on a logarithmic scale, with the means of the paper and those
//! found here.

use std::fmt::Write as _;

use hourglass_documents::paper::{Figure, Series};

use super::legend::{self, LegendEntry, thread_class};
use super::log_axis::{LogAxis, counts, three_digits};
use super::page::{EDGE, head, heading, pixels};
use crate::clean::{for_xml, shortened};

/// Lines, dots and halos, which the pictures of traces do not have.
const STYLE: &str = include_str!("costs.css");

/// Width of the picture in pixels.
const WIDTH: u32 = 960;

/// Upper edge and height of the plot, in pixels.
const TOP: u32 = 68;
const HEIGHT: u32 = 420;

/// Left edge of the plot: the room that the labels of the axis need.
const LEFT: u32 = 72;

/// Pixels from the plot's right edge to the labels of the means.
const LEADER: u32 = 34;

/// A label is cut to this many characters.
const LONGEST_LABEL: usize = 36;

/// Pixels between the labels of two means, at least.
const LABEL_DISTANCE: f64 = 16.0;

/// Steps of the lower axis, at most.
const MOST_STEPS: u64 = 8;

/// Draws a figure as one self-contained SVG. A series without points shows the paper's mean
/// alone.
#[must_use]
pub fn costs(figure: &Figure) -> String {
    let means = means(figure);
    let widest = means.iter().map(|mean| legend::width_of(&mean.label)).max().unwrap_or(0);
    let labels = widest + LEADER;
    let points = figure.series.iter().flat_map(|series| series.points.iter().map(|point| point.ns));
    let plot = Plot {
        figure,
        axis: LogAxis::holding(points.chain(means.iter().map(|mean| mean.ns))),
        right: WIDTH - labels.min(WIDTH / 2),
    };
    let mut body = plot.grid();
    // One half of the dots in this order and the other in the opposite one: of two series at the
    // same height neither hides the other.
    let numbered = || figure.series.iter().enumerate();
    numbered().for_each(|(at, series)| body.push_str(&plot.dots(at, series, 0)));
    numbered().rev().for_each(|(at, series)| body.push_str(&plot.dots(at, series, 1)));
    body.push_str(&plot.mean_lines(&means));
    let (legend, end) = legend::placed(&entries(figure), WIDTH, TOP + HEIGHT + 62);
    let title = format!("Figure {}: {}", figure.id, figure.title);
    let mut out = head((WIDTH, end + EDGE), &title, &for_xml(&description(figure)), STYLE);
    out.push_str(&heading(WIDTH, &title));
    out.push_str(&body);
    out.push_str(&legend);
    out.push_str("</svg>\n");
    out
}

/// A mean that has a line.
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

struct Plot<'a> {
    figure: &'a Figure,
    axis: LogAxis,
    /// Right edge of the plot.
    right: u32,
}

impl Plot<'_> {
    fn x(&self, number: u64) -> f64 {
        let part = number as f64 / self.figure.count.max(1) as f64;
        f64::from(LEFT) + part.min(1.0) * f64::from(self.right - LEFT)
    }

    fn y(&self, ns: f64) -> f64 {
        f64::from(TOP) + (1.0 - self.axis.place(ns)) * f64::from(HEIGHT)
    }

    /// Lines across the plot, and what they stand for.
    fn grid(&self) -> String {
        let mut out = String::new();
        let (right, bottom) = (self.right, TOP + HEIGHT);
        let mut labels = String::new();
        for line in &self.axis.lines {
            let y = self.y(line.at);
            let class = if line.label.is_empty() { "hg-minor" } else { "hg-grid" };
            let _ = writeln!(out, "<path class=\"{class}\" d=\"M{LEFT} {}H{right}\"/>", pixels(y));
            if !line.label.is_empty() {
                let (x, y) = (LEFT - 8, pixels(y + 4.0));
                let _ = writeln!(labels, "<text x=\"{x}\" y=\"{y}\">{}</text>", line.label);
            }
        }
        let _ = writeln!(
            out,
            "<path class=\"hg-axis\" d=\"M{LEFT} {bottom}H{right}\"/>\n\
             <g class=\"hg-faint\" text-anchor=\"end\">\n{labels}</g>\n\
             <text class=\"hg-faint\" x=\"{EDGE}\" y=\"{}\">{} of a {}</text>",
            TOP - 16,
            for_xml(&self.figure.quantity),
            for_xml(&self.figure.counted)
        );
        out.push_str(&self.numbers());
        out
    }

    fn numbers(&self) -> String {
        let (places, unit) = counts(self.figure.count, MOST_STEPS);
        let bottom = TOP + HEIGHT;
        let mut marks = String::new();
        let mut labels = String::new();
        for (at, label) in places {
            let x = pixels(self.x(at));
            let _ = writeln!(marks, "<path class=\"hg-axis\" d=\"M{x} {bottom}v4\"/>");
            let _ = writeln!(labels, "<text x=\"{x}\" y=\"{}\">{label}</text>", bottom + 18);
        }
        let counted = for_xml(&self.figure.counted);
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        format!(
            "{marks}<g class=\"hg-faint\" text-anchor=\"middle\">\n{labels}\
             <text x=\"{}\" y=\"{}\">number of the {counted}{unit}</text>\n</g>\n",
            (LEFT + self.right) / 2,
            bottom + 38
        )
    }

    /// Every second dot of a series, beginning with that numbered `first`.
    fn dots(&self, at: usize, series: &Series, first: usize) -> String {
        if series.points.len() <= first {
            return String::new();
        }
        let class = thread_class(at as u32);
        let mut out = format!("<g class=\"{class}\"><path class=\"hg-dots\" d=\"");
        for point in series.points.iter().skip(first).step_by(2) {
            let _ = write!(out, "M{:.1} {:.1}h0", self.x(point.number), self.y(point.ns));
        }
        out.push_str("\"/></g>\n");
        out
    }

    /// A line for each mean, and beside the plot its label.
    fn mean_lines(&self, means: &[MeanLine]) -> String {
        let mut by_height: Vec<&MeanLine> = means.iter().collect();
        by_height.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        let wanted: Vec<f64> = by_height.iter().map(|mean| self.y(mean.ns)).collect();
        let heights = spread(&wanted, f64::from(TOP), f64::from(TOP + HEIGHT));
        let right = self.right;
        let mut halos = String::new();
        let mut lines = String::new();
        for (mean, label_y) in by_height.iter().zip(heights) {
            let class = thread_class(mean.series as u32);
            let y = pixels(self.y(mean.ns));
            let path = format!("d=\"M{LEFT} {y}H{right}\"");
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
