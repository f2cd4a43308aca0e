//! What has happened since the last event.
//!
//! Owns: work, budgets, quanta, slices and times brought up to an instant; when the next of them
//! ends. Must not: act on what has ended.

use super::SimState;
use super::timers::NEVER;

impl<const TELL: bool> SimState<TELL> {
    pub(super) fn bring_up_all(&mut self) {
        for cpu in 0..self.cpus.len() {
            self.bring_up_cpu(cpu);
        }
    }

    pub(super) fn bring_up(&mut self, domain: usize) {
        if std::mem::replace(&mut self.domains[domain].accounted_until, self.now) == self.now {
            return;
        }
        for index in 0..self.domains[domain].cpus.len() {
            self.bring_up_cpu(self.domains[domain].cpus[index]);
        }
    }

    #[inline]
    fn bring_up_cpu(&mut self, cpu: usize) {
        let passed = self.now.saturating_sub(self.cpus[cpu].accounted_until);
        if passed > 0 {
            self.cpus[cpu].accounted_until = self.now;
            if let Some(thread) = self.cpus[cpu].thread {
                self.pass(cpu, thread, passed);
            }
        }
    }

    /// Charges a thread for the `passed` ns that it had a CPU.
    fn pass(&mut self, at: usize, thread: usize, passed: u64) {
        let cpu = &mut self.cpus[at];
        let runner = &mut self.runners[thread];
        cpu.outcome.busy += passed;
        runner.outcome.received += passed;
        if let Some(job) = runner.job.as_mut().filter(|_| !runner.spinning) {
            let reloaded = job.reload.min(passed);
            job.reload -= reloaded;
            let worked = passed - reloaded;
            if runner.endless {
                runner.work += u128::from(cpu.rate) * u128::from(worked);
            } else {
                // The event is at the end of the work at the latest; what is over is below 1 ns.
                let done = cpu.rate.saturating_mul(worked).min(job.remaining);
                job.remaining -= done;
                runner.work += u128::from(done);
            }
        }
        if cpu.counted {
            cpu.used += passed;
        }
        if cpu.shared {
            let share = &mut runner.share;
            share.time += i128::from(passed) * i128::from(share.pace);
            share.slice = share.slice.saturating_sub(passed);
        }
        runner.quantum = runner.quantum.saturating_sub(passed);
        if let Some(payer) = cpu.payer {
            let keeper = &mut self.servers[payer];
            keeper.remaining_budget =
                keeper.remaining_budget.saturating_sub(cpu.drain.saturating_mul(passed));
            keeper.outcome.received += passed;
        }
    }

    /// When something is to be done on a CPU, as it is now.
    pub(super) fn next_end(&self, at: usize) -> u64 {
        let cpu = &self.cpus[at];
        let Some(thread) = cpu.thread else { return NEVER };
        let runner = &self.runners[thread];
        let mut soonest = NEVER;
        if let Some(job) = runner.job.as_ref().filter(|_| !runner.spinning && !runner.endless) {
            let work = job.remaining.saturating_sub(job.point);
            soonest = job.reload.saturating_add(time_for(work, cpu.rate));
        }
        if let Some(payer) = cpu.payer {
            soonest = soonest.min(time_for(self.servers[payer].remaining_budget, cpu.drain));
        }
        if self.takes_turns(thread) {
            soonest = soonest.min(runner.quantum);
        }
        if cpu.shared {
            soonest = soonest.min(runner.share.slice);
        }
        if cpu.counted
            && let Some(throttling) = self.throttling
        {
            soonest = soonest.min(throttling.runtime.saturating_sub(cpu.used));
        }
        cpu.accounted_until.saturating_add(soonest)
    }
}

/// How long `units` take at `rate` units each ns, rounded up to whole ns; [`NEVER`] at rate 0.
fn time_for(units: u64, rate: u64) -> u64 {
    match rate {
        0 if units > 0 => NEVER,
        0 | 1 => units,
        _ => units.div_ceil(rate),
    }
}
