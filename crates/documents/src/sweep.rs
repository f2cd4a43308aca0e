//! The document `hourglass.sweep/1`: how many sets of tasks each analysis accepts, by utilisation.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Name and version of the document.
pub const SWEEP_SCHEMA: &str = "hourglass.sweep/1";

/// The result of an experiment of schedulability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepDocument {
    /// Always [`SWEEP_SCHEMA`].
    pub schema: String,
    /// What was done; with the same program it gives the same document.
    pub experiment: SweepExperiment,
    /// The points that are finished, by utilisation, ascending.
    pub points: Vec<SweepPoint>,
    /// For each analysis the sum of utilisation times share accepted, over that of the utilisations
    /// (Bastoni, Brandenburg and Anderson, OSPERT 2010), from 0 to 1. For display.
    pub weighted: BTreeMap<String, f64>,
    /// Whether points are missing because a signal asked to stop.
    pub interrupted: bool,
}

/// An experiment, in the words of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepExperiment {
    /// Which version of the program: another one may draw or judge otherwise.
    pub version: String,
    /// The utilisations, as decimals, ascending.
    pub utilisations: Vec<String>,
    /// Sets a point.
    pub sets: u64,
    /// Tasks a set.
    pub tasks: usize,
    /// Processors.
    pub processors: u32,
    /// How utilisations are drawn, or `scaled` where a given set is.
    pub generator: String,
    /// Bounds on the utilisation of tasks; none, one for all, or one for each.
    pub bounds: Vec<String>,
    /// How periods are drawn.
    pub periods: String,
    /// Periods and deadlines are multiples of it.
    pub granularity: String,
    /// Execution times are multiples of it.
    pub cost_granularity: String,
    /// How deadlines are drawn.
    pub deadlines: String,
    /// Release jitter as a share of the period: two decimals.
    pub jitter: String,
    /// Where the random sequences begin.
    pub seed: u64,
    /// The analyses compared.
    pub analyses: Vec<String>,
    /// The set whose execution times are scaled, as a task file, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Whether what each analysis said of each set is kept.
    pub keep_sets: bool,
    /// Which part of it was done, if it was done in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<SweepShard>,
}

/// A part of an experiment. The sets of all points, in their order, are cut into parts of which none has more than one
/// set more than another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepShard {
    /// Which one, from 0.
    pub index: u64,
    /// How many there are.
    pub of: u64,
    /// Older words by which analyses were asked for, each with the name that the analysis has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub older: BTreeMap<String, String>,
}

impl SweepExperiment {
    /// The sets of a point that are done here: all, or those of the part.
    #[must_use]
    pub fn sets_of(&self, point: usize) -> Range<u64> {
        let Some(shard) = &self.shard else { return 0..self.sets };
        let sets = u128::from(self.sets);
        let all = sets * self.utilisations.len() as u128;
        let edge = |index: u128| {
            let edge = all * index / u128::from(shard.of.max(1));
            let within = edge.saturating_sub(sets * point as u128).min(sets);
            u64::try_from(within).unwrap_or(self.sets)
        };
        edge(shard.index.into())..edge(u128::from(shard.index) + 1)
    }

    /// The points of which sets are done here.
    #[must_use]
    pub fn points(&self) -> Range<usize> {
        let mut touched =
            (0..self.utilisations.len()).filter(|point| !self.sets_of(*point).is_empty());
        let first = touched.next();
        first.map_or(0..0, |first| first..touched.next_back().unwrap_or(first) + 1)
    }
}

/// A point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPoint {
    /// Utilisation of its sets: each has at most this, and only rounding less.
    pub utilisation: f64,
    /// How many sets were judged: as many as the experiment has, but for those in whose place, too,
    /// nothing could be drawn.
    pub sets: u64,
    /// How many draws ran out of tries (UUniFast-Discard), after each of which another set was drawn.
    #[serde(default, skip_serializing_if = "is_none")]
    pub redrawn: u64,
    /// How many of them each analysis found feasible; under an older word of the analysis, too, if it was
    /// asked for by that.
    pub accepted: BTreeMap<String, u64>,
    /// How many of them each analysis gave up, because its search or a number grew too long, or, for
    /// partitioning and Audsley's search, failed after the test of a processor or a task was given
    /// up; none of these counts as accepted.
    pub undecided: BTreeMap<String, u64>,
}

/// Serde asks this of a reference.
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// A finished point as a folder keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredPoint {
    /// Which point of the experiment, from 0.
    pub number: usize,
    /// What was found.
    pub point: SweepPoint,
    /// For each analysis a letter for each set, if sets are kept: [`ACCEPTED`], [`REFUSED`],
    /// [`UNDECIDED`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, String>,
}

/// Found feasible.
pub const ACCEPTED: char = 'a';
/// Not found feasible.
pub const REFUSED: char = 'r';
/// Given up.
pub const UNDECIDED: char = 'u';
