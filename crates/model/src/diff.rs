//! The document `hourglass.diff/1`: what differs between two runs, or two rows of rounds.

use serde::{Deserialize, Serialize};

use crate::warning::{GateReport, Warning};

/// Name and version of the document.
pub const DIFF_SCHEMA: &str = "hourglass.diff/1";

/// Two ways of running, compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiffDocument {
    /// Always [`DIFF_SCHEMA`].
    pub schema: String,
    /// What was measured first, or what is the base.
    pub a: DiffSide,
    /// What is compared with it.
    pub b: DiffSide,
    /// How: `rounds` (pairs of runs) or `blocks` (one run each, cut into parts).
    pub method: String,
    /// Pairs of runs that were compared.
    pub rounds: u64,
    /// Start of the random sequences: the order of the rounds, and the resampling.
    pub seed: u64,
    /// Confidence of each interval; also that, with all metrics together, none is wrongly said to
    /// have moved.
    pub confidence: f64,
    /// Changes up to this share of `a` count as none, per cent.
    pub margin_percent: f64,
    /// Gaps not longer than this were left out on both sides: the larger of their GAPs.
    pub gap_ns: u64,
    /// Of all metrics together.
    pub verdict: DiffVerdict,
    /// Metric by metric.
    pub metrics: Vec<DiffMetric>,
    /// What else differs between the two: options, policies, CPUs.
    #[serde(default)]
    pub differences: Vec<Difference>,
    /// What a reader must know before believing the numbers.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Limits that single runs had to keep, round by round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<RoundGates>,
    /// What follows from both runs together (Hourglass paper, section 4): causes of gaps, inaccurate
    /// timers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<Statement>,
    /// What follows about workload and platform, where one side is an idle control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlReport>,
    /// Whether rounds were ended early by a signal.
    #[serde(default)]
    pub interrupted: bool,
}

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffSide {
    /// The command line, or what is known of it.
    pub what: String,
    /// The run folders, if there are any, in the order of the rounds.
    pub folders: Vec<String>,
}

/// What is said of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffVerdict {
    /// The interval lies within the margin.
    Same,
    /// It moved, to the good.
    Better,
    /// It moved, to the bad.
    Worse,
    /// The measurements do not tell.
    #[default]
    Unknown,
}

impl DiffVerdict {
    /// The word in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DiffVerdict::Same => "same",
            DiffVerdict::Better => "better",
            DiffVerdict::Worse => "worse",
            DiffVerdict::Unknown => "unknown",
        }
    }
}

/// A quantity on both sides. Null is what there is not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiffMetric {
    /// Where the quantity stands in a thread of `hourglass.run/1`: `gaps.p99_ns`,
    /// `latency.max_ns`; or a rate or a share: `gaps.per_s`, `gaps.lost_percent`,
    /// `deadlines.failed_percent`, `work.per_s`, `causes.NAME.lost_percent`.
    pub name: String,
    /// `ns`, `1/s` or `percent`.
    pub unit: String,
    /// On the first side: the run's, or the median over the rounds.
    pub a: Option<f64>,
    /// On the second side.
    pub b: Option<f64>,
    /// By how much the second is larger: the difference of two runs; over rounds the
    /// Hodges-Lehmann estimate of the paired differences.
    pub change: Option<f64>,
    /// `change` as a share of `a`.
    pub change_percent: Option<f64>,
    /// Lower end of the interval of `change`.
    pub ci_lo: Option<f64>,
    /// Upper end of it.
    pub ci_hi: Option<f64>,
    /// What that means.
    pub verdict: DiffVerdict,
    /// Why the verdict is unknown; empty if it is not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether it is looked at first: medians and shares, before percentiles in the tail and maxima. The verdict
    /// on all is `same` only if these are.
    #[serde(default)]
    pub leads: bool,
    /// From how many rounds on it can be decided, whatever the other metrics do: with that number, rounds that all
    /// agree show a move. 0 with one run each.
    #[serde(default)]
    pub rounds_needed: u64,
}

/// Something in which the two sides differ by the way they were run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What.
    pub what: String,
    /// On the first side.
    pub a: String,
    /// On the second.
    pub b: String,
}

/// The limits of one run of a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundGates {
    /// Which round, from 1 on.
    pub round: u64,
    /// Which run of it: `a` or `b`.
    pub side: String,
    /// The limits, in the order in which they were given.
    pub gates: Vec<GateReport>,
}

/// Something that only two runs together say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// What: [`Statement::LOAD`] or [`Statement::TIMER`].
    pub name: String,
    /// Of which side it is said: `a` or `b`.
    pub subject: String,
    /// `yes`, `no`, or `unknown` where too little was measured.
    pub answer: String,
    /// How sure that is, from 0 to 1; 0 where it is unknown.
    pub confidence: f64,
    /// The same in a sentence, with the numbers.
    pub text: String,
}

impl Statement {
    /// This load causes the gaps.
    pub const LOAD: &'static str = "load_causes_gaps";
    /// This timer is inaccurate.
    pub const TIMER: &'static str = "timer_is_inaccurate";
}

/// A run beside an idle control: what the platform does by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlReport {
    /// Number of the control's thread, if it ran in the same run.
    pub thread: Option<u32>,
    /// CPUs of the control.
    pub cpus: Vec<u32>,
    /// What the control did.
    pub workload: String,
    /// Its policy.
    pub policy: String,
    /// How: `beside` (at the same time on another CPU) or `rounds` (in turn with the load).
    pub method: String,
    /// Pairs of runs, or parts of the run, that were compared.
    pub pairs: u64,
    /// The control is `a`, the load is `b`.
    pub metrics: Vec<DiffMetric>,
    /// What follows, in one sentence.
    pub statement: String,
    /// Whether the load loses more than the control (`worse`), less (`better`), as much (`same`), or it was not
    /// decided (`unknown`).
    #[serde(default)]
    pub verdict: DiffVerdict,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
    /// What else follows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<Statement>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of CONTRACT.
    #[test]
    fn the_verdicts_are_written_in_lower_case() {
        let all =
            [DiffVerdict::Same, DiffVerdict::Better, DiffVerdict::Worse, DiffVerdict::Unknown];
        let words: Vec<&str> = all.into_iter().map(DiffVerdict::name).collect();
        assert_eq!(words, ["same", "better", "worse", "unknown"]);
        let metric = DiffMetric { verdict: DiffVerdict::Worse, ..DiffMetric::default() };
        let text = serde_json::to_string(&metric).unwrap();
        assert!(text.contains("\"verdict\":\"worse\""), "{text}");
        assert!(text.contains("\"ci_lo\":null"), "{text}");
    }
}
