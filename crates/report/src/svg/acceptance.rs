//! Share of sets accepted against utilisation, a curve for each analysis.
//!
//! Owns: the picture of an experiment of schedulability. Must not: count.

use std::fmt::Write as _;

use hourglass_documents::sweep::{SweepDocument, SweepPoint};

use super::hatch::THREAD_COLOURS;
use super::legend::{self, LegendEntry, thread_class};
use super::page::{EDGE, head, heading, pixels};
use crate::clean::for_xml;
use crate::text::sweep_summary;

/// Lines, dots and names, which the pictures of traces do not have.
const STYLE: &str = include_str!("acceptance.css");

/// Width of the picture in pixels.
const WIDTH: u32 = 960;

/// Edges of the plot in pixels.
const TOP: u32 = 84;
const HEIGHT: u32 = 420;
const LEFT: u32 = 72;
const RIGHT: u32 = WIDTH - 40;

/// Length of a dash where curves lie on each other, in pixels.
const DASH: usize = 9;

/// Dots are drawn where they are at least so far apart, in pixels.
const DOT_DISTANCE: f64 = 8.0;

/// Steps of the lower edge, at most.
const MOST_STEPS: f64 = 12.0;

/// Height that a name takes, and the distance at which places for it are tried, in pixels.
const LINE: f64 = 15.0;

/// Names stand at these heights, so that neighbours do not cover each other.
const NAMES: (f64, f64) = (0.92, 0.12);

/// Draws the curves as one self-contained SVG. Curves that are one from end to end are drawn as
/// dashes of all of their colours, and share a name beside them.
#[must_use]
pub fn acceptance(document: &SweepDocument) -> String {
    let plot = Plot::of(document);
    let mut body = plot.grid();
    let groups = plot.groups();
    for group in &groups {
        for (place, curve) in group.iter().enumerate() {
            body.push_str(&plot.curve(*curve, place, group.len()));
        }
    }
    body.push_str(&plot.names(&groups));
    let (legend, end) = legend::placed(&plot.entries(), WIDTH, TOP + HEIGHT + 62);
    let title = "Sets accepted, by utilisation";
    let mut out = head((WIDTH, end + EDGE), title, &for_xml(&plot.description()), STYLE);
    out.push_str(&heading(WIDTH, title));
    let under = for_xml(&sweep_summary(&document.experiment));
    let _ = writeln!(out, "<text class=\"hg-faint\" x=\"{EDGE}\" y=\"46\">{under}</text>");
    out.push_str(&body);
    out.push_str(&legend);
    out.push_str("</svg>\n");
    out
}

struct Plot<'a> {
    document: &'a SweepDocument,
    /// The ends of the lower edge.
    from: f64,
    to: f64,
    /// For each analysis its shares, from 0 to 1.
    shares: Vec<Vec<f64>>,
}

