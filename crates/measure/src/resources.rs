//! What a run asks of the machine that it cannot have: CPUs and memory.
//!
//! Owns: which CPUs may be named. Must not: refuse what the kernel would grant.

use hourglass_documents::CpuSet;
use hourglass_documents::host::Host;
use hourglass_machine::permitted_cpus;
use hourglass_sys::memory::{MemoryShortage, lack_of};
use hourglass_workload::spec::RunSpec;

use crate::failure::RunFailure;

pub(crate) fn check_cpus(spec: &RunSpec, host: &Host) -> Result<(), RunFailure> {
    // What the machine does not tell is left to the kernel to refuse.
    for (thread, wanted) in spec.threads.iter().enumerate() {
        let Some(wanted) = &wanted.cpus else { continue };
        let missing = |cpus: &CpuSet| wanted.iter().find(|cpu| !cpus.contains(*cpu));
        if let Some(online) = &host.cpu.online
            && let Some(cpu) = missing(online)
        {
            return Err(RunFailure::NoSuchCpu { thread, cpu, online: online.clone() });
        }
        if let Some(permitted) = permitted_cpus(host)
            && let Some(cpu) = missing(&permitted)
        {
            return Err(RunFailure::Barred { thread, cpu, permitted });
        }
    }
    Ok(())
}

/// If more than this share of the memory were locked, the kernel would kill a process.
const LOCKABLE: (u64, u64) = (3, 4);

/// What a run takes beside its buffers, until its result is written: the trace's file has 15 MiB of columns at
/// a time. Bytes.
const BESIDE: u64 = 24 * MIB;
const MIB: u64 = 1 << 20;

pub(crate) fn check_memory(spec: &RunSpec, host: &Host) -> Result<(), RunFailure> {
    let bytes = spec.memory_bytes();
    let wanted = bytes.div_ceil(MIB);
    let failed = |given: u64, whose: &str, limit: &str| {
        let given = given / MIB;
        Err(RunFailure::Memory { wanted, given, limit: format!("{whose} {given} MiB{limit}") })
    };
    let limits = [host.memory.total_bytes, host.cgroup.memory_limit_bytes];
    if let Some(total) = limits.into_iter().flatten().min() {
        let given = total / LOCKABLE.1 * LOCKABLE.0;
        if bytes > given {
            return failed(given, "this machine can give", "");
        }
    }
    match lack_of(u128::from(bytes), BESIDE) {
        None => Ok(()),
        Some(MemoryShortage::Available(left)) => {
            failed(left, "this machine has", " now (MemAvailable)")
        }
        Some(MemoryShortage::Limit(left)) => {
            let left = left.saturating_sub(BESIDE);
            failed(left, "this process may have", " (RLIMIT_AS, ulimit -v)")
        }
        Some(MemoryShortage::Refused) => Err(RunFailure::Memory {
            wanted,
            given: 0,
            limit: "the kernel refuses them".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use hourglass_workload::spec::ThreadSpec;

    use super::*;

    fn on(cpus: &str) -> RunSpec {
        let cpus = Some(cpus.parse().unwrap());
        RunSpec::new(vec![ThreadSpec { cpus, ..ThreadSpec::default() }])
    }

    /// `taskset -c 0 hourglass noise -c 1` and isolated CPUs were refused: what bars a CPU is its absence and the
    /// cpuset, not the affinity with which this process was started.
    #[test]
    fn what_the_cpuset_has_may_be_named() {
        let mut host = Host::default();
        host.cpu.online = "0-3".parse().ok();
        host.cpu.allowed = "0".parse().ok();
        assert!(check_cpus(&on("1,3"), &host).is_ok());
        host.cgroup.cpuset = "0-1".parse().ok();
        assert!(check_cpus(&on("1"), &host).is_ok());
        let barred = check_cpus(&on("1-2"), &host).unwrap_err();
        assert_eq!(
            barred.to_string(),
            "thread 0: --cpu: CPU 2 is not in the cpuset of this process's control group; use some of \
             0-1, or give the cpuset more (docker: --cpuset-cpus)"
        );
        let missing = check_cpus(&on("4"), &host).unwrap_err();
        assert!(matches!(missing, RunFailure::NoSuchCpu { cpu: 4, .. }), "{missing}");
    }

    #[test]
    fn a_machine_that_tells_nothing_leaves_it_to_the_kernel() {
        let host = Host::default();
        assert!(check_cpus(&on("700"), &host).is_ok());
        assert!(check_memory(&on("0"), &host).is_ok());
    }
}
