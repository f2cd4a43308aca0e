//! Executes a system, event by event.

use super::error::SimError;
use super::monitor::{Gate, JobView, Monitor, Reasons};
use super::outcome::{CpuOutcome, Outcome, ServerOutcome, ThreadOutcome};
use super::settings::Settings;
use super::sink::Sink;
use super::system::System;

/// What a monitor sees.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) now: u64,
    pub(super) reasons: Reasons,
    pub(super) expired: &'a [bool],
}

impl Seen<'_> {
    pub(super) fn running(&self, _: u32) -> Option<usize> {
        None
    }
    pub(super) fn cpu_of(&self, _: usize) -> Option<u32> {
        None
    }
    pub(super) fn gate(&self, _: u32) -> Gate {
        Gate::Open
    }
    pub(super) fn job(&self, _: usize) -> Option<JobView> {
        None
    }
    pub(super) fn budget(&self, _: usize) -> Option<u64> {
        None
    }
    pub(super) fn server_deadline(&self, _: usize) -> Option<u64> {
        None
    }
}

/// Runs it.
pub(super) fn run<S: Sink, M: Monitor>(
    system: &System,
    settings: Settings,
    _: &mut S,
    _: &mut M,
) -> Result<Outcome, SimError> {
    Ok(Outcome {
        horizon: settings.horizon,
        events: 0,
        jobs: 0,
        threads: vec![ThreadOutcome::default(); system.threads.len()],
        servers: vec![ServerOutcome::default(); system.servers.len()],
        cpus: vec![CpuOutcome::default(); system.cpus as usize],
    })
}
