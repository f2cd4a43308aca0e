//! How a run recorded the kernel's events: what explains the table of them.
//!
//! Owns: the shape of these facts in the manifest. Must not: read a trace, judge one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How the kernel's events of a run were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFacts {
    /// The kernel's trace clock: `x86-tsc`, `mono`, `mono_raw`.
    pub clock: String,
    /// Whether that clock is the run's own counter. If not, events were put on the counter by
    /// the pairs in `checks`.
    pub same_counter: bool,
    /// Pairs of trace clock and counter, the first before the run, the last after it.
    pub checks: Vec<ClockCheck>,
    /// Size of the kernel's ring, each CPU, bytes.
    pub buffer_bytes: u64,
    /// When the ring was emptied, in words.
    pub drained: String,
    /// The events that were recorded, as `sched/sched_switch`.
    pub events: Vec<String>,
    /// What this kernel does not have, or refused: events, and fields of events.
    #[serde(default)]
    pub missing: Vec<String>,
    /// The CPUs whose events were recorded, ascending.
    pub cpus: Vec<KernelCpu>,
    /// What the numbers in the events are called.
    pub names: KernelNames,
}

/// The events of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCpu {
    /// The CPU.
    pub cpu: u32,
    /// Events that were kept.
    pub events: u64,
    /// Events that were lost because the ring was full, or the room to keep them.
    pub lost: u64,
    /// Pieces of the ring that could not be read to their end.
    #[serde(default)]
    pub damaged: u64,
    /// Switches that the kernel did not record although no event was lost: who left the CPU is not who was given it.
    #[serde(default)]
    pub missing_switches: u64,
}

/// The trace clock and the run's counter at one moment: the program read the counter, had the
/// kernel note an event, and read the counter again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockCheck {
    /// The counter before, ticks.
    pub before: u64,
    /// The trace clock between them, in its own unit.
    pub trace: u64,
    /// The counter after, ticks.
    pub after: u64,
}

impl ClockCheck {
    /// Whether the trace clock lies between the two reads: so it must, where both are one
    /// counter.
    #[must_use]
    pub fn holds(&self) -> bool {
        (self.before..=self.after).contains(&self.trace)
    }
}

/// What the numbers in the kernel's events are called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelNames {
    /// Threads by the kernel's number: their names (`comm`), the last that was seen.
    pub threads: BTreeMap<u32, String>,
    /// Lines of device interrupts: the devices.
    pub irqs: BTreeMap<u32, String>,
    /// Vectors of softirqs.
    pub softirqs: BTreeMap<u32, String>,
    /// The processor's own interrupts, by the processor's number.
    pub vectors: BTreeMap<u32, String>,
}

impl KernelFacts {
    /// How many events are missing, of all CPUs.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.lost).fold(0, u64::saturating_add)
    }

    /// Whether events of `cpu` were recorded at all.
    #[must_use]
    pub fn covers(&self, cpu: u32) -> bool {
        self.cpus.iter().any(|covered| covered.cpu == cpu)
    }
}
