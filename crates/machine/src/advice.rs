//! Advice: what on this machine will spoil the numbers of a run, and why the kernel refused what
//! a run asked for. Each piece of advice carries its remedy, a command where there is one.
//!
//! Owns: the judgement of the facts that `host` read, for the threads of one run.
//! Must not: read anything itself, change anything, or warn of what cannot touch this run.

pub mod machine;
pub mod refusal_advice;
#[cfg(test)]
mod tests;
pub mod throttling;

use std::fmt::Write;

use hourglass_documents::document::Warning;
use hourglass_documents::host::{Host, LEAVE_THE_GUEST};
use hourglass_documents::host_limits::{self, WHOLE_CPU_PPM, micros};
use hourglass_documents::premise::PremiseKind;
use hourglass_documents::{CpuSet, Policy};
use hourglass_workload::run::{self as workload, Shortfall};

pub use refusal_advice::{RefusedOperation, why_refused};

/// What one thread of a run will want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadDemand {
    pub id: u32,
    pub policy: Policy,
    /// Whether it never waits.
    pub cpu_bound: bool,
    /// Share of one CPU that it wants, parts per million, where that is known.
    pub utilisation_ppm: Option<u64>,
    /// CPUs on which it may run; empty is any.
    pub cpus: CpuSet,
}

impl ThreadDemand {
    /// Share of one CPU that it is known to want, parts per million; at most a whole one.
    pub fn wanted_ppm(&self) -> u64 {
        match self.utilisation_ppm {
            _ if self.cpu_bound => WHOLE_CPU_PPM,
            Some(share) => share.min(WHOLE_CPU_PPM),
            None => 0,
        }
    }

    fn may_use(&self, cpus: &CpuSet) -> bool {
        self.cpus.is_empty() || self.cpus.iter().any(|cpu| cpus.contains(cpu))
    }
}

