//! From an interval to a verdict.

use hourglass_documents::diff::{DiffMetric, DiffVerdict};

use super::quantity::Quantity;
use crate::statistics::Estimate;

const PER_CENT: f64 = 100.0;

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

#[derive(Clone, Debug)]
pub(super) struct QuantityChange {
    pub(super) quantity: Quantity,
    pub(super) a: Option<f64>,
    pub(super) b: Option<f64>,
    pub(super) change: Option<Estimate>,
    /// Whether it moved, all quantities considered together.
    pub(super) is_significant: bool,
    /// The reason why it cannot be judged; empty if it can.
    pub(super) reason: String,
    /// Rounds that there were, and from how many on it can be decided; both 0 with one run each.
    pub(super) rounds: u64,
    pub(super) rounds_needed: u64,
}

impl QuantityChange {
    pub(super) fn judged(self, rules: &Rules) -> DiffMetric {
        let (verdict, reason) = match self.reason.as_str() {
            "" => self.verdict(rules),
            reason => (DiffVerdict::Unknown, reason.to_owned()),
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
            reason,
            leads: self.quantity.leads(),
            rounds_needed: self.rounds_needed,
        }
    }

    /// The verdict, and why it is unknown.
    fn verdict(&self, rules: &Rules) -> (DiffVerdict, String) {
        let (Some(change), Some(a)) = (self.change, self.a) else {
            return (DiffVerdict::Unknown, "not on both sides".to_owned());
        };
        let decided = |verdict| (verdict, String::new());
        let margin = (a.abs() * rules.margin_percent / PER_CENT).max(self.quantity.least_margin());
        if self.is_significant && change.value.abs() > margin {
            return match (change.value > 0.0) == self.quantity.less_is_better() {
                true => decided(DiffVerdict::Worse),
                false => decided(DiffVerdict::Better),
            };
        }
        if change.lo >= -margin && change.hi <= margin {
            return decided(DiffVerdict::Same);
        }
        let reason = match (self.is_significant, change.holds(0.0)) {
            (true, _) => "it moved, perhaps by no more than the margin".to_owned(),
            (false, true) => {
                "the interval holds no change, and changes beyond the margin".to_owned()
            }
            (false, false) if self.rounds < self.rounds_needed => format!(
                "with this number of metrics, {} rounds cannot distinguish such a change from chance; {} can",
                self.rounds, self.rounds_needed
            ),
            (false, false) => {
                "with this number of metrics, one may move this far by chance".to_owned()
            }
        };
        (DiffVerdict::Unknown, reason)
    }
}

/// The verdict on all: worse if anything is worse, else better if anything is better, the same if nothing moved
/// and everything that leads is the same, else unknown. Quantities that only explain others have no part
/// in it.
pub fn overall(metrics: &[DiffMetric]) -> DiffVerdict {
    let plain = || metrics.iter().filter(|metric| !metric.name.starts_with("causes."));
    let any = |verdict: DiffVerdict| plain().any(|metric| metric.verdict == verdict);
    if let Some(moved) =
        [DiffVerdict::Worse, DiffVerdict::Better].into_iter().find(|verdict| any(*verdict))
    {
        return moved;
    }
    let leading: Vec<&DiffMetric> = plain().filter(|metric| metric.leads).collect();
    match !leading.is_empty() && leading.iter().all(|one| one.verdict == DiffVerdict::Same) {
        true => DiffVerdict::Same,
        false => DiffVerdict::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(value: f64, lo: f64, hi: f64, moved: bool) -> QuantityChange {
        QuantityChange {
            quantity: Quantity::GapP50,
            a: Some(1_000.0),
            b: Some(1_000.0 + value),
            change: Some(Estimate { value, lo, hi, count: 9 }),
            is_significant: moved,
            reason: String::new(),
            rounds: 6,
            rounds_needed: 6,
        }
    }

    /// A margin of 5 % of 1,000 ns is 50 ns.
    #[test]
    fn verdicts_follow_from_interval_and_margin() {
        let verdict = |c: QuantityChange| c.judged(&Rules::default()).verdict;
        assert_eq!(verdict(change(200.0, 100.0, 300.0, true)), DiffVerdict::Worse);
        assert_eq!(verdict(change(-200.0, -300.0, -100.0, true)), DiffVerdict::Better);
        assert_eq!(verdict(change(20.0, 10.0, 30.0, true)), DiffVerdict::Same);
        assert_eq!(verdict(change(45.0, 10.0, 80.0, true)), DiffVerdict::Unknown);
        assert_eq!(verdict(change(200.0, 100.0, 300.0, false)), DiffVerdict::Unknown);
        let more_work =
            QuantityChange { quantity: Quantity::Work, ..change(200.0, 100.0, 300.0, true) };
        assert_eq!(verdict(more_work), DiffVerdict::Better);
        let unsure = QuantityChange { reason: "few".into(), ..change(200.0, 100.0, 300.0, true) };
        assert_eq!(verdict(unsure), DiffVerdict::Unknown);
        let unbounded = change(1.0, f64::NEG_INFINITY, f64::INFINITY, false);
        let metric = unbounded.judged(&Rules::default());
        assert_eq!((metric.verdict, metric.ci_lo), (DiffVerdict::Unknown, None));
        assert_eq!(metric.change_percent, Some(0.1));
        let few = QuantityChange { rounds_needed: 9, ..change(200.0, 100.0, 300.0, false) };
        let reason = few.judged(&Rules::default()).reason;
        assert!(
            reason.contains("6 rounds cannot distinguish") && reason.ends_with("9 can"),
            "{reason}"
        );
    }

    #[test]
    fn the_worst_decides_and_what_explains_does_not() {
        let metric = |name: &str, verdict| DiffMetric {
            name: name.to_owned(),
            verdict,
            leads: true,
            ..DiffMetric::default()
        };
        use DiffVerdict::{Better, Same, Unknown, Worse};
        let of = |verdicts: &[DiffVerdict]| {
            overall(&verdicts.iter().map(|v| metric("gaps.p50_ns", *v)).collect::<Vec<_>>())
        };
        assert_eq!(of(&[Same, Better, Unknown, Worse]), Worse);
        assert_eq!(of(&[Same, Better, Unknown]), Better);
        assert_eq!(of(&[Same, Unknown]), Unknown, "one that leads may have moved");
        assert_eq!(of(&[Same, Same]), Same);
        assert_eq!(of(&[Unknown]), Unknown);
        assert_eq!(of(&[]), Unknown);
        assert_eq!(overall(&[metric("causes.irq.lost_percent", Worse)]), Unknown);
        let maximum = |verdict| DiffMetric { leads: false, ..metric("gaps.max_ns", verdict) };
        let median = |verdict| metric("gaps.p50_ns", verdict);
        assert_eq!(overall(&[median(Same), maximum(Unknown)]), Same, "noise of a maximum");
        assert_eq!(overall(&[median(Unknown), maximum(Same)]), Unknown);
        assert_eq!(overall(&[median(Same), maximum(Worse)]), Worse);
    }
}
