//! The documents of measured folders that were put together: `hourglass.merged/1`, which lies in the folder, and
//! `hourglass.fleet/1`, which sums it up by node.
//!
//! Owns: their shape. Must not: add, or compute a percentile.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::manifest::Epoch;
use crate::warning::Warning;

/// Name and version of the document in the folder.
pub const MERGED_SCHEMA: &str = "hourglass.merged/1";

/// Name and version of the summary.
pub const FLEET_SCHEMA: &str = "hourglass.fleet/1";

/// Runs of one or more nodes, put together. The histograms are in `histogram.parquet` beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedDocument {
    /// Always [`MERGED_SCHEMA`].
    pub schema: String,
    /// Digits of HdrHistogram's steps; the lowest step is 1 ns wide.
    pub significant_digits: u32,
    /// Rows of `histogram.parquet`.
    pub rows: u64,
    /// The runs, by node and then by time.
    pub runs: Vec<MergedRun>,
}

/// A run among others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedRun {
    /// Its name: when it began, by the node's own clock (UTC).
    pub run: String,
    /// The node, as its folder names it; the name of the folder where that names none.
    pub node: String,
    /// Which boot of the node it was; null where the folder does not say.
    pub boot_id: Option<String>,
    /// Zero of the run's times on the node's clocks. No two runs have an equal epoch.
    pub epoch: Epoch,
    /// Length of the run, ns.
    pub elapsed_ns: u64,
    /// Version of Hourglass that measured.
    pub hourglass: String,
    /// Kernel of the node.
    pub kernel: String,
    /// What was measured: each workload and its wake-up, once. Equal in all runs.
    pub measured: Vec<String>,
    /// Whether a signal ended it early.
    pub interrupted: bool,
    /// Names of its warnings.
    pub warnings: Vec<String>,
    /// Its threads.
    pub threads: Vec<MergedThread>,
    /// Its histograms, in the order of their rows.
    pub series: Vec<MergedSeries>,
}

/// Counts of a thread of a run, whether or not its records were stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedThread {
    /// Its number in the run.
    pub thread: u32,
    /// The policy that was in force.
    pub policy: String,
    /// Whether that is another policy than the requested one.
    pub degraded: bool,
    /// From its start to its finish.
    pub wall_ns: u64,
    /// Threshold of gaps, ns: shorter ones were not counted.
    pub threshold_ns: u64,
    /// Number of gaps.
    pub gaps: u64,
    /// Sum of the lengths of gaps, ns.
    pub lost_ns: u64,
    /// The longest gap, ns.
    pub longest_ns: u64,
    /// Wake-ups measured; null where they were not.
    pub wake_ups: Option<u64>,
    /// Wake-ups that never took place, because an earlier one was too late. No histogram has them.
    pub wake_ups_lost: u64,
}

crate::named_enum! {
    /// Metric of a histogram.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub serde enum Metric {
        /// Lengths of gaps.
        Gap => "gap",
        /// Latencies of wake-ups.
        Latency => "latency",
    }
}

/// A histogram: of one metric of one thread, and of gaps of one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedSeries {
    /// Number of the thread in the run.
    pub thread: u32,
    /// The metric that it counts.
    pub metric: Metric,
    /// Cause of the gaps; null for latencies, and for gaps too short for a cause (1 us).
    pub cause: Option<Cause>,
    /// Number of its rows in `histogram.parquet`.
    pub rows: u64,
    /// Sum of the counts in these rows.
    pub count: u64,
    /// Sum of the values; null where they were not all stored one by one.
    pub total_ns: Option<u64>,
    /// The greatest value.
    pub max_ns: u64,
    /// Time of the greatest value, from the run's start; null where it was not stored.
    pub max_at_ns: Option<i64>,
}

/// Nodes that were measured, the worst first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetDocument {
    /// Always [`FLEET_SCHEMA`].
    pub schema: String,
    /// Runs that were put together.
    pub runs: u64,
    /// Each workload and its wake-up, once.
    pub measured: Vec<String>,
    /// The nodes: those that lost the largest share of their time first; without losses, those with the greatest
    /// latency.
    pub nodes: Vec<FleetNode>,
    /// Versions of Hourglass that measured.
    pub versions: Vec<FleetShare>,
    /// Kernels of the nodes.
    pub kernels: Vec<FleetShare>,
    /// What a reader must know before comparing the nodes.
    pub warnings: Vec<Warning>,
}

/// Number of runs with a property, such as a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetShare {
    /// Value of the property.
    pub name: String,
    /// Number of runs with it.
    pub runs: u64,
}

/// A node over all its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetNode {
    /// Its name.
    pub node: String,
    /// Number of its runs.
    pub runs: u64,
    /// Number of threads of all its runs.
    pub threads: u64,
    /// Measured time, summed over threads, ns.
    pub wall_ns: u64,
    /// Gaps of its threads.
    pub gaps: Option<FleetGaps>,
    /// Latencies of its threads.
    pub latency: Option<FleetLatency>,
}

/// Gaps of a node. Percentiles are of those that were stored, and upper ends of steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetGaps {
    /// Number of gaps.
    pub count: u64,
    /// Number of gaps in the histogram: all, unless a buffer was too small.
    pub stored: u64,
    /// Sum of their lengths.
    pub lost_ns: u64,
    /// Lost time in billionths of the measured time, rounded down.
    pub lost_ppb: u64,
    /// Median length, ns.
    pub p50_ns: u64,
    /// 99 of 100 are not longer.
    pub p99_ns: u64,
    /// 999 of 1000 are not longer.
    pub p999_ns: u64,
    /// The longest gap, ns.
    pub max_ns: u64,
    /// Place of the longest stored gap.
    pub worst: Option<FleetPlace>,
    /// The cause that took the most time.
    pub cause: Option<Cause>,
    /// Time that this cause took, ns.
    pub cause_ns: u64,
}

/// Wake-ups of a node. Percentiles are of those that took place, and upper ends of steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetLatency {
    /// Number of wake-ups that took place.
    pub count: u64,
    /// Number of wake-ups that did not take place.
    pub lost: u64,
    /// Median latency, ns.
    pub p50_ns: u64,
    /// 99 of 100 are not later.
    pub p99_ns: u64,
    /// 999 of 1000 are not later.
    pub p999_ns: u64,
    /// The greatest latency, ns.
    pub max_ns: u64,
    /// Place of the greatest latency.
    pub worst: Option<FleetPlace>,
}

/// Place of a maximum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetPlace {
    /// Name of the run.
    pub run: String,
    /// Number of the thread in the run.
    pub thread: u32,
    /// When it began (a gap) or was served (a wake-up), from the run's start; null where that was not stored.
    pub at_ns: Option<i64>,
}
