//! Share of sets accepted against utilisation, a curve for each analysis.
//!
//! Owns: the picture of an experiment of schedulability. Must not: count.

use std::fmt::Write as _;

use hourglass_documents::sweep::{SweepDocument, SweepPoint};

use super::chart::{Area, Axes, Chart, Division, Line, Mark, Series, Texts, WIDTH, joined, page};
use super::hatch::THREAD_COLOURS;
use super::labels::{self, NamedCurve};
use super::legend::{LegendEntry, thread_class};
use super::scale::{Axis, round_step};
use crate::text::sweep_summary;

/// The edges of the plot: the room that the labels of the axes need.
const AREA: Area = Area { left: 72, right: WIDTH - 40, top: 84, bottom: 504 };

/// Length of a dash where curves lie on each other, in pixels.
const DASH: usize = 9;

/// Marks are drawn where they are at least so far apart, in pixels: their shapes are to be seen.
const MARK_DISTANCE: f64 = 16.0;

/// Steps of the lower edge, at most.
const MOST_STEPS: f64 = 12.0;

/// Draws the curves as one self-contained SVG. Curves that are one from end to end are drawn as
/// dashes of all of their colours, and share a name beside them.
#[must_use]
pub fn acceptance(document: &SweepDocument) -> String {
    let curves = AcceptanceCurves::of(document);
    let groups = curves.groups();
    let place = |group: &Vec<usize>| {
        let many = group.len();
        let one = |(place, curve): (usize, &usize)| curves.series(*curve, place, many);
        group.iter().enumerate().map(one).collect::<Vec<_>>()
    };
    let series = groups.iter().flat_map(place).collect();
    let texts = Texts {
        title: "Sets accepted, by utilisation",
        under: &sweep_summary(&document.experiment),
        description: &curves.description(),
        legend: &curves.entries(),
        note: "",
    };
    let marks = labels::names(AREA, &curves.named(&groups));
    page(&Chart { axes: curves.axes, series, marks }, &texts)
}

struct AcceptanceCurves<'a> {
    document: &'a SweepDocument,
    axes: Axes,
    /// For each analysis its shares, from 0 to 1.
    shares: Vec<Vec<f64>>,
    /// Where they lie, in pixels.
    places: Vec<Vec<(f64, f64)>>,
}

impl<'a> AcceptanceCurves<'a> {
    fn of(document: &'a SweepDocument) -> AcceptanceCurves<'a> {
        let share = |point: &SweepPoint, name: &String| {
            let accepted = point.accepted.get(name).copied().unwrap_or(0);
            (accepted as f64 / point.sets.max(1) as f64).clamp(0.0, 1.0)
        };
        let names = document.experiment.analyses.iter();
        let shares: Vec<Vec<f64>> =
            names.map(|name| document.points.iter().map(|p| share(p, name)).collect()).collect();
        let percent = |share: f64| format!("{} %", (share * 100.0).round());
        let up = Axis::even(0.0, 1.0, 0.2, percent).captioned("sets accepted".to_owned());
        let across = utilisations(document);
        let axes = Axes { area: AREA, up, across, division: Division::Marks };
        let place = |(point, share): (&SweepPoint, &f64)| {
            Some((axes.x(point.utilisation)?, axes.y(*share)?))
        };
        let curve =
            |shares: &Vec<f64>| document.points.iter().zip(shares).filter_map(place).collect();
        let places = shares.iter().map(curve).collect();
        AcceptanceCurves { document, axes, shares, places }
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

    /// A curve; of `many` that lie on each other, the one numbered `place`.
    fn series(&self, curve: usize, place: usize, many: usize) -> Series {
        let dashes = match many {
            1 => String::new(),
            _ => format!(
                " stroke-dasharray=\"{DASH} {}\" stroke-dashoffset=\"{}\"",
                DASH * (many - 1),
                DASH * (many - place)
            ),
        };
        let places = &self.places[curve];
        let mut marks = String::new();
        let mut free = f64::NEG_INFINITY;
        // Curves that are one have their marks in turn.
        for (x, y) in places.iter().skip(place).step_by(many) {
            if *x >= free {
                marks += &mark(curve).at(*x, *y);
                free = x + MARK_DISTANCE;
            }
        }
        Series { marks, ..series(curve, &dashes, joined(places)) }
    }

    /// The curves with their names: those that fall first before the others, which have more room.
    fn named(&self, groups: &[Vec<usize>]) -> Vec<NamedCurve> {
        let mut order: Vec<&Vec<usize>> = groups.iter().collect();
        let area = |group: &Vec<usize>| self.shares[group[0]].iter().sum::<f64>();
        order.sort_by(|a, b| area(a).total_cmp(&area(b)));
        let named = |group: &Vec<usize>| {
            let names: Vec<&str> = group.iter().map(|curve| self.name(*curve)).collect();
            NamedCurve {
                points: self.places[group[0]].clone(),
                name: names.join(", "),
                looks: group.iter().map(|curve| (class(*curve), mark(*curve))).collect(),
            }
        };
        order.into_iter().map(named).collect()
    }

    fn entries(&self) -> Vec<LegendEntry> {
        let weighted = &self.document.weighted;
        let entry = |curve: usize| {
            let name = self.name(curve);
            let score = weighted.get(name).map_or(String::new(), |w| format!(", weighted {w:.3}"));
            let marks = mark(curve).at(8.0, 5.0);
            let sign = Series { marks, ..series(curve, "", "M0 5H16".to_owned()) }.svg();
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

/// The mark of a curve. Where colours begin again after eight curves, they have other marks.
fn mark(curve: usize) -> Mark {
    Mark::of(curve % THREAD_COLOURS as usize + 5 * (curve / THREAD_COLOURS as usize))
}

fn class(curve: usize) -> String {
    thread_class(u32::try_from(curve).unwrap_or(0))
}

/// A curve without marks.
fn series(curve: usize, dashes: &str, path: String) -> Series {
    let line = Line { attributes: format!("class=\"hg-curve\"{dashes}"), path };
    Series { class: class(curve), line: Some(line), ..Series::default() }
}

/// The lower axis: a tick at each 1, 2 or 5 times a power of ten, and few of them.
fn utilisations(document: &SweepDocument) -> Axis {
    let ends = || document.points.iter().map(|point| point.utilisation);
    let least = ends().fold(f64::INFINITY, f64::min);
    let most = ends().fold(0.0, f64::max);
    let range = if least.is_finite() { most - least } else { 0.0 };
    // No utilisation is finer than a millionth.
    let step = round_step((range / MOST_STEPS).max(0.01_f64.min(range.max(1e-6))));
    let from = if least.is_finite() { (least / step).floor() * step } else { 0.0 };
    let to = ((most / step).ceil() * step).max(from + step);
    let label = |at: f64| {
        // A step has at most six decimals.
        let text = format!("{at:.6}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    Axis::even(from, to, step, label).captioned("utilisation".to_owned())
}
