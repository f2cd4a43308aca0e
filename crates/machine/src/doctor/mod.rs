//! The doctor: every condition of the machine that spoils real-time work, what is wanted instead,
//! and the line that changes it.
//!
//! Owns: the judgement of each condition (a check is one function of the [`DoctorInput`] and one line
//! in `registry`), and the gathering of the evidence. Judgements that the advice before a run
//! shares stand in `advice`.
//! Must not: change anything, read a file (`host` does), know how a verdict is shown.
//!
//! # What the statuses mean
//!
//! - `fail`: real-time work is refused, or the machine by itself stops or delays it for
//!   milliseconds whatever its priority and however little it computes: no real-time priority, no
//!   time for the control group, a spent quota, wake-ups only at ticks, a clock whose every read is
//!   a system call.
//! - `warn`: it costs latency or jitter, or will stop work that goes beyond a limit.
//! - `unknown`: the machine does not tell; the remedy is the line that makes it tell.
//! - `ok`: as it should be, or without effect on this machine. No remedy.

mod build;
mod clock;
mod effect;
mod environment;
mod input;
mod interrupts;
mod isolation;
mod limits;
mod memory;
mod noise;
mod power;
mod probes;
mod profile;
mod registry;
mod remedy;
mod scheduler;
mod script;
#[cfg(test)]
mod tests;
mod verdict;

use std::path::Path;

use hourglass_clock::SelectionPolicy;
use hourglass_documents::CpuSet;
use hourglass_documents::doctor::{CheckResult, DOCTOR_SCHEMA, DoctorDocument, StatusCounts};
use thiserror::Error;

use crate::facts::HostReader;

pub use input::{DoctorInput, ProbeResults};
pub use profile::{Profile, ProfileError};
use registry::{CHECKS, Check};
pub use script::script;

/// CPUs were asked for that are not there.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("CPUs {missing} are not online; there are {online}")]
pub struct CpusOffline {
    missing: CpuSet,
    online: CpuSet,
}

/// The names of all checks, in the order of documents.
pub fn check_ids() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|check| check.id)
}

/// Examines this machine for work on the CPUs `asked`, else on those that are isolated, else on
/// all. Of the checks those named in `only`, or all if it names none. Takes about 0.1 s, most of
/// it for measuring the clocks.
///
/// # Errors
/// A CPU that was asked for is not online.
pub fn examine(asked: Option<CpuSet>, only: &[String]) -> Result<DoctorDocument, CpusOffline> {
    let reader = HostReader::new(Path::new("/"));
    let host = reader.read();
    if let (Some(asked), Some(online)) = (&asked, &host.cpu.online) {
        let missing = asked.difference(online);
        if !missing.is_empty() {
            return Err(CpusOffline { missing, online: online.clone() });
        }
    }
    let evidence = DoctorInput {
        host,
        tuning: reader.tuning(),
        clocks: crate::clocks::clocks(SelectionPolicy::Strict, false).ok(),
        trials: probes::trials(),
        asked,
    };
    Ok(diagnose(&evidence, only))
}

/// What `evidence` says, by the checks named in `only`, or all if it names none.
#[must_use]
pub fn diagnose(evidence: &DoctorInput, only: &[String]) -> DoctorDocument {
    let wanted = |check: &&Check| only.is_empty() || only.iter().any(|id| id == check.id);
    let mut checks: Vec<CheckResult> = CHECKS
        .iter()
        .filter(wanted)
        .map(|check| {
            let verdict = check.evaluate(evidence);
            CheckResult {
                id: check.id.to_owned(),
                effect: effect::effect(check, &verdict),
                status: verdict.status,
                found: verdict.found,
                wanted: check.wanted.to_owned(),
                remedy: verdict.remedy,
            }
        })
        .collect();
    effect::rank(&mut checks);
    let (cpus, cpus_are) = evidence.judged();
    DoctorDocument {
        schema: DOCTOR_SCHEMA.to_owned(),
        cpus,
        cpus_are,
        counts: StatusCounts::count(&checks),
        checks,
        differences: None,
    }
}
