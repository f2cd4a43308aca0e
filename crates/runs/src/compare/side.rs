//! A run as one side of a comparison.

use std::path::PathBuf;

use hourglass_documents::diff::{DiffSide, RoundGates};
use hourglass_documents::document::{GateReport, Premise, RunDocument, Warning};
use hourglass_documents::manifest::Manifest;
use hourglass_documents::premise::PREMISE_BROKEN;
use hourglass_trace::Interval;
use hourglass_trace::compare::RunSample;

use super::CompareError;
use super::statements::RunObservation;
use crate::OpenRun;

#[derive(Debug)]
pub struct ComparedRun {
    pub(super) manifest: Manifest,
    pub(super) sample: RunSample,
    /// What a statement about two runs needs beside that.
    pub(super) observed: RunObservation,
    pub(super) gates: Vec<GateReport>,
    pub(super) folder: Option<PathBuf>,
    pub(super) dropped: u64,
    pub interrupted: bool,
    pub(super) premises: Vec<Premise>,
    pub(super) without_order: bool,
}

impl ComparedRun {
    fn from_document(document: &RunDocument, folder: Option<PathBuf>) -> ComparedRun {
        let RunDocument { manifest, result, .. } = document;
        let mut sample = RunSample::new(manifest.elapsed_ns);
        let control = result.control.as_ref().and_then(|control| control.thread);
        let own = || result.threads.iter().filter(|thread| Some(thread.id) != control);
        own().for_each(|thread| sample.push_thread(thread));
        sample.push_causes(&result.causes);
        ComparedRun {
            manifest: Manifest { result: None, ..manifest.clone() },
            sample,
            observed: RunObservation::of(document),
            gates: result.gates.clone(),
            folder,
            dropped: own().map(|thread| thread.records_dropped).sum(),
            interrupted: result.interrupted,
            premises: result.premises.clone(),
            without_order: false,
        }
    }

    pub(super) fn from_folder(
        recalled: &OpenRun,
        folder: PathBuf,
    ) -> Result<ComparedRun, CompareError> {
        let document = &recalled.document;
        let mut run = ComparedRun::from_document(document, Some(folder));
        let control = document.result.control.as_ref().and_then(|control| control.thread);
        for interval in recalled.intervals()? {
            let interval = interval?;
            if Some(interval.thread) != control {
                run.sample.push(&interval);
                run.observed.push(&interval);
            }
        }
        for thread in &document.result.threads {
            if thread.latency.is_none() || Some(thread.id) == control {
                continue;
            }
            let late: Vec<u64> = recalled.latencies_ps(thread.id)?.collect::<Result<_, _>>()?;
            let p50_ns = thread.latency.map_or(0, |latency| latency.p50_ns);
            run.observed.push_latencies(thread.id, p50_ns, &late);
            if recalled.has_single_latencies(thread.id)? {
                run.sample.push_latencies(&late);
            } else {
                run.sample.push_latencies_without_order(&late);
                run.without_order = true;
            }
        }
        Ok(run)
    }

    /// A run that has just ended, kept in `folder` if at all. `latencies_ps` gives those of a thread.
    pub fn finished<L: Iterator<Item = u64>>(
        document: &RunDocument,
        folder: Option<PathBuf>,
        intervals: impl Iterator<Item = Interval>,
        latencies_ps: impl Fn(u32) -> L,
    ) -> ComparedRun {
        let mut run = ComparedRun::from_document(document, folder);
        for interval in intervals {
            run.sample.push(&interval);
            run.observed.push(&interval);
        }
        for thread in &document.result.threads {
            let late: Vec<u64> = latencies_ps(thread.id).collect();
            if !late.is_empty() {
                run.sample.push_latencies(&late);
                let p50_ns = thread.latency.map_or(0, |latency| latency.p50_ns);
                run.observed.push_latencies(thread.id, p50_ns, &late);
            }
        }
        run
    }

    /// The longest GAP of its threads: shorter gaps are not recorded by all of them.
    pub(super) fn gap_ns(&self) -> u64 {
        self.manifest.threads.iter().map(|thread| thread.gap_ns).max().unwrap_or(0)
    }

    pub(super) fn command(&self) -> String {
        let words = &self.manifest.command_line;
        let named = words.iter().skip(1).map(String::as_str).collect::<Vec<_>>().join(" ");
        if named.is_empty() { "(not recorded)".to_owned() } else { named }
    }

    pub(super) fn name(&self) -> String {
        self.folder.as_ref().map_or_else(|| "a run".to_owned(), |path| path.display().to_string())
    }
}

pub(super) fn facts(runs: &[ComparedRun]) -> DiffSide {
    DiffSide {
        what: runs.first().map(ComparedRun::command).unwrap_or_default(),
        folders: runs
            .iter()
            .filter_map(|run| run.folder.as_ref())
            .map(|path| path.display().to_string())
            .collect(),
    }
}

pub(super) fn gates(a: &[ComparedRun], b: &[ComparedRun]) -> Vec<RoundGates> {
    let of = |round: u64, side: &str, run: &ComparedRun| RoundGates {
        round,
        side: side.to_owned(),
        gates: run.gates.clone(),
    };
    let rounds = (1u64..).zip(a.iter().zip(b));
    let all = rounds.flat_map(|(round, (a, b))| [of(round, "a", a), of(round, "b", b)]);
    all.filter(|found| !found.gates.is_empty()).collect()
}

/// The warning of a comparison for a run of which a premise broke.
pub fn premise_broken(round: u64, side: char, premise: &Premise) -> Warning {
    Warning {
        id: PREMISE_BROKEN.to_owned(),
        text: format!("no verdict, round {round}, {}: {}", side.to_ascii_uppercase(), premise.text),
        remedy: "measure again".to_owned(),
    }
}

/// What the runs rest on and did not hold, round by round.
pub(super) fn broken(a: &[ComparedRun], b: &[ComparedRun]) -> Vec<Warning> {
    let of = |round: u64, side: char, run: &ComparedRun| -> Vec<Warning> {
        run.premises.iter().map(|premise| premise_broken(round, side, premise)).collect()
    };
    let rounds = (1u64..).zip(a.iter().zip(b));
    rounds.flat_map(|(round, (a, b))| [of(round, 'A', a), of(round, 'B', b)]).flatten().collect()
}
