//! Nodes beside each other: percentiles from the added histograms, and what makes nodes hard to compare.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::store::merged::{MergedFolder, Steps};
use hourglass_documents::Cause;
use hourglass_documents::document::Warning;
use hourglass_documents::histogram_steps::step_of;
use hourglass_documents::merged::{
    FLEET_SCHEMA, FleetDocument, FleetGaps, FleetLatency, FleetNode, FleetPlace, FleetShare,
    MergedRun, MergedSeries, MergedThread, Metric,
};

use super::FleetError;

pub(super) const UNNAMED: &str = "node-not-named";
const BILLION: u128 = 1_000_000_000;

/// Names that a warning has at most.
const NAMED: usize = 3;

/// The shares of values that percentiles are asked for, in thousandths.
const SHARES: [u64; 3] = [500, 990, 999];

/// Sums up the runs that were put together in `path`, by node. Memory is needed for one node at a time, and
/// some hundred bytes for each.
///
/// # Errors
/// The folder is half-written, or damaged.
pub fn summary(path: &Path) -> Result<FleetDocument, FleetError> {
    let mut folder = MergedFolder::open(path)?;
    let mut steps = folder.steps()?;
    let runs = folder.take_runs();
    let mut nodes = Vec::new();
    // The runs of a node stand beside each other.
    for runs in runs.chunk_by(|a, b| a.node == b.node) {
        nodes.push(node(runs, &mut steps)?);
    }
    let latest = |node: &FleetNode| node.latency.as_ref().map_or(0, |latency| latency.max_ns);
    let lost = |node: &FleetNode| node.gaps.as_ref().map_or(0, |gaps| gaps.lost_ppb);
    // Stable: those that are alike stay in the order of their names.
    nodes.sort_by_key(|node| std::cmp::Reverse((lost(node), latest(node))));
    Ok(FleetDocument {
        schema: FLEET_SCHEMA.to_owned(),
        runs: runs.len() as u64,
        measured: runs.first().map(|run| run.measured.clone()).unwrap_or_default(),
        versions: shares(runs.iter().map(|run| run.hourglass.as_str())),
        kernels: shares(runs.iter().map(|run| run.kernel.as_str())),
        warnings: warnings(&runs, &nodes),
        nodes,
    })
}

/// How many runs have each name, the most frequent first.
fn shares<'a>(names: impl Iterator<Item = &'a str>) -> Vec<FleetShare> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    let share = |(name, runs): (&str, u64)| FleetShare { name: name.to_owned(), runs };
    let mut shares: Vec<FleetShare> = counts.into_iter().map(share).collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.runs));
    shares
}

#[derive(Default)]
struct NodeHistograms {
    steps: BTreeMap<u64, u64>,
    stored: u64,
    max_ns: u64,
    worst: Option<FleetPlace>,
    by_cause: BTreeMap<Cause, u64>,
}

impl NodeHistograms {
    fn add(
        &mut self,
        run: &MergedRun,
        series: &MergedSeries,
        steps: &mut Steps,
    ) -> Result<(), FleetError> {
        steps.series(series, |step| {
            let sum = self.steps.entry(step.lo_ns).or_default();
            *sum = sum.saturating_add(step.count);
            Ok::<_, FleetError>(())
        })?;
        self.stored = self.stored.saturating_add(series.count);
        if self.worst.is_none() || series.max_ns > self.max_ns {
            self.max_ns = series.max_ns;
            self.worst = Some(FleetPlace {
                run: run.run.clone(),
                thread: series.thread,
                at_ns: series.max_at_ns,
            });
        }
        if let (Some(cause), Some(total_ns)) = (series.cause, series.total_ns) {
            let sum = self.by_cause.entry(cause).or_default();
            *sum = sum.saturating_add(total_ns);
        }
        Ok(())
    }

    /// The least ends of steps below which at least these shares of the values are; none is above `max_ns`.
    fn percentiles(&self, max_ns: u64) -> [u64; 3] {
        let (mut found, mut seen) = ([max_ns; 3], 0_u128);
        let mut wanted = SHARES.iter().zip(&mut found).peekable();
        for (lo_ns, count) in &self.steps {
            seen += u128::from(*count);
            let enough = |share: u64| seen * 1_000 >= u128::from(self.stored) * u128::from(share);
            while let Some((_, place)) = wanted.next_if(|(share, _)| enough(**share)) {
                *place = step_of(*lo_ns).1.saturating_sub(1).min(max_ns);
            }
        }
        found
    }
}