/// What will spoil the numbers of a run of `threads` on `host`, gravest first.
#[must_use]
pub fn before_run(host: &Host, threads: &[ThreadDemand]) -> Vec<Warning> {
    [
        throttling::rt_throttling(host, threads),
        rt_time_limit(host, threads),
        cgroup_quota(host, threads),
        autogroup(host, threads),
        clock_source(host),
        governor(host, threads),
        idle_states(host, threads),
        load(host, threads),
        virtual_machine(host),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What threads of these demands will want without what was refused to them: they run at time-sharing
/// priority, and may run anywhere if it was the CPUs.
pub fn without(threads: &[ThreadDemand], refused: &[Shortfall]) -> Vec<ThreadDemand> {
    let mut threads = threads.to_vec();
    for shortfall in refused {
        let Some(thread) = threads.iter_mut().find(|thread| thread.id == shortfall.thread) else {
            continue;
        };
        match &shortfall.refused {
            workload::ThreadRefusal::Policy(..) | workload::ThreadRefusal::Reservation(..) => {
                thread.policy = Policy::Other(0);
            }
            workload::ThreadRefusal::Affinity(..) => thread.cpus = CpuSet::default(),
            workload::ThreadRefusal::Timer(..) => {}
        }
    }
    threads
}

/// Puts what [`before_run`] says of `threads` in the place of what it said of them before.
pub fn judge_again(host: &Host, threads: &[ThreadDemand], warnings: &mut Vec<Warning>) {
    let anew = before_run(host, threads);
    let of_threads = ["rt-throttling", "rt-time-limit", "cgroup-quota", "autogroup"];
    warnings.retain(|warning| !of_threads.contains(&warning.id.as_str()));
    let mut now: Vec<Warning> =
        anew.into_iter().filter(|warning| of_threads.contains(&warning.id.as_str())).collect();
    now.append(warnings);
    *warnings = now;
}

/// A warning.
/// Nice values that count within a session only.
fn autogroup(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    let is_nice = |thread: &ThreadDemand| matches!(thread.policy, Policy::Other(1.. | ..=-1));
    let counts = host.scheduler.autogroup == Some(true) && threads.iter().any(is_nice);
    counts.then(machine::autogroup_warning)
}

fn warning(id: &str, text: String, remedy: String) -> Option<Warning> {
    Some(Warning { id: id.to_owned(), text, remedy })
}

/// `thread 0 (FIFO:80)`, `threads 0 (FIFO:80) and 2 (RR:10)`.
fn name(threads: &[&ThreadDemand]) -> String {
    let mut names = String::from(if threads.len() == 1 { "thread" } else { "threads" });
    for (place, thread) in threads.iter().enumerate() {
        let joint = match place {
            0 => " ",
            _ if place + 1 == threads.len() => " and ",
            _ => ", ",
        };
        // Writing to a string cannot fail.
        let _ = write!(names, "{joint}{} ({})", thread.id, thread.policy);
    }
    names
}

/// A share in parts per million as per cent.
pub(crate) fn percent(ppm: u64) -> String {
    format!("{} %", ppm as f64 / 10_000.0)
}

/// Real-time threads that never wait end a run where RLIMIT_RTTIME is set.
fn rt_time_limit(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    let longest_us = machine::rt_time_limit_us(host)?;
    let hogs: Vec<&ThreadDemand> =
        threads.iter().filter(|thread| thread.policy.is_real_time() && thread.cpu_bound).collect();
    if hogs.is_empty() {
        return None;
    }
    let (who, limit) = (name(&hogs), micros(longest_us));
    Some(PremiseKind::RtTimeLimit.warning(format!(
        "the run will be ended after {limit} without a wait of {who}: RLIMIT_RTTIME is set"
    )))
}

/// A control group's quota stops ordinary threads that together want more.
fn cgroup_quota(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    let quota = host_limits::tightest_quota(host)?;
    let granted = host_limits::quota_ppm(quota);
    let ordinary: Vec<&ThreadDemand> = threads
        .iter()
        .filter(|thread| matches!(thread.policy, Policy::Other(_) | Policy::Batch | Policy::Idle))
        .collect();

    let wanted = ordinary.iter().fold(0_u64, |sum, thread| sum.saturating_add(thread.wanted_ppm()));
    let reach =
        reach(host, &ordinary).map_or(u64::MAX, |cpus| WHOLE_CPU_PPM.saturating_mul(cpus as u64));
    let wanted = wanted.min(reach);
    if wanted <= granted {
        return None;
    }
    let busy = wanted.div_ceil(WHOLE_CPU_PPM);
    warning(
        "cgroup-quota",
        format!(
            "{} together want {} of a CPU but {} grants {}: gaps of up to {} in every {}{}",
            name(&ordinary),
            percent(wanted),
            quota.file,
            percent(granted),
            micros(machine::quota_gap_us(quota, busy)),
            micros(quota.period_us),
            machine::quota_debt(host, quota, busy)
        ),
        machine::quota_remedy(host, quota),
    )
}

/// The number of CPUs on which `threads` may run.
fn reach(host: &Host, threads: &[&ThreadDemand]) -> Option<usize> {
    if threads.iter().any(|thread| thread.cpus.is_empty()) {
        let cpus = host.cpu.allowed.as_ref().or(host.cpu.online.as_ref());
        return cpus.map(CpuSet::len);
    }
    let cpus: CpuSet = threads.iter().flat_map(|thread| thread.cpus.iter()).collect();
    Some(cpus.len())
}

/// The kernel's clock is not the processor's counter.
fn clock_source(host: &Host) -> Option<Warning> {
    let current = host.clock_source.current.as_deref()?;
    let fault = machine::clock_fault(host)?;
    warning(
        "clock-source",
        format!("the kernel keeps time with {current}: {}", fault.reason()),
        machine::clock_remedy(host).to_owned(),
    )
}

/// The frequency changes during the run.
fn governor(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    let policy = host.frequency.policies.iter().find(|policy| {
        machine::moves(policy) && threads.iter().any(|thread| thread.may_use(&policy.cpus))
    })?;
    warning(
        "governor",
        format!(
            "the frequency governor of CPUs {} is {}: loops and wake-ups are slower until the \
             frequency has risen",
            policy.cpus,
            policy.governor.as_deref()?
        ),
        machine::PERFORMANCE.to_owned(),
    )
}

/// Threads that wait are woken late from deep idle states.
fn idle_states(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    let waiting: Vec<&ThreadDemand> = threads.iter().filter(|thread| !thread.cpu_bound).collect();
    let used = host
        .idle
        .policies
        .iter()
        .filter(|policy| waiting.iter().any(|thread| thread.may_use(&policy.cpus)));
    let (latency_us, state) =
        used.filter_map(|policy| machine::deepest(host, &policy.states)).max()?;
    warning(
        "idle-states",
        format!(
            "{} may be woken from idle state {state}, which takes {} to leave",
            name(&waiting),
            micros(latency_us)
        ),
        "--dma-latency 0 (needs write access to /dev/cpu_dma_latency)".to_owned(),
    )
}

/// Others are at work on the machine.
fn load(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    let (load, cpus) = machine::others_at_work(host)?;
    // Other threads run on an isolated CPU only if they asked for it.
    let apart = host.cpu.isolated.as_ref().is_some_and(|isolated| {
        threads
            .iter()
            .all(|thread| !thread.cpus.is_empty() && thread.cpus.difference(isolated).is_empty())
    });
    if apart {
        return None;
    }
    warning(
        "load",
        format!(
            "other programs are running: load average {load} on {cpus} CPUs before the run began"
        ),
        machine::END_THE_OTHERS.to_owned(),
    )
}

/// A hypervisor can take the CPUs away unseen.
fn virtual_machine(host: &Host) -> Option<Warning> {
    let kind = machine::hypervisor(host)?;
    warning(
        "virtual-machine",
        format!("a virtual machine ({kind}): some gaps are the host's, whatever steal time says"),
        LEAVE_THE_GUEST.to_owned(),
    )
}
