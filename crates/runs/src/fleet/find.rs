//! The folders that are put together, and the order of their runs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::store::merged::MergedFolder;
use crate::store::sweep::EXPERIMENT_FILE;
use crate::store::{OpenError, RunFolder};
use hourglass_documents::Policy;
use hourglass_documents::document::{RunResult, ThreadReport};
use hourglass_documents::manifest::{Epoch, Manifest, ThreadFacts};
use hourglass_documents::merged::{MergedRun, MergedThread};

use super::FleetError;

/// Folders at fault that a message names besides the first.
const NAMED: usize = 5;
const NS_PER_S: u64 = 1_000_000_000;

/// A run that is going to be written, without its series where they have to be counted first.
pub(super) struct PlannedRun {
    pub(super) run: MergedRun,
    pub(super) place: RunLocation,
}

pub(super) enum RunLocation {
    Run(PathBuf),
    /// Among others: in a folder, which has this number.
    Merged(PathBuf, usize),
}

impl RunLocation {
    pub(super) fn path(&self) -> &Path {
        match self {
            RunLocation::Run(path) | RunLocation::Merged(path, _) => path,
        }
    }
}

impl PlannedRun {
    pub(super) fn epoch(&self) -> (u64, u64, u64) {
        let Epoch { monotonic_ns, realtime_ns, ticks } = self.run.epoch;
        (realtime_ns, monotonic_ns, ticks)
    }
}

/// Whether `folder` is one of runs put together.
pub fn is_merged(folder: &Path) -> bool {
    MergedFolder::is_at(folder)
}

/// Whether `folder` is a measured one: a run, or runs put together; half-written ones as well.
pub fn is_measured(folder: &Path) -> bool {
    MergedFolder::is_at(folder) || RunFolder::is_at(folder)
}

/// Whether `folder` is a measured one, or has one in it.
pub fn holds_runs(folder: &Path) -> bool {
    let in_it = || fs::read_dir(folder).into_iter().flatten().flatten();
    is_measured(folder) || in_it().any(|entry| is_measured(&entry.path()))
}

pub(super) fn find(folders: &[PathBuf]) -> Result<Vec<PathBuf>, FleetError> {
    let mut found = Vec::new();
    for folder in folders {
        if is_measured(folder) {
            found.push(folder.clone());
            continue;
        }
        let failed = |source| FleetError::Unreadable { path: folder.clone(), source };
        let before = found.len();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.join(EXPERIMENT_FILE).exists() {
                return Err(FleetError::Sweep(path));
            }
            if is_measured(&path) {
                found.push(path);
            }
        }
        if found.len() == before {
            return Err(FleetError::NoRuns(folder.clone()));
        }
    }
    // So that a message is the same whatever the order.
    found.sort();
    Ok(found)
}

