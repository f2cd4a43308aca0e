//! What a run warns of, and limits that it had to keep.

use serde::{Deserialize, Serialize};

/// Something that spoils the numbers, and what helps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable name for scripts: `rt-throttling`.
    pub id: String,
    /// What is so.
    pub text: String,
    /// What mends it; a command where there is one.
    pub remedy: String,
}

/// Something that a measurement rests on and that did not hold to its end: there is no verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Premise {
    /// Stable name for scripts: `threads-unseen`.
    pub id: String,
    /// What is so.
    pub text: String,
    /// When it was first found, counted from the start of the measurement.
    pub at_ns: u64,
}

/// A limit, and whether it was kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateReport {
    /// The option that set it, without its dashes: `max-latency`, `percentile p99.9`.
    pub name: String,
    /// The limit; a time is in nanoseconds.
    pub limit: f64,
    /// What was found, likewise; of several threads that of the worst.
    pub value: f64,
    /// Of limit and value: `ns` or `periods`.
    #[serde(default)]
    pub unit: String,
    /// Whether it was kept.
    pub passed: bool,
    /// What the run says about later wake-ups. Of `max-latency` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<LimitConfidence>,
}

/// What a run says about wake-ups to come, without an assumption about the distribution of latency. Of several threads
/// the one that promises least is here; the bounds of all threads hold together with this confidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitConfidence {
    /// Number of the thread.
    pub thread: u32,
    /// Confidence of the bound, from 0 to 1.
    pub confidence: f64,
    /// Wake-ups of the thread, lost ones included.
    pub wake_ups: u64,
    /// Those that were later than the limit.
    pub beyond: u64,
    /// With that confidence a smaller share of wake-ups than this is later than the limit: the one-sided bound of Clopper
    /// and Pearson, below 3 / `wake_ups` if none was later. It holds for independent wake-ups of one distribution; null
    /// where a test found that they are not.
    pub share_beyond: Option<f64>,
    /// How many wake-ups without a later one it takes to say so of one in 10^9.
    pub wake_ups_for_1e9: u64,
    /// How long these take at the rate of this run, ns; null if there was no wake-up.
    pub time_for_1e9_ns: Option<u64>,
    /// What tests found about the tail.
    pub stationarity: Stationarity,
    /// Wake-ups that were tested: those that were stored one by one. 0 if they were not tested.
    pub wake_ups_tested: u64,
    /// Probability of at least this trend in the maxima of 20 parts of the run if there is none (Mann and Kendall).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend_p: Option<f64>,
    /// Probability that the 200 latest wake-ups lie so close together by chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters_p: Option<f64>,
}

crate::named_enum! {
    /// What tests found about the latest wake-ups of a run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub serde enum Stationarity {
        /// Neither a trend nor clusters.
        NotRefuted => "not_refuted",
        /// The latest wake-ups become later or less late during the run.
        Trend => "trend",
        /// The latest wake-ups lie closer together than by chance.
        Clusters => "clusters",
        /// Fewer than 1,000 wake-ups were stored, or too many are alike.
        NotTested => "not_tested",
    }
}
