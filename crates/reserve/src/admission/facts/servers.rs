//! What the kernel keeps for others, and its account of what it gave away.

use std::collections::BTreeMap;

use hourglass_documents::CpuSet;

use super::files::Files;

/// What one CPU keeps for ordinary threads against the real-time classes
/// (Linux 6.12, a deadline server of the fair class).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairServer {
    /// Number of the CPU.
    pub cpu: u32,
    /// Time in each period, ns.
    pub runtime_ns: u64,
    /// The period, ns.
    pub period_ns: u64,
}

/// How the fair servers are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FairServerSource {
    /// Read from debugfs.
    Read,
    /// Debugfs cannot be read. The kernel's default is assumed.
    Assumed,
    /// The kernel has none, or does not say which kernel it is.
    #[default]
    Absent,
}

/// The first kernel with fair servers.
const FIRST: (u32, u32) = (6, 12);

/// The default bandwidth of fair servers (`kernel/sched/deadline.c`).
const USUAL_RUNTIME_NS: u64 = 50_000_000;
const USUAL_PERIOD_NS: u64 = 1_000_000_000;

/// The usual mount point of debugfs.
const SCHED: &str = "sys/kernel/debug/sched";

/// Kinds of servers: of the fair class, and of sched_ext in later kernels.
const KINDS: [&str; 2] = ["fair_server", "ext_server"];

pub(super) fn fair(files: &Files, online: Option<&CpuSet>) -> (Vec<FairServer>, FairServerSource) {
    let mut found = Vec::new();
    for kind in KINDS {
        let folder = format!("{SCHED}/{kind}");
        for name in files.folders(&folder) {
            let number = |what: &str| files.number::<u64>(&format!("{folder}/{name}/{what}"));
            let cpu = name.strip_prefix("cpu").and_then(|cpu| cpu.parse().ok());
            if let (Some(cpu), Some(runtime_ns), Some(period_ns)) =
                (cpu, number("runtime"), number("period"))
            {
                found.push(FairServer { cpu, runtime_ns, period_ns });
            }
        }
    }
    if !found.is_empty() {
        return (found, FairServerSource::Read);
    }
    if version(files).is_none_or(|version| version < FIRST) {
        return (Vec::new(), FairServerSource::Absent);
    }
    let usual = |cpu| FairServer { cpu, runtime_ns: USUAL_RUNTIME_NS, period_ns: USUAL_PERIOD_NS };
    (online.iter().flat_map(|cpus| cpus.iter()).map(usual).collect(), FairServerSource::Assumed)
}

pub(super) fn version(files: &Files) -> Option<(u32, u32)> {
    let release = files.text("proc/sys/kernel/osrelease")?;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// `cpu_capacity` of each CPU that has one (`Documentation/ABI/testing/sysfs-devices-system-cpu`).
pub(super) fn capacities(files: &Files, online: Option<&CpuSet>) -> BTreeMap<u32, u64> {
    let file = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
    let known = |cpu| {
        Some((cpu, files.number(&file(cpu)).filter(|capacity| (1..=1_024).contains(capacity))?))
    };
    online.iter().flat_map(|cpus| cpus.iter()).filter_map(known).collect()
}

/// `total_bw` behind each `cpu#N` of the scheduler's debug file.
pub(super) fn accounts(files: &Files) -> BTreeMap<u32, i64> {
    let text = files.text(&format!("{SCHED}/debug")).unwrap_or_default();
    let mut accounts = BTreeMap::new();
    let mut cpu = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("cpu#") {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            cpu = rest[..end].parse().ok();
        } else if let (Some(cpu), Some(value)) = (cpu, line.trim().strip_prefix(".dl_bw->total_bw"))
            && let Ok(total) = value.trim().trim_start_matches(':').trim().parse()
        {
            accounts.insert(cpu, total);
        }
    }
    accounts
}
