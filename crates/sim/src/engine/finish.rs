//! The end of a simulation.
//!
//! Owns: what is unfinished at the horizon, and the outcome. Must not: go on.

use super::super::outcome::{FirstMiss, SimOutcome};
use super::super::sink::Event;
use super::super::source::JobRelease;
use super::SimState;

impl<const TELL: bool> SimState<TELL> {
    pub(super) fn finish(&mut self) -> SimOutcome {
        for cpu in 0..self.cpus.len() {
            if let Some(thread) = self.cpus[cpu].thread {
                self.end_slice(cpu, thread);
            }
            // The time that the kernel would have used after the horizon.
            let over = self.cpus[cpu].accounted_until.saturating_sub(self.horizon);
            let outcome = &mut self.cpus[cpu].outcome;
            outcome.overhead = outcome.overhead.saturating_sub(over);
        }
        for thread in 0..self.runners.len() {
            self.close_script(thread);
            if !self.runners[thread].endless {
                self.count_unfinished(thread);
            }
        }
        let scale = u128::from(self.rates.scale);
        for runner in &mut self.runners {
            let progress = runner.work / scale;
            // The progress is at most the horizon.
            runner.outcome.progress = u64::try_from(progress).unwrap_or(u64::MAX);
        }
        SimOutcome {
            horizon: self.horizon,
            events: self.events,
            jobs: self.runners.iter().map(|runner| runner.outcome.jobs).sum(),
            threads: self.runners.iter_mut().map(|r| std::mem::take(&mut r.outcome)).collect(),
            servers: self.servers.iter().map(|keeper| keeper.outcome).collect(),
            cpus: self.cpus.iter().map(|cpu| cpu.outcome).collect(),
        }
    }

    fn count_unfinished(&mut self, thread: usize) {
        let runner = &self.runners[thread];
        let current = runner.job.map(|job| (job.number, job.coming));
        let waiting = runner.waiting.iter().map(|waiting| (waiting.number, waiting.coming));
        let open: Vec<(u64, JobRelease)> = current.into_iter().chain(waiting).collect();
        let begun = runner.job.is_some_and(|job| job.remaining < job.cost);
        let outcome = &mut self.runners[thread].outcome;
        outcome.unfinished = open.len() as u64;
        outcome.oldest_started = begun;
        for (job, coming) in open {
            let runner = &mut self.runners[thread];
            // What ends at the horizon has ended, so that a job due then is late.
            let due = coming.arrival.checked_add(runner.deadline);
            if let Some(due) = due.filter(|due| *due <= self.horizon) {
                let arrival = coming.arrival;
                let outcome = &mut runner.outcome;
                outcome.missed += 1;
                outcome.first_miss.get_or_insert(FirstMiss {
                    job,
                    arrival,
                    deadline: due,
                    done: None,
                });
                self.tell(Event::Miss { thread, job, due });
            }
        }
    }
}
