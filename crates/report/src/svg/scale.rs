//! The axes of charts: times or numbers, divided evenly or by ratios.
//!
//! Owns: where a value lies on an axis, its ticks and their labels. Must not: draw.

use hourglass_documents::paper::{AxisScale, Edge, EdgeUnit};

/// Steps within a decade at which an axis may have its ticks.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

/// Decades that are considered: from a thousandth of a nanosecond to a thousand seconds and more.
const DECADES: std::ops::RangeInclusive<i32> = -3..=15;

/// With fewer decades than this, the ticks between them have labels too.
const FEW_DECADES: f64 = 2.6;

/// Steps of an evenly divided axis, at most.
const MOST_STEPS: f64 = 8.0;

/// Part of a step that rounding may lose.
const ROUNDING: f64 = 1e-6;

/// Units of time and their lengths in nanoseconds.
const UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

/// A tick of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    /// What stands beside it; empty for a line between the decades.
    pub(crate) label: String,
}

/// An axis of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// What the axis measures; not drawn if empty.
    pub(crate) caption: String,
    /// Ascending.
    pub(crate) ticks: Vec<Tick>,
    /// Lower end; positive on a logarithmic axis.
    least: f64,
    /// Upper end; above `least`.
    most: f64,
    scale: AxisScale,
}

impl Axis {
    /// An evenly divided axis with a tick at each `step` from its lower end.
    pub(crate) fn even(least: f64, most: f64, step: f64, label: impl Fn(f64) -> String) -> Axis {
        let count = ((most - least) / step + ROUNDING).floor();
        let at = (0..=count as u32).map(|n| least + f64::from(n) * step);
        let ticks = at.map(|at| Tick { at, label: label(at) }).collect();
        Axis { caption: String::new(), ticks, least, most, scale: AxisScale::Linear }
    }

    /// An evenly divided axis of the time between two moments, whose caption ends with its unit.
    pub(crate) fn moments(from_ns: f64, to_ns: f64, caption: &str) -> Axis {
        let (unit, length) = unit_of(to_ns.abs().max(from_ns.abs()));
        let step = round_step((to_ns - from_ns) / MOST_STEPS);
        let first = (from_ns / step - ROUNDING).ceil();
        let count = (to_ns / step + ROUNDING).floor() - first;
        let at = (0..=count.max(0.0) as u32).map(|n| (first + f64::from(n)) * step);
        let label = |at: f64| format!("{}", (at / length * 1e6).round() / 1e6);
        let ticks = at.map(|at| Tick { at, label: label(at) }).collect();
        let scale = AxisScale::Linear;
        let axis = Axis { caption: String::new(), ticks, least: from_ns, most: to_ns, scale };
        axis.captioned(format!("{caption}, {unit}"))
    }

    /// An axis from 0 to `count`, in thousands or millions where it is large.
    pub(crate) fn counts(count: u64, caption: &str) -> Axis {
        let (unit, name) = match count {
            0..2_000 => (1.0, ""),
            2_000..2_000_000 => (1e3, ", thousands"),
            _ => (1e6, ", millions"),
        };
        // Only for drawing.
        let most = count as f64;
        let step = round_step(most / MOST_STEPS).max(1.0);
        let axis = Axis::even(0.0, most, step, |at| format!("{}", at / unit));
        Axis { most: most.max(1.0), ..axis }.captioned(format!("{caption}{name}"))
    }

    /// A logarithmic axis that holds all of `values`, with a little room; those that are not positive
    /// have no place on it. Without any it goes from 1 to 10.
    pub(crate) fn ratios(values: impl Iterator<Item = f64>, label: impl Fn(f64) -> String) -> Axis {
        let positive = values.filter(|value| *value > 0.0 && value.is_finite());
        let ends = positive.fold(None, |ends: Option<(f64, f64)>, value| {
            Some(ends.map_or((value, value), |(least, most)| (least.min(value), most.max(value))))
        });
        let (least, most) = ends.unwrap_or((1.0, 10.0));
        let steps = || DECADES.flat_map(|decade| STEPS.map(|step| step * 10f64.powi(decade)));
        // A tenth of room below and above, so that nothing lies on the edge.
        let lower = steps().take_while(|step| *step <= least * 0.9).last().unwrap_or(least * 0.9);
        let upper = steps().find(|step| *step >= most * 1.1).unwrap_or(most * 2.0);
        let few = (upper / lower).log10() < FEW_DECADES;
        let ticks = steps().filter(|step| (lower..=upper).contains(step)).map(|at| {
            let decade = (at.log10() - at.log10().round()).abs() < 1e-9;
            Tick { at, label: if decade || few { label(at) } else { String::new() } }
        });
        let ticks = ticks.collect();
        let scale = AxisScale::Logarithmic;
        Axis { caption: String::new(), ticks, least: lower, most: upper, scale }
    }

