//! Statements as a document has them: flat, by name and statistic.

use hourglass_documents::inference::{Inference, InferenceBasis};

use super::{CostEstimate, Dispatch, MissedShare, Statements};
use crate::statistics::Estimate;

const NS: &str = "ns";
const PER_SECOND: &str = "1/s";
const SHARE: &str = "1";

/// The fields that all numbers of a statement have in common.
#[derive(Clone, Copy)]
struct StatementHeader {
    name: &'static str,
    thread: Option<u32>,
    set_aside: u64,
    basis: InferenceBasis,
}

impl StatementHeader {
    fn certain(name: &'static str, thread: Option<u32>) -> StatementHeader {
        StatementHeader { name, thread, set_aside: 0, basis: InferenceBasis::Certain }
    }

    fn estimate(self, statistic: &str, unit: &str, found: &Estimate) -> Inference {
        let bounded = |end: f64| end.is_finite().then_some(end);
        Inference {
            name: self.name.to_owned(),
            thread: self.thread,
            statistic: statistic.to_owned(),
            value: found.value,
            ci_lo: bounded(found.lo),
            ci_hi: bounded(found.hi),
            unit: unit.to_owned(),
            count: found.count,
            set_aside: self.set_aside,
            basis: self.basis,
        }
    }

    fn number(self, statistic: &str, unit: &str, value: f64, count: u64) -> Inference {
        let (lo, hi) = (f64::NEG_INFINITY, f64::INFINITY);
        self.estimate(statistic, unit, &Estimate { value, lo, hi, count })
    }

    fn cost(self, cost: &CostEstimate) -> Vec<Inference> {
        let about = StatementHeader { set_aside: cost.set_aside, ..self };
        let mut all = vec![about.number("fastest", NS, cost.fastest_ns as f64, cost.count)];
        if cost.representative {
            all.push(about.number("mode", NS, cost.mode_ns as f64, cost.count));
            all.push(about.estimate("median", NS, &cost.median));
        }
        all
    }
}

fn basis(certain: bool) -> InferenceBasis {
    if certain { InferenceBasis::Certain } else { InferenceBasis::Statistical }
}

impl Statements {
    /// The statements for a document: costs of switches, switches and quanta, interrupts, shares.
    pub fn document(&self) -> Vec<Inference> {
        let mut all = Vec::new();
        // The cost of a switch is never certain, only the switch itself.
        let costs = [
            ("switch_cost_voluntary", &self.voluntary),
            ("switch_cost_involuntary", &self.involuntary),
        ];
        for (name, cost) in costs {
            let about = StatementHeader {
                basis: InferenceBasis::Statistical,
                ..StatementHeader::certain(name, None)
            };
            all.extend(cost.iter().flat_map(|cost| about.cost(cost)));
        }
        if let Some(rate) = &self.switches_per_second {
            all.push(StatementHeader::certain("switches", None).estimate("rate", PER_SECOND, rate));
        }
        if let Some(quantum) = &self.quantum {
            // That it was preempted may be certain; that no other thread ran within the turn is not.
            let about = StatementHeader {
                basis: InferenceBasis::Statistical,
                ..StatementHeader::certain("quantum", None)
            };
            let count = quantum.median.count;
            all.push(about.number("mode", NS, quantum.mode_ns as f64, count));
            all.push(about.estimate("median", NS, &quantum.median));
            all.push(about.estimate("mean", NS, &quantum.mean));
        }
        for found in &self.interrupts {
            let basis = basis(found.certain);
            let about = StatementHeader {
                basis,
                ..StatementHeader::certain("interrupt_cost", Some(found.thread))
            };
            all.extend(about.cost(&found.cost));
            let about = StatementHeader { name: "interrupts", ..about };
            all.push(about.estimate("rate", PER_SECOND, &found.per_second));
            all.push(about.estimate("share", SHARE, &found.lost));
        }
        for (thread, share) in &self.shares {
            all.push(
                StatementHeader::certain("cpu_share", Some(*thread))
                    .estimate("share", SHARE, share),
            );
        }
        all
    }
}

impl Dispatch {
    pub fn document(&self, thread: u32) -> Vec<Inference> {
        let about = StatementHeader::certain("dispatch_latency", Some(thread));
        let mut all: Vec<Inference> =
            [("median", &self.p50), ("p99", &self.p99), ("p99.9", &self.p999)]
                .map(|(statistic, found)| about.estimate(statistic, NS, found))
                .into();
        for later in &self.later {
            let statistic = format!("later_than_{}ms", later.than_ns / 1_000_000);
            all.push(about.estimate(&statistic, SHARE, &later.share));
        }
        all
    }
}

impl MissedShare {
    pub fn document(&self, thread: u32) -> Vec<Inference> {
        let about = StatementHeader::certain("deadlines", Some(thread));
        vec![
            about.estimate("missed", SHARE, &self.missed),
            about.estimate("missed_or_lost", SHARE, &self.late),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{dispatch, missed};
    use super::*;

    #[test]
    fn names_and_units() {
        let found = missed(9, 1, 0).unwrap().document(3);
        let names: Vec<_> = found.iter().map(|i| (&*i.name, i.thread, &*i.statistic)).collect();
        assert_eq!(
            names,
            [("deadlines", Some(3), "missed"), ("deadlines", Some(3), "missed_or_lost")]
        );
        let late = dispatch([70_000_000]).unwrap().document(0);
        assert_eq!(late[0].value, 70_000.0);
        assert_eq!((late[0].ci_lo, late[0].ci_hi), (None, None), "one sample bounds nothing");
        assert_eq!(late[3].statistic, "later_than_1ms");
        assert!(Statements::default().document().is_empty());
    }

    /// A percentile that few samples do not bound is null, not a number that JSON lacks.
    #[test]
    fn no_infinity_in_a_document() {
        let costs = CostEstimate::of(vec![3, 4, 5]);
        let statements = Statements { voluntary: costs, ..Statements::default() };
        for inference in statements.document() {
            assert!(inference.value.is_finite());
            assert!(inference.ci_lo.is_none_or(f64::is_finite));
        }
    }
}
