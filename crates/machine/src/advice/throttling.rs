//! The kernel's protection against real-time threads that never wait.
//!
//! Two mechanisms. Real-time throttling stops FIFO and RR threads when they have used their
//! runtime in a period; it is in kernels before 6.12, and in later ones with real-time group
//! scheduling. The fair server of 6.12 and later lends the CPU to ordinary threads that starve,
//! whatever `sched_rt_runtime_us` says.

use hourglass_documents::CpuSet;
use hourglass_documents::document::Warning;
use hourglass_documents::host::Host;
use hourglass_time::Span;

use hourglass_documents::host_limits::{
    WHOLE_CPU_PPM, fair_server_ns, has_fair_server, share_ppm, throttles, tightest_real_time_limit,
};

use super::{ThreadDemand, name, percent, warning};

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

/// Real-time threads that the kernel will stop, whichever way.
pub(super) fn rt_throttling(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    throttled(host, threads).or_else(|| yielding_to_fair_server(host, threads))
}

/// Stopped by real-time throttling.
fn throttled(host: &Host, threads: &[ThreadDemand]) -> Option<Warning> {
    if !throttles(host) {
        return None;
    }
    let limit = tightest_real_time_limit(host)?;
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
            Span::saturating_from_nanos(runtime_ns),
            Span::saturating_from_nanos(period_ns)
        ),
        format!("{}; {RISK}", lift_fair_servers("cpu*")),
    )
}

/// Takes the time away that the fair servers of `cpus` keep: `cpu*`, or a list of folders.
pub(crate) fn lift_fair_servers(cpus: &str) -> String {
    LIFT_FAIR_SERVERS.join(cpus)
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
