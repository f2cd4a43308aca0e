//! Histograms as inline SVG: a logarithmic axis of counts over a logarithmic axis of time, one curve of steps
//! for each thing counted, as OSADL draws latencies.

use std::fmt::Write;

use crate::clean::for_xml;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 44.0;

/// The lower end of the axis of counts: below 1, so that a single one can be seen.
const LEAST_COUNT: f64 = 0.6;

/// The axis of time: nanoseconds by decades, both ends powers of ten.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeAxis {
    pub(super) least_ns: f64,
    pub(super) most_ns: f64,
}

#[derive(Debug)]
pub(super) struct Curve {
    pub(super) name: String,
    /// The style sheet's name of its colour.
    pub(super) class: String,
    /// From, to (ns), and how many; ascending.
    pub(super) steps: Vec<(f64, f64, u64)>,
    /// What the legend says besides the name.
    pub(super) note: String,
}

#[derive(Debug)]
pub(super) struct Plot {
    pub(super) label: String,
    pub(super) across: TimeAxis,
    pub(super) caption: String,
    /// What is counted upwards.
    pub(super) counted: &'static str,
    pub(super) curves: Vec<Curve>,
}

impl Plot {
    pub(super) fn write(&self, out: &mut String) {
        let counts = self.curves.iter().flat_map(|curve| &curve.steps).map(|step| step.2);
        let most = counts.max().unwrap_or(1).max(1);
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "<figure>\n<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{}\">\n",
            for_xml(&self.label)
        );
        let scale = Scale { across: self.across, most: most as f64 * 1.6 };
        self.grid(out, &scale);
        for curve in &self.curves {
            let _ = writeln!(
                out,
                "<path class=\"curve {}\" d=\"{}\"><title>{}</title></path>",
                curve.class,
                path(&curve.steps, &scale),
                for_xml(&curve.name)
            );
        }
        out.push_str("</svg>\n<figcaption class=\"legend\">");
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

    fn grid(&self, out: &mut String, scale: &Scale) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let mut decade = 1.0;
        while decade <= scale.most {
            let y = scale.y(decade);
            let _ = writeln!(
                out,
                "<path class=\"line\" d=\"M{LEFT} {y:.1}H{right}\"/>\
                 <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                super::table::grouped(decade as u64)
            );
            decade *= 10.0;
        }
        for (at, label) in ticks(self.across) {
            let x = scale.x(at);
            let _ = writeln!(
                out,
                "<path class=\"line\" d=\"M{x:.1} {TOP}V{bottom}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                bottom + 17.0
            );
        }
        let _ = writeln!(
            out,
            "<path class=\"axis\" d=\"M{LEFT} {bottom}H{right}\"/>\
             <text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 6.0,
            for_xml(&self.caption)
        );
        let _ = writeln!(
            out,
            "<text class=\"tick\" transform=\"rotate(-90)\" x=\"{}\" y=\"10\" \
             text-anchor=\"middle\">{}</text>",
            -(TOP + bottom) / 2.0,
            self.counted
        );
    }
}

struct Scale {
    across: TimeAxis,
    most: f64,
}

impl Scale {
    fn x(&self, at: f64) -> f64 {
        let TimeAxis { least_ns, most_ns } = self.across;
        let share = (at.max(least_ns) / least_ns).log10() / (most_ns / least_ns).log10();
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, count: f64) -> f64 {
        let share = (count / LEAST_COUNT).log10() / (self.most / LEAST_COUNT).log10();
        HEIGHT - BOTTOM - share.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }
}

/// Steps that touch are joined; where nothing was counted the curve is on the ground.
fn path(steps: &[(f64, f64, u64)], scale: &Scale) -> String {
    let ground = HEIGHT - BOTTOM;
    let mut d = String::new();
    let mut end: Option<f64> = None;
    for &(from, to, count) in steps.iter().filter(|step| step.2 > 0) {
        let touches = end.is_some_and(|end| (end - from).abs() <= from.abs() * 1e-9);
        if !touches {
            if end.is_some() {
                let _ = write!(d, "V{ground}");
            }
            let _ = write!(d, "M{:.1} {ground}", scale.x(from));
        }
        let _ = write!(d, "V{:.1}H{:.1}", scale.y(count as f64), scale.x(to));
        end = Some(to);
    }
    if end.is_some() {
        let _ = write!(d, "V{ground}");
    }
    d
}

/// Places on the axis with their labels.
fn ticks(across: TimeAxis) -> Vec<(f64, String)> {
    let mut at = across.least_ns;
    let mut ticks = Vec::new();
    while at <= across.most_ns * 1.0001 {
        ticks.push((at, decade(at)));
        at *= 10.0;
    }
    ticks
}

fn decade(ns: f64) -> String {
    let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
    let held = units.into_iter().find(|(_, length)| ns >= *length * 0.999);
    let (unit, length) = held.unwrap_or(("ns", 1.0));
    format!("{} {unit}", (ns / length).round())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_have_units() {
        let across = TimeAxis { least_ns: 100.0, most_ns: 1e6 };
        let labels: Vec<String> = ticks(across).into_iter().map(|tick| tick.1).collect();
        assert_eq!(labels, ["100 ns", "1 us", "10 us", "100 us", "1 ms"]);
    }

    /// A single wake-up stands above the ground, and a hole goes down to it.
    #[test]
    fn one_can_be_seen() {
        let scale = Scale { across: TimeAxis { least_ns: 1.0, most_ns: 10.0 }, most: 1000.0 };
        let ground = HEIGHT - BOTTOM;
        assert!(scale.y(1.0) < ground - 5.0);
        let d = path(&[(1.0, 2.0, 5), (2.0, 3.0, 1), (7.0, 8.0, 1)], &scale);
        assert_eq!(d.matches('M').count(), 2, "{d}");
        assert_eq!(d.matches(&format!("V{ground}")).count(), 2, "{d}");
    }
}