impl<'a> Plot<'a> {
    fn of(document: &'a SweepDocument) -> Plot<'a> {
        let step = step_of(document);
        let ends = || document.points.iter().map(|point| point.utilisation);
        let least = ends().fold(f64::INFINITY, f64::min);
        let most = ends().fold(0.0, f64::max);
        let from = if least.is_finite() { (least / step).floor() * step } else { 0.0 };
        let to = ((most / step).ceil() * step).max(from + step);
        let share = |point: &SweepPoint, name: &String| {
            let accepted = point.accepted.get(name).copied().unwrap_or(0);
            (accepted as f64 / point.sets.max(1) as f64).clamp(0.0, 1.0)
        };
        let shares = document.experiment.analyses.iter();
        let shares = shares.map(|name| document.points.iter().map(|p| share(p, name)).collect());
        Plot { document, from, to, shares: shares.collect() }
    }

    fn x(&self, utilisation: f64) -> f64 {
        let part = (utilisation - self.from) / (self.to - self.from);
        f64::from(LEFT) + part.clamp(0.0, 1.0) * f64::from(RIGHT - LEFT)
    }

    fn y(&self, share: f64) -> f64 {
        f64::from(TOP) + (1.0 - share) * f64::from(HEIGHT)
    }

    fn name(&self, curve: usize) -> &str {
        self.document.experiment.analyses.get(curve).map_or("", String::as_str)
    }

    /// Analyses that accept the same of every point, in the order of the first of them.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for curve in 0..self.shares.len() {
            match groups.iter_mut().find(|group| self.shares[group[0]] == self.shares[curve]) {
                Some(group) => group.push(curve),
                None => groups.push(vec![curve]),
            }
        }
        groups
    }

    /// Lines across the plot, and what they stand for.
    fn grid(&self) -> String {
        let bottom = TOP + HEIGHT;
        let mut out = String::new();
        let mut labels = String::new();
        for part in 0..=5u32 {
            let y = self.y(f64::from(part) / 5.0);
            let _ = writeln!(out, "<path class=\"hg-grid\" d=\"M{LEFT} {}H{RIGHT}\"/>", pixels(y));
            let (x, y) = (LEFT - 8, pixels(y + 4.0));
            let _ = writeln!(labels, "<text x=\"{x}\" y=\"{y}\">{} %</text>", part * 20);
        }
        let _ = writeln!(
            out,
            "<path class=\"hg-axis\" d=\"M{LEFT} {bottom}H{RIGHT}\"/>\n\
             <g class=\"hg-faint\" text-anchor=\"end\">\n{labels}</g>\n\
             <text class=\"hg-faint\" x=\"{EDGE}\" y=\"{}\">sets accepted</text>",
            TOP - 16,
        );
        out.push_str(&self.lower_edge());
        out
    }

    fn lower_edge(&self) -> String {
        let bottom = TOP + HEIGHT;
        let step = step_of(self.document);
        let steps = ((self.to - self.from) / step).round() as u32;
        let mut marks = String::new();
        let mut labels = String::new();
        for at in (0..=steps).map(|n| self.from + f64::from(n) * step) {
            let x = pixels(self.x(at));
            let _ = writeln!(marks, "<path class=\"hg-axis\" d=\"M{x} {bottom}v4\"/>");
            // A step has at most six decimals.
            let text = format!("{at:.6}");
            let text = text.trim_end_matches('0').trim_end_matches('.');
            let _ = writeln!(labels, "<text x=\"{x}\" y=\"{}\">{text}</text>", bottom + 18);
        }
        format!(
            "{marks}<g class=\"hg-faint\" text-anchor=\"middle\">\n{labels}\
             <text x=\"{}\" y=\"{}\">utilisation</text>\n</g>\n",
            (LEFT + RIGHT) / 2,
            bottom + 38
        )
    }

    /// A curve; of `many` that lie on each other, the one numbered `place`.
    fn curve(&self, curve: usize, place: usize, many: usize) -> String {
        let dashes = match many {
            1 => String::new(),
            _ => format!(
                " stroke-dasharray=\"{DASH} {}\" stroke-dashoffset=\"{}\"",
                DASH * (many - 1),
                DASH * (many - place)
            ),
        };
        let mut out =
            format!("<g class=\"{}\"><path class=\"hg-curve\"{dashes} d=\"", class(curve));
        let places: Vec<(f64, f64)> = self.places(curve).collect();
        for (at, (x, y)) in places.iter().enumerate() {
            let letter = if at == 0 { 'M' } else { 'L' };
            let _ = write!(out, "{letter}{} {}", pixels(*x), pixels(*y));
        }
        out.push_str("\"/>\n");
        let mut free = f64::NEG_INFINITY;
        // Curves that are one have their dots in turn.
        for (x, y) in places.iter().skip(place).step_by(many) {
            if *x >= free {
                let _ = writeln!(out, "{}", mark(curve, *x, *y));
                free = x + DOT_DISTANCE;
            }
        }
        out.push_str("</g>\n");
        out
    }

    fn places(&self, curve: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
        let points = self.document.points.iter().zip(&self.shares[curve]);
        points.map(|(point, share)| (self.x(point.utilisation), self.y(*share)))
    }

    /// The names beside the curves, each at a height of its own.
    fn names(&self, groups: &[Vec<usize>]) -> String {
        let mut out = String::new();
        // The first to fall stands lowest, where it has fallen far from the others.
        let mut order: Vec<(f64, &Vec<usize>)> =
            groups.iter().map(|group| (self.shares[group[0]].iter().sum::<f64>(), group)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut taken: Vec<LabelPosition> = Vec::new();
        for (rank, (_, group)) in order.iter().enumerate() {
            let part = if order.len() < 2 { 0.5 } else { rank as f64 / (order.len() - 1) as f64 };
            let level = NAMES.0 + (NAMES.1 - NAMES.0) * part;
            let Some((x, y)) = self.crossing(group[0], level) else { continue };
            let names: Vec<&str> = group.iter().map(|curve| self.name(*curve)).collect();
            let text = names.join(", ");
            let width = f64::from(legend::width_of(&text));
            let room = f64::from(RIGHT) - x > width + 16.0;
            let (x, anchor) = if room { (x + 8.0, "start") } else { (x - 8.0, "end") };
            let left = if room { x } else { x - width };
            let y = free(&taken, left, left + width, y);
            taken.push(LabelPosition { left, right: left + width, y });
            let _ = writeln!(
                out,
                "<text class=\"hg-ink hg-name\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
                pixels(x),
                pixels(y + 4.0),
                for_xml(&text)
            );
        }
        out
    }

    /// Where a curve first falls to this share; its last point if it never does.
    fn crossing(&self, curve: usize, level: f64) -> Option<(f64, f64)> {
        let height = self.y(level);
        let places: Vec<(f64, f64)> = self.places(curve).collect();
        let fallen = places.windows(2).find(|pair| pair[0].1 <= height && pair[1].1 > height);
        match fallen {
            Some(pair) => {
                let part = (height - pair[0].1) / (pair[1].1 - pair[0].1);
                Some((pair[0].0 + part * (pair[1].0 - pair[0].0), height))
            }
            None => places.last().copied(),
        }
    }

    fn entries(&self) -> Vec<LegendEntry> {
        let weighted = &self.document.weighted;
        let entry = |curve: usize| {
            let name = self.name(curve);
            let score = weighted.get(name).map_or(String::new(), |w| format!(", weighted {w:.3}"));
            let sign = format!(
                "<g class=\"{}\"><path class=\"hg-curve\" d=\"M0 5H16\"/>{}</g>",
                class(curve),
                mark(curve, 8.0, 5.0)
            );
            LegendEntry { sign, text: format!("{name}{score}") }
        };
        (0..self.shares.len()).map(entry).collect()
    }

    fn description(&self) -> String {
        let summary = sweep_summary(&self.document.experiment);
        let mut text = format!("The share of sets that each analysis accepts; {summary}.");
        for (curve, shares) in self.shares.iter().enumerate() {
            let ends = shares.first().zip(shares.last());
            if let Some((first, last)) = ends {
                let (first, last) = (first * 100.0, last * 100.0);
                let _ = write!(text, " {}: from {first:.1} % to {last:.1} %.", self.name(curve));
            }
        }
        text
    }
}

