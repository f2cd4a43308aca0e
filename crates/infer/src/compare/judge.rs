//! From an interval to a verdict.

use hourglass_model::diff::{DiffMetric, DiffVerdict};

use super::quantity::Quantity;
use crate::statistics::Estimate;

const PER_CENT: f64 = 100.0;

/// By what is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Changes up to this share of the first value count as none, per cent.
    pub margin_percent: f64,
    /// Start of the random sequences.
    pub seed: u64,
}

/// A twentieth: less than a machine at rest gives from one minute to the next.
impl Default for Rules {
    fn default() -> Rules {
        Rules { margin_percent: 5.0, seed: 1 }
    }
}

/// A change of one quantity, before it is judged.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) quantity: Quantity,
    pub(super) a: Option<f64>,
    pub(super) b: Option<f64>,
    /// With its interval, if it has one.
    pub(super) change: Option<Estimate>,
    /// Whether it moved, all quantities considered together.
    pub(super) moved: bool,
    /// Why it cannot be judged; empty if it can.
    pub(super) reason: String,
}

impl Change {
    pub(super) fn judged(self, rules: &Rules) -> DiffMetric {
        let (verdict, reason) = match self.reason.as_str() {
            "" => self.verdict(rules),
            reason => (DiffVerdict::Unknown, reason),
        };
        let bounded = self.change.filter(|change| change.lo.is_finite() && change.hi.is_finite());
        let share = |change: &Estimate| {
            let a = self.a.filter(|a| *a != 0.0)?;
            Some(change.value * PER_CENT / a.abs())
        };
        DiffMetric {
            name: self.quantity.to_string(),
            unit: self.quantity.unit().to_owned(),
            a: self.a,
            b: self.b,
            change: self.change.map(|change| change.value),
            change_percent: self.change.as_ref().and_then(share),
            ci_lo: bounded.map(|change| change.lo),
            ci_hi: bounded.map(|change| change.hi),
            verdict,
            reason: reason.to_owned(),
        }
    }

    /// The verdict, and why it is unknown.
    fn verdict(&self, rules: &Rules) -> (DiffVerdict, &'static str) {
        let (Some(change), Some(a)) = (self.change, self.a) else {
            return (DiffVerdict::Unknown, "not on both sides");
        };
        let margin = (a.abs() * rules.margin_percent / PER_CENT).max(self.quantity.least_margin());
        if self.moved && change.value.abs() > margin {
            return match (change.value > 0.0) == self.quantity.less_is_better() {
                true => (DiffVerdict::Worse, ""),
                false => (DiffVerdict::Better, ""),
            };
        }
        if change.lo >= -margin && change.hi <= margin {
            return (DiffVerdict::Same, "");
        }
        let reason = match (self.moved, change.holds(0.0)) {
            (true, _) => "it moved, perhaps by no more than the margin",
            (false, true) => "the interval holds no change, and changes beyond the margin",
            (false, false) => "one of so many metrics may seem to move so far by chance",
        };
        (DiffVerdict::Unknown, reason)
    }
}

/// The verdict on all: worse if anything is worse, unknown if nothing could be decided, else better
/// if anything is better. Quantities that only explain others have no part in it.
#[must_use]
pub fn overall(metrics: &[DiffMetric]) -> DiffVerdict {
    let any = |verdict: DiffVerdict| {
        metrics
            .iter()
            .filter(|metric| !metric.name.starts_with("causes."))
            .any(|metric| metric.verdict == verdict)
    };
    [DiffVerdict::Worse, DiffVerdict::Better, DiffVerdict::Same]
        .into_iter()
        .find(|verdict| any(*verdict))
        .unwrap_or(DiffVerdict::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(value: f64, lo: f64, hi: f64, moved: bool) -> Change {
        Change {
            quantity: Quantity::GapP50,
            a: Some(1_000.0),
            b: Some(1_000.0 + value),
            change: Some(Estimate { value, lo, hi, count: 9 }),
            moved,
            reason: String::new(),
        }
    }

    /// A margin of 5 % of 1,000 ns is 50 ns.
    #[test]
    fn verdicts_follow_from_interval_and_margin() {
        let verdict = |c: Change| c.judged(&Rules::default()).verdict;
        assert_eq!(verdict(change(200.0, 100.0, 300.0, true)), DiffVerdict::Worse);
        assert_eq!(verdict(change(-200.0, -300.0, -100.0, true)), DiffVerdict::Better);
        assert_eq!(verdict(change(20.0, 10.0, 30.0, true)), DiffVerdict::Same);
        assert_eq!(verdict(change(45.0, 10.0, 80.0, true)), DiffVerdict::Unknown);
        assert_eq!(verdict(change(200.0, 100.0, 300.0, false)), DiffVerdict::Unknown);
        let more_work = Change { quantity: Quantity::Work, ..change(200.0, 100.0, 300.0, true) };
        assert_eq!(verdict(more_work), DiffVerdict::Better);
        let unsure = Change { reason: "few".into(), ..change(200.0, 100.0, 300.0, true) };
        assert_eq!(verdict(unsure), DiffVerdict::Unknown);
        let unbounded = change(1.0, f64::NEG_INFINITY, f64::INFINITY, false);
        let metric = unbounded.judged(&Rules::default());
        assert_eq!((metric.verdict, metric.ci_lo), (DiffVerdict::Unknown, None));
        assert_eq!(metric.change_percent, Some(0.1));
    }

    #[test]
    fn the_worst_decides_and_what_explains_does_not() {
        let metric = |name: &str, verdict| DiffMetric {
            name: name.to_owned(),
            verdict,
            ..DiffMetric::default()
        };
        use DiffVerdict::{Better, Same, Unknown, Worse};
        let of = |verdicts: &[DiffVerdict]| {
            overall(&verdicts.iter().map(|v| metric("gaps.p50_ns", *v)).collect::<Vec<_>>())
        };
        assert_eq!(of(&[Same, Better, Unknown, Worse]), Worse);
        assert_eq!(of(&[Same, Better, Unknown]), Better);
        assert_eq!(of(&[Same, Unknown]), Same);
        assert_eq!(of(&[Unknown]), Unknown);
        assert_eq!(of(&[]), Unknown);
        assert_eq!(overall(&[metric("causes.irq.lost_percent", Worse)]), Unknown);
    }
}
