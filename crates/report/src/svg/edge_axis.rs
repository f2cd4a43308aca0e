//! An edge of a figure: times or numbers, divided evenly or by ratios.

use hourglass_documents::paper::{AxisScale, Edge, EdgeUnit};

use super::log_axis::{Line, LogAxis, three_digits};

/// Steps of an evenly divided edge, at most.
const MOST_STEPS: f64 = 8.0;

/// An edge that holds some values.
pub(super) enum EdgeAxis {
    Linear { most: f64, lines: Vec<Line> },
    Logarithmic(LogAxis),
}

impl EdgeAxis {
    /// The edge that holds all of `values`; those that are not finite have no place.
    pub(super) fn holding(edge: &Edge, values: impl Iterator<Item = f64>) -> EdgeAxis {
        let values = values.filter(|value| value.is_finite());
        if edge.scale == AxisScale::Logarithmic {
            let mut axis = LogAxis::holding(values);
            if edge.unit == EdgeUnit::Number {
                let labelled = axis.lines.iter_mut().filter(|line| !line.label.is_empty());
                labelled.for_each(|line| line.label = number(line.at));
            }
            return EdgeAxis::Logarithmic(axis);
        }
        let greatest = values.fold(0.0, f64::max);
        let step = step(greatest / MOST_STEPS);
        let count = ((greatest / step).ceil()).max(1.0);
        let label = |at: f64| match edge.unit {
            EdgeUnit::Time => time(at, greatest),
            EdgeUnit::Number => number(at),
        };
        // At most MOST_STEPS and one: no loss in the conversion.
        let at = |n: u32| f64::from(n) * step;
        let lines = (0..=count as u32).map(|n| Line { at: at(n), label: label(at(n)) }).collect();
        EdgeAxis::Linear { most: count * step, lines }
    }

    /// Its lines, ascending.
    pub(super) fn lines(&self) -> &[Line] {
        match self {
            EdgeAxis::Linear { lines, .. } => lines,
            EdgeAxis::Logarithmic(axis) => &axis.lines,
        }
    }

    /// Where a value lies: 0 at the lower end, 1 at the upper one. `None` if it has no place.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        match self {
            _ if !value.is_finite() => None,
            EdgeAxis::Linear { most, .. } => Some((value / most).clamp(0.0, 1.0)),
            EdgeAxis::Logarithmic(axis) => (value > 0.0).then(|| axis.place(value)),
        }
    }
}

/// The least of 1, 2 and 5 times a power of ten that is not below `least`; 1 where that is 0.
fn step(least: f64) -> f64 {
    if least <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= least * 0.999_999).unwrap_or(10.0 * power)
}

/// A time in the unit that suits the greatest of an edge.
fn time(ns: f64, greatest: f64) -> String {
    let unit = three_digits(greatest);
    let name = unit.rsplit(' ').next().unwrap_or("ns").to_owned();
    let length = match name.as_str() {
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        _ => 1.0,
    };
    format!("{} {name}", (ns / length * 1e3).round() / 1e3)
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

    fn labels(axis: &EdgeAxis) -> Vec<&str> {
        let labels = axis.lines().iter().map(|line| line.label.as_str());
        labels.filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn an_even_edge_begins_at_nothing() {
        let edge = edge(EdgeUnit::Time, AxisScale::Linear);
        let axis = EdgeAxis::holding(&edge, [14.5e6, 29e6, f64::NAN].into_iter());
        assert_eq!(labels(&axis), ["0 ms", "5 ms", "10 ms", "15 ms", "20 ms", "25 ms", "30 ms"]);
        assert_eq!((axis.place(0.0), axis.place(15e6)), (Some(0.0), Some(0.5)));
        assert_eq!((axis.place(1e9), axis.place(f64::NAN)), (Some(1.0), None));
        let nothing = EdgeAxis::holding(&edge, std::iter::empty());
        assert_eq!((labels(&nothing).len(), nothing.place(0.0)), (2, Some(0.0)));
    }

    #[test]
    fn an_edge_of_ratios_has_no_place_for_nothing() {
        let axis = EdgeAxis::holding(
            &edge(EdgeUnit::Number, AxisScale::Logarithmic),
            [100.0, 1e6].into_iter(),
        );
        assert_eq!(labels(&axis), ["100", "1000", "10000", "100000", "1 million"]);
        assert_eq!(axis.place(0.0), None);
        assert!(axis.place(1e4).is_some_and(|place| (0.3..0.7).contains(&place)));
    }

    #[test]
    fn steps_are_round() {
        for (least, expected) in [(0.0, 1.0), (3.6, 5.0), (0.11, 0.2), (1.0, 1.0), (7e8, 1e9)] {
            let found = step(least);
            assert!((found / expected - 1.0).abs() < 1e-9, "{least}: {found}");
        }
    }
}