/// All runs in their order, and the folders in which several are.
pub(super) fn plan(
    folders: Vec<PathBuf>,
) -> Result<(Vec<PlannedRun>, Vec<MergedFolder>), FleetError> {
    let (mut planned, mut merged, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for path in folders {
        if MergedFolder::is_at(&path) {
            match MergedFolder::open(&path) {
                Ok(mut folder) => {
                    let runs = folder.take_runs().into_iter();
                    let place = || RunLocation::Merged(path.clone(), merged.len());
                    planned.extend(runs.map(|run| PlannedRun { run, place: place() }));
                    merged.push(folder);
                }
                Err(error) => wrong.push((path, FleetError::from(error))),
            }
            continue;
        }
        match run(&path) {
            Ok(run) => planned.push(PlannedRun { run, place: RunLocation::Run(path) }),
            Err(error) => wrong.push((path, error)),
        }
    }
    refuse(wrong)?;
    planned.sort_by(|a, b| (&a.run.node, a.epoch()).cmp(&(&b.run.node, b.epoch())));
    Ok((planned, merged))
}

/// Names all faults at once: with a thousand nodes, one message after the other would help no reader.
fn refuse(wrong: Vec<(PathBuf, FleetError)>) -> Result<(), FleetError> {
    let more = wrong.len().saturating_sub(1);
    let mut wrong = wrong.into_iter();
    let Some((_, first)) = wrong.next() else { return Ok(()) };
    if more == 0 {
        return Err(first);
    }
    let mut named: Vec<String> =
        wrong.take(NAMED).map(|(path, _)| path.display().to_string()).collect();
    if more > NAMED {
        named.push("...".to_owned());
    }
    Err(FleetError::Several { first: first.to_string(), more, named: named.join(", ") })
}

fn run(path: &Path) -> Result<MergedRun, FleetError> {
    let folder = RunFolder::open(path)?;
    let manifest = folder.manifest();
    let result = manifest.result.as_ref();
    let result = result.ok_or_else(|| OpenError::NoResult(path.to_path_buf()))?;
    let kind = |what| Err(FleetError::Kind { path: path.to_path_buf(), what });
    if manifest.simulation.is_some() {
        return kind("a simulation, and nothing in it was measured");
    }
    if result.watched.is_some() {
        return kind("of hourglass watch, whose threads are those of other programs");
    }
    if result.reservation.is_some() {
        return kind("of hourglass reserve, and no threads were measured");
    }
    let host = &manifest.host;
    let named_by_folder = || path.file_name().map(|name| name.to_string_lossy().into_owned());
    let measured: BTreeSet<String> = manifest.threads.iter().map(measured).collect();
    let facts = |id| manifest.threads.iter().find(|facts: &&ThreadFacts| facts.id == id);
    Ok(MergedRun {
        run: utc(manifest.epoch.realtime_ns),
        node: host.node.clone().or_else(named_by_folder).unwrap_or_default(),
        boot_id: host.boot_id.clone(),
        epoch: manifest.epoch,
        elapsed_ns: manifest.elapsed_ns,
        hourglass: manifest.hourglass.clone(),
        kernel: host.kernel.clone(),
        measured: measured.into_iter().collect(),
        interrupted: result.interrupted,
        warnings: warnings(manifest, result),
        threads: { result.threads.iter() }.map(|report| thread(report, facts(report.id))).collect(),
        series: Vec::new(),
    })
}

fn measured(thread: &ThreadFacts) -> String {
    match thread.wake_up.as_str() {
        "" => thread.workload.clone(),
        wake_up => format!("{} by {wake_up}", thread.workload),
    }
}

/// The warnings of a run, and one of ours where it does not name its node.
fn warnings(manifest: &Manifest, result: &RunResult) -> Vec<String> {
    let ids = result.warnings.iter().map(|warning| warning.id.clone());
    let unnamed = manifest.host.node.is_none().then(|| super::summary::UNNAMED.to_owned());
    let ids: BTreeSet<String> = ids.chain(unnamed).collect();
    ids.into_iter().collect()
}

fn thread(report: &ThreadReport, facts: Option<&ThreadFacts>) -> MergedThread {
    MergedThread {
        thread: report.id,
        policy: report.policy.clone(),
        degraded: facts.is_some_and(is_degraded),
        wall_ns: report.wall_ns,
        threshold_ns: facts.map_or(0, |facts| facts.gap_ns),
        gaps: report.gaps.count,
        lost_ns: report.gaps.total_ns,
        longest_ns: report.gaps.max_ns,
        wake_ups: report.latency.map(|latency| latency.count),
        wake_ups_lost: report.latency.map_or(0, |latency| latency.lost),
    }
}

/// Whether the policy in force is another than was asked for; one may be written in two ways.
fn is_degraded(facts: &ThreadFacts) -> bool {
    let asked: Option<Policy> = facts.policy_asked.parse().ok();
    asked.zip(facts.policy.parse().ok()).is_some_and(|(asked, given)| asked != given)
}

/// A moment as `2026-11-23T23:40:12.123456789Z` (RFC 3339). Input in nanoseconds since 1970.
fn utc(ns: u64) -> String {
    const S_PER_DAY: u64 = 86_400;
    let (seconds, ns) = (ns / NS_PER_S, ns % NS_PER_S);
    let (year, month, day) = date(seconds / S_PER_DAY);
    let of_day = seconds % S_PER_DAY;
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z")
}

/// Year, month and day of a day since 1970, by the Gregorian calendar: Howard Hinnant, "chrono-Compatible Low-Level
/// Date Algorithms", `civil_from_days`.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_PER_ERA: u64 = 146_097;
    // From the first of March of the year 0.
    let days = days + 719_468;
    let (era, of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `date -u -d @N`.
    #[test]
    fn moments_are_dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(utc(951_782_399 * NS_PER_S + 1), "2000-02-28T23:59:59.000000001Z");
        assert_eq!(utc(951_782_400 * NS_PER_S), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(utc(1_795_477_212 * NS_PER_S), "2026-11-23T23:40:12.000000000Z");
        assert!(utc(u64::MAX).starts_with("2554-07-21T23:34:33."));
    }
}