struct LabelPosition {
    left: f64,
    right: f64,
    y: f64,
}

/// The height nearest to `y` at which a name does not cover those that stand there: curves that accept
/// nothing all end in one place. `y` if no height is free.
fn free(taken: &[LabelPosition], left: f64, right: f64, y: f64) -> f64 {
    let covers = |at: f64| {
        let over = |place: &LabelPosition| {
            left < place.right && place.left < right && (at - place.y).abs() < LINE
        };
        taken.iter().any(over)
    };
    let inside = |at: &f64| *at >= f64::from(TOP) && *at <= f64::from(TOP + HEIGHT);
    let steps = (0..HEIGHT / 4).map(|step| f64::from(step) * 4.0);
    let mut places = steps.flat_map(|away| [y - away, y + away]).filter(inside);
    places.find(|at| !covers(*at)).unwrap_or(y)
}

/// The mark of a curve at a place. Colours begin again after a dozen curves, with another mark.
fn mark(curve: usize, x: f64, y: f64) -> String {
    let at = |dx: f64, dy: f64| format!("{} {}", pixels(x + dx), pixels(y + dy));
    match curve / THREAD_COLOURS as usize % 4 {
        0 => {
            let (x, y) = (pixels(x), pixels(y));
            format!("<circle class=\"hg-dot\" cx=\"{x}\" cy=\"{y}\" r=\"3\"/>")
        }
        1 => format!("<path class=\"hg-dot\" d=\"M{}h7v7h-7z\"/>", at(-3.5, -3.5)),
        2 => format!("<path class=\"hg-dot\" d=\"M{}l5 9h-10z\"/>", at(0.0, -5.0)),
        _ => format!("<path class=\"hg-dot\" d=\"M{}l5 5l-5 5l-5 -5z\"/>", at(0.0, -5.0)),
    }
}

fn class(curve: usize) -> String {
    thread_class(u32::try_from(curve).unwrap_or(0))
}

/// A step of the lower edge: 1, 2 or 5 times a power of ten, and few of them.
fn step_of(document: &SweepDocument) -> f64 {
    let ends = || document.points.iter().map(|point| point.utilisation);
    let range = ends().fold(0.0, f64::max) - ends().fold(f64::INFINITY, f64::min);
    let least = if range.is_finite() { range / MOST_STEPS } else { 0.0 };
    // No utilisation is finer than a millionth, nor over a thousand.
    let steps = (-6..=3).flat_map(|power| [1.0, 2.0, 5.0].map(|n| n * 10f64.powi(power)));
    let mut steps = steps.filter(|step| *step >= least.max(0.01_f64.min(range.max(1e-6))));
    steps.next().unwrap_or(1.0)
}
