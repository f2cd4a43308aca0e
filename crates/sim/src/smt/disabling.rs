//! The other CPUs of a core are idle while a real-time thread runs on it (section 4.2).

use super::MonitorCounts;
use super::plan::{Core, CorePlan};
use crate::{CallReasons, CpuGate, MachineView, Monitor, OrderList};

/// Closes and opens CPUs as real-time threads come and go.
#[derive(Debug)]
pub(super) struct DisableMonitor {
    cores: Vec<Core>,
    /// Whether the siblings of each core are closed.
    closed: Vec<bool>,
    stops: u64,
}

impl DisableMonitor {
    pub(super) fn new(plan: CorePlan) -> DisableMonitor {
        DisableMonitor { closed: vec![false; plan.cores.len()], cores: plan.cores, stops: 0 }
    }

    pub(super) fn watched(&self) -> MonitorCounts {
        MonitorCounts { stops: self.stops, ..MonitorCounts::default() }
    }
}

impl Monitor for DisableMonitor {
    fn timers(&self) -> usize {
        0
    }

    fn call_reasons(&self) -> CallReasons {
        CallReasons { dispatch: true, ..CallReasons::default() }
    }

    fn on_event(&mut self, view: &dyn MachineView, orders: &mut OrderList<'_>) {
        for (core, closed) in self.cores.iter().zip(&mut self.closed) {
            let runs = view.running(core.cpu).is_some_and(|thread| core.threads.contains(&thread));
            if runs != *closed {
                *closed = runs;
                self.stops += u64::from(runs);
                let gate = if runs { CpuGate::Closed } else { CpuGate::Open };
                core.siblings.iter().for_each(|cpu| orders.gate(*cpu, gate));
            }
        }
    }
}
