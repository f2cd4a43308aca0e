//! What a machine, as it was recorded, keeps from threads: the limit on real-time threads, quotas.
//!
//! Must not: advise.

use hourglass_time::Span;

use crate::host::{CpuQuota, Host};

/// Parts per million in a whole CPU.
pub const WHOLE_CPU_PPM: u64 = 1_000_000;

/// First kernel with a fair server in place of throttling.
const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);

/// Default runtime and period of a fair server.
const FAIR_SERVER_RUNTIME_NS: u64 = 50_000_000;

const FAIR_SERVER_PERIOD_NS: u64 = 1_000_000_000;

/// The period of a real-time limit whose file cannot be read: the kernel's default.
const RT_PERIOD_US: u64 = 1_000_000;

/// A limit on real-time threads.
pub struct RealTimeLimit {
    runtime_us: u64,
    period_us: u64,
    pub setting: String,
}

impl RealTimeLimit {
    /// The share of a CPU that it grants, parts per million.
    pub fn share_ppm(&self) -> u64 {
        share_ppm(self.runtime_us, self.period_us)
    }

    /// How long it stops a thread that never waits, and how often.
    pub fn stop(&self) -> (Span, Span) {
        (micros(self.period_us.saturating_sub(self.runtime_us)), micros(self.period_us))
    }
}

/// The runtime, ns, in every period, ns, to which the kernel limits real-time threads that never wait.
/// `None` without a limit.
pub fn real_time_limit_ns(host: &Host) -> Option<(u64, u64)> {
    if throttles(host)
        && let Some(limit) = tightest_real_time_limit(host)
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
pub fn fair_server_ns(host: &Host) -> (u64, u64) {
    let scheduler = &host.scheduler;
    (
        scheduler.fair_server_runtime_ns.unwrap_or(FAIR_SERVER_RUNTIME_NS),
        scheduler.fair_server_period_ns.unwrap_or(FAIR_SERVER_PERIOD_NS),
    )
}

/// Whether this kernel throttles real-time threads at all.
pub fn throttles(host: &Host) -> bool {
    host.scheduler.rt_group_scheduling == Some(true) || !has_fair_server(&host.kernel)
}

/// Whether this kernel has fair servers.
pub fn has_fair_server(release: &str) -> bool {
    is_since(release, FAIR_SERVER_SINCE)
}

/// Whether a release (`6.18.4-debian`) is this version, major and minor, or later.
pub fn is_since(release: &str, version: (u32, u32)) -> bool {
    let mut numbers =
        release.split(|character: char| !character.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= version,
        _ => false,
    }
}

/// The tightest limit of the machine and of the process's control groups; `None` without one.
pub fn tightest_real_time_limit(host: &Host) -> Option<RealTimeLimit> {
    let period = |us: Option<i64>| {
        us.and_then(|us| u64::try_from(us).ok()).filter(|us| *us > 0).unwrap_or(RT_PERIOD_US)
    };
    // -1 for the machine lifts the limits of the groups too.
    let machine = RealTimeLimit {
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
        Some(RealTimeLimit {
            runtime_us: u64::try_from(budget.runtime_us).ok()?,
            period_us,
            setting: format!("{}={} of {period_us}", budget.file, budget.runtime_us),
        })
    });
    // Of equals the machine's own is named.
    std::iter::once(machine).chain(groups).min_by_key(RealTimeLimit::share_ppm)
}

/// The share of a CPU that a quota grants, parts per million.
pub fn quota_ppm(quota: &CpuQuota) -> u64 {
    share_ppm(quota.quota_us, quota.period_us)
}

/// The tightest quota of the process's control groups.
pub fn tightest_quota(host: &Host) -> Option<&CpuQuota> {
    host.cgroup.cpu_quotas.iter().min_by_key(|quota| quota_ppm(quota))
}

/// `runtime` of `period` in parts per million, rounded down.
pub fn share_ppm(runtime: u64, period: u64) -> u64 {
    let share = u128::from(runtime) * u128::from(WHOLE_CPU_PPM) / u128::from(period.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// A span of microseconds, saturating.
pub fn micros(us: u64) -> Span {
    Span::from_micros(i64::try_from(us).unwrap_or(i64::MAX))
}
