//! The monitor's view of the machine, and its orders.
//!
//! Owns: what it sees, what its orders do. Must not: know a policy.

use super::super::error::SimError;
use super::super::monitor::{Gate, JobView, Monitor, Order, Orders, Reasons, View};
use super::super::server::ServerKind;
use super::Machine;
use super::timers::NEVER;

/// What a monitor may ask a machine.
pub(in crate::sim) trait Seen {
    fn now(&self) -> u64;
    fn reasons(&self) -> Reasons;
    fn expired(&self, timer: usize) -> bool;
    fn running(&self, cpu: u32) -> Option<usize>;
    fn cpu_of(&self, thread: usize) -> Option<u32>;
    fn gate(&self, cpu: u32) -> Gate;
    fn job(&self, thread: usize) -> Option<JobView>;
    fn budget(&self, server: usize) -> Option<u64>;
    fn server_deadline(&self, server: usize) -> Option<u64>;
}

impl<const TELL: bool> Seen for Machine<TELL> {
    fn now(&self) -> u64 {
        self.now
    }

    fn reasons(&self) -> Reasons {
        self.reasons
    }

    fn expired(&self, timer: usize) -> bool {
        self.expired.get(timer).copied().unwrap_or(false)
    }

    fn running(&self, cpu: u32) -> Option<usize> {
        self.cpus.get(cpu as usize).and_then(|cpu| cpu.thread)
    }

    fn cpu_of(&self, thread: usize) -> Option<u32> {
        let cpu = self.runners.get(thread)?.cpu?;
        u32::try_from(cpu).ok()
    }

    fn gate(&self, cpu: u32) -> Gate {
        self.cpus.get(cpu as usize).map_or(Gate::Closed, |cpu| cpu.gate)
    }

    fn job(&self, thread: usize) -> Option<JobView> {
        let runner = self.runners.get(thread)?;
        let job = runner.job.as_ref()?;
        let scale = self.rates.scale;
        let done = match runner.endless {
            true => u64::try_from(runner.work / u128::from(scale)).unwrap_or(u64::MAX),
            false => (job.cost - job.left) / scale,
        };
        Some(JobView {
            job: job.number,
            arrival: job.coming.arrival,
            due: job.due,
            cost: if runner.endless { u64::MAX } else { job.cost / scale },
            done,
        })
    }

    fn budget(&self, server: usize) -> Option<u64> {
        self.keepers.get(server).map(|keeper| keeper.left.div_ceil(keeper.unit))
    }

    fn server_deadline(&self, server: usize) -> Option<u64> {
        let keeper = self.keepers.get(server)?;
        let due = keeper.due;
        let periodic = !matches!(keeper.server.kind, ServerKind::Sporadic);
        (keeper.begun || !periodic).then_some(due)
    }
}

impl<const TELL: bool> Machine<TELL> {
    /// Lets the monitor look.
    pub(super) fn consulted<M: Monitor>(&self, monitor: &mut M, given: &mut Vec<Order>) {
        given.clear();
        monitor.look(&View { seen: self }, &mut Orders { given });
    }

    /// Carries out what was ordered.
    pub(super) fn obey(&mut self, given: &[Order]) -> Result<(), SimError> {
        for order in given {
            match *order {
                Order::Gate(cpu, gate) => {
                    let cpu = self.known_cpu(cpu)?;
                    if self.cpus[cpu].gate != gate {
                        self.cpus[cpu].gate = gate;
                        self.soil(self.cpus[cpu].domain);
                    }
                }
                Order::Stop(thread) => self.set_stopped(thread, true)?,
                Order::Resume(thread) => self.set_stopped(thread, false)?,
                Order::Wake(timer, at) => self.set_monitor(timer, at.max(self.now))?,
                Order::Cancel(timer) => self.set_monitor(timer, NEVER)?,
                Order::Spend(cpu, time) => {
                    let cpu = self.known_cpu(cpu)?;
                    self.spend(cpu, time);
                    self.soil(self.cpus[cpu].domain);
                }
            }
        }
        Ok(())
    }

    fn known_cpu(&self, cpu: u32) -> Result<usize, SimError> {
        let cpu = cpu as usize;
        if cpu < self.cpus.len() { Ok(cpu) } else { Err(SimError::UnknownOrder) }
    }

    fn set_stopped(&mut self, thread: usize, stopped: bool) -> Result<(), SimError> {
        let runner = self.runners.get_mut(thread).ok_or(SimError::UnknownOrder)?;
        if runner.stopped != stopped {
            runner.stopped = stopped;
            let domain = runner.domain;
            self.soil(domain);
            self.update_share(thread);
            self.rank_again(thread);
        }
        Ok(())
    }

    fn set_monitor(&mut self, timer: usize, at: u64) -> Result<(), SimError> {
        if timer >= self.expired.len() {
            return Err(SimError::UnknownOrder);
        }
        self.timers.set(self.slots.monitor + timer, at);
        Ok(())
    }
}
