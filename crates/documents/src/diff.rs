//! The document `hourglass.diff/1`: what differs between two runs, or two rows of rounds.

use serde::{Deserialize, Serialize};

use crate::warning::{GateReport, Warning};

/// Name and version of the document.
pub const DIFF_SCHEMA: &str = "hourglass.diff/1";

/// A comparison of two ways of running.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiffDocument {
    /// Always [`DIFF_SCHEMA`].
    pub schema: String,
    /// The first side, or the base.
    pub a: DiffSide,
    /// The side that is compared with it.
    pub b: DiffSide,
    /// Method: `rounds` (pairs of runs) or `blocks` (one run each, cut into parts).
    pub method: String,
    /// Pairs of runs that were compared.
    pub rounds: u64,
    /// Start of the random sequences: the order of the rounds, and the resampling.
    pub seed: u64,
    /// Confidence of each interval; also the confidence that no metric of all is wrongly said to have moved.
    pub confidence: f64,
    /// Changes up to this share of `a` count as no change, per cent.
    pub margin_percent: f64,
    /// Gaps not longer than this were left out on both sides: the larger of their GAPs.
    pub gap_ns: u64,
    /// Verdict over all metrics together.
    pub verdict: DiffVerdict,
    /// Results metric by metric.
    pub metrics: Vec<DiffMetric>,
    /// Other differences between the two sides: options, policies, CPUs.
    #[serde(default)]
    pub differences: Vec<Difference>,
    /// What a reader must know before believing the numbers.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Limits that single runs had to keep, round by round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<RoundGates>,
    /// Conclusions from both runs together (Hourglass paper, section 4): causes of gaps, inaccurate timers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<Statement>,
    /// Conclusions about workload and platform, where one side is an idle control.
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

crate::named_enum! {
    /// Verdict on a change.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub serde enum DiffVerdict {
        /// The interval lies within the margin.
        Same => "same",
        /// It moved, to the good.
        Better => "better",
        /// It moved, to the bad.
        Worse => "worse",
        /// The measurements do not tell.
        #[default]
        Unknown => "unknown",
    }
}

/// A quantity on both sides. A number that does not exist is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiffMetric {
    /// Path of the quantity in a thread of `hourglass.run/1`: `gaps.p99_ns`, `latency.max_ns`; or a rate or a share:
    /// `gaps.per_s`, `gaps.lost_percent`, `deadlines.failed_percent`, `work.per_s`, `causes.NAME.lost_percent`.
    pub name: String,
    /// `ns`, `1/s` or `percent`.
    pub unit: String,
    /// Value on the first side: the run's, or the median over the rounds.
    pub a: Option<f64>,
    /// Value on the second side.
    pub b: Option<f64>,
    /// Value of the second side less that of the first: the difference of two runs; over rounds the Hodges-Lehmann
    /// estimate of the paired differences.
    pub change: Option<f64>,
    /// `change` as a share of `a`.
    pub change_percent: Option<f64>,
    /// Lower end of the interval of `change`.
    pub ci_lo: Option<f64>,
    /// Upper end of the interval of `change`.
    pub ci_hi: Option<f64>,
    /// Verdict on the change.
    pub verdict: DiffVerdict,
    /// Why the verdict is unknown; empty if it is not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether it is a leading metric: medians and shares, before percentiles in the tail and maxima. The verdict over
    /// all is `same` only if the leading metrics are.
    #[serde(default)]
    pub leads: bool,
    /// Number of rounds that can decide it, whatever the other metrics do: with that number, rounds that all agree show
    /// a move. 0 with one run each.
    #[serde(default)]
    pub rounds_needed: u64,
}

/// A difference in the way in which the two sides were run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What differs, such as an option.
    pub what: String,
    /// Its value on the first side.
    pub a: String,
    /// Its value on the second side.
    pub b: String,
}

/// The limits of one run of a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundGates {
    /// Number of the round, from 1.
    pub round: u64,
    /// Run of the round: `a` or `b`.
    pub side: String,
    /// The limits, in the order in which they were given.
    pub gates: Vec<GateReport>,
}

/// A conclusion that needs both runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// Name of the conclusion: [`Statement::LOAD`] or [`Statement::TIMER`].
    pub name: String,
    /// The side that it is about: `a` or `b`.
    pub subject: String,
    /// `yes`, `no`, or `unknown` where too little was measured.
    pub answer: String,
    /// Confidence in the answer, from 0 to 1; 0 where it is unknown.
    pub confidence: f64,
    /// The answer in a sentence, with the numbers.
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
    /// Workload of the control.
    pub workload: String,
    /// Policy of the control.
    pub policy: String,
    /// Method: `beside` (at the same time on another CPU) or `rounds` (in turn with the load).
    pub method: String,
    /// Pairs of runs, or parts of the run, that were compared.
    pub pairs: u64,
    /// The control is `a`, the load is `b`.
    pub metrics: Vec<DiffMetric>,
    /// The conclusion, in one sentence.
    pub statement: String,
    /// Whether the load loses more than the control (`worse`), less (`better`), an equal time (`same`), or it was not
    /// decided (`unknown`).
    #[serde(default)]
    pub verdict: DiffVerdict,
    /// Confidence in the verdict, from 0 to 1.
    pub confidence: f64,
    /// Further conclusions.
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
