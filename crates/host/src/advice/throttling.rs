//! The kernel's protection against real-time threads that never wait.
//!
//! Two mechanisms. Real-time throttling stops FIFO and RR threads when they have used their
//! runtime in a period; it is in kernels before 6.12, and in later ones with real-time group
//! scheduling. The fair server of 6.12 and later lends the CPU to ordinary threads that starve,
//! whatever `sched_rt_runtime_us` says.

use hourglass_model::CpuSet;
use hourglass_model::document::Warning;
use hourglass_model::host::Host;
use hourglass_time::Span;

use super::{ThreadDemand, WHOLE_CPU_PPM, micros, name, percent, share_ppm, warning};

/// First kernel with a fair server in place of throttling.
const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);

/// Default runtime and period of a fair server.
const FAIR_SERVER_RUNTIME_NS: u64 = 50_000_000;
const FAIR_SERVER_PERIOD_NS: u64 = 1_000_000_000;

/// The period of a real-time limit whose file cannot be read: the kernel's default.
const RT_PERIOD_US: u64 = 1_000_000;

/// Lifts real-time throttling.
pub(crate) const LIFT_THROTTLING: &str = "sudo sysctl kernel.sched_rt_runtime_us=-1";

/// Takes the time away that fair servers keep; between the two stand their folders.
const LIFT_FAIR_SERVERS: [&str; 2] = [
    "sudo sh -c 'for f in /sys/kernel/debug/sched/fair_server/",
    "/runtime; do echo 0 > $f; done'",
];

/// What lifting a protection risks.
pub(crate) const RISK: &str = "a real-time thread that never waits can then hang its CPU, so \
                               leave at least one CPU to the others";

/// A limit on real-time threads.
pub(crate) struct Limit {
    runtime_us: u64,
    period_us: u64,
    pub(crate) setting: String,
}

impl Limit {
    /// The share of a CPU that it grants, parts per million.
    pub(crate) fn share_ppm(&self) -> u64 {
        share_ppm(self.runtime_us, self.period_us)
    }

    /// How long it stops a thread that never waits, and how often.
    pub(crate) fn stop(&self) -> (Span, Span) {
        (micros(self.period_us.saturating_sub(self.runtime_us)), micros(self.period_us))
    }
}

/// Real-time threads that the kernel will stop, whichever way.
pub(super) fn rt_throttling(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    throttled(host, threads).or_else(|| yielding_to_fair_server(host, threads))
}

/// The runtime, ns, in every period, ns, to which the kernel limits real-time threads that never wait.
/// `None` without a limit.
pub fn in_force_ns(host: &Host) -> Option<(u64, u64)> {
    if throttles(host)
        && let Some(limit) = tightest(host)
    {
        let ns = |us: u64| us.saturating_mul(1_000);
        return (limit.runtime_us < limit.period_us)
            .then(|| (ns(limit.runtime_us), ns(limit.period_us)));
    }
    if !has_fair_server(&host.kernel) {
        return None;
    }
    let (kept, period) = fair_server_ns(host);
    (kept > 0).then(|| (period.saturating_sub(kept), period))
}

/// What each fair server keeps for ordinary threads, and its period.
fn fair_server_ns(host: &Host) -> (u64, u64) {
    let scheduler = &host.scheduler;
    (
        scheduler.fair_server_runtime_ns.unwrap_or(FAIR_SERVER_RUNTIME_NS),
        scheduler.fair_server_period_ns.unwrap_or(FAIR_SERVER_PERIOD_NS),
    )
}

/// Stopped by real-time throttling.
fn throttled(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    if !throttles(host) {
        return None;
    }
    let limit = tightest(host)?;
    let stopped = exceeding_share(threads, limit.share_ppm());
    if stopped.is_empty() {
        return None;
    }
    let place = match host.container {
        Some(_) => "on the container's host: ",
        None => "",
    };
    let (stop, period) = limit.stop();
    warning(
        "rt-throttling",
        format!(
            "{} will be stopped for up to {stop} in every {period}: real-time threads get at \
             most {} of a CPU ({})",
            name(&stopped),
            percent(limit.share_ppm()),
            limit.setting
        ),
        format!("{place}{LIFT_THROTTLING}; {RISK}"),
    )
}

