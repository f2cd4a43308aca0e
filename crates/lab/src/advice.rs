//! Advice: what on this machine will spoil the numbers of a run, and why the kernel refused what
//! a run asked for. Each piece of advice carries its remedy, a command where there is one.
//!
//! Owns: the judgement of the facts that `host` read, for the threads of one run.
//! Must not: read anything itself, change anything, or warn of what cannot touch this run.

mod refused;
#[cfg(test)]
mod tests;
mod throttling;

use std::fmt::Write;

use hourglass_model::document::Warning;
use hourglass_model::host::{Bound, CpuQuota, Host, IdleState};
use hourglass_model::{CpuSet, Policy};
use hourglass_time::Span;

pub use refused::{Refused, why_refused};

/// Parts per million in a whole CPU.
const WHOLE_CPU_PPM: u64 = 1_000_000;

/// Idle states that take longer than this to leave show in wake-up latencies; shallower ones are
/// within the noise of an interrupt.
const DEEP_IDLE_US: u64 = 10;

/// A machine with more runnable threads than this share of its CPUs is not at rest.
const HIGH_LOAD_PER_CPU: f64 = 0.5;

/// Clock sources that are read through a system call and a slow device.
const SLOW_CLOCK_SOURCES: [&str; 5] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];

/// Clock sources that a hypervisor steers.
const STEERED_CLOCK_SOURCES: [&str; 3] = ["kvm-clock", "xen", "hyperv"];

/// What one thread of a run will want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadDemand {
    /// Number of the thread in the run.
    pub id: u32,
    /// Its policy.
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
    fn wanted_ppm(&self) -> u64 {
        match self.utilisation_ppm {
            _ if self.cpu_bound => WHOLE_CPU_PPM,
            Some(share) => share.min(WHOLE_CPU_PPM),
            None => 0,
        }
    }

    /// Whether it may run on one of `cpus`.
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

/// A warning.
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
fn percent(ppm: u64) -> String {
    format!("{} %", ppm as f64 / 10_000.0)
}

