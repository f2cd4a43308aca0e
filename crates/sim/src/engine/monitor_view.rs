//! The monitor's view of the machine, and its orders.
//!
//! Owns: what it sees, what its orders do. Must not: know a policy.

use super::super::error::SimError;
use super::super::server::ServerKind;
use super::SimState;
use super::monitor::{
    CallReasons, CpuGate, JobView, MachineView, Monitor, MonitorOrder, OrderList,
};
use super::timers::NEVER;

impl<const TELL: bool> MachineView for SimState<TELL> {
    fn now(&self) -> u64 {
        self.now
    }

    fn reasons(&self) -> CallReasons {
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

    fn gate(&self, cpu: u32) -> CpuGate {
        self.cpus.get(cpu as usize).map_or(CpuGate::Closed, |cpu| cpu.gate)
    }

    fn job(&self, thread: usize) -> Option<JobView> {
        let runner = self.runners.get(thread)?;
        let job = runner.job.as_ref()?;
        let scale = self.rates.scale;
        let done = match runner.endless {
            true => u64::try_from(runner.work / u128::from(scale)).unwrap_or(u64::MAX),
            false => (job.cost - job.remaining) / scale,
        };
        Some(JobView {
            job: job.number,
            arrival: job.coming.arrival,
            deadline: job.deadline,
            cost: if runner.endless { u64::MAX } else { job.cost / scale },
            done,
        })
    }

    fn budget(&self, server: usize) -> Option<u64> {
        self.servers.get(server).map(|keeper| keeper.remaining_budget.div_ceil(keeper.unit))
    }

    fn server_deadline(&self, server: usize) -> Option<u64> {
        let keeper = self.servers.get(server)?;
        let due = keeper.deadline;
        let periodic = !matches!(keeper.server.kind, ServerKind::Sporadic);
        (keeper.has_deadline || !periodic).then_some(due)
    }
}

impl<const TELL: bool> SimState<TELL> {
    /// Calls the monitor.
    pub(super) fn consulted<M: Monitor>(&self, monitor: &mut M, given: &mut Vec<MonitorOrder>) {
        given.clear();
        monitor.on_event(self, &mut OrderList { orders: given });
    }

    /// Carries out what was ordered.
    pub(super) fn obey(&mut self, given: &[MonitorOrder]) -> Result<(), SimError> {
        for order in given {
            match *order {
                MonitorOrder::Gate(cpu, gate) => {
                    let cpu = self.known_cpu(cpu)?;
                    if self.cpus[cpu].gate != gate {
                        self.cpus[cpu].gate = gate;
                        self.soil(self.cpus[cpu].domain);
                    }
                }
                MonitorOrder::Stop(thread) => self.set_stopped(thread, true)?,
                MonitorOrder::Resume(thread) => self.set_stopped(thread, false)?,
                MonitorOrder::Wake(timer, at) => self.set_monitor(timer, at.max(self.now))?,
                MonitorOrder::Cancel(timer) => self.set_monitor(timer, NEVER)?,
                MonitorOrder::Spend(cpu, time) => {
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