fn node(runs: &[MergedRun], steps: &mut Steps) -> Result<FleetNode, FleetError> {
    let (mut gaps, mut latency) = (NodeHistograms::default(), NodeHistograms::default());
    for run in runs {
        for series in &run.series {
            let added = match series.metric {
                Metric::Gap => &mut gaps,
                Metric::Latency => &mut latency,
            };
            added.add(run, series, steps)?;
        }
    }
    let threads = || runs.iter().flat_map(|run| &run.threads);
    let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(0, u64::saturating_add);
    let wall_ns = sum(&mut threads().map(|thread| thread.wall_ns));
    let tests_latency = threads().any(|thread| thread.wake_ups.is_some());
    // Those that test latency write no trace.
    let traced = || threads().filter(|thread| thread.wake_ups.is_none());
    let gaps = traced().next().is_some().then(|| {
        let count = sum(&mut traced().map(|thread| thread.gaps));
        let lost_ns = sum(&mut traced().map(|thread| thread.lost_ns));
        let wall_ns = sum(&mut traced().map(|thread| thread.wall_ns));
        let max_ns = traced().map(|thread| thread.longest_ns).max().unwrap_or(0);
        let [p50_ns, p99_ns, p999_ns] = gaps.percentiles(max_ns.max(gaps.max_ns));
        let most = gaps.by_cause.iter().max_by_key(|(_, total_ns)| **total_ns);
        FleetGaps {
            count,
            stored: gaps.stored,
            lost_ns,
            lost_ppb: share_ppb(lost_ns, wall_ns),
            p50_ns,
            p99_ns,
            p999_ns,
            max_ns,
            worst: gaps.worst.clone(),
            cause: most.map(|(cause, _)| *cause),
            cause_ns: most.map_or(0, |(_, total_ns)| *total_ns),
        }
    });
    let latency = tests_latency.then(|| {
        let [p50_ns, p99_ns, p999_ns] = latency.percentiles(latency.max_ns);
        FleetLatency {
            count: latency.stored,
            lost: sum(&mut threads().map(|thread| thread.wake_ups_lost)),
            p50_ns,
            p99_ns,
            p999_ns,
            max_ns: latency.max_ns,
            worst: latency.worst.clone(),
        }
    });
    Ok(FleetNode {
        node: runs.first().map(|run| run.node.clone()).unwrap_or_default(),
        runs: runs.len() as u64,
        threads: threads().count() as u64,
        wall_ns,
        gaps,
        latency,
    })
}

/// A part of a time in billionths, rounded down.
fn share_ppb(part_ns: u64, of_ns: u64) -> u64 {
    let share = (u128::from(part_ns) * BILLION).checked_div(u128::from(of_ns)).unwrap_or(0);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// What a reader must know before comparing the nodes.
fn warnings(runs: &[MergedRun], nodes: &[FleetNode]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |id: &str, of: BTreeSet<String>, text: &str, remedy: &str| {
        if !of.is_empty() {
            let text = format!("{}: {text}", named(&of));
            warnings.push(Warning { id: id.to_owned(), text, remedy: remedy.to_owned() });
        }
    };
    warn_of_differences(runs, &mut warn);
    warn_of_missing(runs, nodes, &mut warn);
    warnings
}

type Warn<'a> = dyn FnMut(&str, BTreeSet<String>, &str, &str) + 'a;

fn nodes_of<'a>(runs: impl Iterator<Item = &'a MergedRun>) -> BTreeSet<String> {
    runs.map(|run| run.node.clone()).collect()
}

fn threads(runs: &[MergedRun]) -> impl Iterator<Item = (&MergedRun, &MergedThread)> {
    runs.iter().flat_map(|run| run.threads.iter().map(move |one| (run, one)))
}

/// That nodes were not measured alike.
fn warn_of_differences(runs: &[MergedRun], warn: &mut Warn<'_>) {
    let unlike = |text: fn(&MergedRun) -> &str| {
        let most = shares(runs.iter().map(text)).first().map(|share| share.name.clone());
        let other = |run: &&MergedRun| most.as_deref() != Some(text(run));
        nodes_of(runs.iter().filter(other))
    };
    warn(
        "mixed-versions",
        unlike(|run| &run.hourglass),
        "measured by another version of Hourglass than most; a cause may be found in one and not in another",
        "measure with one version where causes are compared",
    );
    warn(
        "mixed-kernels",
        unlike(|run| &run.kernel),
        "another kernel than most nodes have; differences may be the kernel's",
        "compare nodes of one kernel with each other",
    );
    let degraded = threads(runs).filter(|(_, thread)| thread.degraded).map(|(run, _)| run);
    warn(
        "policy-not-granted",
        nodes_of(degraded),
        "threads ran under another policy than was asked for, and were preempted more easily",
        "grant the privilege there, as hourglass doctor says",
    );
    let least = threads(runs).map(|(_, thread)| thread.threshold_ns).min().unwrap_or(0);
    let most = threads(runs).map(|(_, thread)| thread.threshold_ns).max().unwrap_or(0);
    let coarser = threads(runs).filter(|(_, one)| one.threshold_ns > least).map(|(run, _)| run);
    warn(
        "thresholds-differ",
        nodes_of(coarser),
        &format!("gaps are counted from up to {most} ns on, elsewhere from {least} ns on"),
        "give the same --gap everywhere, or compare longer gaps only",
    );
}

