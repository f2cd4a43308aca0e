//! Facts about a run besides its trace. All of them may be absent: then only the trace counts.

use std::collections::{BTreeMap, BTreeSet};

use hourglass_documents::Policy;

/// Gaps longer than this have a cause of their own, ns; shorter ones are counted together. Below
/// a microsecond lies a dense population of which nothing is known.
pub const REPORTED_NS: u64 = 1_000;

#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    /// The threads by their numbers.
    pub threads: BTreeMap<u32, ThreadFacts>,
    /// Timer ticks per second; `None` where the kernel does not state them.
    pub tick_hz: Option<u32>,
    /// The kernel's tick on the run's time line, if it is known.
    pub tick_clock: Option<TickClock>,
    /// Interrupts of the CPUs, where the kernel's counts were read.
    pub interrupts: BTreeMap<u32, InterruptFacts>,
    pub virtual_machine: Option<bool>,
    /// The kernel's limit on the CPU time of real-time threads.
    pub rt_limit: Option<RtLimit>,
    /// The kernel's numbers of all real-time threads that are not of the run and ran for a millisecond or more, where
    /// that is known.
    pub real_time: Option<BTreeSet<u32>>,
    /// The control group's quota, and whether it stopped the group in this run.
    pub quota: Option<Quota>,
    pub kernel: Option<KernelCoverage>,
    /// What the events are where the kernel was not traced: records of the threads' own switches.
    pub switches: Option<SwitchFacts>,
    /// Gaps longer than this are attributed, ns.
    pub reported_ns: u64,
}

impl Default for RunFacts {
    fn default() -> RunFacts {
        RunFacts {
            threads: BTreeMap::new(),
            tick_hz: None,
            tick_clock: None,
            interrupts: BTreeMap::new(),
            virtual_machine: None,
            rt_limit: None,
            real_time: None,
            quota: None,
            kernel: None,
            switches: None,
            reported_ns: REPORTED_NS,
        }
    }
}

/// The kernel's tick on the run's time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickClock {
    /// Distance of the ticks of a CPU, ns; not 0.
    pub period_ns: u64,
    /// A moment at which CPU 0 has one, ns from the run's start.
    pub at_ns: i64,
    /// The delay of the tick on each further CPU, ns.
    pub skew_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterruptFacts {
    /// How many there were that were no ticks, at most.
    pub most: u64,
    /// Those of devices and from other CPUs (`RES` and `CAL` of `/proc/interrupts`), which may be shorter than ticks.
    pub others: u64,
    pub timer: u64,
    /// Stretches of the run in which there was none, ns from its start, ascending.
    pub quiet: Vec<(i64, i64)>,
}

impl InterruptFacts {
    /// Whether all of a gap lies where there was none.
    pub fn is_quiet(&self, start_ns: i64, end_ns: i64) -> bool {
        let behind = self.quiet.partition_point(|(from, _)| *from <= start_ns);
        let before = behind.checked_sub(1).and_then(|at| self.quiet.get(at));
        before.is_some_and(|(_, to)| end_ns <= *to)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadFacts {
    pub policy: Option<Policy>,
    /// Whether it neither waits nor yields by itself.
    pub never_waits: bool,
    /// Whether it may wait without the trace saying so, as a program's own loop may.
    pub waits_unseen: bool,
    /// Whether it has a real-time priority above that of all threads of the run that share a CPU
    /// with it.
    pub highest: bool,
    pub reservation: Option<(u64, u64)>,
    /// Whether that is kept from user space, and not by the deadline class.
    pub in_user_space: bool,
    /// The kernel's number of it, where it is known; else it is learnt from the kernel's events.
    pub number: Option<u32>,
}

/// Real-time threads get at most `runtime_ns` in every `period_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtLimit {
    pub runtime_ns: u64,
    pub period_ns: u64,
    /// Whether the kernel said in this run that it throttles. Most say it once since boot, so that
    /// silence says nothing.
    pub logged: bool,
    /// How long real-time threads outside the run had a CPU meanwhile, ns: their turns look like throttling.
    pub others_ns: u64,
    /// Whether more may have run, which ended meanwhile: for how long is not known.
    pub others_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub period_ns: u64,
    /// Periods of this run in which the group was stopped (`nr_throttled`, after less before).
    pub throttled: u64,
    /// The throttled time, ns (`throttled_usec`), where the kernel reports it; summed over CPUs.
    pub throttled_ns: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelCoverage {
    /// CPUs whose events were recorded: for each, how many were lost.
    pub cpus: BTreeMap<u32, u64>,
    /// How far the events' time line may be off, ns; 0 where it is the trace's own counter.
    pub error_ns: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchFacts {
    /// Whether there are records of all threads, and none was lost.
    pub complete: bool,
    /// How far the records' time line may be off, ns.
    pub error_ns: u64,
}
