//! The run that a workload file describes.
//!
//! Owns: what a file says put into a run. Must not: know which option overrides which key.

use hourglass_workload::spec::{RunSpec, SpecError};

use super::WorkloadFile;
use crate::experiment::RunOptions;

impl WorkloadFile {
    /// The run that the file describes, not kept anywhere. `seed` holds if the file says none.
    pub fn request(&self, seed: u64) -> RunOptions {
        let mut request = RunOptions::new(RunSpec::new(self.threads.clone()));
        self.put_into(&mut request.spec, seed);
        request.dma_latency_us = self.dma_latency_us;
        request.gates = self.gates.clone();
        request.trace = self.trace.unwrap_or(false);
        request
    }

    /// Puts what the file says of the run as a whole into `spec`, whose threads stay as they are. `seed` holds if
    /// the file says none.
    pub fn put_into(&self, spec: &mut RunSpec, seed: u64) {
        spec.duration = self.duration.unwrap_or(spec.duration);
        spec.records = self.records.unwrap_or(spec.records);
        spec.ring = self.ring.unwrap_or(spec.ring);
        spec.warm_up = self.warm_up.unwrap_or(spec.warm_up);
        spec.seed = self.seed.unwrap_or(seed);
        spec.best_effort = self.best_effort.unwrap_or(spec.best_effort);
        spec.guard = self.guard.clone();
    }

    /// Where the thread is described that `error` is about; empty if it is about none.
    pub fn place_of(&self, error: &SpecError) -> &str {
        let thread = match error {
            SpecError::NeverRuns { thread, .. }
            | SpecError::Negative { thread, .. }
            | SpecError::PolicyAndReservation { thread, .. }
            | SpecError::Gap(thread)
            | SpecError::DeadlineWithoutTimes(thread) => Some(*thread),
            _ => None,
        };
        thread.map_or("", |thread| self.place(thread))
    }
}