/// Stopped while starving ordinary threads are let in.
fn yielding_to_fair_server(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    if !has_fair_server(&host.kernel) {
        return None;
    }
    let (runtime_ns, period_ns) = fair_server_ns(host);
    if runtime_ns == 0 {
        return None;
    }
    let left_over = WHOLE_CPU_PPM.saturating_sub(share_ppm(runtime_ns, period_ns));
    let stopped = exceeding_share(threads, left_over);
    if stopped.is_empty() {
        return None;
    }
    warning(
        "rt-throttling",
        format!(
            "{} will be stopped for up to {} in every {} while an ordinary thread waits for the \
             CPU: the kernel's fair server keeps that much for it",
            name(&stopped),
            nanos(runtime_ns),
            nanos(period_ns)
        ),
        format!("{}; {RISK}", lift_fair_servers("cpu*")),
    )
}

/// Takes the time away that the fair servers of `cpus` keep: `cpu*`, or a list of folders.
pub(crate) fn lift_fair_servers(cpus: &str) -> String {
    LIFT_FAIR_SERVERS.join(cpus)
}

/// A span of nanoseconds, saturating.
pub fn nanos(ns: u64) -> Span {
    Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// Whether this kernel throttles real-time threads at all.
pub(crate) fn throttles(host: &Host) -> bool {
    host.scheduler.rt_group_scheduling == Some(true) || !has_fair_server(&host.kernel)
}

/// Whether this kernel has fair servers.
pub(crate) fn has_fair_server(release: &str) -> bool {
    is_since(release, FAIR_SERVER_SINCE)
}

/// Whether a release (`6.18.4-debian`) is this version, major and minor, or later.
pub(crate) fn is_since(release: &str, version: (u32, u32)) -> bool {
    let mut numbers =
        release.split(|character: char| !character.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= version,
        _ => false,
    }
}

/// The tightest limit of the machine and of the process's control groups; `None` without one.
pub(crate) fn tightest(host: &Host) -> Option<Limit> {
    let period = |us: Option<i64>| {
        us.and_then(|us| u64::try_from(us).ok()).filter(|us| *us > 0).unwrap_or(RT_PERIOD_US)
    };
    // -1 for the machine lifts the limits of the groups too.
    let machine = Limit {
        runtime_us: u64::try_from(host.scheduler.rt_runtime_us?).ok()?,
        period_us: period(host.scheduler.rt_period_us),
        setting: format!(
            "sched_rt_runtime_us={} of {}",
            host.scheduler.rt_runtime_us?,
            period(host.scheduler.rt_period_us)
        ),
    };
    let groups = host.cgroup.rt_budgets.iter().filter_map(|budget| {
        let period_us = period(budget.period_us);
        Some(Limit {
            runtime_us: u64::try_from(budget.runtime_us).ok()?,
            period_us,
            setting: format!("{}={} of {period_us}", budget.file, budget.runtime_us),
        })
    });
    // Of equals the machine's own is named.
    std::iter::once(machine).chain(groups).min_by_key(Limit::share_ppm)
}

/// The real-time threads that want more than `share_ppm` of a CPU, alone or together with others
/// that are bound to the same CPU.
fn exceeding_share(threads: &[ThreadDemand], share_ppm: u64) -> Vec<&ThreadDemand> {
    let only = |thread: &ThreadDemand| match thread.cpus.len() {
        1 => thread.cpus.iter().next(),
        _ => None,
    };
    let real_time = || threads.iter().filter(|thread| thread.policy.is_real_time());
    let crowded: CpuSet = real_time()
        .filter_map(only)
        .filter(|cpu| {
            let wanted = real_time()
                .filter(|thread| only(thread) == Some(*cpu))
                .fold(0_u64, |sum, thread| sum.saturating_add(thread.wanted_ppm()));
            wanted > share_ppm
        })
        .collect();
    real_time()
        .filter(|thread| {
            thread.wanted_ppm() > share_ppm || only(thread).is_some_and(|cpu| crowded.contains(cpu))
        })
        .collect()
}
