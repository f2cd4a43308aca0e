//! The machine that a set of tasks runs on: its CPUs, which of them share a core, what its kernel
//! costs.
//!
//! Owns: [`MachineModel`], [`Overheads`], [`Interference`]. Must not: ask a real machine.

use hourglass_documents::CpuSet;
use hourglass_time::Span;

use super::Fraction;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineModel {
    /// Its CPUs. Without them, those that tasks and servers name; CPU 0 if they name none.
    pub cpus: Option<CpuSet>,
    /// CPUs that are hardware threads of one core, core by core. A CPU that stands in none has a
    /// core of its own.
    pub cores: Vec<CpuSet>,
    pub overheads: Overheads,
}

/// Execution times of the kernel; 0 by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Overheads {
    pub context_switch: Option<Span>,
    pub tick_period: Option<Span>,
    /// The execution time of a tick; shorter than the time between two.
    pub tick_cost: Option<Span>,
    /// Wake-ups happen at multiples of this only.
    pub timer_granularity: Option<Span>,
    /// The time in which a preempted job fills the caches again.
    pub cache_delay: Option<Span>,
}

/// How much of its speed a task keeps while another one runs on a sibling CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interference {
    /// The task that is slowed; any, if none is named.
    pub task: Option<String>,
    /// The name of the co-runner; any co-runner if `None`.
    pub beside: Option<String>,
    /// Progress per unit of time, from 0 to 1.
    pub rate: Fraction,
}

impl MachineModel {
    /// The CPUs of the core that `cpu` belongs to, itself among them.
    #[must_use]
    pub fn core_of(&self, cpu: u32) -> CpuSet {
        self.cores.iter().find(|core| core.contains(cpu)).cloned().unwrap_or_else(|| {
            let mut alone = CpuSet::default();
            alone.insert(cpu);
            alone
        })
    }

    #[must_use]
    pub fn has_siblings(&self) -> bool {
        self.cores.iter().any(|core| core.len() > 1)
    }
}
