//! How long threads that are not followed, the idle one too, had the CPU for which a followed one was ready: an idle CPU comes
//! out of a deep state, or the host has it.

use std::collections::BTreeMap;

use super::activity::length;

/// What they ran on a CPU, ns, and since when one of them runs.
#[derive(Clone, Copy, Debug, Default)]
struct OnCpu {
    ran_ns: u64,
    since_ns: Option<i64>,
    switch_ns: Option<i64>,
}

impl OnCpu {
    fn until(&self, ns: i64) -> u64 {
        let now_ns = self.since_ns.map_or(0, |since_ns| length(since_ns, ns));
        self.ran_ns.saturating_add(now_ns)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct OtherThreads {
    cpus: BTreeMap<u32, OnCpu>,
}

/// When a thread became ready, and what the others had run by then.
#[derive(Clone, Debug)]
pub(super) struct ReadyMoment {
    at_ns: i64,
    ran_ns: BTreeMap<u32, u64>,
}

impl OtherThreads {
    /// A switch on `cpu`: whether who leaves and who comes are others. Of one that was not seen to come, all since the
    /// switch before counts: what is too long here makes a verdict unknown, what is too short makes a wrong one.
    pub(super) fn switch(&mut self, ns: i64, cpu: u32, leaves: bool, comes: bool) {
        let on_cpu = self.cpus.entry(cpu).or_default();
        if leaves && on_cpu.since_ns.is_none() {
            on_cpu.since_ns = on_cpu.switch_ns;
        }
        on_cpu.ran_ns = on_cpu.until(ns);
        (on_cpu.since_ns, on_cpu.switch_ns) = (comes.then_some(ns), Some(ns));
    }

    /// Events are missing.
    pub(super) fn lose(&mut self) {
        self.cpus
            .values_mut()
            .for_each(|on_cpu| (on_cpu.since_ns, on_cpu.switch_ns) = (None, None));
    }

    pub(super) fn now(&self, ns: i64) -> ReadyMoment {
        let ran = |(cpu, on_cpu): (&u32, &OnCpu)| (*cpu, on_cpu.until(ns));
        ReadyMoment { at_ns: ns, ran_ns: self.cpus.iter().map(ran).collect() }
    }

    /// What they ran on `cpu` in all.
    pub(super) fn ran(&self, ns: i64, cpu: u32) -> u64 {
        self.cpus.get(&cpu).map_or(0, |on_cpu| on_cpu.until(ns))
    }

    /// At most this time on `cpu` since then.
    pub(super) fn since(&self, since: &ReadyMoment, ns: i64, cpu: u32) -> u64 {
        let ran_ns = self.ran(ns, cpu);
        let before_ns = since.ran_ns.get(&cpu).copied().unwrap_or(0);
        ran_ns.saturating_sub(before_ns).min(length(since.at_ns, ns))
    }
}

/// Whom the last events show on a CPU. Some kernels leave out switches; wakings say who ran, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastSeen {
    /// A thread's number, and when it was seen last; `None` after a switch.
    thread: Option<u64>,
    at_ns: i64,
    /// When another one was, or who comes was not there yet.
    before_ns: i64,
}

impl Default for LastSeen {
    fn default() -> LastSeen {
        LastSeen { thread: None, at_ns: i64::MIN, before_ns: i64::MIN }
    }
}

impl LastSeen {
    pub(super) fn switch(&mut self, ns: i64) {
        *self = LastSeen { thread: None, at_ns: ns, before_ns: ns };
    }

    pub(super) fn see(&mut self, ns: i64, thread: u64) {
        if self.thread != Some(thread) {
            (self.thread, self.before_ns) = (Some(thread), self.at_ns);
        }
        self.at_ns = ns;
    }

    /// The last time at which `tid` did not run.
    pub(super) fn without(&self, tid: u32) -> i64 {
        if self.thread == Some(u64::from(tid)) { self.before_ns } else { self.at_ns }
    }
}