    /// A logarithmic axis with a tick at each power of ten.
    pub(crate) fn decades(least: f64, most: f64, label: impl Fn(f64) -> String) -> Axis {
        let first = (least.log10() - ROUNDING).ceil() as i32;
        let last = (most.log10() + ROUNDING).floor() as i32;
        let at = (first..=last).map(|decade| 10f64.powi(decade));
        let ticks = at.map(|at| Tick { at, label: label(at) }).collect();
        Axis { caption: String::new(), ticks, least, most, scale: AxisScale::Logarithmic }
    }

    /// The edge of a figure that holds all of `values`; those that are not finite have no place.
    pub(crate) fn of_edge(edge: &Edge, values: impl Iterator<Item = f64>) -> Axis {
        let values = values.filter(|value| value.is_finite());
        let axis = match (edge.scale, edge.unit) {
            (AxisScale::Logarithmic, EdgeUnit::Time) => Axis::ratios(values, time),
            (AxisScale::Logarithmic, EdgeUnit::Number) => Axis::ratios(values, number),
            (AxisScale::Linear, unit) => {
                let greatest = values.fold(0.0, f64::max);
                let step = round_step(greatest / MOST_STEPS);
                let most = (greatest / step).ceil().max(1.0) * step;
                Axis::even(0.0, most, step, |at| match unit {
                    EdgeUnit::Time => time_in_unit_of(greatest, at),
                    EdgeUnit::Number => number(at),
                })
            }
        };
        axis.captioned(edge.text.clone())
    }

    pub(crate) fn captioned(mut self, caption: String) -> Axis {
        self.caption = caption;
        self
    }

    /// Where a value lies: 0 at the lower end, 1 at the upper one, where values beyond are held.
    /// `None` if it has no place.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let held = value.clamp(self.least, self.most);
        match self.scale {
            _ if !value.is_finite() => None,
            AxisScale::Linear => Some((held - self.least) / (self.most - self.least)),
            AxisScale::Logarithmic => (value > 0.0)
                .then(|| (held / self.least).log10() / (self.most / self.least).log10()),
        }
    }
}

/// The least of 1, 2 and 5 times a power of ten that is not below `least`; 1 where that is 0.
pub(crate) fn round_step(least: f64) -> f64 {
    if least <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    let steps = STEPS.map(|step| step * power);
    steps.into_iter().find(|step| *step >= least * (1.0 - ROUNDING)).unwrap_or(10.0 * power)
}

/// The largest unit of which a time holds one.
fn unit_of(ns: f64) -> (&'static str, f64) {
    UNITS.into_iter().find(|(_, length)| ns.abs() >= length * 0.9995).unwrap_or(("ns", 1.0))
}

/// A round time in the unit that suits it.
pub(crate) fn time(ns: f64) -> String {
    time_in_unit_of(ns, ns)
}

fn time_in_unit_of(greatest: f64, ns: f64) -> String {
    let (unit, length) = unit_of(greatest);
    format!("{} {unit}", (ns / length * 1e3).round() / 1e3)
}

