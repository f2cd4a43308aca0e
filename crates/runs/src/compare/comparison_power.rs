//! How many rounds can decide what, said before they are measured and with the result.
//!
//! Owns: what a run will have to compare, and the warning where rounds are too few for it. Must not: hold the
//! statistics (`hourglass_trace::compare` does).

use hourglass_documents::diff::DiffMetric;
use hourglass_documents::document::Warning;
use hourglass_trace::compare::{DetectableRounds, Quantity};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparisonPower {
    pub reach: DetectableRounds,
    leading: Vec<String>,
}

impl ComparisonPower {
    /// By what two runs measure on both sides.
    pub fn of(a: &[Quantity], b: &[Quantity]) -> ComparisonPower {
        let both: Vec<Quantity> = a.iter().filter(|one| b.contains(one)).cloned().collect();
        let leading = both.iter().filter(|one| one.leads()).map(ToString::to_string).collect();
        ComparisonPower { reach: DetectableRounds::of_all(&both), leading }
    }

    /// By what was measured; `None` where there is nothing to compare.
    pub fn of_metrics(metrics: &[DiffMetric]) -> Option<ComparisonPower> {
        let plain = || metrics.iter().filter(|metric| !metric.name.starts_with("causes."));
        let all = plain().map(|metric| metric.rounds_needed).max()?;
        let leading = plain().filter(|metric| metric.leads);
        let least = leading.clone().map(|metric| metric.rounds_needed).max().unwrap_or(all);
        let leading = leading.map(|metric| metric.name.clone()).collect();
        Some(ComparisonPower { reach: DetectableRounds { leading: least, all }, leading })
    }

    pub fn words(&self, rounds: u64) -> String {
        let DetectableRounds { leading, all } = self.reach;
        match rounds {
            rounds if rounds >= all => "can decide every metric".to_owned(),
            rounds if rounds >= leading => format!("can decide {}", self.leading()),
            _ => "cannot decide anything".to_owned(),
        }
    }

    /// The warning where `rounds` rounds cannot decide everything.
    pub fn warning(&self, rounds: u64) -> Option<Warning> {
        let DetectableRounds { leading, all } = self.reach;
        if rounds >= all {
            return None;
        }
        let counted = if rounds == 1 { "1 round" } else { &format!("{rounds} rounds") };
        let enough = format!(
            "{all} or more can decide every metric, and the more there are, the fewer have to agree"
        );
        let (text, remedy) = if rounds >= leading {
            let agree = if rounds == leading { " only if all of them agree," } else { "," };
            let text = format!("{counted} can decide {}{agree}", self.leading());
            (format!("{text} but no percentile in the tail and no maximum"), enough)
        } else {
            let text = format!(
                "{counted} cannot decide anything: even if all of them agreed, that could be chance"
            );
            let first =
                format!("{leading} rounds can decide {}, if all of them agree; ", self.leading());
            (text, if leading == all { enough } else { first + &enough })
        };
        Some(Warning { id: "few-rounds".to_owned(), text, remedy })
    }

    pub fn leading(&self) -> String {
        match &self.leading[..] {
            [] => "some metrics".to_owned(),
            [one] => one.clone(),
            [all @ .., last] => format!("{} and {last}", all.join(", ")),
        }
    }
}
