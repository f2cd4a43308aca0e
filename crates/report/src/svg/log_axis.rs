//! A logarithmic axis of times, and a linear one of numbers.

/// Steps within a decade at which an axis may begin and end, and has its lines.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

/// Decades that are considered: from a thousandth of a nanosecond to a thousand seconds and more.
const DECADES: std::ops::RangeInclusive<i32> = -3..=15;

/// With fewer decades than this, the lines between them have labels too.
const FEW_DECADES: f64 = 1.5;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct LogAxis {
    /// Lower end, ns; positive.
    pub(super) least: f64,
    /// Upper end, ns; above `least`.
    pub(super) most: f64,
    /// Its lines, ascending.
    pub(super) lines: Vec<Line>,
}

/// A line of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) at: f64,
    /// What stands beside it; nothing for a line between the decades.
    pub(super) label: String,
}

impl LogAxis {
    /// The axis that holds all of `values`, in ns, with a little room; those that are not positive
    /// have no place on it. Without any it goes from 1 to 10 ns.
    pub(super) fn holding(values: impl Iterator<Item = f64>) -> LogAxis {
        let positive = values.filter(|ns| *ns > 0.0 && ns.is_finite());
        let ends = positive.fold(None, |ends: Option<(f64, f64)>, ns| {
            Some(ends.map_or((ns, ns), |(least, most)| (least.min(ns), most.max(ns))))
        });
        let (least, most) = ends.unwrap_or((1.0, 10.0));
        let steps = || DECADES.flat_map(|decade| STEPS.map(|step| step * 10f64.powi(decade)));
        // A tenth of room below and above, so that nothing lies on the edge.
        let lower = steps().take_while(|step| *step <= least * 0.9).last().unwrap_or(least * 0.9);
        let upper = steps().find(|step| *step >= most * 1.1).unwrap_or(most * 2.0);
        let few = (upper / lower).log10() < FEW_DECADES;
        let lines = steps().filter(|step| (lower..=upper).contains(step)).map(|at| {
            let decade = (at.log10() - at.log10().round()).abs() < 1e-9;
            Line { at, label: if decade || few { label(at) } else { String::new() } }
        });
        LogAxis { least: lower, most: upper, lines: lines.collect() }
    }

    /// Where `ns` lies: 0 at the lower end, 1 at the upper one; what lies beyond is held there.
    pub(super) fn place(&self, ns: f64) -> f64 {
        let ns = if ns > 0.0 { ns.clamp(self.least, self.most) } else { self.least };
        (ns / self.least).log10() / (self.most / self.least).log10()
    }
}

/// A round time in the largest unit of which it holds one.
fn label(ns: f64) -> String {
    let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
    let (unit, length) = units.into_iter().find(|(_, length)| ns >= *length).unwrap_or(("ns", 1.0));
    format!("{} {unit}", (ns / length * 1e3).round() / 1e3)
}

/// A time to three digits, in the largest unit of which it holds one.
pub(super) fn three_digits(ns: f64) -> String {
    let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
    let held = |(_, length): &(&str, f64)| ns.abs() >= *length * 0.9995;
    let (unit, length) = units.into_iter().find(held).unwrap_or(("ns", 1.0));
    let value = ns / length;
    let decimals = match value.abs() {
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// Places of a linear axis from 0 to `count`, at most `most` steps apart, with their labels; and
/// what the labels count: `""`, `"thousands"`, `"millions"`.
pub(super) fn counts(count: u64, most: u64) -> (Vec<(u64, String)>, &'static str) {
    let (unit, name) = match count {
        0..2_000 => (1, ""),
        2_000..2_000_000 => (1_000, "thousands"),
        _ => (1_000_000, "millions"),
    };
    let most = most.max(1);
    let mut power = 1;
    let step = loop {
        let fits = |step: &u64| step.saturating_mul(most) >= count;
        match [1, 2, 5].map(|step| step * power).into_iter().find(fits) {
            Some(step) => break step,
            None => power *= 10,
        }
    };
    let label = |at: u64| {
        let (whole, part) = (at / unit, at % unit);
        if part == 0 { whole.to_string() } else { format!("{}", at as f64 / unit as f64) }
    };
    let places = (0..=count / step).map(|n| n * step).map(|at| (at, label(at)));
    (places.collect(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &LogAxis) -> Vec<&str> {
        let labels = axis.lines.iter().map(|line| line.label.as_str());
        labels.filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn an_axis_holds_what_it_is_for() {
        let axis = LogAxis::holding([8.7, 17.0, 0.0, 1_250_000.0].into_iter());
        assert!((axis.least - 5.0).abs() < 1e-9 && (axis.most - 2e6).abs() < 1e-3, "{axis:?}");
        assert_eq!(labels(&axis), ["10 ns", "100 ns", "1 us", "10 us", "100 us", "1 ms"]);
        assert_eq!((axis.place(5.0), axis.place(0.0), axis.place(1e9)), (0.0, 0.0, 1.0));
        assert!((axis.place(10.0) - 2f64.log10() / 4e5_f64.log10()).abs() < 1e-9);
    }

    #[test]
    fn a_short_axis_has_labels_between_the_decades() {
        let axis = LogAxis::holding([12.0, 60.0].into_iter());
        assert_eq!(labels(&axis), ["10 ns", "20 ns", "50 ns", "100 ns"]);
        let nothing = LogAxis::holding(std::iter::empty());
        assert!(nothing.least < nothing.most && !nothing.lines.is_empty());
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
    fn counts_are_round() {
        let (places, unit) = counts(10_000_000, 8);
        let labels: Vec<&str> = places.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!((labels, unit), (vec!["0", "2", "4", "6", "8", "10"], "millions"));
        assert_eq!(counts(500, 5).0.last(), Some(&(500, "500".to_owned())));
        assert_eq!(counts(0, 5), (vec![(0, "0".to_owned())], ""));
        let (places, unit) = counts(2_500_000, 8);
        assert_eq!((places[1].clone(), unit), ((500_000, "0.5".to_owned()), "millions"));
        assert!(counts(u64::MAX, 8).0.len() <= 9);
    }
}
