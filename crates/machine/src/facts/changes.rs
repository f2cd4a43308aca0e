//! What changes while a run goes on, and by how much it changed.

use std::collections::BTreeMap;

use hourglass_documents::host::{HostChange, HostMoment};

use super::cgroup;
use super::files::{CPUS, Files};
use super::{kernel, log};

/// Length of a tick in `/proc/stat`. It is a constant of the interface (`USER_HZ` = 100), not the
/// timer's tick.
const STAT_TICK_NS: u64 = 10_000_000;

/// Position of the stolen time behind a CPU's name in `/proc/stat`.
const STEAL_FIELD: usize = 7;

pub(super) fn now(files: &Files) -> HostMoment {
    let load = files.line("proc/loadavg").unwrap_or_default();
    let stat = files.text("proc/stat").unwrap_or_default();
    let lines = stat.lines().filter_map(|line| {
        let (cpu, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        let steal = times.split_whitespace().nth(STEAL_FIELD)?;
        Some((cpu, steal.parse::<u64>().ok()?.saturating_mul(STAT_TICK_NS)))
    });
    let (mut steal_ns, mut steal_ns_by_cpu) = (None, BTreeMap::new());
    for (cpu, stolen) in lines {
        if cpu.is_empty() {
            steal_ns = Some(stolen);
        } else if let Ok(cpu) = cpu.parse() {
            steal_ns_by_cpu.insert(cpu, stolen);
        }
    }
    let stopped = cgroup::quota_stopped(files, "self");
    HostMoment {
        load_average: load_average(&load),
        runnable_others: runnable_others(&load),
        steal_ns,
        steal_ns_by_cpu,
        clock_source: kernel::current_clock_source(files),
        quota_throttled: stopped.as_ref().map(|stopped| stopped.periods),
        quota_throttled_ns: stopped.as_ref().and_then(|stopped| stopped.ns),
        quotas: stopped.map(|stopped| stopped.quotas).unwrap_or_default(),
        rt_throttling_logged: log::count(files, log::RT_THROTTLING),
        thermal_throttled: thermal_throttled(files),
    }
}

/// The three averages of a line like `0.07 0.10 0.04 1/86 6958`.
fn load_average(line: &str) -> Option<[f64; 3]> {
    let mut averages = line.split(' ').map(|word| {
        let average = word.parse::<f64>().ok()?;
        // A document cannot hold "not a number".
        (average.is_finite() && average >= 0.0).then_some(average)
    });
    Some([averages.next()??, averages.next()??, averages.next()??])
}

/// The threads that could run, of the same line, without the one that reads it.
fn runnable_others(line: &str) -> Option<u32> {
    let (runnable, _) = line.split(' ').nth(3)?.split_once('/')?;
    Some(runnable.parse::<u32>().ok()?.saturating_sub(1))
}

/// How often heat or power slowed the cores down.
fn thermal_throttled(files: &Files) -> Option<u64> {
    let cpus = files.cpu_folders();
    let counts = cpus.iter().filter_map(|cpu| {
        files.number::<u64>(&format!("{CPUS}/cpu{cpu}/thermal_throttle/core_throttle_count"))
    });
    counts.reduce(u64::saturating_add)
}

/// How the machine changed between two moments. A count that went down (a CPU went away and came
/// back) tells nothing.
pub(super) fn change(start: &HostMoment, end: &HostMoment) -> HostChange {
    let grown = |start: Option<u64>, end: Option<u64>| end?.checked_sub(start?);
    let files = |moment: &HostMoment| -> Vec<String> {
        moment.quotas.iter().map(|quota| quota.file.clone()).collect()
    };
    let other_quotas = files(start) != files(end);
    let of_quotas = |start, end| grown(start, end).filter(|_| !other_quotas);
    let steal_ns_by_cpu = end
        .steal_ns_by_cpu
        .iter()
        .filter_map(|(cpu, end)| {
            let stolen = grown(start.steal_ns_by_cpu.get(cpu).copied(), Some(*end))?;
            (stolen > 0).then_some((*cpu, stolen))
        })
        .collect();
    HostChange {
        load_average: end.load_average,
        steal_ns: grown(start.steal_ns, end.steal_ns),
        steal_ns_by_cpu,
        clock_source: end.clock_source.clone(),
        clock_source_changed: start.clock_source.is_some()
            && end.clock_source.is_some()
            && start.clock_source != end.clock_source,
        quota_throttled: of_quotas(start.quota_throttled, end.quota_throttled),
        quota_throttled_ns: of_quotas(start.quota_throttled_ns, end.quota_throttled_ns),
        quotas: other_quotas.then(|| end.quotas.clone()),
        rt_throttling_logged: grown(start.rt_throttling_logged, end.rt_throttling_logged),
        thermal_throttled: grown(start.thermal_throttled, end.thermal_throttled),
        ..HostChange::default()
    }
}
