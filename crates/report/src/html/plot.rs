//! Histograms as inline SVG: a logarithmic axis of counts over a logarithmic axis of time, one curve of steps
//! for each thing counted, as OSADL draws latencies.

use std::fmt::Write;

use crate::clean::for_xml;
use crate::svg::chart::{Area, Axes, Chart, Division, Line, Series, WIDTH};
use crate::svg::histogram::path;
use crate::svg::scale::{Axis, time};

const HEIGHT: u32 = 316;
const AREA: Area = Area { left: 64, right: WIDTH - 28, top: 30, bottom: HEIGHT - 44 };

/// The lower end of the axis of counts: below 1, so that a single one can be seen.
const LEAST_COUNT: f64 = 0.6;

#[derive(Debug)]
pub(super) struct Curve {
    pub(super) name: String,
    /// The style sheet's name of its colour.
    pub(super) class: String,
    /// From, to (ns), and how many; ascending.
    pub(super) steps: Vec<(f64, f64, f64)>,
    /// What the legend says besides the name.
    pub(super) note: String,
}

#[derive(Debug)]
pub(super) struct Plot {
    pub(super) label: String,
    /// The ends of the axis of time, ns; powers of ten.
    pub(super) across: (f64, f64),
    pub(super) caption: String,
    /// What is counted upwards.
    pub(super) counted: &'static str,
    pub(super) curves: Vec<Curve>,
}

impl Plot {
    pub(super) fn write(&self, out: &mut String) {
        let axes = self.axes();
        let series = self.curves.iter().map(|curve| Series {
            class: curve.class.clone(),
            title: curve.name.clone(),
            line: Some(Line {
                attributes: "class=\"curve\"".to_owned(),
                path: path(&curve.steps, &axes),
            }),
            ..Series::default()
        });
        let series = series.collect();
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "<figure>\n<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{}\">\n{}</svg>\n<figcaption class=\"legend\">",
            for_xml(&self.label),
            Chart { axes, series, marks: String::new() }.svg()
        );
        for curve in &self.curves {
            let _ = write!(
                out,
                "<span><span class=\"dot {}\"></span>{}",
                curve.class,
                for_xml(&curve.name)
            );
            if !curve.note.is_empty() {
                let _ = write!(out, " <span class=\"faint\">{}</span>", for_xml(&curve.note));
            }
            out.push_str("</span> ");
        }
        out.push_str("</figcaption>\n</figure>\n");
    }

    fn axes(&self) -> Axes {
        let counts = self.curves.iter().flat_map(|curve| &curve.steps).map(|step| step.2);
        let most = counts.fold(1.0, f64::max) * 1.6;
        let up = Axis::decades(LEAST_COUNT, most, |count| super::table::grouped(count as u64));
        Axes {
            area: AREA,
            up: up.captioned(self.counted.to_owned()),
            across: Axis::decades(self.across.0, self.across.1, time)
                .captioned(self.caption.clone()),
            division: Division::Lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A single wake-up stands above the ground, and a hole goes down to it.
    #[test]
    fn one_can_be_seen() {
        let steps = vec![(1.0, 2.0, 5.0), (2.0, 3.0, 1.0), (7.0, 8.0, 1.0), (8.0, 9.0, 0.0)];
        let curve = Curve { name: String::new(), class: String::new(), steps, note: String::new() };
        let plot = Plot {
            label: String::new(),
            across: (1.0, 10.0),
            caption: String::new(),
            counted: "wake-ups",
            curves: vec![curve],
        };
        let (axes, ground) = (plot.axes(), AREA.bottom);
        assert!(axes.y(1.0).unwrap() < f64::from(ground) - 5.0);
        let d = path(&plot.curves[0].steps, &axes);
        assert_eq!(d.matches('M').count(), 2, "{d}");
        assert_eq!(d.matches(&format!("V{ground}")).count(), 2, "{d}");
    }
}