/// A time to three digits, in the largest unit of which it holds one.
pub(crate) fn three_digits(ns: f64) -> String {
    let (unit, length) = unit_of(ns);
    let value = ns / length;
    let decimals = match value.abs() {
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// The microseconds of a time, for an axis in them.
pub(crate) fn microseconds(ns: f64) -> String {
    format!("{}", (ns / 1e3 * 1e6).round() / 1e6)
}

fn number(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{} million", (value / 1e6 * 1e3).round() / 1e3),
        value => format!("{}", (value * 1e3).round() / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(unit: EdgeUnit, scale: AxisScale) -> Edge {
        Edge { text: "something".into(), unit, scale }
    }

    fn labels(axis: &Axis) -> Vec<&str> {
        let labels = axis.ticks.iter().map(|tick| tick.label.as_str());
        labels.filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn an_even_edge_begins_at_nothing() {
        let edge = edge(EdgeUnit::Time, AxisScale::Linear);
        let axis = Axis::of_edge(&edge, [14.5e6, 29e6, f64::NAN].into_iter());
        assert_eq!(labels(&axis), ["0 ms", "5 ms", "10 ms", "15 ms", "20 ms", "25 ms", "30 ms"]);
        assert_eq!((axis.place(0.0), axis.place(15e6)), (Some(0.0), Some(0.5)));
        assert_eq!((axis.place(1e9), axis.place(f64::NAN)), (Some(1.0), None));
        let nothing = Axis::of_edge(&edge, std::iter::empty());
        assert_eq!((labels(&nothing).len(), nothing.place(0.0)), (2, Some(0.0)));
    }

    #[test]
    fn moments_have_round_ticks_wherever_they_begin() {
        let axis = Axis::moments(1.52e9, 1.61e9, "time");
        assert_eq!(labels(&axis), ["1.52", "1.54", "1.56", "1.58", "1.6"]);
        assert_eq!((axis.caption.as_str(), axis.place(1.565e9)), ("time, s", Some(0.5)));
        assert_eq!(labels(&Axis::moments(0.0, 4e6, "")).last(), Some(&"4"));
        assert_eq!(["0.05", "1", "200"], [50.0, 1e3, 2e5].map(microseconds));
    }

    #[test]
    fn an_edge_of_ratios_has_no_place_for_nothing() {
        let edge = edge(EdgeUnit::Number, AxisScale::Logarithmic);
        let axis = Axis::of_edge(&edge, [100.0, 1e6].into_iter());
        assert_eq!(labels(&axis), ["100", "1000", "10000", "100000", "1 million"]);
        assert_eq!(axis.place(0.0), None);
        assert!(axis.place(1e4).is_some_and(|place| (0.3..0.7).contains(&place)));
    }

    #[test]
    fn an_axis_holds_what_it_is_for() {
        let axis = Axis::ratios([8.7, 17.0, 0.0, 1_250_000.0].into_iter(), time);
        assert!((axis.least - 5.0).abs() < 1e-9 && (axis.most - 2e6).abs() < 1e-3, "{axis:?}");
        assert_eq!(labels(&axis), ["10 ns", "100 ns", "1 us", "10 us", "100 us", "1 ms"]);
        assert_eq!(
            (axis.place(5.0), axis.place(0.0), axis.place(1e9)),
            (Some(0.0), None, Some(1.0))
        );
        let tenth = axis.place(10.0).unwrap();
        assert!((tenth - 2f64.log10() / 4e5_f64.log10()).abs() < 1e-9);
    }

    #[test]
    fn a_short_axis_has_labels_between_the_decades() {
        let axis = Axis::ratios([12.0, 60.0].into_iter(), time);
        assert_eq!(labels(&axis), ["10 ns", "20 ns", "50 ns", "100 ns"]);
        let nothing = Axis::ratios(std::iter::empty(), time);
        assert!(nothing.least < nothing.most && !nothing.ticks.is_empty());
    }

    #[test]
    fn decades_have_units() {
        let axis = Axis::decades(100.0, 1e6, time);
        assert_eq!(labels(&axis), ["100 ns", "1 us", "10 us", "100 us", "1 ms"]);
        assert_eq!(labels(&Axis::decades(0.6, 1_600.0, number)), ["1", "10", "100", "1000"]);
    }

    #[test]
    fn times_to_three_digits() {
        for (ns, text) in [
            (0.0, "0.00 ns"),
            (8.6956, "8.70 ns"),
            (16.9097, "16.9 ns"),
            (999.8, "1.00 us"),
            (1_129.4, "1.13 us"),
            (1_250_000.0, "1.25 ms"),
        ] {
            assert_eq!(three_digits(ns), text);
        }
    }

    #[test]
    fn steps_are_round() {
        for (least, expected) in [(0.0, 1.0), (3.6, 5.0), (0.11, 0.2), (1.0, 1.0), (7e8, 1e9)] {
            let found = round_step(least);
            assert!((found / expected - 1.0).abs() < 1e-9, "{least}: {found}");
        }
    }

    #[test]
    fn counts_are_round() {
        let axis = Axis::counts(10_000_000, "reads");
        assert_eq!(labels(&axis), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(axis.caption, "reads, millions");
        assert_eq!(labels(&Axis::counts(500, "")).last(), Some(&"500"));
        let nothing = Axis::counts(0, "reads");
        assert_eq!((labels(&nothing), nothing.place(0.0)), (vec!["0"], Some(0.0)));
        assert_eq!(nothing.caption, "reads");
        assert_eq!(labels(&Axis::counts(2_500_000, ""))[1], "0.5");
        assert!(Axis::counts(u64::MAX, "").ticks.len() <= 9);
    }
}