/// `runtime` of `period` in parts per million, rounded down.
fn share_ppm(runtime: u64, period: u64) -> u64 {
    let share = u128::from(runtime) * u128::from(WHOLE_CPU_PPM) / u128::from(period.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// A span of microseconds, saturating.
fn micros(us: u64) -> Span {
    Span::from_micros(i64::try_from(us).unwrap_or(i64::MAX))
}

/// Real-time threads that never wait are killed where RLIMIT_RTTIME is set.
fn rt_time_limit(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    let limit = host.process.real_time_timeout_us?;
    let hogs: Vec<&ThreadDemand> =
        threads.iter().filter(|thread| thread.policy.is_real_time() && thread.cpu_bound).collect();
    let Bound::At(longest_us) = limit.soft else {
        return None;
    };
    if hogs.is_empty() {
        return None;
    }
    warning(
        "rt-time-limit",
        format!(
            "{} will be killed after {} without a wait: RLIMIT_RTTIME is set",
            name(&hogs),
            micros(longest_us)
        ),
        "sudo prlimit --pid $$ --rttime=unlimited, in the shell that starts the run".to_owned(),
    )
}

/// A control group's quota stops ordinary threads that together want more.
fn cgroup_quota(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    let share = |quota: &CpuQuota| share_ppm(quota.quota_us, quota.period_us);
    let quota = host.cgroup.cpu_quotas.iter().min_by_key(|quota| share(quota))?;
    let ordinary: Vec<&ThreadDemand> = threads
        .iter()
        .filter(|thread| matches!(thread.policy, Policy::Other(_) | Policy::Batch | Policy::Idle))
        .collect();

    let wanted = ordinary.iter().fold(0_u64, |sum, thread| sum.saturating_add(thread.wanted_ppm()));
    let reach =
        reach(host, &ordinary).map_or(u64::MAX, |cpus| WHOLE_CPU_PPM.saturating_mul(cpus as u64));
    let wanted = wanted.min(reach);
    if wanted <= share(quota) {
        return None;
    }
    // All busy CPUs draw on the quota at once, so it is spent that much sooner.
    let busy = wanted.div_ceil(WHOLE_CPU_PPM).max(1);
    let gap_us = quota.period_us.saturating_sub(quota.quota_us / busy);
    let unlimited = if quota.file.ends_with("cpu.max") { "max" } else { "-1" };
    let mut remedy = format!("echo {unlimited} | sudo tee {}", quota.file);
    if host.container.is_some() {
        remedy = "start the container without a CPU limit (docker run without --cpus, a pod \
                  without limits.cpu)"
            .to_owned();
    }
    warning(
        "cgroup-quota",
        format!(
            "{} together want {} of a CPU but {} grants {}: gaps of up to {} in every {}",
            name(&ordinary),
            percent(wanted),
            quota.file,
            percent(share(quota)),
            micros(gap_us),
            micros(quota.period_us)
        ),
        remedy,
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
    let fault = if SLOW_CLOCK_SOURCES.contains(&current) {
        "each read of the clock is a system call to a slow device, about a microsecond, and the \
         kernel may have found the processor's counter unfit"
    } else if STEERED_CLOCK_SOURCES.iter().any(|kind| current.starts_with(kind)) {
        "the hypervisor steers it, and a read costs more than the processor's counter"
    } else {
        return None;
    };
    let remedy = if host.clock_source.available.iter().any(|source| source == "tsc") {
        "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
    } else {
        "sudo dmesg | grep -i -e tsc -e clocksource says why tsc is not offered; mend that cause"
    };
    warning(
        "clock-source",
        format!("the kernel keeps time with {current}: {fault}"),
        remedy.to_owned(),
    )
}

/// The frequency changes during the run.
fn governor(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    let policy = host.frequency.policies.iter().find(|policy| {
        let moves = policy.min_khz.is_none() || policy.min_khz != policy.max_khz;
        let governor = policy.governor.as_deref();
        moves
            && governor.is_some_and(|governor| governor != "performance")
            && threads.iter().any(|thread| thread.may_use(&policy.cpus))
    })?;
    warning(
        "governor",
        format!(
            "the frequency governor of CPUs {} is {}: loops and wake-ups are slower until the \
             frequency has risen",
            policy.cpus,
            policy.governor.as_deref()?
        ),
        "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
            .to_owned(),
    )
}

/// Threads that wait are woken late from deep idle states.
fn idle_states(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    let limit = host.idle.latency_limit_us.map_or(u64::MAX, u64::from);
    let deepest = |states: &[IdleState]| {
        let open = states.iter().filter(|state| state.enabled);
        open.filter_map(|state| Some((state.latency_us?, state.name.clone())))
            .filter(|(latency_us, _)| *latency_us > DEEP_IDLE_US && *latency_us <= limit)
            .max()
    };
    let waiting: Vec<&ThreadDemand> = threads.iter().filter(|thread| !thread.cpu_bound).collect();
    let used = host
        .idle
        .policies
        .iter()
        .filter(|policy| waiting.iter().any(|thread| thread.may_use(&policy.cpus)));
    let (latency_us, state) = used.filter_map(|policy| deepest(&policy.states)).max()?;
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
    let [load, ..] = host.start.load_average?;
    let cpus = host.cpu.online.as_ref()?;
    // The average still counts what has ended; nobody runnable now means that it has.
    let at_rest = host.start.runnable_others == Some(0);
    // Nobody is put on an isolated CPU who did not ask for it.
    let apart = host.cpu.isolated.as_ref().is_some_and(|isolated| {
        threads
            .iter()
            .all(|thread| !thread.cpus.is_empty() && thread.cpus.difference(isolated).is_empty())
    });
    if at_rest || apart || load < HIGH_LOAD_PER_CPU * cpus.len() as f64 {
        return None;
    }
    warning(
        "load",
        format!(
            "other programs are running: load average {load} on {} CPUs before the run began",
            cpus.len()
        ),
        "end them or wait (top shows them), or run on isolated CPUs".to_owned(),
    )
}

/// A hypervisor can take the CPUs away unseen.
fn virtual_machine(host: &Host) -> Option<Warning> {
    if host.virtual_machine.present != Some(true) {
        return None;
    }
    let kind = host.virtual_machine.kind.as_deref();
    warning(
        "virtual-machine",
        format!(
            "a virtual machine ({}): some gaps are the host's, whatever steal time says",
            kind.unwrap_or("unknown hypervisor")
        ),
        "run on bare metal, or pin the virtual CPUs to processors of their own".to_owned(),
    )
}