/// That something of a run is not there.
fn warn_of_missing(runs: &[MergedRun], nodes: &[FleetNode], warn: &mut Warn<'_>) {
    let few = |node: &&FleetNode| {
        let unstored = node.gaps.as_ref().map_or(0, |gaps| gaps.count.saturating_sub(gaps.stored));
        // A gap at an end of the run is between no two records, however much room there is.
        unstored > threads(runs).filter(|(run, _)| run.node == node.node).count() as u64
    };
    warn(
        "gaps-not-stored",
        nodes.iter().filter(few).map(|node| node.node.clone()).collect(),
        "not all gaps were stored; count, lost time and maximum are of all, percentiles and causes of those stored",
        "record with more room (-e), or from longer gaps on",
    );
    let lost = |node: &&FleetNode| node.latency.as_ref().is_some_and(|latency| latency.lost > 0);
    warn(
        "wake-ups-lost",
        nodes.iter().filter(lost).map(|node| node.node.clone()).collect(),
        "wake-ups never took place, because an earlier one was too late; percentiles are of the others",
        "take a longer period, or examine these nodes first",
    );
    warn(
        "interrupted",
        nodes_of(runs.iter().filter(|run| run.interrupted)),
        "a signal ended a run early",
        "measure again where all runs have to be equally long",
    );
    warn(
        "node-runs-overlap",
        overlapping(runs),
        "two runs went on at the same time and disturbed each other",
        "measure a node by one run at a time",
    );
    let unnamed = |run: &&MergedRun| run.warnings.iter().any(|id| id == UNNAMED);
    warn(
        UNNAMED,
        nodes_of(runs.iter().filter(unnamed)),
        "the folder does not name its node, and its own name stands for it",
        "measure again with this version",
    );
}

/// The first of some names, and how many there are besides.
fn named(names: &BTreeSet<String>) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Nodes that answered twice at a time: by the monotonic clock of one boot, which cannot be set.
fn overlapping(runs: &[MergedRun]) -> BTreeSet<String> {
    let mut twice = BTreeSet::new();
    for runs in runs.chunk_by(|a, b| a.node == b.node) {
        let mut spans: Vec<(Option<&str>, u64, u64)> = { runs.iter() }
            .map(|run| {
                let begun_ns = run.epoch.monotonic_ns;
                (run.boot_id.as_deref(), begun_ns, begun_ns.saturating_add(run.elapsed_ns))
            })
            .collect();
        spans.sort_unstable();
        let (mut boot, mut until_ns) = (None, 0);
        for (of, begun_ns, ended_ns) in spans {
            if of.is_some() && of == boot && begun_ns < until_ns {
                twice.insert(runs[0].node.clone());
            }
            until_ns = if of == boot { ended_ns.max(until_ns) } else { ended_ns };
            boot = of;
        }
    }
    twice
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The twin: all values, sorted.
    #[test]
    fn percentiles_are_those_of_the_values() {
        let values: Vec<u64> = (1..=5_000_u64).map(|n| n * n).collect();
        let mut added = NodeHistograms { stored: values.len() as u64, ..NodeHistograms::default() };
        for value in &values {
            *added.steps.entry(step_of(*value).0).or_default() += 1;
        }
        let max_ns = *values.last().unwrap();
        let wanted = SHARES.map(|share| {
            let rank = (values.len() as u64 * share).div_ceil(1_000) as usize;
            (step_of(values[rank - 1]).1 - 1).min(max_ns)
        });
        assert_eq!(added.percentiles(max_ns), wanted);
        assert_eq!(NodeHistograms::default().percentiles(0), [0; 3]);
    }

    #[test]
    fn a_node_that_answers_twice_at_a_time_is_named() {
        let run = |node: &str, boot: &str, begun_ns| {
            let mut run = MergedRun {
                node: node.to_owned(),
                boot_id: Some(boot.to_owned()),
                elapsed_ns: 10,
                ..MergedRun::default()
            };
            run.epoch.monotonic_ns = begun_ns;
            run
        };
        let apart = [run("a", "1", 0), run("a", "1", 10), run("a", "2", 5), run("b", "1", 5)];
        assert_eq!(overlapping(&apart), BTreeSet::new());
        let twice = [run("a", "1", 0), run("b", "1", 30), run("b", "1", 20), run("b", "1", 29)];
        assert_eq!(overlapping(&twice), BTreeSet::from(["b".to_owned()]));
    }
}
